"""What `calque verify` and `calque repair` make of a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from calque.adapters.memory.ledger import MemoryLedger
from calque.adapters.memory.metastore import MemoryCatalog, MemoryMetastore
from calque.adapters.memory.storage import MemoryStorage
from calque.commands import repair, verify
from calque.commands.output import print_json
from calque.core.compare import Counts, Difference, DifferenceKind
from calque.engine.sides.sides import TargetSide
from calque.engine.verify.verify import SetAside, Verification
from calque.model.names import TableName
from calque.model.policy import Policy
from support.judges.documents import read_document


@dataclass(frozen=True)
class Wired:
    """A wiring with one target, and that target's own."""

    target_side: TargetSide

    def target(self, _name: str) -> Wired:
        return self

    def side(self) -> TargetSide:
        return self.target_side


POLICY = Policy("dr", "hq", rename={"b": "b_dr"})
WIRED: Any = Wired(TargetSide.of(POLICY, MemoryCatalog(MemoryMetastore()), MemoryLedger(), MemoryStorage()))
FOUND = Verification(
    "dr",
    7,
    Counts(1, 2, 3, 1, 5),
    (
        Difference(TableName("a", "x"), "", DifferenceKind.DEFINITION, "parameters.[k]", "1", None),
        Difference(TableName("b", "y"), "p=1", DifferenceKind.MISSING, "partition", "p=1", None),
        Difference(TableName("b", "z"), "", DifferenceKind.FOREIGN, "not ours", "table b.z", "table b_dr.z"),
        Difference(TableName("b", "f"), "", DifferenceKind.MISSING, "function", "b.f", None, "function"),
        Difference(TableName("b"), "", DifferenceKind.DEFINITION, "owner", "me", "you", "database"),
    ),
    (SetAside(TableName("b", "w"), "quarantined", None, "it is broken"),),
)


def test_the_document_is_the_contracts_with_the_targets_name_where_it_differs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_json(verify.document(WIRED, FOUND))
    found = read_document("verify", capsys.readouterr().out)
    assert list(found) == ["target", "event_id", "compared", "differences", "set_aside"]
    assert (found["target"], found["event_id"]) == ("dr", 7)
    assert found["compared"] == {"databases": 1, "tables": 2, "partitions": 3, "files": 1, "bytes": 5}
    first, second, *_, last = found["differences"]
    assert first == {
        "table": "a.x",
        "partition": None,
        "kind": "definition",
        "what": "parameters.[k]",
        "source": "1",
        "target": None,
    }
    assert (second["table"], second["at_target"], second["partition"]) == ("b.y", "b_dr.y", "p=1")
    assert (last["table"], last["at_target"]) == ("b", "b_dr")
    assert found["set_aside"] == [
        {"table": "b.w", "at_target": "b_dr.w", "state": "quarantined", "shows": None, "reason": "it is broken"}
    ]


def test_people_see_every_difference_what_is_set_aside_and_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    verify.show(WIRED, FOUND)
    *_, aside, summary = capsys.readouterr().out.splitlines()
    assert aside == "not compared: b.w (b_dr.w) (quarantined, shows nothing): it is broken"
    assert summary == (
        "dr differs from the source in 5 places at event 7: "
        "1 database, 2 tables, 3 partitions, 1 file (5 bytes) compared; 1 not compared"
    )


def test_an_equal_target_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    verify.show(WIRED, Verification("dr", 7))
    assert capsys.readouterr().out == (
        "dr equals the source at event 7: 0 databases, 0 tables, 0 partitions, 0 files (0 bytes) compared\n"
    )


def test_repair_reads_tables_again_and_leaves_what_is_not_ours_and_what_is_no_table() -> None:
    assert repair.to_read(FOUND) == ["a.x", "b.y"]
