"""Journal rows as Arrow tables: events and entries written as rows, and read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from calque.core.events.keys import keys_of
from calque.model.journal import Entry, Event, EventKind, Keys, TableShape
from calque.model.names import TableName

SCHEMA = pa.schema(
    [
        pa.field("event_id", pa.int64(), nullable=False),
        pa.field("event_time", pa.int64()),
        pa.field("event_type", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("catalog", pa.string()),
        pa.field("database", pa.string()),
        pa.field("table", pa.string()),
        pa.field("key_database", pa.string()),
        pa.field("key_table", pa.string()),
        pa.field("other_database", pa.string()),
        pa.field("other_table", pa.string()),
        pa.field("shape", pa.string()),
        pa.field("partitions", pa.list_(pa.string())),
        pa.field("others", pa.list_(pa.string())),
        pa.field("locations", pa.list_(pa.string())),
        pa.field("replaces", pa.bool_()),
        pa.field("columns_changed", pa.bool_()),
        pa.field("facets_only", pa.bool_()),
        pa.field("transactional", pa.bool_()),
        pa.field("defect", pa.string()),
        pa.field("message_format", pa.string()),
        pa.field("message", pa.string()),
    ]
)
MESSAGE_COLUMNS = ("message_format", "message")
EVENT_COLUMNS = ("event_id", "event_time", "event_type", "catalog", "database", "table", *MESSAGE_COLUMNS)
ENTRY_COLUMNS = tuple(name for name in SCHEMA.names if name not in {"catalog", "database", "table", *MESSAGE_COLUMNS})
"""The columns that `entries_of` needs. `database` and `table` are not among them, because keys have columns of their
own."""


def table_of(rows: Iterable[tuple[Event, Keys]]) -> pa.Table:
    """Return the rows as one Arrow table of `SCHEMA`."""
    return pa.Table.from_pylist([record(event, keys) for event, keys in rows], schema=SCHEMA)


def rows_of_events(events: Iterable[Event]) -> pa.Table:
    """Return the events as one Arrow table of `SCHEMA`, with the keys that their messages say. Never raises for a
    message."""
    return table_of((event, keys_of(event)) for event in events)


def record(event: Event, keys: Keys) -> dict[str, object]:
    return {
        "event_id": event.event_id,
        "event_time": event.event_time,
        "event_type": storable(event.event_type),
        "kind": keys.kind.value,
        "catalog": storable(event.catalog),
        "database": storable(event.database),
        "table": storable(event.table),
        "key_database": keys.table.database if keys.table else None,
        "key_table": keys.table.table if keys.table else None,
        "other_database": keys.other.database if keys.other else None,
        "other_table": keys.other.table if keys.other else None,
        "shape": keys.shape.value,
        "partitions": list(keys.partitions),
        "others": list(keys.others),
        "locations": list(keys.locations),
        "replaces": keys.replaces,
        "columns_changed": keys.columns_changed,
        "facets_only": keys.facets_only,
        "transactional": keys.transactional,
        "defect": keys.defect,
        "message_format": storable(event.message_format),
        "message": storable(event.message),
    }


def storable(text: str) -> str:
    """Return `text` with question marks for lone surrogates, which Arrow refuses. A message that has any can't be
    folded."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def entries_of(rows: pa.Table) -> Iterator[Entry]:
    """Yield each row as an entry; `rows` may lack the columns of messages. Equal keys are one object."""
    ids, times = rows["event_id"].to_pylist(), rows["event_time"].to_pylist()
    keys_by_row: dict[tuple[Any, ...], Keys] = {}
    keyed = zip(*key_columns(rows), strict=True)
    for event_id, event_time, event_type, row in zip(ids, times, texts(rows["event_type"]), keyed, strict=True):
        keys = keys_by_row.get(row)
        if keys is None:
            keys = keys_by_row[row] = keys_of_row(row)
        yield Entry(event_id, event_time, event_type or "", keys)


def key_columns(rows: pa.Table) -> Iterator[list[Any]]:
    """Yield the columns that `keys_of_row` takes, in its order."""
    for name in ("kind", "key_database", "key_table", "other_database", "other_table", "shape", "defect"):
        yield texts(rows[name])
    for name in ("partitions", "others", "locations"):
        yield lists(rows[name])
    for name in ("replaces", "columns_changed", "facets_only", "transactional"):
        yield rows[name].to_pylist()


def texts(column: pa.ChunkedArray) -> list[str | None]:
    """Return the values of a column of strings; equal values are one object."""
    encoded_column = column.combine_chunks().dictionary_encode()
    values = encoded_column.dictionary.to_pylist()
    return [None if index is None else values[index] for index in encoded_column.indices.to_pylist()]


def lists(column: pa.ChunkedArray) -> list[tuple[str | None, ...]]:
    """Return the lists of a column; an absent list is empty."""
    values = iter(texts(pa.chunked_array([pc.list_flatten(column.combine_chunks())])))
    return [tuple(islice(values, count)) if count else () for count in pc.list_value_length(column).to_pylist()]


def keys_of_row(row: tuple[Any, ...]) -> Keys:
    """Return the keys of one row, from its values in the order of `key_columns`."""
    kind, database, table, other_database, other_table, shape, defect, *values = row
    partitions, others, locations, replaces, columns_changed, facets_only, transactional = values
    return Keys(
        EventKind(kind),
        None if database is None else TableName(database, table or ""),
        None if other_database is None else TableName(other_database, other_table or ""),
        TableShape(shape or ""),
        partitions,
        others,
        locations,
        bool(replaces),
        bool(columns_changed),
        bool(facets_only),
        bool(transactional),
        defect or "",
    )


def events_of(rows: pa.Table) -> Iterator[Event]:
    """Yield each row as the event that the metastore gave; `rows` needs only `EVENT_COLUMNS`."""
    for event_id, event_time, event_type, *texts in zip(
        *(rows[name].to_pylist() for name in EVENT_COLUMNS), strict=True
    ):
        yield Event(event_id, event_time, event_type, *(text or "" for text in texts))
