"""EXPORT and IMPORT in memory: a table as it is at the source becomes one at a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from calque.core.events.decode import thrift_object
from calque.core.formats.layout import join
from calque.errors import Refused
from calque.model.hive import Column, Database, Partition, Table, location_of
from calque.model.names import TableName
from calque.plugins.dumps.core.layout import ExportDirectory
from calque.plugins.dumps.core.metadata import read_table
from calque.plugins.dumps.engine.export_table import export_table
from calque.plugins.dumps.engine.import_table import ImportRequest, import_table
from support.memory.metastore import HIVE_4, MemoryCatalog, MemoryMetastore
from support.worlds.gapped import create
from support.worlds.worlds import INPUT, World

DAYS, PLAIN = TableName("d1", "days"), TableName("d1", "plain")
EXPORT = "file:/exports/one"


class Exporting:
    """A source with a table of three partitions and a plain one, and another metastore to import into."""

    def __init__(self) -> None:
        self.world = World(1)
        self.storage = self.world.storage
        self.source = self.world.writer.source
        self.source.create_database(Database("d1"))
        create(self.world, "plain")
        create(self.world, "days", ("day",))
        self.storage.write(f"{self.location(PLAIN)}/000000_0", b"plain")
        storage = self.world.source.the_table(DAYS).table.storage
        assert storage is not None
        for day in ("1", "2", "a b%"):
            location = f"{self.location(DAYS)}/{day}"
            self.storage.write(f"{location}/000000_0", day.encode())
            part = Partition((day,), *DAYS, storage=replace(storage, location=location), parameters={"w": day})
            self.source.add_partitions(DAYS, [part])
        self.world.capture_all()
        self.metastore = MemoryMetastore(HIVE_4, "file:/there")
        self.catalog = MemoryCatalog(self.metastore)
        self.catalog.create_database(Database("d2"))

    def location(self, name: TableName) -> str:
        return location_of(self.world.source.the_table(name).table) or ""

    def export(self, name: TableName, partition: Mapping[str, str] | None = None, directory: str = EXPORT) -> None:
        export_table(self.world.source_side, self.storage, name, partition or {}, directory)

    def imported(self, **asked: object) -> None:
        request = ImportRequest(EXPORT, "file:/there", database="d2")
        import_table(self.catalog, self.storage, replace(request, **asked))  # type: ignore[arg-type]

    def shown(self, name: str) -> dict[str, bytes | None]:
        """The one file of each partition, an unpartitioned table's under an empty name."""
        table = self.catalog.table(TableName("d2", name))
        assert table is not None
        if not table.partition_keys:
            return {"": self.storage.read(join(location_of(table) or "", "000000_0"))}
        found = self.catalog.partitions(TableName("d2", name), self.catalog.partition_names(TableName("d2", name)))
        return {key: self.storage.read(join(location_of(part) or "", "000000_0")) for key, part in found.items()}


@pytest.fixture
def exporting() -> Exporting:
    return Exporting()


def test_a_table_goes_out_and_comes_in_with_its_partitions(exporting: Exporting) -> None:
    exporting.export(DAYS)
    exporting.imported()
    assert exporting.shown("days") == {"day=1": b"1", "day=2": b"2", "day=a b%25": b"a b%"}
    table = exporting.catalog.table(TableName("d2", "days"))
    assert table is not None
    assert (table.type, location_of(table)) == ("MANAGED_TABLE", "file:/there/d2.db/days")
    assert not any(key.startswith("calque.") for key in table.parameters or {})


def test_the_directory_is_laid_out_as_hives(exporting: Exporting) -> None:
    exporting.export(DAYS, {"DAY": "2"})
    assert sorted(exporting.storage.children(EXPORT)) == ["_metadata", "day=2"]
    read = read_table([exporting.storage.read(f"{EXPORT}/_metadata") or b""])
    assert thrift_object(Table, read.table).name == "days"
    assert [thrift_object(Partition, text).values for text in read.partitions] == [("2",)]
    exporting.export(PLAIN, directory="file:/exports/two")
    assert exporting.storage.read("file:/exports/two/data/000000_0") == b"plain"


