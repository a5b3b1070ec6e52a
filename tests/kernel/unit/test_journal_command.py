"""`calque journal tail` and `show`: captured events as people and programs read them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from calque.adapters.delta.journal import DeltaJournal
from calque.cli import main
from calque.core.events.rows import rows_of_events
from calque.model.journal import Event
from support.judges.documents import read_document
from support.sources.logs import Log, part, partitioned, plain

PARTED = partitioned("p")
EVENTS = (
    Log()
    .create(plain("t"))
    .rename(plain("t"), "u")
    .create(PARTED)
    .add(PARTED, *(part(PARTED, value) for value in "abcde"))
    .events
)


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeltaJournal:
    """The empty journal of a configuration in the present folder."""
    monkeypatch.chdir(tmp_path)
    text = '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n[targets.dr]\n'
    text += 'metastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n'
    (tmp_path / "calque.toml").write_text(text)
    return DeltaJournal(str(tmp_path / "state" / "journal"))


def rows(events: Iterable[Event]) -> pa.Table:
    return rows_of_events(events)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["journal", *words, "--json"]) == 0
    return read_document(f"journal {words[0]}", capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["journal", *words]) == 65
    return capsys.readouterr().err


def test_tail_shows_the_newest_events(journal: DeltaJournal, capsys: pytest.CaptureFixture[str]) -> None:
    journal.append(rows(EVENTS))
    found = said(capsys, "tail", "-n", "3")
    assert [row["event_id"] for row in found] == [2, 3, 4]
    assert (found[0]["table"], found[0]["was"], found[0]["kind"]) == ("d1.u", "d1.t", "rename_table")
    assert found[2]["partitions"] == ["p=a", "p=b", "p=c", "p=d", "p=e"]


def test_tail_says_the_same_in_lines(journal: DeltaJournal, capsys: pytest.CaptureFixture[str]) -> None:
    journal.append(rows(EVENTS))
    assert main(["journal", "tail"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert "d1.u (was d1.t)" in lines[2]
    assert lines[4].rstrip().endswith("p=a, p=b, p=c and 2 more")


def test_tail_shows_fewer_where_there_are_no_more(journal: DeltaJournal, capsys: pytest.CaptureFixture[str]) -> None:
    journal.append(rows(EVENTS))
    journal.forget(3)
    assert [row["event_id"] for row in said(capsys, "tail")] == [4]
    journal.forget(4)
    assert said(capsys, "tail") == []


def test_an_event_that_could_not_be_read_says_why(journal: DeltaJournal, capsys: pytest.CaptureFixture[str]) -> None:
    journal.append(rows([Event(1, 0, "ALTER_TABLE", "hive", "d1", "t", "json-0.2", "no json")]))
    (row,) = said(capsys, "tail")
    assert row["defect"]
    assert said(capsys, "show", "1")["message"] == "no json"


def test_show_gives_an_event_whole(journal: DeltaJournal, capsys: pytest.CaptureFixture[str]) -> None:
    journal.append(rows(EVENTS))
    found = said(capsys, "show", "3")
    assert (found["type"], found["table"], found["shape"]) == ("CREATE_TABLE", "d1.p", "partitioned")
    assert found["message"]["tableObjJson"]["1"] == {"str": "p"}
    assert main(["journal", "show", "3"]) == 0
    text = capsys.readouterr().out
    assert '"tableObjJson": {\n' in text
    assert "type             CREATE_TABLE\n" in text


@pytest.mark.parametrize(
    ("event_id", "what"),
    [
        ("5", "calque: Event 5 is not in the journal yet. It has events 3 to 4. Name one of them, or wait for it.\n"),
        ("2", "calque: Event 2 is not in the journal any more. It has events 3 to 4; older ones are kept for"),
    ],
)
def test_an_event_that_is_not_there_is_refused_with_what_is(
    journal: DeltaJournal, capsys: pytest.CaptureFixture[str], event_id: str, what: str
) -> None:
    journal.append(rows(EVENTS))
    journal.forget(2)
    assert refused(capsys, "show", event_id).startswith(what)


@pytest.mark.usefixtures("journal")
@pytest.mark.parametrize("words", [("tail",), ("show", "1")])
def test_before_the_first_capture_both_say_so(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> None:
    what = "calque: The journal has no events yet. Nothing was captured. Start `calque run`.\n"
    assert refused(capsys, *words) == what


@pytest.mark.usefixtures("journal")
def test_following_can_t_be_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "tail", "--follow", "--json"]) == 64
    assert "--follow never ends" in capsys.readouterr().err


def test_following_shows_each_new_event_and_where_the_journal_begins_anew(journal: DeltaJournal) -> None:
    command = [sys.executable, "-m", "calque.cli", "journal", "tail", "-n", "1", "--follow"]
    journal.append(rows(EVENTS[:2]))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        ended = threading.Timer(60, process.kill)
        ended.start()
        assert process.stdout is not None
        assert "d1.u (was d1.t)" in process.stdout.readline()
        journal.append(rows(EVENTS[2:]))
        assert "  d1.p" in process.stdout.readline()
        assert "p=a, p=b, p=c and 2 more" in process.stdout.readline()
        journal.restart(1)
        assert process.stdout.readline() == "The journal begins anew after event 1\n"
        journal.restart(2)
        journal.append(rows(EVENTS[2:3]))
        assert process.stdout.readline() == "Events 2 to 2 are not in the journal\n"
        assert "  d1.p" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        ended.cancel()
