"""The columns of evidence and ledger tables, and the coding of values of the model as their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, assert_never

import pyarrow as pa

from calque.core.records.continuity import carries_files
from calque.errors import Broken
from calque.model.claims import AbandonedDirectory
from calque.model.files import File
from calque.model.ledger import (
    Bridge,
    DatabaseRow,
    Epoch,
    FunctionRow,
    NotLiveReason,
    ObjectRow,
    Parts,
    PlaceRow,
    Reread,
    RereadCause,
    StateKey,
    StateRow,
    TableRow,
    TableState,
    state_key,
)
from calque.model.names import TableName

Row = Mapping[str, Any]


def struct_list(**fields: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct(list(fields.items())))


TEXTS = pa.list_(pa.string())
FILES = struct_list(path=pa.string(), size=pa.int64(), modified_ns=pa.int64(), checksum=pa.string())
BRIDGES = pa.list_(pa.struct([("table", pa.string()), ("from", pa.int64()), ("to", pa.int64())]))
ABANDONED = struct_list(place=pa.string(), claim=pa.string())
REREADS = struct_list(table=pa.string(), event_id=pa.int64(), cause=pa.string(), reason=pa.string())

EPOCHS = pa.schema(
    [
        pa.field("epoch", pa.int64(), nullable=False),
        pa.field("event_id", pa.int64()),
        pa.field("from_event_id", pa.int64()),
        pa.field("published_at", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("tables", pa.int64()),
        pa.field("events", pa.int64()),
        pa.field("hops", pa.int64()),
        pa.field("calls", pa.int64()),
        pa.field("files", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("quarantined", TEXTS),
        pa.field("bridges", BRIDGES),
        pa.field("in_parts", TEXTS),
        pa.field("rebasing", TEXTS),
        pa.field("digest", pa.string()),
        pa.field("previous_digest", pa.string()),
        pa.field("gap", pa.struct([("from", pa.int64()), ("to", pa.int64())])),
        pa.field("set_aside", TEXTS),
        pa.field("parts", BRIDGES),
        pa.field("rereads", REREADS),
        pa.field("disarmed", TEXTS),
        pa.field("abandoned", ABANDONED),
        pa.field("together", pa.list_(TEXTS)),
    ]
)
OBJECTS = pa.schema(
    [
        pa.field("epoch", pa.int64(), nullable=False),
        pa.field("database", pa.string()),
        pa.field("table", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("incarnation", pa.string()),
        pa.field("event_id", pa.int64()),
        pa.field("change", pa.string()),
        pa.field("location", pa.string()),
        pa.field("fingerprint", pa.string()),
        pa.field("files", FILES),
        pa.field("delta_version", pa.int64()),
        pa.field("carries_files", pa.bool_()),
        pa.field("definition", pa.string()),
        pa.field("step", pa.int64()),
        pa.field("row_digest", pa.string()),
        pa.field("claim", pa.string()),
    ]
)
TABLES = pa.schema(
    [
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("kind", pa.string()),
        pa.field("database", pa.string()),
        pa.field("table", pa.string()),
        pa.field("state", pa.string()),
        pa.field("shows", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("since_event", pa.int64()),
        pa.field("owned", pa.string()),
        pa.field("removed", pa.bool_()),
        pa.field("why", pa.string()),
    ]
)
"""The columns of the ledger's table `tables`: a row for each state that a table, database or function had. Of several
rows for one (kind, database, table) the one with the greatest `sequence` counts, unless it is `removed`."""
INTERNAL = pa.schema(
    [
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("kind", pa.string()),
        pa.field("key", pa.string()),
        pa.field("format", pa.int64()),
        pa.field("payload", pa.string()),
        pa.field("removed", pa.bool_()),
    ]
)
"""Rows of calque's own records. Of several rows for one (kind, key) the one with the greatest `sequence` counts, unless
it is `removed`. `adapters.delta.record_codec` says what is in the payload."""


def file_record(file: File) -> Row:
    return {"path": file.path, "size": file.size, "modified_ns": file.modified_ns, "checksum": file.checksum}


def files_of(rows: Iterable[Row] | None) -> tuple[File, ...]:
    return tuple(File(row["path"], row["size"], row["modified_ns"], row["checksum"]) for row in rows or ())


def epoch_record(epoch: Epoch) -> Row:
    plain = {name: getattr(epoch, name) for name in EPOCHS.names}
    spans = {
        name: [{"table": each.table, "from": each.from_event, "to": each.to_event} for each in rows]
        for name, rows in (("bridges", epoch.bridges), ("parts", epoch.parts))
    }
    gap = {"from": epoch.gap[0], "to": epoch.gap[1]} if epoch.gap is not None else None
    told = {
        "rereads": [asdict(each) for each in epoch.rereads],
        "abandoned": [asdict(each) for each in epoch.abandoned],
    }
    return {**plain, **spans, **told, "gap": gap}


def epoch_of(row: Row) -> Epoch:
    names = ("quarantined", "in_parts", "rebasing", "set_aside", "disarmed")
    lists = {name: tuple(row.get(name) or ()) for name in names}
    bridges = tuple(Bridge(each["table"], each["from"], each["to"]) for each in row["bridges"])
    parts = tuple(Parts(each["table"], each["from"], each["to"]) for each in row.get("parts") or ())
    rereads = tuple(Reread(**{**each, "cause": RereadCause(each["cause"])}) for each in row.get("rereads") or ())
    gap = row.get("gap")
    abandoned = tuple(AbandonedDirectory(**each) for each in row.get("abandoned") or ())
    together = tuple(map(tuple, row.get("together") or ()))
    told = {"bridges": bridges, "parts": parts, "rereads": rereads, "abandoned": abandoned, "together": together}
    return Epoch(**{**row, **lists, **told, "gap": (gap["from"], gap["to"]) if gap is not None else None})


def object_record(row: ObjectRow, epoch: int) -> Row:
    return {
        "epoch": epoch,
        "database": row.database,
        "table": row.table,
        "partition": row.partition,
        "incarnation": row.incarnation,
        "event_id": row.event_id,
        "change": row.change,
        "location": row.location,
        "fingerprint": row.fingerprint,
        "files": [file_record(file) for file in row.files],
        "delta_version": row.delta_version,
        "carries_files": carries_files(row),
        "definition": row.definition,
        "step": row.step,
        "row_digest": row.row_digest,
        "claim": row.claim,
    }


def object_of(row: Row) -> ObjectRow:
    return ObjectRow(
        row["database"],
        row["table"],
        row["partition"],
        row["incarnation"],
        row["event_id"],
        row["change"],
        row["location"],
        row["fingerprint"],
        files_of(row["files"]),
        row["delta_version"],
        row["definition"] or "",
        row["step"] or 0,
        row.get("row_digest") or "",
        row.get("claim") or "",
    )


PLACE_COLUMNS = tuple(field.name for field in fields(PlaceRow))


def place_of(row: Row) -> PlaceRow:
    return PlaceRow(**{**row, "claim": row["claim"] or ""})


def state_row(row: StateRow, sequence: int) -> Row:
    match row:
        case TableRow():
            columns = {"shows": row.shows, "owned": "", "why": row.why.value}
        case DatabaseRow():
            columns = {"owned": "", "why": NotLiveReason.OWN.value}
        case FunctionRow():
            columns = {"shows": row.shows, "owned": str(row.at_target or ""), "why": NotLiveReason.OWN.value}
        case other:
            assert_never(other)
    return {
        **removed_state_row(state_key(row), sequence),
        "state": row.state.value,
        "reason": row.reason,
        "since_event": row.since_event,
        "removed": False,
        **columns,
    }


def removed_state_row(key: StateKey, sequence: int) -> Row:
    kind, database, table = key
    return {"sequence": sequence, "kind": kind, "database": database, "table": table, "removed": True}


def key_of_state_row(row: Row) -> StateKey:
    return row["kind"], row["database"], row["table"]


def state_of(row: Row) -> StateRow:
    """Return the state that a row has. Raises `Broken` where the row is of none of the kinds."""
    state, reason, since = TableState(row["state"]), row["reason"], row["since_event"]
    match row["kind"]:
        case "table":
            why = why_of(reason) if row["why"] is None else NotLiveReason(row["why"])
            return TableRow(row["database"], row["table"], state, row["shows"], reason, since, why)
        case "database":
            return DatabaseRow(row["database"], state, reason, since)
        case "function":
            name_at_target = name_of(row["owned"]) if row["owned"] else None
            return FunctionRow(row["database"], row["table"], state, row["shows"], reason, since, name_at_target)
        case kind:
            raise Broken(
                f"The ledger has a row of kind {kind}", "No version wrote such rows", "Restore it from a backup"
            )


def name_of(text: str) -> TableName:
    return TableName(*text.partition(".")[::2])


BEGINNINGS = {
    "gap ": NotLiveReason.GAP,
    "held: ": NotLiveReason.HELD,
    "bootstrap": NotLiveReason.ALL,
    "asked for by bootstrap": NotLiveReason.ALL,
}


def why_of(reason: str) -> NotLiveReason:
    """Return the class of a reason whose row an older version of calque wrote, without the column `why`: the beginning
    of the text tells it."""
    return next((why for text, why in BEGINNINGS.items() if reason.startswith(text)), NotLiveReason.OWN)
