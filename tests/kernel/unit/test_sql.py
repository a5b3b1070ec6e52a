"""`calque sql` on a ledger: rows and their forms, where statements come from, exit codes, help."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from calque.app import APP
from calque.cli import main
from calque.control.process_locks import Roles
from calque.control.status_records import tell
from calque.model.state_places import TargetPlaces
from support.judges.documents import read_document
from support.worlds.recorded_ledger import AT, SECOND, TEXT, recorded_ledger, spoil

TABLES = ["table", "at_target", "state", "shows", "since_event", "reason"]
STAFF = ["hr.staff", None, "staging", None, None, "It is being copied."]
ITEMS = ["sales.items", "sales_dr.items", "quarantined", 5, 7, "It can't be read."]
NO_CLUSTERS = "The configuration has no [clusters] that it could run on."
ORDERS = ["sales.orders", "sales_dr.orders", "live", 8, None, ""]


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    recorded_ledger(tmp_path)
    return tmp_path


def results(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["sql", *arguments, "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return read_document("sql", said.out)


@pytest.mark.usefixtures("configured")
def test_show_targets_gives_what_status_says_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--json"]) == 0
    status = json.loads(capsys.readouterr().out)["targets"]["dr"]
    [result] = results(capsys, "SHOW TARGETS")
    row = dict(zip(result["columns"], *result["rows"], strict=True))
    assert row.pop("target") == "dr"
    assert row == {name: status["tables"][name] if name in status["tables"] else status[name] for name in row}
    assert (row["position"], row["epoch"], row["live"], row["bridges"]) == (8, 2, 1, 1)


@pytest.mark.usefixtures("configured")
def test_show_epochs_gives_what_epochs_list_gives(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["epochs", "list", "--json"]) == 0
    epochs = json.loads(capsys.readouterr().out)
    [alone, named] = results(capsys, "SHOW EPOCHS; SHOW EPOCHS AT dr")
    assert [dict(zip(alone["columns"], row, strict=True)) for row in alone["rows"]] == epochs
    assert named == {**alone, "statement": "SHOW EPOCHS AT dr"}


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SHOW TABLES AT dr", [STAFF, ITEMS, ORDERS]),
        ("SHOW TABLES AT dr LIKE 'sales.*'", [ITEMS, ORDERS]),
        ("SHOW TABLES AT dr LIKE '/.*[.](orders|staff)/'", [STAFF, ORDERS]),
        ("USE Sales; SHOW TABLES AT dr LIKE 'o*'", [ORDERS]),
        ("USE sales; SHOW TABLES AT dr LIKE 'hr.*'", [STAFF]),
        (r"USE sales; SHOW TABLES AT dr LIKE '/hr\Wstaff/'", [STAFF]),
        ("USE sales; SHOW TABLES AT dr", [STAFF, ITEMS, ORDERS]),
    ],
)
def test_show_tables_gives_the_tables_that_the_pattern_matches(
    text: str, rows: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    *others, last = results(capsys, text)
    assert (last["columns"], last["rows"]) == (TABLES, rows)
    assert [(other["columns"], other["rows"]) for other in others] == [([], [])] * len(others)


def test_what_a_process_is_doing_with_a_table_is_its_state(
    configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wiring = APP.wiring(APP.load(configured / "calque.toml"))
    with Roles(wiring.state) as held:
        held.take({TargetPlaces("dr").role: 30.0})
        tell(wiring.control, TargetPlaces("dr").status_record, "running", None, states={"sales.orders": "reading"})
        [result] = results(capsys, "SHOW TABLES AT dr LIKE 'sales.orders'")
    assert result["rows"] == [["sales.orders", "sales_dr.orders", "reading", 8, None, ""]]


@pytest.mark.usefixtures("configured")
def test_people_get_tables_and_programs_csv(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "USE sales; SHOW TABLES AT dr LIKE 'items'; SHOW EPOCHS"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[:2] == [
        TABLES,
        ["sales.items", "sales_dr.items", "quarantined", "5", "7", "It", "can't", "be", "read."],
    ]
    assert lines[-1] == ["2", "8", "5", AT, "window", "1", "1", "0", "0", "1", "0", "0", "0"]
    assert main(["sql", "SHOW TABLES AT dr LIKE 'hr.*'", "--csv"]) == 0
    assert capsys.readouterr().out == f"{','.join(TABLES)}\nhr.staff,,staging,,,It is being copied.\n"
    assert main(["sql", "USE sales; SHOW EPOCHS", "--csv"]) == 0
    [_, _, window] = csv.reader(io.StringIO(capsys.readouterr().out))
    assert json.loads(window[9]) == [{"table": "sales.orders", "from": 5, "to": 8}]


@pytest.mark.usefixtures("configured")
def test_json_of_no_statement_is_an_empty_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert results(capsys, " ; -- nothing") == []


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (
            "SHOW TABLES AT drr",
            65,
            'There is no target "drr". The nearest is dr. Name a target of the configuration.\n',
        ),
        (
            "SHOW TABLES AT dr LIKE 'orders'",
            65,
            'pattern "orders" names no table. A pattern is database.table. Write "orders.*".\n',
        ),
        (
            "SELECT 1",
            65,
            (f'"SELECT" begins a statement for an engine. {NO_CLUSTERS} HELP shows calque\'s own statements.\n'),
        ),
        (
            "SHOW TABLES IN sales",
            65,
            (
                f'"SHOW TABLES" begins a statement for an engine. {NO_CLUSTERS} '
                "calque's own is SHOW TABLES AT target [LIKE 'pattern'].\n"
            ),
        ),
        (
            f"SELECT\x1b{'x' * 50}",
            65,
            (
                f'"SELECT?{"x" * 33}…" begins a statement for an engine. {NO_CLUSTERS} '
                "HELP shows calque's own statements.\n"
            ),
        ),
        (
            "HELP me",
            65,
            'No statement begins with "me". HELP takes how one begins. Write HELP for all of them.\n',
        ),
        (
            "USE sales;\nSHOW TABLES TO dr",
            65,
            (
                f'"SHOW TABLES" begins a statement for an engine. {NO_CLUSTERS} '
                "calque's own is SHOW TABLES AT target [LIKE 'pattern'].\n"
            ),
        ),
        (
            "USE sales;\nSHOW TABLES AT dr, backup",
            64,
            (
                'Line 2, column 18: "," does not belong here. Expected LIKE or the end of the statement. '
                "Write HELP to see all statements.\n  SHOW TABLES AT dr, backup\n                   ^\n"
            ),
        ),
    ],
)
def test_what_fails_says_why_with_its_exit_code(
    text: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", text]) == code
    assert capsys.readouterr() == ("", f"calque: {said}")


@pytest.mark.usefixtures("configured")
def test_the_first_that_fails_ends_the_call_and_those_before_it_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["sql", "USE a; SHOW REMOTE TABLES; SHOW EPOCHS AT drr", "--json"]) == 65
    said = capsys.readouterr()
    assert read_document("sql", said.out) == [{"statement": "USE a", "columns": [], "rows": []}]
    assert said.err.startswith("calque: There are no remote tables here")


@pytest.mark.usefixtures("configured")
def test_nothing_runs_where_a_later_statement_can_t_be_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "USE a; SHOW TARGTES", "--json"]) == 64
    assert list(json.loads(capsys.readouterr().out)) == ["error"]


def test_a_ledger_that_is_damaged_is_refused_and_ends_the_call(
    configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(configured)
    assert main(["sql", "USE a; SHOW EPOCHS; USE b", "--json"]) == 65
    said = capsys.readouterr()
    assert [result["statement"] for result in read_document("sql", said.out)] == ["USE a"]
    assert " is damaged. " in said.err


def test_target_says_which_one_is_meant_where_there_are_several(
    configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (configured / "calque.toml").write_text(TEXT + SECOND, encoding="utf-8")
    assert main(["sql", "SHOW EPOCHS"]) == 65
    said = "calque: No target is named. There are dr, backup. Write AT and one of them.\n"
    assert capsys.readouterr() == ("", said)
    [of_backup, of_dr] = results(capsys, "SHOW EPOCHS; SHOW EPOCHS AT dr", "--target", "backup")
    assert (of_backup["rows"], len(of_dr["rows"])) == ([], 2)
    assert main(["sql", "SHOW EPOCHS", "--target", "drr"]) == 65
    assert capsys.readouterr().err.startswith('calque: There is no target "drr". The nearest is dr.')


def test_statements_come_from_an_argument_a_file_or_standard_input(
    configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "-- nightly\nUSE sales;\nSHOW EPOCHS;\n"
    (configured / "nightly.sql").write_text(text, encoding="utf-8")
    from_argument = results(capsys, text)
    assert len(from_argument) == 2
    assert results(capsys, "-f", "nightly.sql") == from_argument
    command = [sys.executable, "-m", "calque.cli", "sql", "--json"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, json.loads(done.stdout)) == (0, from_argument)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "none.sql can't be read. No such file or directory. Name a readable file with -f."),
        (b"USE a\xff", "none.sql is not UTF-8. Byte 5 is not. Save it as UTF-8."),
    ],
)
def test_a_file_that_can_t_be_read_is_refused(
    data: bytes | None, said: str, configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if data is not None:
        (configured / "none.sql").write_bytes(data)
    assert main(["sql", "-f", "none.sql"]) == 65
    assert capsys.readouterr() == ("", f"calque: {said}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--csv", "--json", "USE a"], "--csv and --json exclude each other. Each is a form of the same rows."),
        (
            ["-f", "a.sql", "USE a"],
            "The statements stand in an argument and in a file. Only one of them is read.",
        ),
    ],
)
def test_misuse_is_64(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", *words]) == 64
    out, err = capsys.readouterr()
    assert err == f"calque: {said} See 'calque sql --help'.\n"
    assert list(json.loads(out)) == ["error"] if "--json" in words else out == ""


def test_help_shows_how_every_statement_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert [form.syntax for form in APP.language().forms if form.syntax not in words] == []


def test_help_of_one_statement_is_asked_for_by_how_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "show tables", "--help"]) == 0
    said = capsys.readouterr().out
    assert "SHOW TABLES AT target [LIKE 'pattern']" in said
    assert "SHOW EPOCHS [AT target]" not in said


@pytest.mark.usefixtures("configured")
def test_help_is_a_statement_too(capsys: pytest.CaptureFixture[str]) -> None:
    [result] = results(capsys, "HELP show epochs")
    assert result["columns"] == ["statement", "does"]
    assert result["rows"] == [["SHOW EPOCHS [AT target]", "the epochs of a target's ledger, oldest first"]]


@pytest.mark.usefixtures("configured")
def test_an_empty_configuration_is_refused_before_any_statement(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "USE a", "-c", "none.toml"]) == 65
    assert capsys.readouterr().err.startswith("calque: There is no file none.toml.")
