"""Notices: a subscriber of a broker in memory gets a mark once."""

from __future__ import annotations

from plugins.notices.whole.test_subscribing import test_a_notice_that_comes_twice_is_one_mark as once


def test_it_works_at_all() -> None:
    once()
