"""The rows of ACID tables as Arrow tables with the columns that the table has: `rows_in`, `deleted_in`.

Columns are found by their names, as Hive finds them in ORC files, or by their places where the file calls them `_col0`,
`_col1` …. A column that a file does not have is null. Rows of a full ACID table come with their row ids in three more
columns (`ROW_ID`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import orc

from calque.core.acid.contents import directory_in, own_name
from calque.core.acid.directories import AcidDirectory, DirectoryKind
from calque.core.acid.rows import DELETE, EVENT_COLUMN, bucket_of
from calque.core.formats.hive_types import Array, Decimal, HiveType, Map, Other, Primitive, Struct, parse_type
from calque.core.formats.readers import SERDES, FileFormat
from calque.errors import Refused
from calque.model.hive import Column, Storage

ROW_ID = ("_calque_write_id", "_calque_bucket", "_calque_row")
"""The columns with the row's id: the write id of its insert, its bucket, and its number there."""
ROW_ID_SCHEMA = pa.schema(zip(ROW_ID, (pa.int64(), pa.int32(), pa.int64()), strict=True))
EVENT_IDS = (EVENT_COLUMN, "bucket", "rowId")
BY_PLACE = re.compile(r"_col\d+")
ARROW_TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


class Misshapen(Refused):
    """The error for a file whose values have no place in the columns of its table, or that can't be read."""


@dataclass(frozen=True, slots=True)
class FileOfDirectory:
    """A file of an ACID table. `directory` is None for one from before the table became transactional, `name` is its
    own name, and `first` the number of rows that its bucket has in the files before it."""

    directory: AcidDirectory | None
    name: str
    first: int = 0

    @property
    def has_deletes(self) -> bool:
        return self.directory is not None and self.directory.kind is DirectoryKind.DELETE_DELTA


def format_of(storage: Storage | None) -> FileFormat | None:
    """Return the format of a table's files; None for one that no rows are read from."""
    serde = (storage.serde.class_name if storage is not None and storage.serde is not None else None) or ""
    known = SERDES.get(serde)
    return known if known in (FileFormat.ORC, FileFormat.PARQUET) else None


def files_read(
    names: Iterable[str], read: Callable[[str], Sequence[pa.Table]]
) -> Iterator[tuple[FileOfDirectory, Sequence[pa.Table]]]:
    """Yield the files with these flat names, all of their directories, with what `read` returns of each."""
    counts = Counter[tuple[str, int]]()
    for name in sorted(names):
        directory, own = directory_in(name), own_name(name)
        parts, bucket = read(name), (directory.name if directory is not None else "", bucket_of(own, 0))
        yield FileOfDirectory(directory, own, counts[bucket]), parts
        counts[bucket] += sum(part.num_rows for part in parts)


def batches_of(content: bytes, file_format: FileFormat) -> Iterator[pa.Table]:
    """Yield the content of a file part by part. Raises `Misshapen`."""
    try:
        if file_format is FileFormat.ORC:
            file = orc.ORCFile(pa.BufferReader(content))
            for number in range(file.nstripes):
                yield pa.Table.from_batches([file.read_stripe(number)])
        else:
            yield from (
                pa.Table.from_batches([batch]) for batch in pq.ParquetFile(pa.BufferReader(content)).iter_batches()
            )
    except (pa.ArrowException, OSError) as error:
        raise Misshapen(f"it can't be read: {error}") from error


def arrow_type(kind: HiveType) -> pa.DataType:
    match kind:
        case Primitive(name):
            return ARROW_TYPES[name]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element):
            return pa.list_(arrow_type(element))
        case Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct(fields):
            return pa.struct([(name, arrow_type(part)) for name, part in fields])
        case Other(text):
            raise Misshapen(f"no reader of Delta knows the type {text}")


