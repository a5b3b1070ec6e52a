"""A bootstrap on real metastores that is killed, and goes on: what was exact is not read again."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from calque.app import APP
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.ledger import TableRow
from calque.model.names import TableName
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.services.deployments import NUMBERS, Deployment
from support.services.thriftproxy import asked
from support.worlds.worlds import INPUT, OUTPUT, SERDE

TABLES, CONNECTIONS = 24, 2
NAME = re.compile(rb"t\d\d\d\d")


def make(client: HiveClient, database: str, root: Path) -> None:
    client.create_database(Database(database, location=root.as_uri()))
    columns, keys = (Column("x", "int"),), (Column("p", "string"),)
    for number in range(TABLES):
        name = f"t{number:04}"
        place = (root / name).as_uri()
        storage = Storage(columns, place, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
        table = Table(
            name, database, "me", storage=storage, partition_keys=keys, parameters={"EXTERNAL": "TRUE"},
            type="EXTERNAL_TABLE",
        )  # fmt: skip
        client.create_table(table)
        client.add_partitions(
            TableName(database, name),
            [Partition((value,), database, name, storage=storage, parameters={}) for value in "ab"],
        )


@pytest.mark.timeout(600)
def test_a_bootstrap_that_is_killed_goes_on_and_reads_only_what_was_not_exact(
    servers: Mapping[str, Metastore], tmp_path: Path
) -> None:
    with asked(servers["source"].uri) as source:
        through = cast(Metastore, SimpleNamespace(uri=source.uri))
        deployment = Deployment(tmp_path, next(NUMBERS), through, {"dr": servers["target"]}, seed=1)
        text = deployment.config.read_text().replace("poll", f"connections = {CONNECTIONS}\npoll")
        deployment.config.write_text(text + '\ndata = "none"\n')
        make(HiveClient(servers["source"].uri), deployment.databases[0], tmp_path / "data")
        try:
            deployment.start(CALQUE_FAILPOINT=f"catalog.alter_table.before@{TABLES // 2}")
            assert deployment.process is not None
            assert deployment.process.wait(240) == -signal.SIGKILL, deployment.tail()
            exact = landed(deployment)
            assert exact
            source.calls.clear()
            last = deployment.calque("run", "--until", "head", timeout=400)
            assert last.returncode == 0, last.stderr
            read = {cast(re.Match[bytes], NAME.search(call))[0].decode() for call in source.named("get_partitions")}
            assert read == {f"t{number:04}" for number in range(TABLES)} - exact
            # The log's own process, the sign of life, and the readers'.
            assert source.most <= CONNECTIONS + 2
            assert deployment.calque("verify").returncode == 0
            assert target(deployment)["tables"]["live"] == TABLES
            assert target(deployment)["reading"] is None
        finally:
            deployment.close()


def landed(deployment: Deployment) -> set[str]:
    rows = APP.wiring(APP.load(deployment.config)).ledger("dr").tables().values()
    return {row.table for row in rows if isinstance(row, TableRow) and row.state in {"live", "staging"}}


def target(deployment: Deployment) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(deployment.calque("status", "--json").stdout)["targets"]["dr"]
    return found
