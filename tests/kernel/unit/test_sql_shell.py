"""The shell of `calque sql`, as a person types into it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.base import PipeInput
from prompt_toolkit.output import DummyOutput

from calque.app import APP
from calque.commands.sql_shell import StatementCompleter, history_file, shell
from calque.errors import Refused
from calque.statements.session import Session
from support.worlds.recorded_ledger import recorded_ledger

UP, ENTER, CTRL_C, CTRL_D = "\x1b[A", "\r", "\x03", "\x04"


@pytest.fixture
def keyboard() -> Iterator[PipeInput]:
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        yield keys


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(APP.wiring(APP.load(recorded_ledger(tmp_path))))


def typed(keyboard: PipeInput, session: Session, tmp_path: Path, *keys: str) -> list[str]:
    """The texts that the shell hands on."""
    texts: list[str] = []
    keyboard.send_text("".join(keys))
    shell(session, APP.language(), tmp_path / "history", texts.append)
    return texts


def test_a_semicolon_ends_a_statement_and_enter_without_one_begins_a_line(
    keyboard: PipeInput, session: Session, tmp_path: Path
) -> None:
    texts = typed(keyboard, session, tmp_path, "SHOW TABLES", ENTER, "AT dr;", ENTER, "USE a; USE b;", ENTER, CTRL_D)
    assert texts == ["SHOW TABLES\nAT dr;", "USE a; USE b;"]


@pytest.mark.parametrize("word", ["exit", "QUIT;"])
def test_exit_and_quit_end_it(keyboard: PipeInput, session: Session, tmp_path: Path, word: str) -> None:
    assert typed(keyboard, session, tmp_path, "USE a;", ENTER, word, ENTER, "USE b;", ENTER) == ["USE a;"]


def test_control_c_forgets_what_was_written(keyboard: PipeInput, session: Session, tmp_path: Path) -> None:
    assert typed(keyboard, session, tmp_path, "USE a", CTRL_C, "USE b;", ENTER, CTRL_D) == ["USE b;"]


def test_the_history_outlasts_the_shell(keyboard: PipeInput, session: Session, tmp_path: Path) -> None:
    typed(keyboard, session, tmp_path, "USE a;", ENTER, CTRL_D)
    assert typed(keyboard, session, tmp_path, UP, ENTER, CTRL_D) == ["USE a;"]


@pytest.mark.parametrize(
    ("text", "completions"),
    [
        ("SHOW TAR", [("TARGETS", -3)]),
        ("show epochs at ", [("dr", 0)]),
        ("USE a; show e", [("EPOCHS", -1)]),
        ("USE a; us", [("USE", -2)]),
        ("USE a -- u", []),
    ],
)
def test_keywords_and_targets_are_completed(text: str, completions: list[tuple[str, int]]) -> None:
    completer = StatementCompleter(APP.language(), ["dr"])
    offered = completer.get_completions(Document(text), CompleteEvent(completion_requested=True))
    assert [(each.text, each.start_position) for each in offered] == completions


def test_an_error_is_printed_and_the_shell_goes_on(
    keyboard: PipeInput, session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(text: str) -> None:
        raise Refused(f"{text} is wrong")

    keyboard.send_text(f"USE a;{ENTER}USE b;{ENTER}{CTRL_D}")
    shell(session, APP.language(), tmp_path / "history", refuse)
    assert capsys.readouterr().err == "calque: USE a; is wrong.\ncalque: USE b; is wrong.\n"


def test_the_history_is_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = history_file()
    assert file == tmp_path / "calque" / "history"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_calque_sql_on_a_terminal_is_a_shell_that_shows_wide_rows_one_below_the_other(tmp_path: Path) -> None:
    recorded_ledger(tmp_path)
    terminal, side = pty.openpty()
    size = {"LINES": "24", "COLUMNS": "60"}
    environment = {**os.environ, **size, "XDG_STATE_HOME": str(tmp_path), "PROMPT_TOOLKIT_NO_CPR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "calque.cli", "sql"]
    with subprocess.Popen(command, stdin=side, stdout=side, stderr=side, cwd=tmp_path, env=environment) as process:
        os.close(side)
        os.write(terminal, b"USE sales; SHOW TABLES AT dr LIKE 'items';\rHELP SHOW TARGETS;\rSHOW TARGTES;\rexit\r")
        lines = [line.rstrip() for line in said_on(terminal).splitlines()]
    assert process.returncode == 0
    place = lines.index("row 1 of 1")
    assert [line.split(maxsplit=1) for line in lines[place + 1 : place + 7]] == [
        ["table", "sales.items"],
        ["at_target", "sales_dr.items"],
        ["state", "quarantined"],
        ["shows", "5"],
        ["since_event", "7"],
        ["reason", "It can't be read."],
    ]
    assert "       ^" in lines


def said_on(terminal: int) -> str:
    """All that is written to it until the other side is closed, without what steers it."""
    said = b""
    with suppress(OSError), open(terminal, "rb", buffering=0) as stream:
        while part := stream.read(65536):
            said += part
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said.decode()).replace("\r", "")
