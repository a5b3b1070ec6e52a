"""Iceberg tables at a source, written with pyiceberg, and read at a target the way any reader does."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import load_file_io
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.table import CommitTableResponse, StaticTable, Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.typedef import EMPTY_DICT, Record

from calque.model import hive

FILE_PATH, POSITION = 2147483546, 2147483545
DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": str(FILE_PATH)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(POSITION)}),
    ]
)
Rows = list[dict[str, Any]]


class Lake(MetastoreCatalog, NoopCatalog):
    """A catalog of Iceberg tables in any metastore: `commit` is told the name, the metadata file, and the one before
    (None for a new table)."""

    def __init__(self, commit: Callable[[str, str, str, str | None], None]) -> None:
        super().__init__("lake")
        self.commit = commit
        self.tables: dict[str, str] = {}

    def create_table(
        self,
        identifier: Any,
        schema: Any,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Mapping[str, Any] = EMPTY_DICT,
    ) -> Table:
        staged = self._create_staged_table(
            identifier, self._convert_schema_if_needed(schema), location, partition_spec, sort_order, dict(properties)
        )
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self.publish(Catalog.table_name_from(identifier), staged.location(), staged.metadata_location, None)
        return self.load_table(identifier)

    def load_table(self, identifier: Any) -> Table:
        name = Catalog.table_name_from(identifier)
        at = self.tables[name]
        static = StaticTable.from_metadata(at)
        return Table(("d1", name), static.metadata, at, static.io, self)

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        name = Catalog.table_name_from(table.name())
        before = self.load_table(name)
        staged = self._update_and_stage_table(before, ("d1", name), requirements, updates)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self.publish(name, staged.location(), staged.metadata_location, before.metadata_location)
        return CommitTableResponse(metadata=staged.metadata, metadata_location=staged.metadata_location)

    def publish(self, name: str, location: str, metadata: str, before: str | None) -> None:
        self.tables[name] = metadata
        self.commit(name, location, metadata, before)

    def load_namespace_properties(self, namespace: Any) -> dict[str, str]:  # noqa: ARG002
        return {}


def definition(name: str, location: str, metadata: str, previous: str | None = None) -> hive.Table:
    """As Iceberg's own Hive catalog writes it."""
    parameters = {"EXTERNAL": "TRUE", "table_type": "ICEBERG", "metadata_location": metadata}
    if previous is not None:
        parameters["previous_metadata_location"] = previous
    storage = hive.Storage(
        (hive.Column("a", "int"),),
        location,
        "org.apache.hadoop.mapred.FileInputFormat",
        "org.apache.hadoop.mapred.FileOutputFormat",
        serde=hive.SerDe(class_name="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    )
    return hive.Table(name, "d1", storage=storage, parameters=parameters, type="EXTERNAL_TABLE")


class DeletesWriter(ManifestWriterV2):
    """A manifest of delete files."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class RowDelta(_FastAppendFiles):
    """A snapshot that adds delete files."""

    deletes: Sequence[DataFile] = ()

    def _manifests(self) -> list[ManifestFile]:
        metadata = self._transaction.table_metadata
        output = self.new_manifest_output()
        with DeletesWriter(metadata.spec(), metadata.schema(), output, self._snapshot_id, self._compression) as writer:
            for file in self.deletes:
                entry = ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED, snapshot_id=self._snapshot_id, data_file=file
                )
                writer.add(entry)
        return [writer.to_manifest_file(), *self._existing_manifests()]


def delete_positions(table: Table, positions: Mapping[str, Sequence[int]], bounds: bool = True) -> None:
    """A merge-on-read delete: rows of data files by their position."""
    rows = sorted((path, position) for path, found in positions.items() for position in found)
    content = io.BytesIO()
    columns = [[path for path, _ in rows], [position for _, position in rows]]
    pq.write_table(pa.table(columns, schema=DELETES), content, compression="zstd")
    path = f"{table.location()}/data/{uuid.uuid4()}-deletes.parquet"
    with table.io.new_output(path).create() as output:
        output.write(content.getvalue())
    limits = {FILE_PATH: rows[0][0].encode()}, {FILE_PATH: rows[-1][0].encode()}
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(rows),
        file_size_in_bytes=len(content.getvalue()),
        **({"lower_bounds": limits[0], "upper_bounds": limits[1]} if bounds else {}),
        split_offsets=[4],
    )
    file.spec_id = table.spec().spec_id
    with table.transaction() as transaction:
        update = RowDelta(Operation.DELETE, transaction, table.io)
        update.deletes = [file]
        update.commit()
    table.refresh()


def data_files(table: Table) -> list[str]:
    return sorted(task.file.file_path for task in table.scan().plan_files())


def rows_of(metadata: str, snapshot: int | None = None) -> Rows:
    """What a reader of a metadata file finds, sorted."""
    table = StaticTable.from_metadata(metadata)
    found = table.scan(snapshot_id=snapshot).to_arrow().to_pylist()
    return sorted(found, key=repr)


def snapshots_of(metadata: str) -> list[int]:
    return [snapshot.snapshot_id for snapshot in StaticTable.from_metadata(metadata).metadata.snapshots]


def references_of(metadata: str) -> set[str]:
    """Every path that is reached from a metadata file."""
    table = StaticTable.from_metadata(metadata)
    found = {metadata, table.metadata.location}
    files = load_file_io()
    for snapshot in table.metadata.snapshots:
        found.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(files):
            found.add(manifest.manifest_path)
            entries = manifest.fetch_manifest_entry(files, discard_deleted=False)
            found |= {entry.data_file.file_path for entry in entries}
    return found
