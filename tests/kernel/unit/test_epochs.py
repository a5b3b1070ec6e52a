"""`calque epochs` and `calque sweep` on a ledger, with nothing else there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.delta.ledger import DeltaLedger
from calque.cli import main
from calque.model.files import File
from calque.model.ledger import Bridge, Epoch, ObjectRow, Parts, Reread, RereadCause
from support.judges.documents import read_document

AT = "2024-01-01T00:00:00.000+00:00"


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration whose target has three epochs."""
    monkeypatch.chdir(tmp_path)
    text = '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n[targets.dr]\n'
    text += 'metastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\nrename = { "sales" = "sales_dr" }\n'
    (tmp_path / "calque.toml").write_text(text)
    ledger = DeltaLedger(str(tmp_path / "state" / "ledgers" / "dr"))
    one, two = File("f", 1, 5, "aa"), File("g", 2, 6, "bb")
    created = ObjectRow("sales", "t", "", "3", 3, "create_table", "file:/dr/t", "x", (one,))
    replaced = ObjectRow("sales", "t", "", "3", 7, "alter_table", "file:/dr/_calque/7", "y", (two,))
    other = ObjectRow("hr", "u", "p=1", "9", 9, "drop_partition")
    ledger.publish(Epoch(1, 5, 2, AT, "bootstrap", tables=1, events=3, hops=1, files=1, bytes=1), [created], [])
    ledger.publish(Epoch(2, 8, 5, AT, "window", tables=1, events=3, hops=1, files=1, bytes=2), [replaced], [])
    last = Epoch(3, 8, 8, AT, "repair", quarantined=("hr.x",), set_aside=("hr.y",), bridges=(Bridge("hr.u", 1, 8),))
    last = replace(last, parts=(Parts("hr.v", 5, 8),), rereads=(Reread("hr.u", 8, RereadCause.OPERATOR, "asked for"),))
    ledger.publish(last, [other], [])
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["epochs", *words, "--json"]) == 0
    return read_document(f"epochs {words[0]}", capsys.readouterr().out)


@pytest.mark.usefixtures("configured")
def test_list_gives_every_epoch_oldest_first(capsys: pytest.CaptureFixture[str]) -> None:
    rows = said(capsys, "list")
    assert rows[0] == {
        "epoch": 1,
        "event_id": 5,
        "from_event_id": 2,
        "published_at": AT,
        "kind": "bootstrap",
        "tables": 1,
        "hops": 1,
        "files": 1,
        "bytes": 1,
        "bridges": [],
        "parts": [],
        "rereads": [],
        "quarantined": [],
    }
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert (rows[2]["bridges"], rows[2]["quarantined"]) == ([{"table": "hr.u", "from": 1, "to": 8}], ["hr.x"])
    assert rows[2]["parts"] == [{"table": "hr.v", "from": 5, "to": 8}]
    assert rows[2]["rereads"] == [{"table": "hr.u", "event_id": 8, "cause": "operator", "reason": "asked for"}]


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(("reference", "number"), [("2", 2), ("@8", 3), ("@7", 1), ("@99", 3)])
def test_show_takes_a_number_or_the_newest_epoch_at_or_below_an_event(
    capsys: pytest.CaptureFixture[str], reference: str, number: int
) -> None:
    assert said(capsys, "show", reference)["epoch"] == number


@pytest.mark.usefixtures("configured")
def test_show_says_which_tables_the_epoch_does_not_cover(capsys: pytest.CaptureFixture[str]) -> None:
    shown = said(capsys, "show", "3")
    assert (shown["quarantined"], shown["set_aside"]) == (["hr.x"], ["hr.y"])


@pytest.mark.usefixtures("configured")
def test_show_names_objects_as_at_the_source_with_the_target_s_name_beside(capsys: pytest.CaptureFixture[str]) -> None:
    [row] = said(capsys, "show", "1")["objects"]
    assert (row["table"], row["at_target"], row["partition"]) == ("sales.t", "sales_dr.t", None)
    assert row["files"] == [{"path": "f", "size": 1, "checksum": "aa"}]
    [row] = said(capsys, "show", "3")["objects"]
    assert (row["table"], "at_target" in row, row["partition"]) == ("hr.u", False, "p=1")


@pytest.mark.usefixtures("configured")
def test_diff_gives_what_changed_after_the_first_up_to_the_second(capsys: pytest.CaptureFixture[str]) -> None:
    document = said(capsys, "diff", "1", "@8")
    assert (document["from"]["epoch"], document["to"]["epoch"], document["files"]) == (1, 3, 1)
    gone, replaced = document["objects"]
    assert (gone["table"], gone["partition"], gone["gone"], gone["files"]) == ("hr.u", "p=1", True, None)
    assert replaced["changes"] == [{"epoch": 2, "event_id": 7, "change": "alter_table"}]
    assert replaced["location"] == "file:/dr/_calque/7"
    assert said(capsys, "diff", "2", "2")["objects"] == []


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("show 9", "dr has no epoch 9. There are epochs 1 to 3, of events 5 to 8;"),
        ("show @4", "dr has no epoch at or below event 4. There are epochs 1 to 3, of events 5 to 8;"),
        ("diff 3 1", "Epoch 3 comes after epoch 1. A difference goes forward. Write calque epochs diff 1 3."),
    ],
)
def test_what_is_not_there_is_refused(words: str, error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["epochs", *words.split()]) == 65
    assert capsys.readouterr().err.startswith(f"calque: {error}")


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize("words", ["list", "show 2", "diff 1 3"])
def test_people_get_tables(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["epochs", *words.split()]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 3


def test_no_epochs_is_an_empty_list(configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (configured / "calque.toml").read_text().replace("targets.dr", "targets.new")
    (configured / "calque.toml").write_text(text)
    assert said(capsys, "list") == []
    assert main(["epochs", "show", "1"]) == 65


@pytest.mark.usefixtures("configured")
def test_a_sweep_of_a_target_that_does_not_answer_is_75_and_says_which(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--json"]) == 75
    assert capsys.readouterr().err.startswith("calque: No metastore answers at thrift://127.0.0.1:2.")
