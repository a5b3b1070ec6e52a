"""ACID tables at a native target, whose readers look while calque is killed at each failpoint of a native hop, many
times. That a real Hive sees the same while calque lives, `tests/interop/test_hive_acid.py` shows."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from calque.model.hive import Database
from calque.model.names import TableName
from support.faults.deaths import ACID_EFFECTS
from support.runs.seeds import seed
from support.services.acid_deployments import AcidTables, wait_for
from support.services.servers import Shared, shared_servers
from support.sources.acid_writer import AcidWriter
from support.sources.plain_transactions import HiveTransactions
from support.storages import any_storage

KILLS = int(os.environ.get("CALQUE_KILLS", "20"))
"""At each failpoint."""
READS = int(os.environ.get("CALQUE_OBSERVATIONS", "10000"))
SECONDS = 120
"""So long a failpoint is waited for."""
SEED = seed()
EFFECTS = (*ACID_EFFECTS, "storage.copy", "storage.write", "storage.make_directories", "storage.remove")
FAILPOINTS = [f"{effect}.{side}" for effect in EFFECTS for side in ("before", "after")]
DAYS = 5


@dataclass
class Changes:
    """A writer of three tables, which changes rows of all of them in each step, and something else in one of them."""

    deployment: AcidTables
    writer: AcidWriter
    plain: TableName
    parted: TableName
    appended: TableName
    rng: random.Random
    rows: int = 0

    @staticmethod
    def of(deployment: AcidTables) -> Changes:
        metastore, database = deployment.source.client, deployment.database
        metastore.create_database(Database(database))
        writer = AcidWriter(metastore, metastore.catalog, HiveTransactions(metastore.client), any_storage())
        names = (
            writer.create_table(database, "plain"),
            writer.create_table(database, "parted", ("day",)),
            writer.create_table(database, "appended", is_full=False, file_format="text"),
        )
        deployment.note_rows()
        return Changes(deployment, writer, *names, random.Random(SEED))

    def step(self) -> None:
        day = (str(self.rng.randrange(DAYS)),)
        with self.writer.transaction() as transaction:
            for name, values in ((self.plain, ()), (self.parted, day), (self.appended, ())):
                self.rows += 1
                transaction.insert(name, {values: [(self.rows, "a"), (-self.rows, "b")]})
        self.deployment.note_rows()
        others = (self.update, self.delete, self.overwrite, self.truncate, self.give_up, self.compact, self.drop)
        self.rng.choice(others)()
        self.deployment.note_rows()

    def update(self) -> None:
        with self.writer.transaction() as transaction:
            transaction.update(self.plain, lambda row: row[0] % 3 == 0, lambda row: (row[0], "changed"), ())

    def delete(self) -> None:
        with self.writer.transaction() as transaction:
            transaction.delete(self.parted, lambda row: row[0] % 2 == 0, self.day())

    def overwrite(self) -> None:
        with self.writer.transaction() as transaction:
            transaction.overwrite(self.plain, {(): [(0, "over")]})
            transaction.overwrite(self.appended, {(): []})

    def truncate(self) -> None:
        with self.writer.transaction() as transaction:
            transaction.truncate(self.parted, self.day())

    def give_up(self) -> None:
        transaction = self.writer.begin()
        transaction.insert(self.plain, {(): [(0, "never")]})
        transaction.abort()

    def compact(self) -> None:
        self.writer.clean(self.writer.compact(self.plain, is_major=self.rng.random() < 0.5))

    def drop(self) -> None:
        self.writer.drop_partition(self.parted, self.day())

    def day(self) -> tuple[str, ...]:
        return self.rng.choice(sorted(self.writer.tables[self.parted].changes))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with shared_servers(tmp_path_factory.mktemp) as servers:
        yield servers


@pytest.fixture
def deployment(shared: Shared, tmp_path: Path) -> Iterator[AcidTables]:
    servers = shared("source-4", "stock-4")
    made = AcidTables(tmp_path, servers["source-4"], {"dr": servers["stock-4"]})
    yield made
    made.close()


def killed(deployment: AcidTables, failpoint: str) -> bool:
    """Whether a process is killed there, of what was written before."""
    deployment.start(CALQUE_FAILPOINT=failpoint)
    assert deployment.process is not None
    try:
        return deployment.process.wait(SECONDS) == -signal.SIGKILL
    except subprocess.TimeoutExpired:
        deployment.end(signal.SIGTERM)
        return False


@pytest.mark.timeout(0)
def test_readers_see_states_of_acid_tables_while_calque_is_killed_at_each_failpoint_of_a_hop(
    deployment: AcidTables,
) -> None:
    print(f"CALQUE_SEED={SEED}")
    changes, found = Changes.of(deployment), dict.fromkeys(FAILPOINTS, 0)
    deployment.start()
    deployment.settle()
    deployment.end(signal.SIGTERM)
    deployment.watch_rows()
    for name in FAILPOINTS:
        for _ in range(KILLS):
            changes.step()
            found[name] += killed(deployment, name)
        print(f"{name}: killed {found[name]} times, {deployment.reads()} reads", flush=True)
    deployment.start()
    while deployment.reads() < READS:
        changes.step()
    deployment.settle()
    deployment.stop_watching()
    assert not (problems := deployment.problems()), "\n".join(problems[:5])
    assert wait_for(deployment.replicas[0].reader.read) == deployment.read_source()
    verified = deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert deployment.end(signal.SIGTERM) == 0
    assert found == dict.fromkeys(FAILPOINTS, KILLS)
