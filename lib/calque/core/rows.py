"""Journal rows as Arrow tables, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from calque.model.journal import Entry, Event, Keys, Kind, Shape
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
ENTRY_COLUMNS = tuple(name for name in SCHEMA.names if name not in MESSAGE_COLUMNS)


def table_of(rows: Iterable[tuple[Event, Keys]]) -> pa.Table:
    """The rows as one Arrow table of `SCHEMA`."""
    return pa.Table.from_pylist([record(event, keys) for event, keys in rows], schema=SCHEMA)


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
    """`text` with question marks for lone surrogates, which Arrow refuses. A message that has any can't be folded."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def entries_of(rows: pa.Table) -> Iterator[Entry]:
    """Each row as an entry; message columns may be left out of `rows`."""
    for row in rows.select(list(ENTRY_COLUMNS)).to_pylist():
        yield Entry(row["event_id"], row["event_time"], row["event_type"], keys_of_row(row))


def keys_of_row(row: dict[str, object]) -> Keys:
    def name(database: object, table: object) -> TableName | None:
        return None if database is None else TableName(str(database), str(table or ""))

    def texts(value: object) -> tuple[str, ...]:
        return tuple(value) if isinstance(value, list) else ()

    return Keys(
        kind=Kind(str(row["kind"])),
        table=name(row["key_database"], row["key_table"]),
        other=name(row["other_database"], row["other_table"]),
        shape=Shape(str(row["shape"] or "")),
        partitions=texts(row["partitions"]),
        others=texts(row["others"]),
        locations=texts(row["locations"]),
        replaces=bool(row["replaces"]),
        columns_changed=bool(row["columns_changed"]),
        facets_only=bool(row["facets_only"]),
        transactional=bool(row["transactional"]),
        defect=str(row["defect"] or ""),
    )


def events_of(rows: pa.Table) -> Iterator[Event]:
    """Each row as the metastore gave it."""
    for row in rows.to_pylist():
        yield Event(
            row["event_id"],
            row["event_time"],
            row["event_type"],
            row["catalog"] or "",
            row["database"] or "",
            row["table"] or "",
            row["message_format"] or "",
            row["message"] or "",
        )
