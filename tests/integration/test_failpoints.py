"""Real processes that die in the middle of staging, publishing and recording, on real parts."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from calque.core.layout import COPYING, STAGE, place
from calque.model.hive import Column, location_of
from calque.model.names import TableName
from calque.sandbox import Metastore
from calque.sandbox.demo.source import Source
from deployments import Deployment, pair

COLUMNS, DAY = (Column("id", "bigint"), Column("name", "string")), (Column("day", "string"),)
PLAIN, PARTED = "plain", "parted"


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Mapping[str, Metastore]]:
    with pair(tmp_path) as found:
        yield found


@pytest.mark.timeout(600)
def test_whoever_is_killed_at_failpoints_goes_on_copies_no_file_twice_and_leaves_nothing(
    servers: Mapping[str, Metastore], tmp_path: Path
) -> None:
    deployment = Deployment(tmp_path, 1, servers["source"], {"dr": servers["target"]}, seed=1)
    deployment.config.write_text(deployment.config.read_text() + '\ngrace = "0s"\n')
    source = Source(deployment.source.client, tmp_path / "data")
    database = deployment.databases[0]
    source.create_database(database)
    plain, parted = TableName(database, PLAIN), TableName(database, PARTED)
    source.create_table(plain, COLUMNS, form="text")
    source.create_table(parted, COLUMNS, DAY, form="text")
    source.add_partitions(parted, [("1",), ("2",)])
    deaths: Mapping[str, Callable[[], None]] = {
        "storage.copy.after": lambda: source.insert(plain),
        "storage.publish.after": lambda: source.insert(parted, "day=1"),
        "catalog.alter_partitions.before": lambda: source.overwrite(parted, "day=1"),
        "ledger.publish.before": lambda: source.insert(plain),
    }
    first = deployment.calque("run", "--until", "head", timeout=400)
    assert first.returncode == 0, first.stderr
    try:
        for name, change in deaths.items():
            change()
            deployment.start(CALQUE_FAILPOINT=name)
            assert deployment.process is not None
            assert deployment.process.wait(240) == -signal.SIGKILL, deployment.tail()
        last = deployment.calque("run", "--until", "head", timeout=400)
        assert last.returncode == 0, last.stderr
        assert deployment.calque("sweep").returncode == 0
        verified = deployment.calque("verify", "--data", "checksum")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        epochs = json.loads(deployment.calque("epochs", "list", "--json").stdout)
        assert sum(epoch["bytes"] for epoch in epochs) <= sum(sizes(source).values())
        assert stray(deployment, (PLAIN, PARTED)) == []
    finally:
        deployment.close()


def sizes(source: Source) -> Mapping[str, int]:
    """Of every file that the source has."""
    held = source.held().items()
    return {f"{name}/{file}": size for name, parts in held for files in parts.values() for file, size in files.items()}


def stray(deployment: Deployment, tables: tuple[str, ...]) -> list[str]:
    """Files below the warehouse that are nobody's data."""
    catalog, leaves = deployment.targets[0].catalog, list[str]()
    for name in (TableName(deployment.databases[0], table) for table in tables):
        table = catalog.table(name)
        assert table is not None
        parts = catalog.partitions(name, catalog.partition_names(name)).values() if table.partition_keys else [table]
        leaves += [f"{place(location_of(thing) or '').path}/" for thing in parts]
    warehouse = Path(place(deployment.targets[0].policy.warehouse).path)
    files = [str(path) for path in warehouse.rglob("*") if path.is_file()]
    return [path for path in files if COPYING in path or STAGE in path or not path.startswith(tuple(leaves))]
