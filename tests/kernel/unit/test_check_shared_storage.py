"""What `check` says of places on disks, where Spark's tasks run on other machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calque.cli import main
from calque.engine.check.findings import Findings, Severity
from calque.engine.check.shared_storage import check_tables, runs_elsewhere
from calque.model.hive import Storage, Table
from calque.model.names import TableName

CONFIGURATION = """
[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"
password_file = "{folder}/password"
user = "me"
auth = "plain"
[targets.disk]
metastore = "thrift://127.0.0.1:2"
warehouse = "file:///dr"
locations = {{ "s3://a/x" = "s3://bucket/a", "file:/b" = "/b" }}
[targets.store]
metastore = "thrift://127.0.0.1:3"
warehouse = "s3://bucket/dr"
[targets.definitions]
metastore = "thrift://127.0.0.1:4"
warehouse = "file:///unused"
data = "none"
[state]
path = "{folder}/state"
"""


def findings_of(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> set[tuple[str, str, str]]:
    """Where, how grave, and what, of those that speak of disks and of files of secrets."""
    (folder / "password").touch(mode=0o600)
    (folder / "password").write_text("secret")
    file = folder / "calque.toml"
    file.write_text(CONFIGURATION.format(folder=folder))
    main(["check", "--json", "-c", str(file), *words])
    found = json.loads(capsys.readouterr().out)["findings"]
    return {
        (each["where"], each["severity"], each["what"])
        for each in found
        if "on a disk" in each["what"] or "Secrets stand" in each["what"]
    }


def test_what_machines_of_a_cluster_have_to_share_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert findings_of(tmp_path, capsys, "--master", "spark://hq:7077") == {
        ("state", "warning", f"The journal and the ledgers lie on a disk: {tmp_path}/state"),
        ("target disk", "warning", "Files of the target lie on a disk: file:///dr"),
        ("target disk", "warning", "Files of the target lie on a disk: file:///b"),
        ("configuration", "info", f"Secrets stand in files: {tmp_path}/password"),
    }


@pytest.mark.parametrize("words", [(), ("--master", "local[4]")])
def test_nothing_is_said_where_all_runs_on_one_machine(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert findings_of(tmp_path, capsys, *words) == set()


def test_the_tables_that_lie_on_disks_are_named() -> None:
    places = {"disk": "file:///w/disk", "store": "s3a://bucket/store", "nowhere": None}
    tables = {TableName("d", name): Table(name, "d", storage=Storage((), at)) for name, at in places.items()}
    findings = Findings()
    check_tables(tables.items(), findings)
    (finding,) = findings.entries
    assert (finding.severity, finding.what) == (
        Severity.WARNING,
        "Files of the source lie on a disk: those of d.disk",
    )


def test_a_master_tells_whether_tasks_run_elsewhere() -> None:
    masters = ("", "local", "local[2]", "local-cluster[2,1,512]", "spark://hq:7077", "yarn", "k8s://https://hq")
    assert [runs_elsewhere(master) for master in masters] == [False, False, False, False, True, True, True]
