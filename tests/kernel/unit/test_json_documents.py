"""Every command with `--json` prints one document and nothing else on standard output, also where a file is broken, a
name is unknown, or a server does not answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from calque.cli import commands, main

GOOD = """[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"
[targets.dr]
metastore = "thrift://127.0.0.1:2"
warehouse = "file:/warehouse"
[repl]
root = "dumps"
"""
MINIMAL = {
    "init": "init other.toml",
    "check": "check",
    "run": "run --until head",
    "status": "status",
    "plan": "plan --target dr",
    "bootstrap": "bootstrap --target dr",
    "replay": "replay --target dr --from 1",
    "pause": "pause --target dr",
    "resume": "resume --target dr",
    "reload": "reload",
    "quarantine list": "quarantine list --target dr",
    "quarantine release": "quarantine release --target dr",
    "release-drops": "release-drops --target dr",
    "adopt": "adopt --target dr --tables a.b",
    "verify": "verify --target dr",
    "repair": "repair --target dr",
    "epochs list": "epochs list --target dr",
    "epochs show": "epochs show 1 --target dr",
    "epochs diff": "epochs diff 1 2 --target dr",
    "history": "history a.b --target dr",
    "journal tail": "journal tail",
    "journal show": "journal show 1",
    "journal create": "journal create",
    "journal move": "journal move",
    "identity show": "identity show",
    "identity accept": "identity accept --target dr x",
    "wait": "wait --target dr --event-id 1 --timeout 0.1",
    "done mark": "done mark a.b ds=1",
    "done list": "done list --target dr",
    "done check": "done check a.b ds=1 --target dr",
    "done wait": "done wait a.b ds=1 --target dr --timeout 0.1",
    "notices tail": "notices tail news",
    "sweep": "sweep --target dr",
    "sql": "sql SHOW\\ TABLES\\ AT\\ dr",
}
"""The shortest line of each command that does something. `demo` has tests of its own."""
WITHOUT_CONFIGURATION = {"init", "demo", "monitoring grafana", "monitoring alerts"}
OWN_DOCUMENT = {"check", "done check"}
"""Commands whose document says what is wrong: no error follows it."""


def leaves(group: click.Group, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def said(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, Any]:
    words = [word.replace("\0", " ") for word in line.replace("\\ ", "\0").split()]
    code = main([*words, "--json"])
    out, err = capsys.readouterr()
    found = json.loads(out)
    if code:
        assert [each for each in err.splitlines() if each.startswith("calque: ")]
    return code, found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "calque.toml").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_is_tried_here() -> None:
    assert set(leaves(commands)) - {"demo", "monitoring grafana", "monitoring alerts"} == set(MINIMAL)


@pytest.mark.parametrize("line", [MINIMAL[name] for name in MINIMAL if name not in WITHOUT_CONFIGURATION])
def test_a_file_that_is_broken_is_the_document_of_every_command(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "calque.toml").write_text(GOOD.replace("warehouse =", "warehoose ="))
    code, found = said(capsys, line)
    assert code == 65
    assert list(found) == ["error"]
    assert found["error"]["kind"] == "refused"
    assert found["error"]["where"]["file"] == "calque.toml"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("line", [line for line in MINIMAL.values() if " dr" in line.replace("\\", "")])
def test_an_unknown_target_is_the_document_of_every_command(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = said(capsys, line.replace(" dr", " drr").replace("\\ drr", "\\ drr"))
    assert code == 65
    assert list(found) == ["error"]
    assert 'no target "drr". The nearest is dr.' in " ".join(
        str(found["error"][part]).rstrip(".") + "." for part in ("what", "why", "do")
    )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", [name for name in MINIMAL if name not in ("init", "run")])
def test_servers_that_do_not_answer_leave_one_document_of_every_command(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`run` has none before its end: it goes on trying."""
    code, found = said(capsys, MINIMAL[name])
    assert code in (0, 65, 75)
    if code and name not in OWN_DOCUMENT:
        assert list(found) == ["error"]
        assert found["error"]["code"] == code
