"""What Spark SQL finds at a target, through its own Hive client: rows, partitions, and nothing that is not the table's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from calque.model.hive import Column, location_of
from calque.model.names import TableName
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.demo.source import Source
from deployments import Deployment

COLUMNS = (Column("id", "bigint"), Column("name", "string"))
DAY = (Column("day", "string"),)
SPARK = """
import json, sys
from pathlib import Path
from calque.adapters.spark.session import session
uri, folder, statements = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
spark = session("reader", [], folder, {
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.metastore.uris": uri,
    "spark.sql.hive.convertMetastoreParquet": "true",
})
found = []
for statement in statements:
    if statement.startswith("parquet "):
        rows = spark.read.parquet(statement.removeprefix("parquet "))
    else:
        rows = spark.sql(statement)
    found.append([[None if cell is None else str(cell) for cell in row] for row in rows.collect()])
print("FOUND" + json.dumps(found))
spark.stop()
"""


def spark_says(uri: str, folder: Path, statements: Sequence[str]) -> list[list[list[str]]]:
    """The rows of each statement, in a Spark of its own: settings of metastores are a JVM's for life."""
    command = [sys.executable, "-c", SPARK, uri, str(folder), json.dumps(statements)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    log = folder / "spark.log"
    said = log.read_text()[-4000:] if log.exists() else ""
    assert done.returncode == 0, done.stderr[-4000:] + said
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("FOUND")]
    return json.loads(line.removeprefix("FOUND"))


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Mapping[str, Metastore]]:
    found = {
        name: Metastore.start(MetastoreSettings(version="3.1.3"), tmp_path / name) for name in ("source", "target")
    }
    yield found
    for server in found.values():
        server.stop()


def test_spark_at_the_target_finds_the_sources_rows_and_repairing_partitions_changes_nothing(
    servers: Mapping[str, Metastore], tmp_path: Path
) -> None:
    deployment = Deployment(tmp_path, 1, servers["source"], {"dr": servers["target"]}, seed=1)
    deployment.config.write_text(deployment.config.read_text() + '\ngrace = "0s"\n')
    database = deployment.databases[0]
    source = Source(deployment.source.client, tmp_path / "data")
    source.create_database(database)
    tables = {f"{form}_{kind}": (form, kind) for form in ("text", "parquet") for kind in ("plain", "parts")}
    for table, (form, kind) in tables.items():
        name = TableName(database, table)
        source.create_table(name, COLUMNS, DAY if kind == "parts" else (), form=form, external=form == "text")
        if kind == "parts":
            source.add_partitions(name, [("2024-01-01",), ("a b:c%",), ("gone",)])
    deployment.start()
    try:
        deployment.settle()
        for table, (_, kind) in tables.items():
            name = TableName(database, table)
            for partition in ("day=2024-01-01", "day=a b%3Ac%25") if kind == "parts" else ("",):
                source.insert(name, partition)
                deployment.settle()
                source.overwrite(name, partition)
                deployment.settle()
                source.insert(name, partition)
            if kind == "parts":
                source.drop_partitions(name, ["day=gone"])
                source.add_partitions(name, [("late",)])
        source.rename_table(TableName(database, "parquet_parts"), TableName(database, "renamed"))
        deployment.settle()
        deployment.calque("sweep")
        swept = deployment.calque("sweep", "--json")
        assert swept.returncode == 0, swept.stderr
        look(deployment, servers["source"].uri, servers["target"].uri, tmp_path)
        source.insert(TableName(database, "text_plain"))
        source.insert(TableName(database, "renamed"), "day=late")
        deployment.settle()
        users = [path for path in (tmp_path / "users").rglob("*") if path.is_file()]
        deployment.calque("sweep")
        deployment.calque("sweep")
        assert users
        assert users == [path for path in (tmp_path / "users").rglob("*") if path.is_file()]
        verified = deployment.calque("verify", "--data", "checksum")
        assert verified.returncode == 0, verified.stdout + verified.stderr
    finally:
        deployment.close()


def look(deployment: Deployment, source_uri: str, uri: str, root: Path) -> None:
    """Compare with a Spark at the source, repair, and write as a user into another database."""
    database = deployment.databases[0]
    tables = ["text_plain", "text_parts", "parquet_plain", "renamed"]
    parted = ["text_parts", "renamed"]
    select = [f"SELECT * FROM {database}.{table} ORDER BY ALL" for table in tables]
    shape = [f"SHOW PARTITIONS {database}.{table}" for table in parted]
    at = deployment.targets[0].catalog
    before = partitions_of(deployment, parted)
    renamed = at.table(TableName(database, "renamed"))
    assert renamed is not None
    repair = [f"MSCK REPAIR TABLE {database}.text_parts", f"ALTER TABLE {database}.renamed RECOVER PARTITIONS"]
    users = [
        f"CREATE DATABASE users LOCATION 'file:{root}/users'",
        "CREATE TABLE users.t (id BIGINT, name STRING) STORED AS PARQUET",
        f"INSERT INTO users.t SELECT id, name FROM {database}.text_plain",
        "SELECT COUNT(*) FROM users.t",
    ]
    wanted = spark_says(source_uri, root / "spark_source", [*select, *shape])
    found = spark_says(
        uri,
        root / "spark_target",
        [*select, *shape, *repair, *select, *shape, f"parquet {location_of(renamed)}", *users],
    )
    count = len(wanted)
    assert found[:count] == wanted
    assert all(found[: len(select)])
    assert found[count + len(repair) :][:count] == wanted
    assert partitions_of(deployment, parted) == before
    by_path: list[list[Any]] = found[count + len(repair) + count]
    known = {tuple(row) for row in wanted[tables.index("renamed")]}
    assert {tuple(row) for row in by_path} <= known
    assert found[-1] == [[str(len(wanted[0]))]]


def partitions_of(deployment: Deployment, tables: Sequence[str]) -> Mapping[str, object]:
    catalog = deployment.targets[0].catalog
    names = [TableName(deployment.databases[0], table) for table in tables]
    return {name.table: catalog.partitions(name, catalog.partition_names(name)) for name in names}
