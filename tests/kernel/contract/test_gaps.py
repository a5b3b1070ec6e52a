"""The port `Gaps`: every adapter keeps them in order, whole, and each once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from calque.adapters.control import ControlGaps, ControlStore
from calque.errors import Broken
from calque.model.gaps import Gap, GapCause
from calque.ports import Gaps
from support.memory.gaps import MemoryGaps

FIRST = Gap(1, 812, 900, GapCause.PURGED, "2026-01-01T00:00:00Z")
SECOND = Gap(2, 950, 700, GapCause.WENT_BACK, "2026-01-02T00:00:00Z")


@pytest.fixture(params=["memory", "control"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Gaps]:
    """Opens the same gaps, again and again."""
    if request.param == "control":
        return lambda: ControlGaps(ControlStore(tmp_path))
    gaps = MemoryGaps()
    return lambda: gaps


def test_gaps_are_found_again_in_their_order(opened: Callable[[], Gaps]) -> None:
    assert list(opened().recorded()) == []
    for gap in (FIRST, SECOND):
        opened().add(gap)
    assert list(opened().recorded()) == [FIRST, SECOND]
    assert [gap.span for gap in opened().recorded()] == [(813, 900), (701, 950)]


def test_a_gap_that_is_added_again_is_there_once(opened: Callable[[], Gaps]) -> None:
    for gap in (FIRST, replace(FIRST, found_at="2026-01-01T00:00:09Z")):
        opened().add(gap)
    assert list(opened().recorded()) == [FIRST]


@pytest.mark.parametrize("gap", [replace(FIRST, number=3), replace(FIRST, at=901), replace(FIRST, number=0)])
def test_a_number_that_does_not_follow_is_broken(opened: Callable[[], Gaps], gap: Gap) -> None:
    opened().add(FIRST)
    with pytest.raises(Broken):
        opened().add(gap)
    assert list(opened().recorded()) == [FIRST]


def test_a_gap_is_settled_once_and_for_all(opened: Callable[[], Gaps]) -> None:
    assert opened().settled() == 0
    with pytest.raises(Broken):
        opened().settle(1)
    for gap in (FIRST, SECOND):
        opened().add(gap)
    assert opened().settled() == 0
    for number in (2, 1):
        opened().settle(number)
        assert opened().settled() == 2
    assert list(opened().recorded()) == [FIRST, SECOND]
