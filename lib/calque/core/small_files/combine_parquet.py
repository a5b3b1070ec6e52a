"""Combining of small Parquet files into one.

All that readers depend on is the same in the combined file: the schema with its physical and logical types and field
ids, the footer's key-value metadata, the codec of each column, and the writer's name (Hive and Spark read INT96
timestamps of `parquet-mr` another way). Files that differ in one of these, or whose schema pyarrow would write another
way, are `Unfit`. Row groups become larger; statistics are made anew; bloom filters and page indices are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from calque.core.formats.parquet_footer import with_created_by
from calque.core.small_files.grouping import Unfit
from calque.core.small_files.row_digest import RowDigest, Undigestible

ROW_GROUP_BYTES = 64 << 20
"""Bytes of the rows of one row group, in memory, before they are encoded."""
BATCH_ROWS = 16_384
CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD"})
"""Codecs that pyarrow writes in the form that every reader knows; LZ4, which is not among them, has two forms."""
FAR = "us"
"""The unit of a second digest over files with INT96, which reaches farther than nanoseconds in 64 bits. A value beyond
these is read as another value, and is that in the combined file, too; only the second digest tells them apart."""


@dataclass(frozen=True, slots=True)
class Form:
    """The properties that files must share to be combined: all but their rows and codecs."""

    schema: pq.ParquetSchema
    metadata: Mapping[bytes, bytes]
    created_by: str
    version: str

    def equals(self, other: Form) -> bool:
        return self.schema.equals(other.schema) and (self.metadata, self.created_by, self.version) == (
            other.metadata,
            other.created_by,
            other.version,
        )

    def has_int96(self) -> bool:
        return any(column.physical_type == "INT96" for column in columns(self.schema))

    def has_integer_decimals(self) -> bool:
        return any(
            column.logical_type.type == "DECIMAL" and column.physical_type in ("INT32", "INT64")
            for column in columns(self.schema)
        )

    def text(self) -> str:
        """Return the schema's text without the name of its root, which means nothing."""
        return str(self.schema).split("{", 1)[1]


def columns(schema: pq.ParquetSchema) -> list[pq.ColumnSchema]:
    return [schema.column(number) for number in range(len(schema.names))]


@dataclass(slots=True)
class Rows:
    """The digest of rows. `near` reads INT96 as nanoseconds, among which a time far from 1970 does not fit and is read
    as another time. So where a column is INT96, `far` reads the rows again by microseconds, which tell such times
    apart."""

    form: Form
    near: RowDigest = field(default_factory=RowDigest)
    far: RowDigest = field(default_factory=RowDigest)

    def add_far(self, content: bytes) -> None:
        if self.form.has_int96():
            for batch in opened(content, FAR).iter_batches(BATCH_ROWS):
                self.far.update(batch)

    def hexdigest(self) -> str:
        near = self.near.hexdigest(self.form.text())
        return f"{near}-{self.far.hexdigest('')}" if self.form.has_int96() else near


def combine(contents: Iterable[bytes]) -> tuple[bytes, str]:
    """Return the content of one file with the rows of all files, in order, and the digest of the rows. Raises `Unfit`
    where a file can't be read, or the files differ in their schema, their writer or their form, so that no one file has
    the rows of all as every reader sees them."""
    try:
        return combined(contents)
    except (pa.ArrowException, OSError, Undigestible) as error:
        raise Unfit(f"{type(error).__name__}: {error}") from error


def combined(contents: Iterable[bytes]) -> tuple[bytes, str]:
    made: NewFile | None = None
    for content in contents:
        file = opened(content)
        form = form_of(file)
        if made is None:
            made = NewFile(form, file.schema_arrow.remove_metadata(), codecs_of(file))
        if not form.equals(made.rows.form):
            raise Unfit("the files differ in their schemas, in who wrote them or in the footers' metadata")
        made.take_codecs(codecs_of(file))
        made.rows.add_far(content)
        for batch in file.iter_batches(BATCH_ROWS):
            made.add(batch)
    if made is None:
        raise Unfit("there is no file")
    return made.close(), made.rows.hexdigest()


