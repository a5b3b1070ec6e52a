"""Delta replicas: a target in memory keeps a table as a Delta table, and verify finds both sides equal."""

from __future__ import annotations

from calque.engine.verify.verify import verify
from plugins.delta_replicas.whole.test_delta_commits import PARTED, insert, newest, pool, world

__all__ = ["world"]


def test_it_works_at_all(world) -> None:  # type: ignore[no-untyped-def]
    before = newest(world).version
    insert(world)
    world.settle()
    assert newest(world).version > before
    assert not verify(world.source_side, world.side, (), "checksum", pool=pool).differences
    assert world.as_listed(PARTED).partitions