def test_some_partitions_come_into_a_table_that_is_there(exporting: Exporting) -> None:
    exporting.export(DAYS)
    exporting.imported(partition={"day": "1"})
    exporting.imported(partition={"day": "2"})
    assert exporting.shown("days") == {"day=1": b"1", "day=2": b"2"}
    with pytest.raises(Refused, match="has partition day=1"):
        exporting.imported()


def test_a_name_and_a_place_of_its_own(exporting: Exporting) -> None:
    exporting.export(PLAIN)
    exporting.imported(name="other", is_external=True, location="file:/elsewhere/other")
    assert exporting.shown("other") == {"": b"plain"}
    table = exporting.catalog.table(TableName("d2", "other"))
    assert table is not None
    assert (table.type, location_of(table)) == ("EXTERNAL_TABLE", "file:/elsewhere/other")


def test_a_schema_that_does_not_fit_is_refused_with_the_difference(exporting: Exporting) -> None:
    exporting.export(PLAIN)
    table = exporting.world.source.the_table(PLAIN).table
    assert table.storage is not None
    storage = replace(table.storage, columns=(Column("x", "int"), Column("y", "string")), location=None)
    exporting.catalog.create_table(replace(table, database="d2", storage=storage))
    with pytest.raises(Refused, match=r"The export has columns \(x int\), the table \(x int, y string\)"):
        exporting.imported()


@pytest.mark.parametrize(
    ("name", "partition", "message"),
    [
        (TableName("d1", "none"), {}, "There is no table d1.none"),
        (DAYS, {"hour": "1"}, "is not partitioned by hour"),
        (DAYS, {"day": "9"}, "has no such partition"),
        (PLAIN, {"day": "1"}, "is not partitioned by day"),
    ],
)
def test_what_is_not_there_is_not_exported(
    exporting: Exporting, name: TableName, partition: Mapping[str, str], message: str
) -> None:
    with pytest.raises(Refused, match=message):
        exporting.export(name, partition)
    assert exporting.storage.children(EXPORT) == []


@pytest.mark.parametrize(
    "parameters", [{"spark.sql.sources.provider": "delta"}, {"table_type": "ICEBERG", "metadata_location": "file:/x"}]
)
def test_a_table_of_a_format_that_hive_dumps_do_not_have_is_not_exported(
    exporting: Exporting, parameters: Mapping[str, str]
) -> None:
    source = exporting.world.source
    table = source.the_table(PLAIN).table
    source.alter_table(PLAIN, replace(table, parameters={**(table.parameters or {}), **parameters}))
    with pytest.raises(Refused, match=r"can't be exported\. Hive's dumps have no Delta and no Iceberg tables"):
        exporting.export(PLAIN)


def test_what_would_mix_with_other_data_is_refused(exporting: Exporting) -> None:
    exporting.export(PLAIN)
    with pytest.raises(Refused, match="is not empty"):
        exporting.export(DAYS)
    exporting.storage.write("file:/there/d2.db/plain/somebodys", b"file")
    with pytest.raises(Refused, match="has other files"):
        exporting.imported()
    with pytest.raises(Refused, match="There is no database d9"):
        exporting.imported(database="d9")
    with pytest.raises(Refused, match="is no export"):
        exporting.imported(directory="file:/nowhere")


def test_an_export_whose_files_name_the_files_with_the_rows_is_not_imported(exporting: Exporting) -> None:
    """As Hive exports a symlink table: the manifests alone."""
    exporting.export(PLAIN)
    path = ExportDirectory(EXPORT).metadata
    content = exporting.storage.read(path)
    assert content is not None
    symlinks = b"org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"
    exporting.storage.write(path, content.replace(INPUT.encode(), symlinks))
    with pytest.raises(Refused, match=r"The export of d1\.plain can't be imported\. Its files name"):
        exporting.imported()
    assert exporting.catalog.table(TableName("d2", "plain")) is None
