"""The audit: SQL over what was shown when, and what is kept of it when the ledger and the journal forget."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import calque
from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.delta.ledger import DeltaLedger
from calque.app import APP
from calque.cli import main
from calque.core.events.rows import table_of
from calque.engine.sides.sides import SystemClock
from calque.model.journal import Event, EventKind, Keys
from calque.model.names import TableName
from calque.plugins.audit.adapters.history import EventHistory, TargetHistory
from calque.plugins.audit.wiring import history_of_source, history_of_target, keep_epochs, keep_events
from calque.statements import dbapi
from support.judges.documents import read_document
from support.worlds.recorded_audit import NOON, recorded_audit
from support.worlds.recorded_ledger import TEXT

YEARS = '[state]\nhistory = "36500d"\n'
"""So that what was recorded long ago is kept."""
EVERYTHING = (
    "SELECT * FROM calque.epochs ORDER BY target, epoch",
    "SELECT * FROM calque.hops ORDER BY target, epoch, table_name",
    "SELECT * FROM calque.events ORDER BY target, event_id",
    "SELECT * FROM calque.lag ORDER BY target, event_id",
    "SELECT * FROM calque.tables ORDER BY table_name",
)


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return recorded_audit(tmp_path, TEXT + YEARS)


def rows(capsys: pytest.CaptureFixture[str], text: str) -> list[list[Any]]:
    assert main(["sql", text, "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    [result] = read_document("sql", said.out)
    return list(result["rows"])


@pytest.mark.usefixtures("configured")
def test_each_event_says_what_became_of_it_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    text = "SELECT event_id, table_name, fate, why, shown_by_event, epoch FROM calque.events ORDER BY event_id"
    past = "one hop goes past it to event 3"
    assert rows(capsys, text) == [
        [1, "orders", "passed_over", past, 3, 1],
        [2, "orders", "passed_over", past, 3, 1],
        [3, "orders", "shown", "", 3, 1],
        [4, "items", "passed_over", "the table was read again at event 6", 6, 2],
        [5, "orders", "passed_over", "it changes statistics alone, which ride on the next call", 8, 3],
        [6, "items", "shown", "", 6, 2],
        [7, "x", "not_taken", "the target has no such table", None, None],
        [8, "orders", "shown", "", 8, 3],
        [9, "items", "waiting", "It is held back.", None, None],
    ]


@pytest.mark.usefixtures("configured")
def test_a_hop_says_its_operations_and_what_it_moved(capsys: pytest.CaptureFixture[str]) -> None:
    text = "SELECT epoch, published_at, table_name, event_id, changes, objects, files, bytes, bridge FROM calque.hops"
    assert rows(capsys, f"{text} ORDER BY epoch") == [
        [1, "2023-11-14T22:13:24.500000", "orders", 3, "add_partitions, create_table, publish", 3, 2, 30, False],
        [2, "2023-11-14T22:13:27.500000", "items", 6, "read", 1, 1, 7, False],
        [3, "2023-11-14T22:13:29.500000", "orders", 8, "add_partitions", 1, 1, 30, True],
    ]


@pytest.mark.usefixtures("configured")
def test_lag_is_from_an_event_to_the_epoch_that_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    text = "SELECT event_id, lag_seconds FROM calque.lag WHERE table_name = 'orders' ORDER BY event_id"
    assert rows(capsys, text) == [[1, 3.5], [2, 2.5], [3, 1.5], [5, 4.5], [8, 1.5]]


def test_what_the_ledger_and_the_journal_forget_is_told_of_as_before(
    configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [rows(capsys, text) for text in EVERYTHING]
    forget(configured)
    assert [rows(capsys, text) for text in EVERYTHING] == before
    forget(configured)
    assert [rows(capsys, text) for text in EVERYTHING] == before


class Noon(SystemClock):
    def now_ns(self) -> int:
        return NOON * 10**9


def forget(file: Path) -> None:
    """All that history may replace: every epoch but the last, and every event but the last."""
    wiring = APP.wiring(APP.load(file))
    keep_epochs(wiring.target("dr"), 3, NOON * 10**9)
    wiring.ledger("dr").forget(3)
    source = wiring.only_source()
    keep_events(source, replace(source.side(), clock=Noon()), 0)
    wiring.only_source().journal().forget(8)
    assert [epoch.epoch for epoch in wiring.ledger("dr").epochs()] == [3]
    assert wiring.only_source().journal().oldest() == 9


def test_without_history_the_audit_tells_what_the_ledger_and_the_journal_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    forget(recorded_audit(tmp_path))
    assert rows(capsys, "SELECT epoch FROM calque.epochs") == [[3]]
    assert rows(capsys, "SELECT event_id FROM calque.events") == [[9]]
    assert not (tmp_path / "state" / "history").exists()


def test_a_copy_that_dies_between_two_commits_is_made_once(configured: Path) -> None:
    def die(failpoint: str) -> None:
        raise KeyboardInterrupt(failpoint)

    folder = str(configured.parent / "state" / "ledgers" / "dr")
    ledger = DeltaLedger(folder)
    with pytest.raises(KeyboardInterrupt):
        TargetHistory(folder, failpoint=die).keep(ledger, 3)
    history = TargetHistory(folder)
    history.keep(ledger, 3)
    history.keep(ledger, 3)
    assert kept(history.hops) == [1, 2]
    assert kept(history.epochs) == [1, 2]


def test_two_that_copy_at_once_copy_once(configured: Path) -> None:
    journal = DeltaJournal(str(configured.parent / "state" / "journal"))
    location = str(configured.parent / "state" / "history")
    other = EventHistory(location)

    def interrupted(span: Any) -> Any:
        other.keep(journal, journal.rows, 0)
        return journal.rows(span)

    EventHistory(location).keep(journal, interrupted, 0)
    assert sorted(other.table.read(range(99))["event_id"].to_pylist()) == list(range(1, 10))


def test_history_that_is_too_old_is_forgotten(configured: Path) -> None:
    wiring = APP.wiring(APP.load(configured))
    target, source = wiring.target("dr"), wiring.only_source()
    forget(configured)
    history_of_target(target).expire("2023-11-14T22:13:26")
    assert kept(history_of_target(target).epochs) == kept(history_of_target(target).hops) == [1, 2]
    history_of_target(target).expire("2023-11-14T22:13:28")
    history_of_source(source).expire(NOON + 20)
    assert (
        kept(history_of_target(target).epochs)
        == kept(history_of_target(target).hops)
        == kept(history_of_source(source).table)
        == []
    )


def kept(table: Any) -> list[int]:
    return sorted(table.read(range(99))[table.key].to_pylist())


def test_events_behind_a_gap_are_kept_though_their_ids_were_there_before(configured: Path) -> None:
    journal = DeltaJournal(str(configured.parent / "state" / "journal"))
    history = EventHistory(str(configured.parent / "state" / "history"))
    history.keep(journal, journal.rows, 0)
    journal.restart(4)
    event = Event(5, NOON, "CREATE_TABLE", "hive", "sales", "orders", "json", "")
    journal.append(table_of([(event, Keys(EventKind.CREATE_TABLE, TableName("sales", "orders")))]))
    history.keep(journal, journal.rows, 1)
    rows = history.table.read(range(99)).select(["event_id", "gap"]).to_pylist()
    assert [row["event_id"] for row in rows if row["gap"] == 1] == [5]
    assert len(rows) == 10


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("SELECT * FROM calque.events JOIN sales.orders USING (event_id)", 65, "mixes the audit with other tables"),
        ("SELECT * FROM calque.evnts", 65, 'no relation "evnts". The nearest is events.'),
        ("SELECT no_column FROM calque.events", 65, "no_column"),
        ("DELETE FROM calque.events", 65, "The audit is only read"),
        ("CREATE TABLE calque.other AS SELECT * FROM calque.events", 65, "The audit is only read"),
        ("SELECT FROM WHERE calque.events", 65, "begins a statement for an engine"),
        ("SELECT (* FROM calque.events", 64, "can't be parsed"),
        ("SELECT * FROM sales.orders", 65, "begins a statement for an engine"),
        ("SELECT content FROM calque.events, read_text('/etc/hostname')", 65, "file system operations are disabled"),
        ("SELECT 1 / 'x' FROM calque.events", 65, "Could not convert"),
    ],
)
def test_a_statement_that_is_not_the_audits_is_refused(
    text: str, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", text]) == code
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""


@pytest.mark.usefixtures("configured")
def test_a_schema_can_be_used_and_csv_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = "USE calque; WITH mine AS (SELECT * FROM hops) SELECT table_name, sum(bytes) AS bytes FROM mine GROUP BY 1"
    assert main(["sql", f"{text} ORDER BY 1", "--csv"]) == 0
    assert list(csv.reader(io.StringIO(capsys.readouterr().out))) == [
        ["table_name", "bytes"],
        ["items", "7"],
        ["orders", "60"],
    ]


def test_programs_give_parameters_and_fetch_rows_as_they_come(configured: Path) -> None:
    with calque.connect(configured) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT event_id FROM calque.events WHERE table_name = ? ORDER BY 1", ("items",))
        assert cursor.fetchmany(2) == [(4,), (6,)]
        assert cursor.fetchall() == [(9,)]
        with pytest.raises(dbapi.ProgrammingError, match="no_column"):
            cursor.execute("SELECT no_column FROM calque.epochs")
