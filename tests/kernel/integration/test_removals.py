"""`calque sweep` on real metastores: what goes, what stays and is said, for one deployment."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.metastore.catalog import HiveCatalog
from calque.adapters.metastore.client import Client
from calque.core.formats.layout import place
from calque.demo.source import Source
from calque.model.hive import Column, location_of
from calque.model.names import TableName
from calque.model.policy import TargetCapabilities
from calque.sandbox import Metastore
from support.judges.documents import read_document
from support.services.deployments import NUMBERS, Deployment
from support.services.servers import Shared

COLUMNS = (Column("id", "bigint"), Column("name", "string"))
DAY = (Column("day", "string"),)
GRACE_SECONDS = 1.0


@pytest.fixture
def deployment(shared: Shared, tmp_path: Path) -> Iterator[Deployment]:
    servers: Mapping[str, Metastore] = shared("source-4", "target-3")
    source, target = servers.values()
    deployment = Deployment(tmp_path, next(NUMBERS), source, {"dr": target}, seed=1)
    deployment.config.write_text(
        f'[source]\nname = "hq"\nmetastore = "{source.uri}"\npoll = "50ms"\n'
        f'[targets.dr]\nmetastore = "{target.uri}"\nwarehouse = "{tmp_path}/dr"\n'
        f'include = ["{deployment.databases[0]}.*"]\ngrace = "{GRACE_SECONDS:.0f}s"\nlease = "5s"\n'
    )
    yield deployment
    deployment.close()


def until_head(deployment: Deployment) -> None:
    done = deployment.calque("run", "--until", "head", timeout=280)
    assert done.returncode == 0, done.stderr


def sweep(deployment: Deployment, *words: str, code: int = 0) -> Mapping[str, Any]:
    done = deployment.calque("sweep", *words, "--json", timeout=280)
    assert done.returncode == code, (done.stdout, done.stderr)
    document: Mapping[str, Any] = read_document("sweep", done.stdout)
    return document


def sweep_after_grace(deployment: Deployment, *words: str, code: int = 0) -> Mapping[str, Any]:
    """Time passes: what is measured in it is the grace."""
    time.sleep(GRACE_SECONDS + 0.5)
    return sweep(deployment, *words, code=code)


@pytest.mark.timeout(600)
def test_a_sweep_takes_what_was_recorded_and_nothing_that_is_shown_or_unknown(
    deployment: Deployment, tmp_path: Path
) -> None:
    database = deployment.databases[0]
    plain, parted, dropped = (TableName(database, name) for name in ("plain", "parted", "dropped"))
    source = Source(deployment.source.client, tmp_path / "data")
    source.create_database(database)
    for name in (plain, dropped):
        source.create_table(name, COLUMNS, form="text", rows=3)
    source.create_table(parted, COLUMNS, DAY, form="text")
    source.add_partitions(parted, [("1",), ("2",), ("3",)])
    until_head(deployment)
    assert sweep_after_grace(deployment)["removed"] == []

    source.overwrite(plain)
    source.drop_partitions(parted, ["day=2"])
    source.client.drop_table(dropped)
    until_head(deployment)
    left = {f"{tmp_path}/dr/{database}.db/{name}" for name in ("plain", "dropped", "parted/day=2")}
    before = {path: (Path(path) / "_calque_claim.1").read_text() for path in left}
    assert all(json.loads(text)["ledger"] for text in before.values())

    # What would go is said, and nothing goes.
    dry = sweep_after_grace(deployment, "--dry-run")
    assert {place(item["place"]).path for item in dry["removed"]} == left
    assert all(Path(path).exists() for path in left)

    # Something that calque did not make is reported; what was replaced and dropped goes.
    stray = tmp_path / "dr" / f"{database}.db" / "theirs" / "f"
    stray.parent.mkdir()
    stray.write_text("x")
    swept = sweep(deployment)
    gone = {place(item["place"]).path: (item["reason"], item["files"]) for item in swept["removed"]}
    assert gone.keys() == left
    assert {reason for reason, _ in gone.values()} == {"replaced", "dropped"}
    assert not any(Path(path).exists() for path in left)
    assert [place(item["place"]).path for item in swept["unknown"]] == [str(stray.parent)]
    status = json.loads(deployment.calque("status", "--json").stdout)["targets"]["dr"]
    assert status["unknown"] == {"directories": 1, "bytes": 1}

    # An operator's word takes that, too.
    assert stray.exists()
    swept = sweep_after_grace(deployment, "--unknown")
    assert [place(item["place"]).path for item in swept["removed"]] == [str(stray.parent)]
    assert sweep(deployment)["unknown"] == []
    done = deployment.calque("verify", "--data", "checksum", timeout=280)
    assert done.returncode == 0, done.stdout


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_a_catalog_that_has_forgotten_a_table_costs_it_nothing(deployment: Deployment, tmp_path: Path) -> None:
    database, target = deployment.databases[0], deployment.targets[0]
    plain = TableName(database, "plain")
    source = Source(deployment.source.client, tmp_path / "data")
    source.create_database(database)
    source.create_table(plain, COLUMNS, form="text", rows=3)
    until_head(deployment)
    table = target.catalog.table(plain)
    assert table is not None
    HiveCatalog(Client(target.uri), TargetCapabilities()).drop_table(plain)
    at = Path(place(location_of(table) or "").path)
    swept = sweep_after_grace(deployment, "--unknown", "--yes")
    assert (swept["removed"], at.exists()) == ([], True)
    done = deployment.calque("repair", "--tables", str(plain), timeout=280)
    assert done.returncode in (0, 1), done.stderr
    until_head(deployment)
    done = deployment.calque("verify", "--data", "checksum", timeout=280)
    assert done.returncode == 0, done.stdout