def rows_in(part: pa.Table, columns: Sequence[Column], file: FileOfDirectory | None = None) -> pa.Table:
    """Return the rows that a part of a file inserts. With `file` the table is a full ACID table, and the rows have
    their ids: of a file without any they follow from `file`. Raises `Misshapen`."""
    if file is None:
        return shaped(part, columns)
    if EVENT_COLUMN not in part.column_names:
        return with_ids(shaped(part, columns), numbered(file, part.num_rows))
    inserted = part.filter(pc.not_equal(part["operation"], DELETE))
    return with_ids(shaped(pa.Table.from_struct_array(inserted["row"]), columns), ids_in(inserted))


def deleted_in(part: pa.Table) -> pa.Table:
    """Return the ids of the rows that a part of a full ACID table's file deletes."""
    if EVENT_COLUMN not in part.column_names:
        return ROW_ID_SCHEMA.empty_table()
    return ids_in(part.filter(pc.equal(part["operation"], DELETE)))


def written_by(part: pa.Table) -> pa.ChunkedArray | None:
    """Return the write id of each event in the part; None for a file without events."""
    return part["currentTransaction"] if EVENT_COLUMN in part.column_names else None


def ids_in(events: pa.Table) -> pa.Table:
    return events.select(EVENT_IDS).rename_columns(list(ROW_ID)).cast(ROW_ID_SCHEMA)


def numbered(file: FileOfDirectory, count: int) -> pa.Table:
    directory = file.directory
    write_id = directory.high if directory is not None else 0
    bucket = bucket_of(file.name, (directory.statement or 0) if directory is not None else 0)
    numbers = pa.array(range(file.first, file.first + count), pa.int64())
    return pa.table(
        [pa.repeat(pa.scalar(write_id, pa.int64()), count), pa.repeat(bucket, count), numbers], list(ROW_ID)
    )


def with_ids(rows: pa.Table, ids: pa.Table) -> pa.Table:
    for name in ROW_ID:
        rows = rows.append_column(ROW_ID_SCHEMA.field(name), ids[name].cast(ROW_ID_SCHEMA.field(name).type))
    return rows


def shaped(rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """Return the rows with these columns, of the types that Hive says. Raises `Misshapen`."""
    schema = pa.schema([pa.field(column.name, arrow_type(parse_type(column.type))) for column in columns])
    by_place = bool(rows.column_names) and all(map(BY_PLACE.fullmatch, rows.column_names))
    places = {name.lower(): place for place, name in enumerate(rows.column_names)}
    values = []
    for number, field in enumerate(schema):
        place = (number if number < rows.num_columns else None) if by_place else places.get(field.name.lower())
        if place is None:
            values.append(pa.nulls(rows.num_rows, field.type))
        else:
            values.append(cast(rows.column(place), field))
    return pa.Table.from_arrays(values, schema=schema)


def cast(values: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return the values as those of the field. Nanoseconds are cut to microseconds."""
    if values.type == field.type:
        return values
    try:
        return values.cast(field.type, safe="timestamp" not in str(field.type))
    except pa.ArrowException as error:
        raise Misshapen(f"values of its column {field.name} are no {field.type}: {error}") from error


def without(rows: pa.Table, ids: pa.Table) -> pa.Table:
    """Return those of the rows whose ids are not among `ids`, in their order."""
    return rows if not ids.num_rows else rows.filter(pc.invert(are_among(rows, ids)))


def among(rows: pa.Table, ids: pa.Table) -> pa.Table:
    """Return those of the rows whose ids are among `ids`, in their order."""
    return rows.filter(are_among(rows, ids))


def are_among(rows: pa.Table, ids: pa.Table) -> pa.Array:
    places = pa.array(range(rows.num_rows), pa.int64())
    of_rows = rows.select(ROW_ID).append_column("place", places)
    hits = of_rows.join(ids.select(ROW_ID), list(ROW_ID), join_type="left semi", use_threads=False)["place"]
    return pc.is_in(places, value_set=hits.combine_chunks())
