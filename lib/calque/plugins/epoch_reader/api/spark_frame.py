"""The files of a table as one DataFrame, with its partition keys as columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from urllib.parse import quote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from calque.core.formats.definition import Format
from calque.core.formats.layout import place
from calque.core.formats.readers import FileFormat, kind_of, lines_of
from calque.plugins.epoch_reader.api.files import Directory, TableFiles

UNQUOTED = "/_-!.~'()*,;:$&+=@"
FILE, POSITION = "_calque_file", "_calque_directory"


def frame_of(table: TableFiles, session: SparkSession) -> DataFrame:
    """Return the table as a DataFrame. Raises `Refused` for formats that Spark's own readers do not know."""
    if table.version is not None:
        directory_path = str(place(table.directories[0].location))
        return session.read.format("delta").option("versionAsOf", table.version).load(directory_path)
    formats: list[Format] = []
    for directory in table.directories:
        if directory.files and directory.format not in formats:
            formats.append(directory.format)
    names = [name for name, _ in (*table.definition.columns, *table.definition.keys)]
    frames = [
        of_format(
            table,
            [directory for directory in table.directories if directory.format == file_format],
            file_format,
            session,
        )
        for file_format in formats
    ]
    if not frames:
        return session.createDataFrame([], schema_of((*table.definition.columns, *table.definition.keys)))
    return reduce(DataFrame.unionByName, frames).select(*(f.col(quoted(name)) for name in names))


def of_format(
    table: TableFiles, directories: Sequence[Directory], file_format: Format, session: SparkSession
) -> DataFrame:
    definition, kind = table.definition, kind_of(table.name, file_format)
    strings = [(name, "string") for name, _ in definition.columns]
    reader = session.read.schema(schema_of(strings if kind is FileFormat.CSV else definition.columns))
    # Spark must not take names of files for glob patterns.
    reader = reader.option("__globPaths__", "false")
    if kind in (FileFormat.TEXT, FileFormat.CSV):
        lines = lines_of(definition, file_format)
        reader = reader.options(
            sep=lines.delimiter,
            quote=lines.quote,
            escape=lines.escape or "\0",
            nullValue=lines.null or "\0",
            emptyValue="",
        ).option("header", bool(lines.header))
    files = [str(place(file)) for directory in directories for file in directory.files]
    frame = reader.format("csv" if kind in (FileFormat.TEXT, FileFormat.CSV) else kind.value).load(files)
    if not definition.keys:
        return frame
    rows = [(spelled(file), *directory.values) for directory in directories for file in directory.files]
    keys = [StructField(name, StringType()) for name, _ in definition.keys]
    values = session.createDataFrame(rows, StructType([StructField(FILE, StringType()), *keys]))
    typed = [f.col(quoted(name)).cast(kind).alias(name) for name, kind in definition.keys]
    frame_with_paths = frame.withColumn(FILE, f.regexp_replace(f.col("_metadata.file_path"), "^file:/+", "file:/"))
    return frame_with_paths.join(f.broadcast(values.select(FILE, *typed)), FILE).drop(FILE)


def schema_of(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def spelled(location: str) -> str:
    """Return a file's path as Spark says it: as a URI, in which Java quotes every character that a path may not
    have."""
    parts = place(location)
    path = "".join(one if one > "\x7f" else quote(one, safe=UNQUOTED) for one in parts.path)
    return f"{parts.scheme}://{parts.authority}{path}" if parts.authority else f"{parts.scheme}:{path}"