class NewFile:
    """The combined file while it is made. Its writer begins with the first rows, or at the end."""

    def __init__(self, form: Form, schema: pa.Schema, codecs: Mapping[str, str]) -> None:
        self.rows = Rows(form)
        self._schema, self._codecs = schema, dict(codecs)
        self._sink = pa.BufferOutputStream()
        self._writer: pq.ParquetWriter | None = None
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0

    def take_codecs(self, codecs: Mapping[str, str]) -> None:
        """Take the codecs of the next file, which are empty for a file without rows. Raises `Unfit` where files have
        different ones."""
        if codecs and self._codecs and codecs != self._codecs:
            raise Unfit("the files have other codecs")
        self._codecs = self._codecs or dict(codecs)

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows.near.update(batch)
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> bytes:
        """Return the content of the combined file. Raises `Unfit` where pyarrow has written the schema another way."""
        self._flush()
        writer, form = self._open(), self.rows.form
        if form.metadata:
            writer.add_key_value_metadata({key.decode(): value.decode() for key, value in form.metadata.items()})
        writer.close()
        content = with_created_by(self._sink.getvalue().to_pybytes(), form.created_by)
        if not form_of(opened(content)).equals(form):
            raise Unfit("pyarrow writes the schema another way")
        return content

    def _flush(self) -> None:
        if self._batches:
            batches = [batch.replace_schema_metadata(None) for batch in self._batches]
            table = pa.Table.from_batches(batches, self._schema)
            self._open().write_table(table, row_group_size=max(1, table.num_rows))
        self._batches, self._bytes = [], 0

    def _open(self) -> pq.ParquetWriter:
        if self._writer is None:
            form = self.rows.form
            self._writer = pq.ParquetWriter(
                self._sink,
                self._schema,
                version=form.version,
                compression=self._codecs or "snappy",
                use_deprecated_int96_timestamps=form.has_int96(),
                store_decimal_as_integer=form.has_integer_decimals(),
                store_schema=False,
            )
        return self._writer


def digest_of(contents: Iterable[bytes]) -> str:
    """Return the digest of the rows of Parquet files, one behind the other. Raises `Unfit` for files of different
    schemas, for no files, and for a file that can't be read."""
    try:
        rows: Rows | None = None
        for content in contents:
            file = opened(content)
            form = form_of(file)
            rows = rows or Rows(form)
            if not form.schema.equals(rows.form.schema):
                raise Unfit("the files differ in their schemas")
            rows.add_far(content)
            for batch in file.iter_batches(BATCH_ROWS):
                rows.near.update(batch)
    except (pa.ArrowException, OSError, Undigestible) as error:
        raise Unfit(f"{type(error).__name__}: {error}") from error
    if rows is None:
        raise Unfit("there is no file")
    return rows.hexdigest()


def opened(content: bytes, int96_unit: str | None = None) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(content), coerce_int96_timestamp_unit=int96_unit)


def form_of(file: pq.ParquetFile) -> Form:
    metadata = file.metadata
    return Form(file.schema, metadata.metadata or {}, metadata.created_by, metadata.format_version)


def codecs_of(file: pq.ParquetFile) -> dict[str, str]:
    """Return the codec of each column, by its path in the schema; empty for a file without rows. Raises `Unfit` for a
    codec that is not in `CODECS`."""
    if not file.metadata.num_row_groups:
        return {}
    group = file.metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    codecs = {column.path_in_schema: column.compression for column in columns}
    if not codecs.keys() or not {*codecs.values()} <= CODECS:
        raise Unfit(f"columns have the codecs {', '.join(sorted({*codecs.values()}))}")
    return {path: "NONE" if codec == "UNCOMPRESSED" else codec for path, codec in codecs.items()}
