"""Parquet tables kept as Delta tables at a target, on real metastores: Spark writes plain tables at the source, Spark
and delta-rs read Delta tables at the target."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import calque
from calque.core.formats.layout import place
from calque.errors import Refused
from calque.model.hive import Column, Partition, Storage, Table, location_of
from calque.model.names import TableName, partition_name
from calque.sandbox import Metastore
from support.places import ROOT
from support.services.deployments import NUMBERS, Deployment
from support.services.sparksql import SparkSql

TYPES = "id BIGINT, price DECIMAL(9,2), day DATE, name STRING, tags ARRAY<STRING>"
ROWS = (
    "SELECT id, CAST(id AS DECIMAL(9,2)) / 4, DATE '2020-02-29' + CAST(id AS INT), "
    "IF(id % 3 = 0, NULL, CONCAT('n', id)), ARRAY('a', CAST(id AS STRING)) FROM RANGE({0}, {1})"
)

QUICK = """
spark.master local[1]
spark.driver.extraJavaOptions -XX:+UseSerialGC -XX:TieredStopAtLevel=1
spark.ui.enabled false
spark.ui.showConsoleProgress false
spark.sql.codegen.wholeStage false
spark.sql.codegen.factoryMode NO_CODEGEN
spark.sql.adaptive.enabled false
"""
"""Spark's settings for a few rows."""


class AsDelta(Deployment):
    def text(self, source: Metastore) -> str:
        return f'{super().text(source)}\nformat = "delta"\n'


class Rig:
    def __init__(self, servers: Mapping[str, Metastore], root: Path) -> None:
        self.deployment = AsDelta(root, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=1)
        self.database = self.deployment.databases[0]
        self.source = SparkSql(servers["source"].uri, root / "spark-source")
        self.target = SparkSql(servers["target"].uri, root / "spark-target")
        self.catalog = self.deployment.targets[0].catalog
        self.source.sql(f"CREATE DATABASE {self.database} LOCATION 'file:{root}/source'")

    def follow(self) -> None:
        """Until the target shows the source's newest event, by a process that then waits for more."""
        if self.deployment.process is None:
            self.deployment.start()
        self.deployment.settle()

    def rest(self) -> None:
        """Nothing follows, and the configuration may be changed."""
        if self.deployment.process is not None:
            assert self.deployment.end(signal.SIGTERM) == 0, self.deployment.tail()
            self.deployment.process = None

    def go_on(self, configuration: str) -> None:
        """What it says now is at the target, though no event came."""
        self.rest()
        self.deployment.config.write_text(configuration)
        done = self.deployment.calque("run", "--until", "head", timeout=240)
        assert done.returncode == 0, done.stderr

    def write(self, statement: str) -> None:
        self.source.sql(statement.replace("@", f"{self.database}."))

    def fire(self, table: str, values: tuple[str, ...] | None = None) -> None:
        """An event on a table, or a partition; Spark raises none when it appends."""
        name, client = TableName(self.database, table), self.deployment.source.client
        found = client.catalog.table(name)
        assert found is not None
        if values is None:
            thing: Table | Partition = found
        else:
            partition = partition_name([key.name for key in found.partition_keys or ()], values)
            thing = client.catalog.partitions(name, [partition])[partition]
        folder = Path(place(location_of(thing) or "").path)
        client.insert(name, [str(path) for path in folder.glob("part-*")], values=values)

    def columns(self, table: str, *names: str) -> None:
        """The table's columns from now on; `a` is a number, all others are texts."""
        name, client = TableName(self.database, table), self.deployment.source.client
        found = client.catalog.table(name)
        assert found is not None
        columns = tuple(Column(one, "int" if one == "a" else "string") for one in names)
        client.alter_table(name, replace(found, storage=replace(found.storage or Storage(), columns=columns)))

    def root(self, table: str) -> str:
        found = self.catalog.table(TableName(self.database, table))
        assert found is not None
        return place(location_of(found) or "").path

    def version(self, table: str) -> int:
        return DeltaTable(self.root(table)).version()

    def same(self, table: str) -> None:
        """Spark reads the same rows at both sides, and delta-rs as many."""
        assert DeltaTable(self.root(table)).to_pyarrow_table().num_rows == self.same_rows(table)

    def same_rows(self, table: str) -> int:
        query = f"SELECT * FROM {self.database}.{table}"
        for side in (self.source, self.target):
            side.sql(f"REFRESH TABLE {self.database}.{table}")
        expected, rows = (sorted(map(json.dumps, side.sql(query))) for side in (self.source, self.target))
        assert expected
        assert rows == expected
        return len(expected)

    def verify(self) -> list[Any]:
        done = self.deployment.calque("verify", "--data", "checksum", "--json")
        assert done.stdout, done.stderr
        found: list[Any] = json.loads(done.stdout)["differences"]
        return found

    def close(self) -> None:
        self.deployment.close()
        self.source.close()
        self.target.close()


