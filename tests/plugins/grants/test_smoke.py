"""Grants: a target in memory gets those of its source."""

from __future__ import annotations

from plugins.grants.whole.test_grants import BOB, NAME, THERE, Rig, granted


def test_it_works_at_all() -> None:
    rig = Rig()
    rig.source.grant(NAME, [BOB])
    assert rig.follow() > 0
    assert BOB in granted(rig.target, THERE)
    assert rig.differences() == []
