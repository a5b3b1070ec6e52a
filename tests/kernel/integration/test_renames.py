"""A busy source that renames: no table that a target has is read again, and none vanishes that the source never lacked.

The run is suspended while a burst is written, so that a window has several events and nobody has looked in between.
The second target takes one of the two databases, so that tables cross the edge of its policy. What goes is counted from
the metastores' own logs, beside what calque says of itself. `CALQUE_RENAMES` is how much the writer does.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.messages import Fault
from calque.app import APP
from calque.control.status import snapshot
from calque.model.hive import Column, Partition, SerDe, Storage, Table, location_of
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.sandbox import Metastore
from support.judges.departures import departures, logged
from support.services.deployments import NUMBERS, Deployment
from support.services.suspension import suspended
from support.sources.writers import INPUT, OUTPUT, SERDE

STEPS = int(os.environ.get("CALQUE_RENAMES", "30"))
BURST = 6
"""Operations that are written while nobody looks."""
AT_FIRST = (*("create_database",) * 8, *("create_table",) * 8, *("add_partitions",) * 8)
RENAMES = ("rename_table", "rename_table", "swap", "rename_chain", "rename_partition", "add_partitions", "insert_files")
KEYS = (Column("p", "string"),)
PAIRED: Mapping[str, tuple[Column, ...]] = {"plain_1": (), "plain_2": (), "parts_1": KEYS, "parts_2": KEYS}


class WithEdge(Deployment):
    """The second target takes the first database alone, under another name."""

    def policy(self, name: str, index: int) -> Policy:
        first, _ = self.databases
        warehouse = f"file://{self.root}/wh_{name}"
        if index == 0:
            return super().policy(name, index)
        return Policy(name, "hq", include=(f"{first}.*",), rename={first: f"{first}_edge"}, warehouse=warehouse)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        assert self.process is not None
        with suspended(self.process.pid):
            yield

    def rename(self, old: TableName, new: TableName) -> None:
        table = self.source.the_table(old).table
        self.source.alter_table(old, replace(table, database=new.database, name=new.table))

    def swap(self, one: TableName, other: TableName) -> None:
        through = TableName(one.database, "through")
        for old, new in ((one, through), (other, one), (through, other)):
            self.rename(old, new)

    def create_pairs(self) -> None:
        """In each database two plain tables and two partitioned ones, all with files."""
        storage = Storage((Column("x", "int"),), None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
        for database, (table, keys) in product(self.databases, PAIRED.items()):
            name = TableName(database, table)
            self.source.create_table(
                Table(table, database, "me", storage=storage, partition_keys=keys, parameters={}, type="MANAGED_TABLE")
            )
            location = location_of(self.source.the_table(name).table) or ""
            if keys:
                part = Partition(("1",), *name, storage=replace(storage, location=f"{location}/p=1"), parameters={})
                self.writer.put_file(f"{location}/p=1")
                self.source.add_partitions(name, [part])
            else:
                self.source.insert(name, [self.writer.put_file(location)])

    def work(self, operations: Iterable[str]) -> None:
        for operation in operations:
            try:
                self.writer.run(operation)
            except Fault as fault:
                self.writer.done.append(f"refused: {fault}")


@pytest.fixture
def deployment(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[WithEdge]:
    targets = {"dr": servers["target"], "edge": servers["target"]}
    deployment = WithEdge(tmp_path, next(NUMBERS), servers["source"], targets, seed=8)
    yield deployment
    deployment.close()


def test_renames_cost_no_read_of_what_is_there_and_no_moment_without_a_table(
    deployment: WithEdge, servers: Mapping[str, Metastore]
) -> None:
    # The writer's calls are not looked at one by one.
    deployment.writer.source = deployment.source
    deployment.work(AT_FIRST)
    deployment.create_pairs()
    deployment.start()
    deployment.settle()
    source, target_server = servers["source"], servers["target"]
    source_start, target_start = deployment.source.current(), HiveLog(Client(target_server.uri)).current()
    inside, outside = deployment.databases
    for left, one, right, other in (
        (inside, "plain_1", inside, "plain_2"),
        (inside, "parts_1", inside, "parts_2"),
        (inside, "plain_1", outside, "plain_1"),
        (outside, "parts_1", inside, "parts_1"),
    ):
        with deployment.suspended():
            deployment.swap(TableName(left, one), TableName(right, other))
        deployment.settle()
    for _ in range(0, STEPS, BURST):
        with deployment.suspended():
            deployment.work(deployment.rng.choice(RENAMES) for _ in range(BURST))
        deployment.settle()
    deployment.check_equal()
    status = snapshot(APP.wiring(APP.load(deployment.config)))
    gone_at_source, gone_at_target = (
        departures(logged(source.uri, source_start)),
        departures(logged(target_server.uri, target_start)),
    )
    for target in deployment.targets:
        shown = status["targets"][target.name]
        assert (shown["rereads"], shown["bridges"]) == ({"hole": 0, "gap": 0, "operator": 0}, 0), deployment.tail()
        gone = {target.admission.source_of(name): times for name, times in gone_at_target.items()}
        here = Counter(
            {name: times for name, times in gone.items() if name is not None and target.admission.takes(name)}
        )
        assert not here - gone_at_source
