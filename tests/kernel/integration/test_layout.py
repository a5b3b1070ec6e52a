"""What Spark SQL finds at a target, through its own Hive client: rows, partitions, and nothing of other versions."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from pyarrow import parquet

from calque.app import APP
from calque.demo.source import Source
from calque.model.hive import Column, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName, partition_values
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment

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
        rows = spark.read.schema("id BIGINT, name STRING, day STRING").parquet(statement.removeprefix("parquet "))
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


@pytest.mark.timeout(600)
def test_spark_at_the_target_finds_the_sources_rows_and_repairing_partitions_changes_nothing(
    servers: Mapping[str, Metastore], tmp_path: Path
) -> None:
    deployment = Deployment(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=1)
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
        settle(deployment)
        for change in (source.insert, source.overwrite, source.insert):
            for table, (_, kind) in tables.items():
                for partition in ("day=2024-01-01", "day=a b%3Ac%25") if kind == "parts" else ("",):
                    change(TableName(database, table), partition)
            settle(deployment)
        for table in ("text_parts", "parquet_parts"):
            source.drop_partitions(TableName(database, table), ["day=gone"])
            source.add_partitions(TableName(database, table), [("late",)])
        source.rename_table(TableName(database, "parquet_parts"), TableName(database, "renamed"))
        settle(deployment)
        swept = deployment.calque("sweep")
        assert swept.returncode == 0, swept.stderr
        look(deployment, source, servers["target"].uri, tmp_path)
        users = files_below(tmp_path / "users")
        assert users
        source.insert(TableName(database, "text_plain"))
        source.insert(TableName(database, "renamed"), "day=late")
        settle(deployment)
        swept = deployment.calque("sweep")
        assert swept.returncode == 0, swept.stderr
        assert users == files_below(tmp_path / "users")
        # Spark's repair notes in a table that it was there, which is a change by another, and mended as one.
        verified = deployment.calque("verify", "--data", "checksum", "--json")
        whats = {row["what"] for row in json.loads(verified.stdout)["differences"]}
        assert whats == {"parameters.spark.sql.partitionProvider"}
        repaired = deployment.calque("repair")
        assert repaired.returncode == 0, repaired.stdout + repaired.stderr
        verified = deployment.calque("verify", "--data", "checksum")
        assert verified.returncode == 0, verified.stdout + verified.stderr
    finally:
        deployment.close()


def settle(deployment: Deployment) -> None:
    """Until the ledger says that the target shows the source's newest event, and every table is live."""
    wanted, ledger = deployment.source.current(), APP.wiring(APP.load(deployment.config)).ledger("dr")
    deadline = time.monotonic() + 300
    while (
        (epoch := ledger.last_epoch()) is None
        or epoch.event_id < wanted
        or any(row.state != TableState.LIVE for row in ledger.tables().values())
    ):
        assert time.monotonic() < deadline, deployment.tail()
        time.sleep(0.1)


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def rows_of(source: Source, name: TableName) -> list[list[str]]:
    """A table's rows by its files, as Spark gives them: the partition's value last."""
    held, found = source.tables[name], list[list[str]]()
    for partition, files in held.files.items():
        for path in (source.place(name, partition) / file for file in files):
            if held.form == "text":
                rows = [line.split("\x01") for line in path.read_text().splitlines()]
            else:
                rows = [[str(cell) for cell in row.values()] for row in parquet.read_table(path).to_pylist()]
            found += [[*row, *(partition_values(partition) if partition else ())] for row in rows]
    return sorted(found)


def look(deployment: Deployment, source: Source, uri: str, root: Path) -> None:
    """Select, repair partitions, select again, read a directory by its path, and write as a user beside it."""
    database = deployment.databases[0]
    tables = ["text_plain", "text_parts", "parquet_plain", "renamed"]
    before = partitions_of(deployment, tables)
    renamed = deployment.targets[0].catalog.table(TableName(database, "renamed"))
    assert renamed is not None
    select = [f"SELECT * FROM {database}.{table}" for table in tables]
    count = [f"SELECT COUNT(*) FROM {database}.text_plain WHERE name <> 'fir'"]
    repair = [f"MSCK REPAIR TABLE {database}.text_parts", f"ALTER TABLE {database}.renamed RECOVER PARTITIONS"]
    users = [
        f"CREATE DATABASE users LOCATION 'file:{root}/users'",
        "CREATE TABLE users.t (id BIGINT, name STRING) STORED AS PARQUET",
        f"INSERT INTO users.t SELECT id, name FROM {database}.text_plain",
        "SELECT COUNT(*) FROM users.t",
    ]
    said = spark_says(
        uri, root / "spark", [*select, *count, *repair, *select, f"parquet {location_of(renamed)}", *users]
    )
    wanted = [rows_of(source, TableName(database, table)) for table in tables]
    assert all(wanted)
    assert [sorted(rows) for rows in said[:4]] == wanted
    assert [sorted(rows) for rows in said[7:11]] == wanted
    assert said[4] == [[str(sum(row[1] != "fir" for row in wanted[0]))]]
    assert partitions_of(deployment, tables) == before
    by_path = [tuple(row) for row in said[11]]
    assert len(set(by_path) - {tuple(row) for row in wanted[3]}) == 0
    assert said[-1] == [[str(len(wanted[0]))]]


def partitions_of(deployment: Deployment, tables: Sequence[str]) -> Mapping[str, object]:
    catalog = deployment.targets[0].catalog
    names = [TableName(deployment.databases[0], table) for table in tables]
    return {name.table: catalog.partitions(name, catalog.partition_names(name)) for name in names}
