"""Iceberg tables between real metastores: written with pyiceberg at the source, read at the targets meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from calque.core.formats.iceberg import name_of
from calque.core.formats.layout import place
from calque.model.hive import Column, Database, Function, Resource, SerDe, Storage
from calque.model.hive import Table as HiveTable
from calque.model.names import TableName
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment, Target
from support.services.servers import Shared
from support.sources.lakes import Rows, data_files, delete_positions, rows_of

URL = "avro.schema.url"
SCHEMA = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", StringType()))


@pytest.fixture
def servers(shared: Shared) -> Mapping[str, Metastore]:
    return dict(zip(("source", "dr", "four"), shared("source-3", "target-3", "target-4").values(), strict=True))


@dataclass
class Reader:
    """Reads one table at a target again and again: each metadata file once. `rows` are what it found, in order."""

    target: Target
    table: TableName
    seen: list[str] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.stopping.is_set():
            self.look()
            self.stopping.wait(0.05)

    def look(self) -> None:
        at = metadata_at(self.target, self.table)
        if at and self.seen[-1:] != [at]:
            self.seen.append(at)
            try:
                self.rows.append(rows_of(at))
            except Exception as error:  # noqa: BLE001 - whatever a reader meets is the finding
                self.problems.append(f"{at}: {type(error).__name__}: {error}")


def metadata_at(target: Target, table: TableName) -> str:
    """The metadata file that a target names; pyiceberg's own catalog can't ask a Hive 4.2 (`get_table` is gone)."""
    found = target.catalog.table(target.admission.name_at_target(table))
    return (found.parameters or {})["metadata_location"] if found is not None else ""


def values(*numbers: int) -> pa.Table:
    return pa.table({"a": pa.array(numbers, pa.int64()), "b": [f"v{number % 3}" for number in numbers]})


@pytest.fixture
def deployment(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Deployment]:
    targets = {name: servers[name] for name in ("dr", "four")}
    made = Deployment(tmp_path, next(NUMBERS), servers["source"], targets, 1)
    yield made
    made.close()


def test_readers_at_targets_see_the_sources_snapshots_and_these_only_advance(
    servers: Mapping[str, Metastore], deployment: Deployment
) -> None:
    first, second = deployment.databases
    source = HiveCatalog("source", uri=servers["source"].uri)
    for name in (first, second):
        source.create_namespace(name, {"location": f"file://{deployment.root}/source/{name}.db"})
    before = source.create_table((second, "old"), SCHEMA)
    before.append(values(1, 2))
    readers = [Reader(target, TableName(first, "t")) for target in deployment.targets]
    deployment.start()
    threads = [threading.Thread(target=reader.run, daemon=True) for reader in readers]
    for thread in threads:
        thread.start()
    table = source.create_table((first, "t"), SCHEMA)
    made = [table.metadata_location]
    for change in CHANGES:
        change(table)
        table.refresh()
        made.append(table.metadata_location)
        if change in WAITED_FOR:
            deployment.settle()
    deployment.settle()
    for reader in readers:
        reader.stopping.set()
    for thread in threads:
        thread.join(60)
    order = [name_of(at) for at in (*made, *[entry.metadata_file for entry in table.metadata.metadata_log])]
    truth = {name_of(entry.metadata_file): entry.metadata_file for entry in table.metadata.metadata_log}
    truth |= {name_of(at): at for at in made}
    for reader in readers:
        reader.look()
        assert reader.problems == []
        assert name_of(reader.seen[-1]) == name_of(made[-1])
        seen = [name_of(at) for at in reader.seen]
        assert set(seen) <= set(order)
        assert seen == sorted(seen), "versions are numbered"
        assert reader.rows == [rows_of(truth[name]) for name in seen]
        assert len(seen) >= len(WAITED_FOR)
    source.rename_table((first, "t"), (first, "renamed"))
    source.drop_table((second, "old"))
    again = source.create_table((first, "t"), SCHEMA)
    again.append(values(99))
    deployment.settle()
    for target in deployment.targets:
        assert rows_of(metadata_at(target, TableName(first, "renamed"))) == rows_of(made[-1])
        assert [row["a"] for row in rows_of(metadata_at(target, TableName(first, "t")))] == [99]
        assert metadata_at(target, TableName(second, "old")) == ""
    with_pyiceberg = HiveCatalog("dr", uri=servers["dr"].uri).load_table((first, "renamed"))
    assert sorted(with_pyiceberg.scan().to_arrow().to_pylist(), key=repr) == rows_of(made[-1])
    for name in ("dr", "four"):
        found = deployment.calque("verify", "--target", name, "--data", "checksum", "--json")
        assert found.returncode == 0, found.stdout + found.stderr


def test_files_that_definitions_point_to_come_along(deployment: Deployment) -> None:
    first = deployment.databases[0]
    jar, schema = deployment.root / "udf.jar", deployment.root / "s.avsc"
    jar.write_bytes(b"PK jar")
    schema.write_text('{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}')
    writer = deployment.source.client
    for name in deployment.databases:
        writer.create_database(Database(name, location=f"file:{deployment.root}/source/{name}.db"))
    serde = SerDe(class_name="org.apache.hadoop.hive.serde2.avro.AvroSerDe", parameters={URL: schema.as_uri()})
    avro = "org.apache.hadoop.hive.ql.io.avro.AvroContainer"
    storage = Storage(
        (Column("a", "int"),), f"file:{deployment.root}/t", f"{avro}InputFormat", f"{avro}OutputFormat", serde=serde
    )
    parameters = {"EXTERNAL": "TRUE", URL: str(schema)}
    writer.create_table(HiveTable("t", first, storage=storage, parameters=parameters, type="EXTERNAL_TABLE"))
    function = Function("f", first, "com.example.F", "me", 1, 0, 1, (Resource(1, jar.as_uri()),))
    writer.create_function(function)
    deployment.start()
    deployment.settle()
    for target in deployment.targets:
        table = target.catalog.table(TableName(first, "t"))
        there = target.catalog.function(TableName(first, "f"))
        assert table is not None
        assert table.storage is not None
        assert table.storage.serde is not None
        assert there is not None
        urls = [(table.parameters or {})[URL], (table.storage.serde.parameters or {})[URL]]
        assert {Path(place(url).path).read_bytes() for url in urls} == {schema.read_bytes()}
        assert all(url.startswith(target.policy.warehouse) for url in urls)
        assert [Path(place(one.uri or "").path).read_bytes() for one in there.resources or ()] == [b"PK jar"]
        found = deployment.calque("verify", "--target", target.name, "--data", "checksum", "--json")
        assert found.returncode == 0, found.stdout + found.stderr


def add_column(table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("c", LongType())


def evolve_partitions(table: Table) -> None:
    with table.update_spec() as update:
        update.add_field("b", IdentityTransform())


def delete_by_position(table: Table) -> None:
    delete_positions(table, {data_files(table)[0]: [0]})


def append(table: Table) -> None:
    table.append(values(1, 2, 3, 4))


def append_more(table: Table) -> None:
    table.append(values(5, 6, 7))


def append_wide(table: Table) -> None:
    table.append(values(10, 11).append_column("c", pa.array([1, None], pa.int64())))


def delete_by_value(table: Table) -> None:
    table.delete("a = 6")


def overwrite(table: Table) -> None:
    table.overwrite(values(20, 21).append_column("c", pa.array([7, 8], pa.int64())))


CHANGES = (
    append,
    append_more,
    delete_by_position,
    delete_by_value,
    add_column,
    append_wide,
    evolve_partitions,
    append_wide,
    overwrite,
    append_wide,
)
WAITED_FOR = (append_more, delete_by_position)