@pytest.fixture(scope="module")
def rig(servers: Mapping[str, Metastore], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    rig = Rig(servers, tmp_path_factory.mktemp("delta"))
    yield rig
    rig.close()


@pytest.mark.timeout(900)
def test_a_partitioned_table_is_a_delta_table_with_the_same_rows(rig: Rig) -> None:
    rig.write("SET hive.exec.dynamic.partition.mode=nonstrict")
    rig.write(f"CREATE TABLE @orders ({TYPES}) PARTITIONED BY (p STRING, n INT) STORED AS PARQUET")
    rig.write(f"INSERT INTO @orders PARTITION (p = 'a b/%', n = 7) {ROWS.format(0, 50)}")
    rig.write("CREATE TABLE @plain (a INT) STORED AS PARQUET")
    rig.write("INSERT INTO @plain VALUES (1), (2)")
    rig.write("CREATE TABLE @lines (a INT) STORED AS TEXTFILE")
    rig.write("INSERT INTO @lines VALUES (1)")
    rig.follow()
    rig.same("orders")
    rig.same("plain")
    assert rig.verify() == []
    rig.write(f"INSERT INTO @orders PARTITION (p = 'a b/%', n = 7) {ROWS.format(50, 60)}")
    rig.fire("orders", ("a b/%", "7"))
    rig.write(f"INSERT INTO @orders PARTITION (p = NULL, n = 8) {ROWS.format(60, 70)}")
    rig.write("INSERT INTO @plain VALUES (3)")
    rig.fire("plain")
    rig.follow()
    rig.same("orders")
    rig.same("plain")
    assert rig.verify() == []
    rig.write("INSERT OVERWRITE @plain VALUES (9)")
    rig.fire("plain")
    rig.write("ALTER TABLE @plain RENAME TO @renamed")
    rig.write("ALTER TABLE @orders DROP PARTITION (n = 8)")
    rig.write("ALTER TABLE @orders PARTITION (p = 'a b/%', n = 7) RENAME TO PARTITION (p = 'c', n = 9)")
    rig.follow()
    rig.same("orders")
    rig.same("renamed")
    assert rig.verify() == []


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_spark_with_delta_reads_journal_ledger_and_replicas_as_the_page_says(rig: Rig) -> None:
    rig.write("CREATE TABLE @sold (a INT) STORED AS PARQUET")
    rig.write("INSERT INTO @sold VALUES (41), (42)")
    rig.follow()
    rig.write("INSERT INTO @sold VALUES (43)")
    rig.fire("sold")
    rig.follow()
    page = (ROOT / "docs" / "reading-epochs.md").read_text()
    [example] = [text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "delta_jars" in text]
    names = {"sales.*": f"{rig.database}.*", "sales.orders": f"{rig.database}.sold"}
    for name, ours in (names | {"/data/dr/sales.db/orders": rig.root("sold")}).items():
        assert example.count(name) == 1
        example = example.replace(name, ours)
    program = rig.deployment.root / "example.py"
    program.write_text(example)
    (program.parent / "spark-defaults.conf").write_text(QUICK)
    activated = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    activated["SPARK_CONF_DIR"] = str(program.parent)
    command = [sys.executable, str(program)]
    done = subprocess.run(command, cwd=program.parent, env=activated, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    newest, events, rows = (
        [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in table.splitlines() if line.startswith("|")]
        for table in done.stdout.split("\n\n")
        if table
    )
    assert (rig.database, "sold", "", "update") in [row[:4] for row in newest], done.stdout
    assert "INSERT" in [row[1] for row in events], done.stdout
    assert sorted(rows[1:]) == [("41",), ("42",), ("43",)], done.stdout


@pytest.mark.timeout(900)
def test_columns_change_by_hives_rules(rig: Rig) -> None:
    """Files are read by the names of columns: one that goes away and comes back has its old values again."""
    rig.write("CREATE TABLE @c (a INT, b STRING) STORED AS PARQUET")
    rig.write("INSERT INTO @c VALUES (1, 'x')")
    rig.follow()
    for names in (("a", "d"), ("a",), ("a", "b"), ("a", "b", "e")):
        rig.columns("c", *names)
        rig.write(f"INSERT INTO @c VALUES ({', '.join(['2'] * len(names))})")
        rig.fire("c")
        rig.follow()
        rig.same("c")
        nulls = f"SELECT COUNT(*) FROM {rig.database}.c WHERE {names[-1]} IS NULL"
        assert rig.target.sql(nulls) == rig.source.sql(nulls)
    assert rig.verify() == []


@pytest.mark.timeout(900)
def test_versions_are_found_by_the_events_that_they_show(rig: Rig) -> None:
    rig.rest()
    rig.write("CREATE TABLE @v (a INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    events = []
    for number in range(3):
        rig.write(f"INSERT INTO @v PARTITION (p = {number}) VALUES ({number})")
        events.append(rig.deployment.source.current())
        if number != 1:
            rig.follow()
            rig.rest()
    name = f"{rig.database}.v"
    done = rig.deployment.calque("sql", f"SHOW VERSIONS OF {name}", "--json")
    assert done.returncode == 0, done.stderr
    [shown] = json.loads(done.stdout)
    rows = [dict(zip(shown["columns"], row, strict=True)) for row in shown["rows"]]
    assert [row["version"] for row in rows] == [0, 1]
    assert rows[0]["from_event"] == rows[0]["event_id"] == events[0]
    assert rows[1]["from_event"] == events[2]
    first, last = (calque.version_at(name, event, rig.deployment.config) for event in (events[0], events[2]))
    counts = [DeltaTable(rig.root("v"), version=version).to_pyarrow_table().num_rows for version in (first, last)]
    assert counts == [1, 3]
    assert rig.target.sql(f"SELECT COUNT(*) FROM {name} VERSION AS OF {first}") == [[1]]
    with pytest.raises(Refused, match=rf"ersion 0 shows event {events[0]}, version 1 shows"):
        calque.version_at(name, events[1], rig.deployment.config)


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_tables_move_over_to_another_format_without_a_copy(rig: Rig) -> None:
    text = rig.deployment.config.read_text()
    before = files_below(rig.root("v")) | files_below(rig.root("renamed"))
    rig.go_on(text.replace('format = "delta"', 'format = "plain"'))
    for table in ("v", "renamed", "orders"):
        found = rig.catalog.table(TableName(rig.database, table))
        assert found is not None
        assert "calque.format" not in (found.parameters or {})
        rig.same_rows(table)
    assert rig.verify() == []
    assert not Path(rig.root("v"), "_delta_log").exists()
    rig.go_on(text)
    for table in ("v", "renamed", "orders"):
        rig.same(table)
    assert rig.verify() == []
    assert files_below(rig.root("v")) | files_below(rig.root("renamed")) == before


def files_below(root: str) -> set[tuple[str, int]]:
    return {(path.name, path.stat().st_ino) for path in Path(root).parent.rglob("*.parquet")}


@pytest.mark.timeout(900)
def test_a_table_that_stops_fitting_goes_on_plain_and_says_why(rig: Rig) -> None:
    rig.write("ALTER TABLE @v ADD COLUMNS (c CHAR(3))")
    rig.follow()
    found = rig.catalog.table(TableName(rig.database, "v"))
    assert found is not None
    assert (found.parameters or {})["calque.format"].startswith("plain: ")
    rig.same_rows("v")
    assert rig.verify() == []


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_sweep_takes_contents_of_old_versions_and_leaves_the_log(rig: Rig) -> None:
    text = rig.deployment.config.read_text()
    rig.rest()
    rig.deployment.config.write_text(f'{text}grace = "0s"\n')
    contents = Path(rig.root("c"), "_calque", "data")
    for value in range(2):
        rig.write(f"INSERT OVERWRITE @c VALUES ({value}, 'x', 'y')")
        rig.fire("c")
        rig.follow()
    rig.rest()
    assert len(list(contents.iterdir())) > 1
    done = rig.deployment.calque("sweep")
    assert done.returncode == 0, done.stderr
    assert len(list(contents.iterdir())) == 1
    rig.same("c")
    assert rig.verify() == []
