"""A state folder that commit 394b074 wrote: this calque opens it, says of it what that one said, and goes on with it.

`golden/state/README.md` says what it holds.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.delta.journal import DeltaJournal
from calque.app import APP
from calque.cli import main
from calque.control.process_locks import Roles, holder
from calque.core.events.rows import table_of
from calque.model.ledger import Epoch
from calque.model.names import Span
from calque.model.state_places import SourcePlaces, TargetPlaces
from calque.wiring.wiring import Wiring
from support.places import GOLDEN

ARCHIVE = GOLDEN / "state" / "plain.tar.xz"
OFTEN = 30
"""More commits than lie between two checkpoints of a table."""
TOLD = ("position", "epoch", "tables", "set_aside", "quarantined", "bridges", "parts", "rereads", "lag_events")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def wiring(folder: Path) -> Wiring:
    return APP.wiring(APP.load(folder / "calque.toml"))


def outputs(folder: Path) -> Mapping[str, Any]:
    """What the commands said of it then, by command."""
    said: Mapping[str, Any] = json.loads((folder / "outputs.json").read_text())
    return said


def said(folder: Path, *words: str) -> Any:
    with redirect_stdout(StringIO()) as output:
        assert main([*words, "--json", "-c", str(folder / "calque.toml")]) == 0
    return json.loads(output.getvalue())


def test_commands_say_of_it_what_they_said(folder: Path) -> None:
    recorded = outputs(folder)
    for command in ("epochs list --target dr", "epochs show 1 --target dr", "journal tail -n 100"):
        assert said(folder, *command.split()) == recorded[command], command
    history = next(command for command in recorded if command.startswith("history "))
    assert said(folder, *history.split()) == recorded[history]
    status = said(folder, "status")
    assert {name: status["targets"]["dr"][name] for name in TOLD} == {
        name: recorded["status"]["targets"]["dr"][name] for name in TOLD
    }
    assert status["journal"] == recorded["status"]["journal"]


def test_it_is_taken_over_and_nobody_else_may_read_it_any_more(wiring: Wiring) -> None:
    wiring.folder.open()
    identity = wiring.folder.identity()
    assert identity == json.loads((wiring.state / "control" / "identity.json").read_text())["id"]
    assert [str(path) for path in wiring.state.rglob("*") if path.stat().st_mode & 0o077] == []
    with Roles(wiring.state) as roles:
        assert roles.take({SourcePlaces().role: 30.0, TargetPlaces("dr").role: 30.0})
        assert holder(wiring.state, TargetPlaces("dr").role) is not None
    assert len(wiring.control.names("requests/dr/")) == 1
    assert wiring.control.read("paused-tables/dr")


def test_its_tables_go_on(wiring: Wiring) -> None:
    journal, ledger = wiring.only_source().side().journal, wiring.ledger("dr")
    assert isinstance(journal, DeltaJournal)
    last, before, recorded = journal.last() or 0, ledger.last_epoch(), ledger.epochs()
    assert before is not None
    old = journal.events([last])[last]
    [entry] = journal.entries(Span(last - 1, last))
    for number in range(last + 1, last + OFTEN + 1):
        journal.append(table_of([(replace(old, event_id=number), entry.keys)]))
        epoch = Epoch(before.epoch + number - last, number, number - 1, "2026-11-29T00:00:00.000", "window")
        ledger.publish(epoch, [], [])
    for opened in (wiring.ledger("dr"), ledger):
        assert opened.epochs()[: len(recorded)] == recorded
        assert [epoch.event_id for epoch in opened.epochs()][-OFTEN:] == list(range(last + 1, last + OFTEN + 1))
        assert opened.tables() == ledger.tables()
    again = DeltaJournal(str(wiring.state / "journal"))
    assert (again.oldest(), again.last()) == (journal.oldest(), last + OFTEN)
    assert again.events([last])[last] == old
    assert len(again.entries(Span(last, last + OFTEN))) == OFTEN


def test_its_evidence_scans_and_marks_are_read(wiring: Wiring) -> None:
    side = wiring.only_source().side()
    assert side.evidence.considered() == side.journal.last()
    assert side.evidence.evidence(range(1, 100))
    assert side.scans is not None
    assert side.scans.remembered().watched
