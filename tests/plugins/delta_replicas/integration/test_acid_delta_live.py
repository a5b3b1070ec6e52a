"""ACID tables of a real Hive 4 metastore as Delta tables at a Hive 3: delta-rs reads them while rows at the source
change and calque is killed, Spark reads them in the end, and verify knows rows that are not the source's."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from calque.adapters.metastore.reader import HiveReader
from calque.core.formats.layout import place
from calque.model.hive import Database, location_of
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment
from support.services.servers import Shared
from support.services.sparksql import SparkSql
from support.sources.acid_writer import AcidWriter, Values
from support.sources.plain_transactions import HiveTransactions
from support.storages import any_storage

Rows = Sequence[tuple[Any, ...]]
CHANGES = 5
"""Before calque is killed; readers see each of them, or the one after it."""


class AcidDeltas(Deployment):
    """With a writer of ACID tables. `states` are the rows that each table had, in order, and `seen` those that a reader
    saw."""

    def __init__(self, root: Path, source: Metastore, target: Metastore) -> None:
        super().__init__(root, next(NUMBERS), source, {"dr": target}, 7)
        client = self.source.client
        client.create_database(Database(self.databases[0]))
        self.acid = AcidWriter(client, HiveReader(client.client), HiveTransactions(client.client), any_storage())
        self.states: dict[TableName, list[Rows]] = {}
        self.seen: dict[TableName, list[Rows]] = {}
        self.places = {
            self.acid.create_table(self.databases[0], "plain"): [()],
            self.acid.create_table(self.databases[0], "parted", ("p",)): [("a",), ("b",)],
            self.acid.create_table(self.databases[0], "added", is_full=False, file_format="parquet"): [()],
        }
        self.number = self.position = 0

    def policy(self, name: str, index: int) -> Policy:  # noqa: ARG002
        return Policy(name, "hq", include=(f"{self.databases[0]}.*",), warehouse=f"file://{self.root}/wh_{name}")

    def text(self, source: Metastore) -> str:
        return super().text(source).replace("\ninclude", '\nacid = "delta"\ninclude')

    # The source

    def change(self) -> None:
        """A transaction that writes to some of the tables."""
        written = self.rng.sample(list(self.places), self.rng.choice([1, 2, 3]))
        with self.acid.transaction() as transaction:
            for name in written:
                values = self.rng.choice(self.places[name])
                kind = self.rng.choice(["insert", "insert", "delete", "update", "overwrite"])
                if not self.acid.tables[name].is_full and kind in ("delete", "update"):
                    kind = "insert"
                rest = self.rng.choice([0, 1])
                match kind:
                    case "insert":
                        transaction.insert(name, {values: self.new_rows()})
                    case "delete":
                        transaction.delete(name, lambda row, rest=rest: row[0] % 3 == rest, values)
                    case "update":
                        transaction.update(
                            name, lambda row, rest=rest: row[0] % 3 == rest, lambda row: (row[0], "new"), values
                        )
                    case _:
                        transaction.overwrite(name, {values: self.new_rows()})
        if self.rng.random() < 0.2:
            name = self.rng.choice(list(self.places))
            compaction = self.acid.compact(name, self.rng.choice(self.places[name]), is_major=self.rng.random() < 0.5)
            self.acid.clean(compaction)
        self.remember()

    def new_rows(self) -> list[tuple[int, str]]:
        self.number += 3
        return [(self.number + place, f"v{place}") for place in range(self.rng.choice([1, 2, 3]))]

    def remember(self) -> None:
        for name in self.places:
            rows = sorted((*row[1:], *values_of(part)) for part, some in self.acid.rows(name).items() for row in some)
            states = self.states.setdefault(name, [[]])
            if states[-1] != rows:
                states.append(rows)

    # The target

    def wait_for_epoch(self) -> None:
        """Until the target shows some of what has changed since the last one."""
        before, self.position = self.position, 0
        self.wait_for(lambda status: self.shows(status) > before)

    def shows(self, status: Mapping[str, Any]) -> int:
        self.position = status["position"] or 0
        return self.position

    def look(self) -> None:
        for name in self.places:
            rows, seen = self.by_delta_rs(name), self.seen.setdefault(name, [[]])
            if rows != seen[-1]:
                seen.append(rows)

    def misread(self) -> list[str]:
        """What the reader should not have seen, because the source had no such state, or only before."""
        problems = []
        for name, seen in self.seen.items():
            states, reached = self.states[name], 0
            for rows in seen:
                if rows not in states[reached:]:
                    problems.append(f"{name} shows {rows}, after state {reached}")
                else:
                    reached = states.index(rows, reached)
        return problems

    def by_delta_rs(self, name: TableName) -> Rows:
        root = self.root_of(name)
        if root is None:
            return []
        try:
            found = DeltaTable(root).to_pyarrow_table()
        except DeltaError:
            assert self.root_of(name) is not None
            return []
        return sorted(tuple(row[column] for column in self.columns(name)) for row in found.to_pylist())

    def columns(self, name: TableName) -> Sequence[str]:
        return ["id", "v", *self.acid.tables[name].keys]

    def root_of(self, name: TableName) -> str | None:
        found = self.targets[0].catalog.table(name)
        return place(location_of(found) or "").path if found is not None else None

    def watch_rows(self) -> threading.Thread:
        def looks() -> None:
            while not self.watching.wait(0.1):
                self.look()

        thread = threading.Thread(target=looks, daemon=True)
        thread.start()
        return thread


def values_of(part: str) -> Values:
    return (part.partition("=")[2],) if part else ()


@pytest.fixture
def deployment(shared: Shared, tmp_path: Path) -> Iterator[AcidDeltas]:
    source, target = shared("source-4", "target-3").values()
    made = AcidDeltas(tmp_path, source, target)
    yield made
    made.close()


def test_readers_see_states_of_acid_tables_while_calque_is_killed(deployment: AcidDeltas) -> None:
    for _ in range(5):
        deployment.change()
    thread = deployment.watch_rows()
    deployment.start()
    for _ in range(CHANGES):
        deployment.change()
        deployment.wait_for_epoch()
    deployment.change()
    deployment.end(signal.SIGKILL)
    deployment.change()
    deployment.start()
    deployment.settle()
    deployment.watching.set()
    thread.join(60)
    assert not thread.is_alive()
    assert deployment.misread() == []
    assert {name: deployment.by_delta_rs(name) for name in deployment.places} == {
        name: states[-1] for name, states in deployment.states.items()
    }
    assert min(map(len, deployment.seen.values())) > CHANGES // 2
    check_spark(deployment)
    verified = deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    spoil(deployment)
    verified = deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 1
    assert "missing or of another size" in verified.stdout
    assert deployment.calque("repair", "--target", "dr", "--tables", str(next(iter(deployment.places)))).returncode == 0
    deployment.settle()
    verified = deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def check_spark(deployment: AcidDeltas) -> None:
    """Spark sees the same rows, in columns that the schema names."""
    spark = SparkSql(deployment.targets[0].uri, deployment.root / "spark")
    try:
        for name in deployment.places:
            rows = spark.sql(f"SELECT * FROM {name}")
            assert sorted(map(tuple, rows)) == deployment.by_delta_rs(name), name
    finally:
        spark.close()


def spoil(deployment: AcidDeltas) -> None:
    """A row of a file at the target is another one."""
    (name, *_) = deployment.places
    file = next(Path(place(uri).path) for uri in DeltaTable(deployment.root_of(name) or "").file_uris())
    rows = pq.read_table(file)
    assert {"_calque_write_id", "_calque_bucket", "_calque_row"} < {*rows.column_names}
    pq.write_table(rows.set_column(1, "v", pa.array(["longer than before"] * rows.num_rows)), file)
