"""Files of ACID tables as Hive writes them, and the names of their directories."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from calque.core.acid.rows import DELETE, RowId
from calque.model.hive import Column, SerDe, Storage
from support.sources.writers import PARQUET, TEXT

Row = tuple[Any, ...]
"""The values of the columns, without those of partition keys."""
ARROW = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string(), "double": pa.float64()}
INSERT = 0
ORC_VERSION, NOTE = "_orc_acid_version", "_metadata_acid"
HIDDEN_FILES = (ORC_VERSION, NOTE)
ORC_PACKAGE = "org.apache.hadoop.hive.ql.io.orc"
ORC = Storage(
    input_format=f"{ORC_PACKAGE}.OrcInputFormat",
    output_format=f"{ORC_PACKAGE}.OrcOutputFormat",
    buckets=-1,
    serde=SerDe(None, f"{ORC_PACKAGE}.OrcSerde", {}),
)
FORMATS: Mapping[str, Storage] = {"orc": ORC, "parquet": PARQUET, "text": TEXT}


@dataclass(frozen=True, slots=True)
class RowEvent:
    """What a file of a full ACID table says of a row: it was inserted, or (without `row`) deleted, by `write_id`."""

    row_id: RowId
    write_id: int
    row: Row | None


def note(data_format: str) -> bytes:
    """The content of `_metadata_acid`."""
    return json.dumps({"thisFileVersion": "0", "dataFormat": data_format}, separators=(",", ":")).encode()


def base_name(write_id: int) -> str:
    return f"base_{write_id:07d}"


def delta_name(kind: str, low: int, high: int, statement: int | None = None) -> str:
    """`kind`: `delta` or `delete_delta`."""
    return f"{kind}_{low:07d}_{high:07d}" + (f"_{statement:04d}" if statement is not None else "")


def event_schema(columns: Sequence[Column]) -> pa.Schema:
    row = pa.struct([(column.name, ARROW[column.type]) for column in columns])
    return pa.schema(
        [
            ("operation", pa.int32()),
            ("originalTransaction", pa.int64()),
            ("bucket", pa.int32()),
            ("rowId", pa.int64()),
            ("currentTransaction", pa.int64()),
            ("row", row),
        ]
    )


def events_file(events: Iterable[RowEvent], columns: Sequence[Column]) -> bytes:
    """ORC 0.12, as Hive's; pyarrow writes no metadata of users, such as `hive.acid.key.index`."""
    names = [column.name for column in columns]
    rows = [
        {
            "operation": DELETE if event.row is None else INSERT,
            "originalTransaction": event.row_id[0],
            "bucket": event.row_id[1],
            "rowId": event.row_id[2],
            "currentTransaction": event.write_id,
            "row": None if event.row is None else dict(zip(names, event.row, strict=True)),
        }
        for event in events
    ]
    sink = io.BytesIO()
    orc.write_table(pa.Table.from_pylist(rows, event_schema(columns)), sink, compression="zlib")
    return sink.getvalue()


def rows_file(rows: Iterable[Row], columns: Sequence[Column], file_format: str) -> bytes:
    """A file of an insert-only table: Parquet, ORC, or text as LazySimpleSerDe has it."""
    if file_format == "text":
        lines = ("\x01".join(r"\N" if value is None else str(value) for value in row) + "\n" for row in rows)
        return "".join(lines).encode()
    schema = pa.schema([(column.name, ARROW[column.type]) for column in columns])
    names = [column.name for column in columns]
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)
    sink = io.BytesIO()
    if file_format == "parquet":
        pq.write_table(table, sink)
    else:
        orc.write_table(table, sink)
    return sink.getvalue()


def content_of(data: bytes, columns: Sequence[Column], file_format: str) -> pa.Table:
    """What `events_file` or `rows_file` wrote."""
    if file_format == "orc":
        return orc.ORCFile(io.BytesIO(data)).read()
    if file_format == "parquet":
        return pq.read_table(io.BytesIO(data))
    cells = [line.split("\x01") for line in data.decode().splitlines()]
    return pa.table(
        {
            column.name: pa.array([typed(line[place], column.type) for line in cells], ARROW[column.type])
            for place, column in enumerate(columns)
        }
    )


def typed(text: str, kind: str) -> Any:
    if text == r"\N":
        return None
    return {"int": int, "bigint": int, "double": float}.get(kind, str)(text)
