"""Spark's account of capture: each event is a row of one batch, whatever was taken early, whenever it was killed."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from calque.app import APP
from calque.model.hive import Column, Database, SerDe, Storage, Table
from calque.model.ledger import TableRow, TableState
from calque.model.names import EventId, TableName
from calque.sandbox import Metastore
from support.judges.event_logs import Batch, batches, configure
from support.runs.seeds import seed
from support.services.deployments import NUMBERS, Deployment
from support.services.servers import Shared

TABLES = 5


class Told(Deployment):
    """One whose Spark writes event logs. Several of one number follow the same databases."""

    def __init__(self, root: Path, number: int, source: Metastore, target: Metastore, early: bool) -> None:
        self.early = early
        root.mkdir()
        super().__init__(root, number, source, {"dr": target}, seed=1)
        self.settings = configure(root)

    def text(self, source: Metastore) -> str:
        return super().text(source).replace('poll = "50ms"', f'poll = "50ms"\nearly = {json.dumps(self.early)}')

    def begin(self) -> None:
        self.start(SPARK_CONF_DIR=str(self.settings))

    def batches(self, starting: EventId) -> list[Batch]:
        return list(batches(self.root, "capture", starting))

    def last_rows(self) -> tuple[object, object]:
        """The event of the ledger's last row of each object, and what its rows say of tables: a live one shows the
        position."""
        ledger = APP.wiring(APP.load(self.config)).ledger("dr")
        objects = {
            (row["database"], row["table"], row["partition"]): row["event_id"]
            for row in sorted(ledger.view().objects.to_table().to_pylist(), key=lambda row: row["epoch"])
        }
        shown = {
            key: (row.state, None if row.state is TableState.LIVE else row.shows)
            for key, row in ledger.tables().items()
            if isinstance(row, TableRow)
        }
        return objects, shown


@pytest.fixture
def deployments(shared: Shared, tmp_path: Path) -> Iterator[Mapping[bool, Told]]:
    """With events taken early, and without, of the same databases."""
    servers, number = shared("source-3", "target-3", "target-4"), next(NUMBERS)
    found = {
        early: Told(tmp_path / target, number, servers["source-3"], servers[target], early)
        for early, target in ((True, "target-3"), (False, "target-4"))
    }
    yield found
    for deployment in found.values():
        deployment.close()


def create_tables(deployment: Deployment) -> None:
    name = deployment.databases[0]
    deployment.source.client.create_database(Database(name))
    for number in range(TABLES):
        storage = Storage((Column("x", "int"),), serde=SerDe(parameters={}))
        deployment.source.client.create_table(Table(f"t{number}", name, storage=storage, parameters={}))


def change(deployment: Deployment, count: int, rng: random.Random) -> None:
    """So many events, in bursts and with pauses."""
    for number in range(count):
        name = TableName(deployment.databases[0], f"t{number % TABLES}")
        table = deployment.source.the_table(name).table
        table.parameters["count"] = str(int(table.parameters.get("count", "0")) + 1)
        deployment.source.client.alter_table(name, table)
        if rng.random() < 0.05:
            time.sleep(rng.random() * 2)


def settle(deployments: Mapping[bool, Told]) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(Deployment.settle, deployments.values()))


def wait_for_rows(deployment: Told, starting: EventId) -> None:
    """Until what was taken early has come again."""
    deadline = time.monotonic() + 60
    while not (found := deployment.batches(starting)) or found[-1].upto < deployment.source.current():
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("kills", "events"), [(1, 100), pytest.param(10, 10_000, marks=pytest.mark.prove)])
def test_offsets_tile_the_log_and_rows_are_the_events_of_their_offsets(
    deployments: Mapping[bool, Told], kills: int, events: int
) -> None:
    early, plain, rng = deployments[True], deployments[False], random.Random(seed())
    create_tables(early)
    starting = early.source.current()
    for deployment in deployments.values():
        deployment.begin()
    settle(deployments)
    for _ in range(kills):
        change(early, events // (kills + 1), rng)
        early.end(signal.SIGKILL)
        early.begin()
    change(early, events // (kills + 1), rng)
    settle(deployments)
    for deployment in deployments.values():
        wait_for_rows(deployment, starting)
        assert deployment.end(signal.SIGTERM) == 0, deployment.tail()
    assert early.last_rows() == plain.last_rows()
    for deployment in deployments.values():
        found = deployment.batches(starting)
        assert all(batch.rows == batch.upto - batch.after for batch in found), found
        ends = [(batch.after, batch.upto) for batch in found if batch.rows]
        assert all(one[1] == next_one[0] for one, next_one in pairwise(ends)), ends
        assert (ends[0][0], ends[-1][1]) == (starting, early.source.current()), ends
