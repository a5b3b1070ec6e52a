"""What `calque verify` and `calque repair` make of a result."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.app import APP
from calque.commands import verify
from calque.commands.output import print_json
from calque.control import verification
from calque.core.images.compare import ComparedCounts, Difference, DifferenceKind
from calque.engine.verify.report import SkippedObject, Verification
from calque.model.names import TableName
from calque.wiring.wiring import Wiring
from support.judges.documents import read_document


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    file = tmp_path / "calque.toml"
    file.write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://hq:1"\n'
        '[targets.dr]\nmetastore = "thrift://dr:1"\nwarehouse = "dr"\nrename = { "b" = "b_dr" }\n'
    )
    return APP.wiring(APP.load(file))


FOUND = Verification(
    "dr",
    7,
    ComparedCounts(1, 2, 3, 1, 5),
    (
        Difference(TableName("a", "x"), "", DifferenceKind.DEFINITION, "parameters.[k]", "1", None),
        Difference(TableName("b", "y"), "p=1", DifferenceKind.MISSING, "partition", "p=1", None),
        Difference(TableName("b", "z"), "", DifferenceKind.FOREIGN, "not ours", "table b.z", "table b_dr.z"),
        Difference(TableName("b", "f"), "", DifferenceKind.MISSING, "function", "b.f", None, "function"),
        Difference(TableName("b"), "", DifferenceKind.DEFINITION, "owner", "me", "you", "database"),
    ),
    (SkippedObject(TableName("b", "w"), "quarantined", None, "it is broken"),),
)


def test_the_document_is_the_contracts_with_the_targets_name_where_it_differs(
    wiring: Wiring,
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_json(verification.document(wiring, FOUND))
    document = read_document("verify", capsys.readouterr().out)
    assert list(document) == ["target", "event_id", "compared", "differences", "set_aside"]
    assert (document["target"], document["event_id"]) == ("dr", 7)
    assert document["compared"] == {"databases": 1, "tables": 2, "partitions": 3, "files": 1, "bytes": 5}
    first, second, *_, last = document["differences"]
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
    assert document["set_aside"] == [
        {"table": "b.w", "at_target": "b_dr.w", "state": "quarantined", "shows": None, "reason": "it is broken"}
    ]


def test_people_see_every_difference_what_is_set_aside_and_a_summary(
    wiring: Wiring, capsys: pytest.CaptureFixture[str]
) -> None:
    verify.show(wiring, FOUND)
    *_, aside, summary = capsys.readouterr().out.splitlines()
    assert aside == "not compared: b.w (b_dr.w) (quarantined, shows nothing): it is broken"
    assert summary == (
        "dr differs from the source in 5 places at event 7: "
        "1 database, 2 tables, 3 partitions, 1 file (5 bytes) compared; 1 not compared"
    )


def test_an_equal_target_is_one_line(wiring: Wiring, capsys: pytest.CaptureFixture[str]) -> None:
    verify.show(wiring, Verification("dr", 7))
    assert capsys.readouterr().out == (
        "dr equals the source at event 7: 0 databases, 0 tables, 0 partitions, 0 files (0 bytes) compared\n"
    )


def test_repair_reads_tables_again_and_leaves_what_is_not_ours_and_what_is_no_table() -> None:
    assert verification.to_read(FOUND) == ["a.x", "b.y"]
