"""How effects pass failpoints, and what the environment can ask of these."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.adapters.control import ControlStore
from calque.engine.failpoints import NAMES, FailpointGuard, Lose, is_known
from calque.errors import Unavailable
from calque.model.gaps import Gap, GapCause
from support.memory.gaps import MemoryGaps

FIRST, SECOND = Gap(1, 5, 7, GapCause.PURGED, ""), Gap(2, 9, 9, GapCause.PURGED, "")


def test_an_answer_is_lost_once_and_its_effect_has_happened() -> None:
    gaps = MemoryGaps()
    guarded = FailpointGuard(Lose("gaps.add", 2)).gaps(gaps)
    guarded.add(FIRST)
    with pytest.raises(Unavailable, match="is lost"):
        guarded.add(SECOND)
    assert list(gaps.recorded()) == [FIRST, SECOND]
    guarded.add(SECOND)


def test_a_record_passes_failpoints_of_its_first_word(tmp_path: Path) -> None:
    hits: list[str] = []
    store = ControlStore(tmp_path, FailpointGuard(hits.append).records())
    store.put("paused/dr", {"at": 1})
    assert store.read("paused/dr") == {"at": 1}
    store.remove("paused/dr")
    sides = ("put.before", "put.after", "remove.before", "remove.after")
    assert hits == [f"record.paused.{side}" for side in sides]
    assert set(hits) <= set(NAMES)


@pytest.mark.parametrize(
    ("name", "known"),
    [("ledger.publish.after", True), ("ledger.publish.lost", True), ("ledger.publish", False), ("x.y.lost", False)],
)
def test_a_misspelt_failpoint_is_not_known(name: str, known: bool) -> None:
    assert is_known(name) is known
