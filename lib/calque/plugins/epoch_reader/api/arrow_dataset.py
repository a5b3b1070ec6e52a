"""The files of a table as one `pyarrow.dataset.Dataset`, with its partition keys as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from calque.core.formats.definition import Format
from calque.core.formats.layout import OBJECT_STORES, place
from calque.core.formats.readers import FileFormat, LineFormat, kind_of, lines_of
from calque.errors import Refused
from calque.plugins.epoch_reader.api.arrow_types import arrow_type
from calque.plugins.epoch_reader.api.files import Directory, TableFiles


class FileSystems(Protocol):
    """The file systems of the stores that a target's files lie in."""

    def fsspec(self, location: str) -> Any:
        """Return the file system of fsspec that has the location."""


def dataset_of(table: TableFiles, systems: FileSystems) -> ds.Dataset:
    """Return the table as a dataset. Raises `Refused` for formats and types that Arrow can't read, and for a Delta
    table in a store."""
    if table.version is not None:
        return version_of(table, table.version)
    definition = table.definition
    of_text = kind_of(table.name, definition.format) is FileFormat.CSV
    columns = [
        pa.field(name, pa.string() if of_text else arrow_type(f"{table.name}.{name}", kind))
        for name, kind in definition.columns
    ]
    keys = [pa.field(name, arrow_type(f"{table.name}.{name}", kind)) for name, kind in definition.keys]
    schema = pa.schema([*columns, *keys])
    formats: list[Format] = []
    for directory in table.directories:
        if directory.format not in formats:
            formats.append(directory.format)
    datasets = [
        of_format(
            table,
            [directory for directory in table.directories if directory.format == file_format],
            file_format,
            columns,
            keys,
            systems,
        )
        for file_format in formats or [definition.format]
    ]
    return datasets[0] if len(datasets) == 1 else ds.UnionDataset(schema, datasets)


def of_format(
    table: TableFiles,
    directories: Sequence[Directory],
    file_format: Format,
    columns: Sequence[pa.Field],
    keys: Sequence[pa.Field],
    systems: FileSystems,
) -> ds.Dataset:
    reader = reader_of(table, file_format, columns)
    filesystem = filesystem_of(directories[0].location if directories else "/", systems)
    fragments = [
        reader.make_fragment(path_of(file), filesystem, partition_expression=values_are(keys, directory.values))
        for directory in directories
        for file in directory.files
    ]
    return ds.FileSystemDataset(fragments, pa.schema([*columns, *keys]), reader, filesystem)


def values_are(keys: Sequence[pa.Field], values: Sequence[str | None]) -> ds.Expression | None:
    """Return an expression that is true of all rows of a partition with these values; None without keys."""
    expression: ds.Expression | None = None
    for key, value in zip(keys, values, strict=True):
        condition = pc.field(key.name).is_null() if value is None else pc.field(key.name) == scalar(key, value)
        expression = condition if expression is None else expression & condition
    return expression


def scalar(key: pa.Field, value: str) -> pa.Scalar:
    try:
        return pa.scalar(value).cast(key.type)
    except pa.ArrowInvalid as error:
        why = f"It is of the type {key.type}"
        raise Refused(f"{value!r} is no value of the partition key {key.name}", why, "Rename the partition") from error


def reader_of(table: TableFiles, file_format: Format, columns: Sequence[pa.Field]) -> ds.FileFormat:
    match kind_of(table.name, file_format):
        case FileFormat.PARQUET:
            return ds.ParquetFileFormat()
        case FileFormat.ORC:
            return ds.OrcFileFormat()
        case FileFormat.JSON:
            return ds.JsonFileFormat()
        case FileFormat.TEXT | FileFormat.CSV:
            return text_reader(table.name, lines_of(table.definition, file_format), columns)


def text_reader(table: str, lines: LineFormat, columns: Sequence[pa.Field]) -> ds.FileFormat:
    nested = [column.name for column in columns if pa.types.is_nested(column.type)]
    if nested:
        why = f"Its column {nested[0]} has a nested type in delimited text"
        raise Refused(f"{table} can't be read with Arrow", why, "Read it through the metastore")
    return ds.CsvFileFormat(
        parse_options=pcsv.ParseOptions(
            delimiter=lines.delimiter, quote_char=lines.quote or False, escape_char=lines.escape or False
        ),
        read_options=pcsv.ReadOptions(column_names=[column.name for column in columns], skip_rows=lines.header),
        convert_options=pcsv.ConvertOptions(
            column_types={column.name: column.type for column in columns},
            null_values=[lines.null],
            strings_can_be_null=bool(lines.null),
            true_values=["true", "TRUE", "True"],
            false_values=["false", "FALSE", "False"],
        ),
    )


def version_of(table: TableFiles, version: int) -> ds.Dataset:
    from deltalake import DeltaTable

    directory = place(table.directories[0].location)
    if directory.scheme != "file":
        what = f"{table.name} is a Delta table in a store"
        raise Refused(
            what, "calque opens local ones with Arrow", f"Open version {version} at {directory} with a Delta reader"
        )
    return DeltaTable(directory.path, version=version).to_pyarrow_dataset()


def filesystem_of(location: str, systems: FileSystems) -> pafs.FileSystem:
    parts = place(location)
    if parts.scheme == "file":
        return pafs.LocalFileSystem()
    return pafs.PyFileSystem(pafs.FSSpecHandler(systems.fsspec(location)))


def path_of(location: str) -> str:
    parts = place(location)
    return f"{parts.authority}{parts.path}" if parts.scheme in OBJECT_STORES else parts.path
