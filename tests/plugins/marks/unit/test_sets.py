"""The work of a question whether a set is done: what is not needed for the answer is not read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Never

import pytest

from calque.adapters.delta.ledger import DeltaLedger
from calque.app import APP
from calque.model.names import TableName
from calque.plugins.marks.api.sets import DoneSets
from calque.plugins.marks.core import NotDone
from calque.wiring.wiring import Wiring

T, DS = TableName("sales", "t"), {"ds": "1"}
TEXT = """
[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"
[targets.dr]
metastore = "thrift://127.0.0.1:2"
warehouse = "dr"
"""


@pytest.fixture
def sets(tmp_path: Path) -> DoneSets:
    (tmp_path / "calque.toml").write_text(TEXT)
    return DoneSets(APP.wiring(APP.load(tmp_path / "calque.toml")))


def test_a_set_that_was_not_marked_is_told_without_reading_what_the_target_shows(sets: DoneSets) -> None:
    def unneeded() -> Never:
        pytest.fail("the target's tables are read")

    verdict = replace(sets.judge("dr"), view=unneeded).verdict(T, DS)
    assert isinstance(verdict, NotDone)
    assert verdict.state == "unmarked"


class Enough(Exception):
    """The end of a wait that has looked often enough."""


def test_a_wait_opens_the_target_s_ledger_once_however_often_it_looks(
    sets: DoneSets, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, looks = [], []
    open_ledger, last_epoch = Wiring.ledger, DeltaLedger.last_epoch

    def opening(wiring: Wiring, target: str) -> DeltaLedger:
        opened.append(target)
        return open_ledger(wiring, target)

    def looking(ledger: DeltaLedger) -> object:
        looks.append(ledger)
        if len(looks) == 5:
            raise Enough
        return last_epoch(ledger)

    monkeypatch.setattr(Wiring, "ledger", opening)
    monkeypatch.setattr(DeltaLedger, "last_epoch", looking)
    with pytest.raises(Enough):
        sets.wait(T, DS, "dr")
    assert opened == ["dr"]
