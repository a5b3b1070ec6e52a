"""Laws 1 and 2 for Delta replicas: readers of the tables themselves, delta-rs and Spark, while rows at the source never
stand still, and calque dies between. No exception is granted but announced bridges."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from calque.core.formats.layout import place
from calque.model.hive import SerDe, Storage, location_of
from calque.model.names import TableName, partition_name
from calque.model.policy import Policy
from calque.plugins.delta_replicas.core.replica_mark import is_delta_replica
from calque.sandbox import Metastore
from support.judges.proof import Proof
from support.runs.seeds import HISTORIES, seed
from support.services.deployments import NUMBERS, Deployment
from support.services.servers import Shared
from support.services.sparksql import SparkSql
from support.sources.rowers import Rows, RowWriter
from support.worlds.worlds import ABSENT, State

PROVING = HISTORIES in os.environ
OBSERVATIONS = int(os.environ.get("CALQUE_OBSERVATIONS", "3000" if PROVING else "200"))
CHANGES = 15 if PROVING else 5
"""Of what each reader saw, at least."""
BEFORE = 30
LOG = "delta-rs's log"
PARQUET = "org.apache.hadoop.hive.ql.io.parquet"


class ParquetRowWriter(RowWriter):
    def storage(self, location: str | None) -> Storage:
        formats = f"{PARQUET}.MapredParquetInputFormat", f"{PARQUET}.MapredParquetOutputFormat"
        serde = SerDe(class_name=f"{PARQUET}.serde.ParquetHiveSerDe", parameters={})
        return Storage(super().storage(location).columns, location, *formats, serde=serde)

    def written(self, directory: Path, name: str, rows: Sequence[int]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        draft = directory / f".{name}"
        pq.write_table(pa.table({"x": pa.array(rows, pa.int32())}), draft)
        draft.rename(directory / name)


class AsDelta(Deployment):
    """With a writer of rows alone."""

    def __init__(self, root: Path, source: Metastore, target: Metastore, seed: int) -> None:
        number = next(NUMBERS)
        self.of_rows = f"lake{number}"
        super().__init__(root, number, source, {"lake": target}, seed)
        self.proofs = {"delta-rs": Proof(), "Spark": Proof(), LOG: Proof()}
        self.row_writer = ParquetRowWriter(source.uri, self.of_rows, root / "rows", seed, self.note_rows)

    def policy(self, name: str, index: int) -> Policy:
        base = super().policy(name, index)
        return Policy(base.target, base.source, include=(f"{self.of_rows}.*",), warehouse=base.warehouse)

    def text(self, source: Metastore) -> str:
        return super().text(source).replace("[targets.lake]", '[targets.lake]\nformat = "delta"')

    def note_rows(self, event_id: int, rows: Mapping[TableName, Rows]) -> None:
        for proof in self.proofs.values():
            proof.note(event_id, dict(rows))

    def progress(self) -> float:
        """The share of the tables to be judged, by all readers together, that was judged."""
        return sum(proof.looks for proof in self.proofs.values()) / OBSERVATIONS

    def fewest_changes(self) -> int:
        return min(proof.changes for proof in self.proofs.values())

    def look(self, kind: str, read: Callable[[str, str], State]) -> None:
        """All tables by their names in the metastore, as one reader reads them. One that had another name or place
        meanwhile is not judged."""
        proof = self.proofs[kind]
        before, found = self.roots(), dict[str, State]()
        failed: dict[str, Exception] = {}
        for name, root in before.items():
            try:
                found[name] = read(name, root)
            except (DeltaError, FileNotFoundError, RuntimeError) as error:
                failed[name] = error
        after = self.roots()
        stayed = {name for name, root in before.items() if after.get(name) == root}
        for name in stayed & failed.keys():
            raise AssertionError(f"{kind} could not read {name}\n{self.tail()}") from failed[name]
        there = {TableName(self.of_rows, name) for name in (*before, *after)}
        states = {name: rows for name, rows in proof.last.items() if rows is not ABSENT and name in there}
        states |= {TableName(self.of_rows, name): found[name] for name in stayed}
        proof.see(0, time.time(), states)

    def roots(self) -> dict[str, str]:
        catalog = self.targets[0].catalog
        headers = catalog.headers(self.of_rows, catalog.tables(self.of_rows))
        places = {name: place(location_of(table) or "").path for name, table in headers.items()}
        return {name: places[name] for name, table in headers.items() if is_delta_replica(table)}


def by_delta_rs(_: str, root: str) -> Rows:
    table = DeltaTable(root)
    return rows_of(table.to_pyarrow_table().to_pylist())


class ByLog:
    """delta-rs says which files a table has; of these each is read once, since none ever changes."""

    def __init__(self) -> None:
        self.files: dict[str, Sequence[int]] = {}

    def __call__(self, _: str, root: str) -> Rows:
        actions = pa.table(DeltaTable(root).get_add_actions(flatten=True)).to_pylist()  # type: ignore[arg-type]
        return rows_of([row for action in actions for row in self.rows(root, action)])

    def rows(self, root: str, action: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        file = Path(root, unquote(action["path"]))
        if str(file) not in self.files:
            self.files[str(file)] = pq.read_table(file, columns=["x"], partitioning=None)["x"].to_pylist()
        elif not file.exists():
            raise FileNotFoundError(file)
        values = {"p": action["partition.p"]} if "partition.p" in action else {}
        return [{"x": x, **values} for x in self.files[str(file)]]


def rows_of(found: Sequence[Mapping[str, Any]]) -> Rows:
    return tuple(sorted((partition_name(["p"], [row["p"]]) if "p" in row else "", row["x"]) for row in found))


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_readers_of_delta_replicas_see_only_what_the_source_had(shared: Shared, tmp_path: Path) -> None:
    print(f"CALQUE_SEED={seed()}")
    source, target = shared("source-3", "target-3").values()
    deployment = AsDelta(tmp_path, source, target, seed())
    spark = SparkSql(target.uri, tmp_path / "spark")

    def by_spark(name: str, _: str) -> State:
        """One that was dropped and made again, and is away just now, was away at the source as well."""
        table = f"{deployment.of_rows}.{name}"
        try:
            keys = sorted({row[0] for row in spark.sql(f"DESCRIBE {table}") if row[0] in ("x", "p")})
            found = spark.sql(f"SELECT {', '.join(keys)} FROM {table}")
        except RuntimeError as error:
            if "TABLE_OR_VIEW_NOT_FOUND" in str(error):
                return ABSENT
            raise
        return rows_of([dict(zip(keys, row, strict=True)) for row in found])

    def watch(kind: str, read: Callable[[str, str], State]) -> None:
        while not deployment.watching.wait(0.05):
            deployment.look(kind, read)

    try:
        for _ in range(BEFORE):
            deployment.row_writer.step()
        deployment.start()
        readers = [
            threading.Thread(target=watch, args=("delta-rs", by_delta_rs), daemon=True),
            threading.Thread(target=watch, args=("Spark", by_spark), daemon=True),
            threading.Thread(target=watch, args=(LOG, ByLog()), daemon=True),
        ]
        for reader in readers:
            reader.start()
        deaths = 0
        while (progress := deployment.progress()) < 1 or deployment.fewest_changes() < CHANGES:
            assert all(reader.is_alive() for reader in readers)
            deployment.row_writer.step()
            time.sleep(deployment.row_writer.rng.random() * 0.1)
            if deaths < 2 and progress > (deaths + 1) / 3:
                deaths += 1
                deployment.end(signal.SIGKILL)
                deployment.start()
        deployment.settle()
        for kind, proof in deployment.proofs.items():
            seen_before = proof.looks
            while proof.looks < seen_before + 2:
                assert all(reader.is_alive() for reader in readers)
                time.sleep(0.05)
            assert deployment.problems_of(deployment.targets[0], proof) == [], kind
        print("tables judged:", {kind: proof.looks for kind, proof in deployment.proofs.items()})
        deployment.watching.set()
        for reader in readers:
            reader.join(60)
        for name, states in deployment.proofs["delta-rs"].history.states.items():
            found = deployment.targets[0].catalog.table(name)
            shown = by_delta_rs("", place(location_of(found) or "").path) if found is not None else None
            assert shown == states[-1][1], name
        assert deployment.end(signal.SIGTERM) == 0
    finally:
        deployment.close()
        spark.close()
