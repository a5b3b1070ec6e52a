"""The look of `calque check` and `calque run` at this host: Java, bash, the disks of the state, the limit of files."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from calque.cli import main
from calque.commands.check import look_at_default_address
from calque.config.checks import Endpoint
from calque.engine.check.findings import Findings, Severity
from calque.engine.check.host import LEAST_FREE, LEAST_OPEN_FILES, Host, check_host, require_host
from calque.errors import Refused
from calque.java import SUBMITTED
from support.judges.documents import read_document

CONFIGURATION = """\
[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"

[targets.dr]
metastore = "thrift://127.0.0.1:2"
warehouse = "warehouse"
"""


def program(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o755)
    return file


def java(home: Path, version: str) -> Path:
    """A Java that only says its version."""
    return program(home / "bin" / "java", f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """The environment of a host with all that Spark needs."""
    program(tmp_path / "path" / "bash", "")
    java(tmp_path / "17", "17.0.15")
    return {"PATH": str(tmp_path / "path"), "JAVA_HOME": str(tmp_path / "17")}


def errors(host: Host) -> list[tuple[str, str]]:
    findings = Findings()
    check_host(host, findings)
    assert {one.where for one in findings.entries} <= {"host"}
    return [(one.what, one.why) for one in findings.entries if one.severity is Severity.ERROR]


def warnings(host: Host) -> list[str]:
    findings = Findings()
    check_host(host, findings)
    assert findings.ok
    return [one.what for one in findings.entries if one.severity is Severity.WARNING]


def test_a_host_with_all_that_spark_needs_has_no_finding(tmp_path: Path, environment: Mapping[str, str]) -> None:
    host = Host((tmp_path / "state",), environment, lambda _: LEAST_FREE, lambda: LEAST_OPEN_FILES)
    findings = Findings()
    check_host(host, findings)
    assert findings.entries == []
    require_host(host)


def test_a_java_that_can_not_be_used_is_an_error_with_its_cause(tmp_path: Path, environment: Mapping[str, str]) -> None:
    not_executable = tmp_path / "locked" / "bin" / "java"
    not_executable.parent.mkdir(parents=True)
    not_executable.write_text("", encoding="utf-8")
    mute = program(tmp_path / "mute" / "bin" / "java", "exit 1")
    causes = {
        "/nonexistent": "JAVA_HOME is /nonexistent, and there is no program /nonexistent/bin/java",
        str(tmp_path / "locked"): f"{not_executable} can't be run: Permission denied",
        str(mute.parents[1]): f"{mute} is Java of an unknown version",
        "": "JAVA_HOME is not set, and no java is on the PATH",
    }
    for version in ("1.8.0_442", "11.0.27"):
        old = java(tmp_path / version, version)
        causes[str(old.parents[1])] = f"{old} is Java {version}"
    for home, cause in causes.items():
        host = Host(environment={**environment, "JAVA_HOME": home})
        assert errors(host) == [("Spark's JVM does not start", cause)]
        with pytest.raises(Refused) as refused:
            require_host(host)
        assert (refused.value.why, refused.value.todo) == (cause, "Install Java 17 and set JAVA_HOME")


def test_a_java_on_the_path_is_enough(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "bash", "")
    java(tmp_path, "21")
    assert errors(Host(environment={"PATH": str(tmp_path / "bin")})) == []


def test_no_bash_is_an_error(tmp_path: Path, environment: Mapping[str, str]) -> None:
    without = {**environment, "PATH": str(tmp_path / "nothing")}
    cause = "Spark's scripts need bash, and none is on the PATH"
    assert errors(Host(environment=without)) == [("Spark's JVM does not start", cause)]


def test_nothing_is_asked_of_a_host_whose_jvm_runs_or_whose_scripts_set_java_home(tmp_path: Path) -> None:
    assert errors(Host(environment={SUBMITTED: "4711", "PATH": "", "JAVA_HOME": "/nonexistent"})) == []
    program(tmp_path / "bash", "")
    (tmp_path / "spark-env.sh").write_text("JAVA_HOME=/somewhere", encoding="utf-8")
    environment = {"PATH": str(tmp_path), "JAVA_HOME": "/nonexistent", "SPARK_CONF_DIR": str(tmp_path)}
    assert errors(Host(environment=environment)) == []


def test_little_space_is_a_warning_for_each_disk_and_not_for_each_folder(
    tmp_path: Path, environment: Mapping[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    folders = (tmp_path / "state", tmp_path / "checkpoints")
    host = Host(folders, environment, lambda _: 52_428_800, lambda: LEAST_OPEN_FILES)
    assert warnings(host) == [f"50 MiB are free on the disk of {folders[0]}"]
    require_host(host)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_low_limit_of_open_files_is_a_warning(environment: Mapping[str, str]) -> None:
    host = Host((), environment, most_open_files=lambda: 1024)
    assert warnings(host) == ["This process may open 1024 files at most"]


def test_a_state_folder_that_can_not_be_written_is_an_error(tmp_path: Path, environment: Mapping[str, str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    folder = tmp_path / "file" / "state"
    assert errors(Host((folder,), environment)) == [(f"{folder} can't be used", "Not a directory")]


def test_a_try_whether_the_state_can_be_written_leaves_nothing(tmp_path: Path, environment: Mapping[str, str]) -> None:
    (tmp_path / "state").mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert errors(Host((tmp_path / "state", tmp_path / "new" / "checkpoints"), environment)) == []
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "calque.toml").write_text(CONFIGURATION, encoding="utf-8")
    return tmp_path


def test_run_refuses_a_host_without_java_in_one_line_before_it_takes_a_role(folder: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": "/nonexistent"}
    command = [sys.executable, "-m", "calque.cli", "run", "--until", "head"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    said = "Spark's JVM does not start. JAVA_HOME is /nonexistent, and there is no program /nonexistent/bin/java."
    assert done.returncode == 65, done.stderr
    assert [line for line in done.stderr.splitlines() if " INFO " not in line] == [
        line for line in done.stderr.splitlines() if said in line
    ]
    assert not (folder / "state" / "locks").exists()


def test_check_says_it_beside_what_else_it_finds(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    assert main(["check", "--json", "-c", str(folder / "calque.toml")]) == 75
    findings = read_document("check", capsys.readouterr().out)["findings"]
    assert findings[0]["what"] == "Spark's JVM does not start"
    assert {one["where"] for one in findings if one["severity"] == "error"} == {"host", "source", "target dr"}


def test_statements_ask_nothing_of_the_host(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    assert main(["sql", "HELP", "-c", str(folder / "calque.toml")]) == 0
    assert capsys.readouterr().err == ""


def test_a_default_address_that_another_has_is_a_warning_and_none_where_a_process_of_ours_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        default, findings = Endpoint(*listener.getsockname()), Findings()
        look_at_default_address(default, {str(default.port)}, findings)
        assert findings.entries == []
        look_at_default_address(default, (), findings)
    [finding] = findings.entries
    assert (finding.severity, finding.where) == (Severity.WARNING, "configuration")
    assert finding.what == f"{default} is taken: `calque run` serves health and metrics at another port"
    free = Findings()
    look_at_default_address(default, (), free)
    assert free.entries == []
