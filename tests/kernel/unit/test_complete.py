"""The words by which shells complete targets, tables and epochs, from the configuration and the ledgers alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from calque.adapters.delta.ledger import DeltaLedger
from calque.app import APP
from calque.cli import COMPLETE, commands
from calque.commands.options import CommandSettings
from calque.control.known_names import MOST
from calque.model.ledger import DatabaseRow, Epoch, TableRow, TableState

AT = "2024-01-01T00:00:00.000+00:00"
SOURCE = '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n'
TARGET = '[targets.{name}]\nmetastore = "thrift://127.0.0.1:2"\nwarehouse = "{name}"\ninclude = ["{name}.*"]\n'


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration of two targets, as the current one. Only the first has epochs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CALQUE_CONFIG", raising=False)
    (tmp_path / "calque.toml").write_text(SOURCE + TARGET.format(name="dr") + TARGET.format(name="lake"))
    dr, lake = (DeltaLedger(str(tmp_path / "state" / "ledgers" / name)) for name in ("dr", "lake"))
    rows = [TableRow("sales", name, TableState.LIVE) for name in ("orders", "ordered")]
    dr.publish(Epoch(1, 5, 2, AT, "bootstrap"), [], [*rows, DatabaseRow("sales", TableState.LIVE)])
    dr.publish(Epoch(2, 28, 5, AT, "window"), [], [])
    lake.put_tables([TableRow("hr", "staff", TableState.WAITING)])
    return tmp_path


def words(line: str) -> list[str]:
    """What the shell is offered for the line, whose last word goes on."""
    *before, incomplete = line.split(" ")
    complete = BashComplete(commands, {"obj": CommandSettings(app=APP)}, "calque", COMPLETE)
    return [item.value for item in complete.get_completions(before, incomplete)]


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("pause --target ", ["dr", "lake"]),
        ("pause --target l", ["lake"]),
        ("wait --event-id 3 --target d", ["dr"]),
        ("history sales.orders --target ", ["dr", "lake"]),
        ("sql --target x", []),
        ("done check sales.orders ds=1 --target l", ["lake"]),
        ("verify --tables ", ["hr.staff", "sales.ordered", "sales.orders"]),
        ("verify --target dr --tables ", ["sales.ordered", "sales.orders"]),
        ("adopt --target lake --tables ", ["hr.staff"]),
        ("history sales.orders", ["sales.orders"]),
        ("done list h", ["hr.staff"]),
        ("done mark sales.order", ["sales.ordered", "sales.orders"]),
        ("done mark sales.orders ", []),
        ("epochs show --target dr ", ["2", "1"]),
        ("epochs show --target dr @", ["@28", "@5"]),
        ("epochs show --target dr @2", ["@28"]),
        ("epochs diff --target dr 1 ", ["2", "1"]),
        ("epochs show --target lake ", []),
        ("epochs show ", []),
        ("replay --target dr --from ", ["28", "5"]),
        ("replay --from ", ["28", "5"]),
        ("pause --target drr --tables ", []),
    ],
)
def test_a_line_goes_on_with_what_there_is(line: str, offered: list[str]) -> None:
    assert words(line) == offered


def test_the_configuration_is_the_one_that_the_line_or_the_environment_names(
    configured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (configured / "other.toml").write_text(SOURCE + TARGET.format(name="copy"))
    assert words("-c other.toml pause --target ") == words("pause -c other.toml --target ") == ["copy"]
    monkeypatch.setenv("CALQUE_CONFIG", "other.toml")
    assert words("pause --target ") == ["copy"]


def test_only_the_newest_epochs_are_offered(configured: Path) -> None:
    ledger = DeltaLedger(str(configured / "state" / "ledgers" / "dr"))
    for number in range(3, MOST + 4):
        ledger.publish(Epoch(number, 30 + number, 29 + number, AT, "window"), [], [])
    last = MOST + 3
    assert words("epochs show --target dr ") == [str(number) for number in range(last, last - MOST, -1)]
    assert words("epochs show --target dr 1")[-1] == "1"
    assert words("replay --target dr --from ")[:2] == [str(30 + last), str(29 + last)]


def test_nothing_is_made_where_nothing_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calque.toml").write_text(SOURCE + TARGET.format(name="dr"))
    assert (words("verify --tables "), words("epochs show "), words("replay --from ")) == ([], [], [])
    assert [path.name for path in tmp_path.iterdir()] == ["calque.toml"]


def test_ledgers_in_a_store_are_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    state = '[state]\ntables = "s3://bucket/calque"\n'
    (tmp_path / "calque.toml").write_text(SOURCE + TARGET.format(name="dr") + state)
    assert (words("pause --target "), words("verify --tables "), words("epochs show ")) == (["dr"], [], [])


@pytest.mark.parametrize(
    "text", [None, "[source", SOURCE, SOURCE + TARGET.format(name="dr").replace("warehouse", "warehose")]
)
def test_a_broken_configuration_has_no_words(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "calque.toml").write_text(text)
    for line in ("pause --target ", "verify --tables ", "epochs show ", "replay --from ", "history "):
        assert words(line) == []
    assert capfd.readouterr() == ("", "")


def test_a_broken_ledger_has_no_words(configured: Path) -> None:
    for log in (configured / "state" / "ledgers" / "dr").rglob("*.json"):
        log.write_text("no commit")
    assert (words("verify --target dr --tables "), words("epochs show --target dr ")) == ([], [])
    assert words("verify --target lake --tables ") == ["hr.staff"]


def test_a_shell_gets_the_words_and_nothing_else(configured: Path) -> None:
    (configured / "broken.toml").write_text("[source")
    for config, said in (("calque.toml", ["plain,sales.ordered", "plain,sales.orders"]), ("broken.toml", [])):
        line = f"calque verify -c {config} --tables sales."
        asking = {COMPLETE: "bash_complete", "COMP_WORDS": line, "COMP_CWORD": "5"}
        command = [sys.executable, "-m", "calque.cli"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **asking})
        assert (done.returncode, done.stdout.split(), done.stderr) == (0, said, "")
