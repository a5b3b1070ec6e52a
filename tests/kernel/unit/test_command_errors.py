"""Errors of commands: the one document of `--json`, standard output that takes nothing, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest

from calque.cli import commands, main
from calque.errors import Unavailable

GOOD = """[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"
[targets.dr]
metastore = "thrift://127.0.0.1:2"
warehouse = "file:/warehouse"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "calque.toml").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def document(capsys: pytest.CaptureFixture[str], words: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, the error of the document on standard output, and what stands on standard error."""
    code = main(words.split())
    out, err = capsys.readouterr()
    (found,) = json.loads(out).values()
    assert list(json.loads(out)) == ["error"]
    assert list(found) == ["code", "kind", "what", "why", "do", "where"]
    assert found["code"] == code
    return code, found, err


@pytest.mark.parametrize(
    ("words", "code", "kind", "what"),
    [
        ("status --json -c nope.toml", 65, "refused", "There is no file nope.toml"),
        ("verify --target drr --json", 65, "refused", 'There is no target "drr"'),
        ("status --jsn --json", 64, "usage", 'There is no option "--jsn"'),
        ("statsu --json", 64, "usage", 'There is no command "statsu"'),
        ("journal tail --json", 65, "refused", ""),
        ("verify --json", 75, "unavailable", ""),
    ],
)
@pytest.mark.usefixtures("folder")
def test_an_error_of_a_command_with_json_is_the_one_document_on_standard_output(
    capsys: pytest.CaptureFixture[str], words: str, code: int, kind: str, what: str
) -> None:
    found_code, found, err = document(capsys, words)
    assert (found_code, found["kind"]) == (code, kind)
    assert found["what"].startswith(what)
    assert err.startswith("calque: ")
    assert len(err.splitlines()) == 1


def test_where_an_error_stands_in_the_file_is_in_its_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "calque.toml").write_text(GOOD.replace('warehouse = "file:/warehouse"', "warehoose = 5"))
    _, found, _ = document(capsys, "status --json")
    assert found["where"] == {"file": "calque.toml", "line": 6, "key": "targets.dr.warehoose"} or found["where"] == {
        "file": "calque.toml",
        "line": 4,
        "key": "targets.dr.warehouse",
    }
    (folder / "calque.toml").write_text("[source\n")
    _, found, _ = document(capsys, "status --json")
    assert found["where"] == {"file": "calque.toml", "line": 1, "key": None}


def test_a_command_that_has_printed_its_document_prints_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    from calque.commands.output import print_json

    @click.command("halfway")
    @click.option("--json", "is_json", is_flag=True)
    def halfway(is_json: bool) -> None:  # noqa: ARG001
        print_json([1])
        raise Unavailable("The rest does not answer")

    commands.add_command(halfway)
    try:
        assert main(["--json", "halfway"]) == 75
    finally:
        del commands.commands["halfway"]
    assert json.loads(capsys.readouterr().out) == [1]


def calque(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "calque.start", *words]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, timeout=60, **options)


def test_standard_output_that_is_full_is_told_of_and_no_defect(folder: Path) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = calque("quarantine", "list", stdout=full, cwd=folder)
    assert done.returncode == 75
    assert done.stderr.startswith("calque: Standard output can't be written. What it leads to says: No space left")
    assert len(done.stderr.splitlines()) == 1


def test_standard_error_that_is_closed_gets_nothing(folder: Path) -> None:
    command = [sys.executable, "-m", "calque.start", "status", "-c", "none.toml"]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=folder, preexec_fn=lambda: os.close(2), check=False)
    assert (done.returncode, done.stdout) == (65, b"")


def test_standard_output_that_is_closed_gets_nothing(folder: Path) -> None:
    done = calque("quarantine", "list", cwd=folder, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")


def test_who_lets_a_target_go_on_is_told_which_tables_stay_paused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder == Path.cwd()
    assert main(["pause", "--target", "dr", "--tables", "hr.*"]) == 0
    assert "stays paused" not in capsys.readouterr().out
    assert main(["resume", "--target", "dr"]) == 0
    stays = "hr.* stays paused: calque resume --target dr --tables 'hr.*' lets it go on"
    assert stays in capsys.readouterr().out.splitlines()
    assert main(["resume", "--target", "dr", "--tables", "hr.*"]) == 0
    assert "stays paused" not in capsys.readouterr().out


BEGUN = """
import signal, sys
from calque.start import end, main
signal.signal(signal.SIGINT, end)
print("begun", flush=True)
sys.exit(main())
"""


@pytest.mark.parametrize("words", [("status", "--watch"), ("status", "--json")])
def test_ctrl_c_ends_a_command_with_130_from_its_first_moments_on(folder: Path, words: tuple[str, ...]) -> None:
    """Wherever it is: a process is interrupted a little later each time."""
    interrupted = 0
    for number in range(8):
        command = [sys.executable, "-c", BEGUN, *words]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            time.sleep(0.15 * number)
            process.send_signal(signal.SIGINT)
            try:
                out, err = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:  # some library has lost the first one, while it was imported
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
        assert process.returncode in (0, 130), err
        assert "Traceback" not in err
        if process.returncode == 130:
            interrupted += 1
            assert err.startswith("calque: Interrupted.")
            if "--json" in words:
                assert json.loads(out)["error"]["kind"] == "interrupted"
    assert interrupted
