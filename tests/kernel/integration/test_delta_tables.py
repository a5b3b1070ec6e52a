"""Delta tables on real metastores: Spark with Delta writes at the source, Spark with Delta reads at the target."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from calque.app import APP
from calque.control.status import snapshot
from calque.core.formats.deltalog import log_of
from calque.core.formats.layout import place
from calque.model.hive import location_of
from calque.model.names import TableName
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment
from support.services.sparksql import SparkSql

NUMBER = next(NUMBERS)
D = f"d1x{NUMBER}"
STATEMENTS = (
    f"INSERT INTO {D}.t VALUES (1, 'x'), (2, 'a b%/=é'), (3, NULL)",
    f"INSERT INTO {D}.t SELECT id + 10, 'x' FROM range(20)",
    f"DELETE FROM {D}.t WHERE a % 3 = 1",
    f"INSERT OVERWRITE {D}.t SELECT id + 100, 'y' FROM range(30)",
    f"UPDATE {D}.t SET p = 'z' WHERE a < 105",
    f"OPTIMIZE {D}.t",
    f"ALTER TABLE {D}.t ADD COLUMNS (c INT)",
    f"INSERT INTO {D}.t VALUES (7, 'z', 8)",
    f"RESTORE TABLE {D}.t TO VERSION AS OF 3",
)
CREATE = (
    f"CREATE TABLE {D}.t (a INT, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES ("
    "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name', 'delta.checkpointInterval' = '4', "
    "'delta.checkpointPolicy' = 'v2', 'delta.enableChangeDataFeed' = 'true')"
)


class Rig:
    """A deployment with a writer and a reader."""

    def __init__(self, servers: Mapping[str, Metastore], root: Path) -> None:
        self.deployment = Deployment(root, NUMBER, servers["source"], {"dr": servers["target"]}, seed=1)
        self.source = SparkSql(servers["source"].uri, root / "spark-source")
        self.target = SparkSql(servers["target"].uri, root / "spark-target")
        self.catalog = self.deployment.targets[0].catalog
        self.wiring = APP.wiring(APP.load(self.deployment.config))

    def fire(self, table: str) -> None:
        """An event on a table; commits raise none."""
        name = TableName(D, table)
        found = self.deployment.source.client.catalog.table(name)
        assert found is not None
        log = Path(place(location_of(found) or "").path, "_delta_log")
        self.deployment.source.client.insert(name, [str(max(log.glob("*.json")))])

    def write(self, table: str, *statements: str) -> None:
        for statement in statements:
            self.source.sql(statement)
            self.fire(table)

    def settle(self) -> None:
        self.deployment.settle()

    def same(self, table: str) -> None:
        query = f"SELECT * FROM {D}.{table}"
        assert by_text(self.target.sql(query)) == by_text(self.source.sql(query))

    def quarantined(self) -> dict[str, str]:
        [target] = snapshot(self.wiring)["targets"].values()
        return {row["table"]: row["reason"] for row in target["quarantined"]}

    def location(self, table: str) -> str:
        found = self.catalog.table(TableName(D, table))
        assert found is not None
        return location_of(found) or ""

    def close(self) -> None:
        self.deployment.close()
        self.source.close()
        self.target.close()


@pytest.fixture(scope="module")
def rig(servers: Mapping[str, Metastore], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    rig = Rig(servers, tmp_path_factory.mktemp("delta"))
    rig.source.sql(f"CREATE DATABASE {D}")
    rig.deployment.start()
    yield rig
    rig.close()


def by_text(rows: Any) -> list[str]:
    return sorted(map(json.dumps, rows))


def test_a_reader_sees_only_versions_of_the_source_one_after_the_other(rig: Rig) -> None:
    rig.source.sql(CREATE)
    rig.settle()
    seen: list[list[str]] = []
    problems: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.wait(1.0):
            try:
                seen.append(by_text(rig.target.sql(f"SELECT * FROM {D}.t")))
            except RuntimeError as error:
                # What any reader is told whose statement was analysed before the columns changed.
                if "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS" not in str(error):
                    problems.append(str(error))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        rig.write("t", *STATEMENTS)
        rig.settle()
    finally:
        done.set()
        reader.join(60)
    assert problems == []
    rig.same("t")
    newest = max(row[0] for row in rig.source.sql(f"DESCRIBE HISTORY {D}.t"))
    versions = [version_of(rig.source, f"{D}.t", version) for version in range(newest + 1)]
    at = 0
    for number, rows in enumerate(seen):
        found = next((version for version in range(at, newest + 1) if versions[version] == rows), None)
        assert found is not None, f"read {number} of {len(seen)} is no version from {at} on: {rows}"
        at = found
    assert len({str(rows) for rows in seen}) > 3
    log = Path(place(rig.location("t")).path, "_delta_log")
    there = log_of(path.name for path in log.iterdir())
    assert there.commits == set(range(newest + 1))
    assert there.checkpoints
    # Spark takes seconds for an older version; the newest one was compared.
    for version in sorted(there.commits)[::3]:
        assert version_of(rig.target, f"delta.`{rig.location('t')}`", version) == versions[version]
    verified = rig.deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def version_of(spark: SparkSql, table: str, version: int) -> list[str]:
    return by_text(spark.sql(f"SELECT * FROM {table} VERSION AS OF {version}"))


@pytest.mark.prove
def test_tables_are_renamed_dropped_and_made_again(rig: Rig) -> None:
    outside = rig.deployment.root / "outside" / "e"
    rig.source.sql(f"CREATE TABLE {D}.m USING delta AS SELECT 1 AS a")
    rig.source.sql(f"CREATE TABLE {D}.e USING delta LOCATION 'file:{outside}' AS SELECT 2 AS a")
    rig.settle()
    rig.same("m")
    rig.same("e")
    before = rig.location("m")
    rig.write("m", f"INSERT INTO {D}.m VALUES (3)")
    rig.source.sql(f"ALTER TABLE {D}.m RENAME TO {D}.n")
    rig.source.sql(f"ALTER TABLE {D}.e RENAME TO {D}.f")
    rig.settle()
    rig.same("n")
    rig.same("f")
    assert rig.location("n") == before
    rig.source.sql(f"DROP TABLE {D}.n")
    rig.source.sql(f"CREATE TABLE {D}.n USING delta AS SELECT 'other' AS x")
    rig.write("n", f"INSERT INTO {D}.n VALUES ('more')")
    rig.settle()
    rig.same("n")
    rig.source.sql(f"CREATE OR REPLACE TABLE {D}.n USING delta AS SELECT 5 AS z, 6 AS y")
    rig.settle()
    rig.same("n")
    rig.source.sql(f"DROP TABLE {D}.f")
    rig.settle()
    assert rig.catalog.table(TableName(D, "f")) is None
    verified = rig.deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.prove
def test_what_the_metastore_says_of_a_version_follows_it(rig: Rig) -> None:
    rig.source.sql("SET spark.databricks.delta.catalog.update.enabled = true")
    rig.source.sql(f"CREATE TABLE {D}.u (a INT) USING delta")
    rig.source.sql(f"INSERT INTO {D}.u VALUES (1)")
    rig.source.sql(f"ALTER TABLE {D}.u ADD COLUMNS (b STRING)")
    rig.source.sql(f"INSERT INTO {D}.u VALUES (2, 'x')")
    rig.fire("u")
    rig.source.sql("SET spark.databricks.delta.catalog.update.enabled = false")
    rig.settle()
    rig.same("u")


def test_a_table_that_is_converted_becomes_a_delta_table(rig: Rig) -> None:
    rig.source.sql(f"CREATE TABLE {D}.pq USING parquet PARTITIONED BY (p) AS SELECT 1 AS a, 2 AS p")
    rig.settle()
    rig.same("pq")
    rig.source.sql(f"CONVERT TO DELTA {D}.pq")
    rig.write("pq", f"INSERT INTO {D}.pq VALUES (3, 4)")
    rig.settle()
    wait_until(lambda: f"{D}.pq" in rig.quarantined() or len(rig.target.sql(f"SELECT * FROM {D}.pq")) == 2)
    assert rig.quarantined() == {}
    rig.same("pq")


@pytest.mark.prove
def test_tables_that_spark_alone_can_read_lie_where_spark_looks(rig: Rig) -> None:
    """Spark writes a placeholder for their location, and their place into the SerDe's `path`. Its INSERT INTO tables
    without partitions raises no event."""
    outside, client = rig.deployment.root / "outside", rig.deployment.source.client

    def insert(table: str, row: str) -> None:
        rig.source.sql(f"INSERT INTO {D}.{table} VALUES {row}")
        found = client.catalog.table(TableName(D, table))
        assert found is not None
        client.insert(TableName(D, table), [f"{location_of(found)}/_SUCCESS"])

    rig.source.sql(f"CREATE TABLE {D}.js (id INT) USING json LOCATION 'file:{outside}/js'")
    insert("js", "(1)")
    rig.source.sql(f"CREATE TABLE {D}.cs (id INT, p STRING) USING csv PARTITIONED BY (p) LOCATION 'file:{outside}/cs'")
    rig.source.sql(f"INSERT INTO {D}.cs VALUES (1, 'a'), (2, 'b')")
    rig.source.sql(f"CREATE TABLE {D}.ms (id INT) USING json")
    insert("ms", "(7)")
    found = client.catalog.table(TableName(D, "js"))
    assert found is not None
    assert found.storage is not None
    assert (found.storage.location or "").endswith("-__PLACEHOLDER__")
    rig.settle()
    for table in ("js", "cs", "ms"):
        rig.same(table)
    insert("js", "(2)")
    rig.source.sql(f"ALTER TABLE {D}.js RENAME TO {D}.js2")
    rig.source.sql(f"ALTER TABLE {D}.ms RENAME TO {D}.ms2")
    rig.settle()
    for table in ("js2", "ms2"):
        rig.same(table)
    rig.source.sql(f"ALTER TABLE {D}.js2 SET LOCATION 'file:{outside}/other'")
    insert("js2", "(3)")
    rig.settle()
    # A session keeps the files that it saw of such a table.
    rig.target.sql(f"REFRESH TABLE {D}.js2")
    rig.same("js2")
    assert rig.source.sql(f"SELECT * FROM {D}.js2") == [[3]]
    verified = rig.deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_a_shallow_clone_is_set_aside_with_its_reason(rig: Rig) -> None:
    rig.source.sql(f"CREATE TABLE {D}.sc SHALLOW CLONE {D}.t")
    wait_until(lambda: f"{D}.sc" in rig.quarantined())
    assert "absolute path" in rig.quarantined()[f"{D}.sc"]
    rig.source.sql(f"DROP TABLE {D}.sc")


@pytest.mark.prove
def test_a_vacuum_at_the_source_changes_nothing_at_the_target(rig: Rig) -> None:
    rig.source.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    rig.source.sql(f"CREATE TABLE {D}.v USING delta AS SELECT 1 AS a")
    rig.settle()
    assert rig.deployment.end(signal.SIGTERM) == 0
    rig.source.sql(f"INSERT OVERWRITE {D}.v SELECT 2 AS a")
    rig.source.sql(f"INSERT OVERWRITE {D}.v SELECT 3 AS a")
    rig.source.sql(f"VACUUM {D}.v RETAIN 0 HOURS")
    rig.fire("v")
    before = rig.location("v")
    rig.deployment.start()
    rig.settle()
    rig.same("v")
    assert rig.location("v") != before
    verified = rig.deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def wait_until(reached: Any, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.3)
