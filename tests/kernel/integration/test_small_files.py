"""Small files that are combined on their way, on real metastores: Spark reads source and target, row by row."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import calque
from calque.core.formats.layout import place
from calque.model.hive import location_of
from calque.model.names import TableName
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment
from support.services.sparksql import SparkSql

NESTED = (
    "id BIGINT, price DECIMAL(9,2), at TIMESTAMP, day DATE, tags ARRAY<STRING>, "
    "counts MAP<STRING,STRUCT<x:INT,y:ARRAY<DOUBLE>>>, raw BINARY"
)
ROWS = (
    "SELECT /*+ REPARTITION(12) */ id, CAST(id AS DECIMAL(9,2)) / 4, "
    "TIMESTAMP '1955-01-01 00:00:00.123456' + MAKE_INTERVAL(0, 0, 0, CAST(id AS INT)), DATE '1600-02-29', "
    "IF(id % 3 = 0, NULL, ARRAY('a', NULL, CAST(id AS STRING))), "
    "MAP('k', NAMED_STRUCT('x', CAST(id AS INT), 'y', ARRAY(0.5D, NULL))), CAST(CAST(id AS STRING) AS BINARY), "
    "CONCAT('p', id % 2) FROM RANGE({0}, {1})"
)
AWKWARD = (
    "SELECT /*+ REPARTITION(9) */ id, DECODE(id % 5, 0, '', 1, NULL, 2, 'tab\\\\tand \"quote\"', 3, 'é日本', 'x'), "
    "'only' FROM RANGE(40)"
)
COMPACT = 'appends = "new_directory"\ncompact = { "*.*" = { files = 4, below = "1MB" } }\n'


class Compacting(Deployment):
    def text(self, source: Metastore) -> str:
        return f"{super().text(source)}\n{COMPACT}"


class Rig:
    def __init__(self, servers: Mapping[str, Metastore], root: Path) -> None:
        self.deployment = Compacting(root, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=1)
        self.database = self.deployment.databases[0]
        self.source = SparkSql(servers["source"].uri, root / "spark-source")
        self.target = SparkSql(servers["target"].uri, root / "spark-target")
        self.source.sql(f"CREATE DATABASE {self.database} LOCATION 'file:{root}/source'")
        self.source.sql("SET hive.exec.dynamic.partition.mode=nonstrict")

    def run(self, **environment: str) -> int:
        command = [sys.executable, "-m", "calque.cli", "run", "--until", "head", "-c", str(self.deployment.config)]
        with self.deployment.log.open("ab") as log:
            return subprocess.run(
                command, stdout=log, stderr=log, timeout=240, check=False, env={**os.environ, **environment}
            ).returncode

    def rows(self, table: str) -> tuple[list[str], list[str]]:
        query = f"SELECT * FROM {self.database}.{table}"
        for side in (self.source, self.target):
            side.sql(f"REFRESH TABLE {self.database}.{table}")
        first, second = (sorted(map(json.dumps, side.sql(query))) for side in (self.source, self.target))
        return first, second

    def same(self, table: str) -> None:
        first, second = self.rows(table)
        assert first
        assert first == second

    def files(self, table: str, at_target: bool = True) -> dict[str, list[Path]]:
        """By partition, as they lie there."""
        catalog = self.deployment.targets[0].catalog if at_target else self.deployment.source.client.catalog
        name = TableName(self.database, table)
        found = catalog.partitions(name, catalog.partition_names(name))
        folders = {key: Path(place(location_of(partition) or "").path) for key, partition in found.items()}
        return {
            key: sorted(path for path in folder.iterdir() if not path.name.startswith(("_", ".")))
            for key, folder in folders.items()
        }

    def verify(self, data: str = "checksum") -> dict[str, Any]:
        done = self.deployment.calque("verify", "--data", data, "--json")
        assert done.stdout, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def close(self) -> None:
        self.deployment.close()
        self.source.close()
        self.target.close()


@pytest.fixture(scope="module")
def rig(servers: Mapping[str, Metastore], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    rig = Rig(servers, tmp_path_factory.mktemp("small"))
    yield rig
    rig.close()


@pytest.mark.timeout(900)
def test_tables_of_many_small_files_come_as_few_with_every_row(rig: Rig) -> None:
    name = f"{rig.database}.nested"
    rig.source.sql("SET spark.sql.hive.convertMetastoreParquet=false")
    rig.source.sql("SET spark.sql.parquet.outputTimestampType=INT96")
    rig.source.sql(f"CREATE TABLE {name} ({NESTED}) PARTITIONED BY (p STRING) STORED AS PARQUET")
    rig.source.sql(
        f"CREATE TABLE {rig.database}.lines (id BIGINT, s STRING) PARTITIONED BY (p STRING) STORED AS TEXTFILE"
    )
    rig.source.sql(f"CREATE TABLE {rig.database}.orcs (id BIGINT) PARTITIONED BY (p STRING) STORED AS ORC")
    assert rig.run() == 0
    # By Spark's own writer, whose lists pyarrow writes alike; Hive's are another form, and stay as they are.
    rig.source.sql("SET spark.sql.hive.convertMetastoreParquet=true")
    rig.source.sql("SET spark.sql.hive.convertInsertingPartitionedTable=true")
    rig.source.sql(f"INSERT INTO {name} PARTITION (p) {ROWS.format(0, 200)}")
    rig.source.sql(f"INSERT INTO {rig.database}.lines PARTITION (p) {AWKWARD}")
    orcs = "SELECT /*+ REPARTITION(6) */ id, 'o' FROM RANGE(40)"
    rig.source.sql(f"INSERT INTO {rig.database}.orcs PARTITION (p) {orcs}")
    before = rig.files("nested", at_target=False)
    assert all(len(paths) >= 10 for paths in before.values())
    # Death in the middle changes nothing in the end.
    assert rig.run(CALQUE_FAILPOINT="storage.combine.after") == -signal.SIGKILL
    assert rig.run() == 0
    for table in ("nested", "lines", "orcs"):
        rig.same(table)
    assert {key: len(paths) for key, paths in rig.files("nested").items()} == {"p=p0": 1, "p=p1": 1}
    assert [len(paths) for paths in rig.files("lines").values()] == [1]
    assert [len(paths) for paths in rig.files("orcs").values()] == [6]
    [made], first = rig.files("nested")["p=p0"], before["p=p0"][0]
    assert pq.ParquetFile(made).schema.equals(pq.ParquetFile(first).schema)
    assert pq.ParquetFile(made).schema.column(2).physical_type == "INT96"
    assert pq.ParquetFile(made).metadata.created_by == pq.ParquetFile(first).metadata.created_by
    assert rig.verify()["differences"] == []
    with calque.open_epoch(rig.deployment.config, "dr", tables=[name]) as epoch:
        assert epoch.arrow(name).count_rows() == 200


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_what_changes_later_in_a_table_of_combined_files_follows_and_what_somebody_damages_is_found(rig: Rig) -> None:
    name, nested = f"{rig.database}.nested", TableName(rig.database, "nested")
    source = rig.deployment.source
    # Rows are added to a partition, whose events name files of the source.
    folder = rig.files("nested", at_target=False)["p=p0"][0].parent
    more = folder / "part-more.parquet"
    more.write_bytes(rig.files("nested", at_target=False)["p=p0"][0].read_bytes())
    source.client.insert(nested, [f"file:{more}"], values=("p0",))
    # Another one has files that differ in their schemas; a third goes and comes back.
    other = rig.files("nested", at_target=False)["p=p1"][0]
    mixed = folder.parent / "p=mixed"
    mixed.mkdir()
    for number in range(6):
        (mixed / f"part-{number}").write_bytes(other.read_bytes())
    pq.write_table(pq.read_table(other, columns=["id", "price"]), mixed / "part-6")
    rig.source.sql(f"ALTER TABLE {name} ADD PARTITION (p = 'mixed') LOCATION 'file:{mixed}'")
    rig.source.sql(f"ALTER TABLE {name} DROP PARTITION (p = 'p1')")
    rig.source.sql(f"INSERT INTO {name} PARTITION (p) {ROWS.format(300, 340)} WHERE id % 2 = 1")
    assert rig.run() == 0
    assert {key: len(paths) for key, paths in rig.files("nested").items()} == {"p=p0": 1, "p=p1": 1, "p=mixed": 7}
    rig.same("nested")
    assert rig.verify()["differences"] == []
    # A row that somebody changes is found, and repaired.
    [path] = rig.files("lines")["p=only"]
    times = path.stat()
    path.write_bytes(path.read_bytes().replace(b"x", b"y", 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert rig.verify("size")["differences"] == []
    [difference] = rig.verify()["differences"]
    assert (difference["table"], difference["kind"]) == (f"{rig.database}.lines", "content")
    assert rig.deployment.calque("repair", "--tables", f"{rig.database}.lines", "--data", "checksum").returncode == 0
    assert rig.run() == 0
    rig.same("lines")
    assert rig.verify()["differences"] == []
