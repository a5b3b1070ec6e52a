"""What a source's names and texts do to a terminal or a log that shows them: nothing."""

from __future__ import annotations

import logging

import pytest

from calque.commands.output import print_line, print_rows, print_table
from calque.errors import Refused, print_calque_error, printable
from calque.logs.lines import TextFormatter

HOSTILE = "a\x1b[2J\x9b\x07\r\nb\u202e\u2028\x7f\0ß\U0001f600"
SHOWN = r"a\x1b[2J\x9b\x07\r\nb\u202e\u2028\x7f\x00ß" + "\U0001f600"


def test_what_steers_a_terminal_is_shown_as_an_escape_and_all_else_as_it_is() -> None:
    assert printable(HOSTILE) == SHOWN
    assert printable("Straße, 東京, c'est 100 % …") == "Straße, 東京, c'est 100 % …"
    assert printable("\ud800") == r"\ud800"


def test_tables_and_lines_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name",), [(HOSTILE,)])
    print_rows(("name",), [(HOSTILE,)])
    print_line(HOSTILE)
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == ["name", SHOWN, "name", SHOWN, SHOWN]


def test_errors_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_calque_error(Refused(f"Table {HOSTILE} can't be read", HOSTILE))
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert shown.rstrip("\n").isprintable()


def test_the_times_of_a_log_are_utc() -> None:
    record = logging.makeLogRecord({"msg": "x", "created": 1_700_000_000.25, "msecs": 250.0, "name": "n"})
    assert TextFormatter().format(record).startswith("2023-11-14T22:13:20.250Z ")


def test_a_log_has_no_line_that_a_name_began() -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        problem = (type(error), error, error.__traceback__)
    record = logging.makeLogRecord({"msg": "table %s", "args": (HOSTILE,), "exc_info": problem})
    formatted = TextFormatter("%(message)s").format(record)
    first, *traceback = formatted.split("\n")
    assert first == f"table {SHOWN}"
    assert all(line.isprintable() for line in traceback)
