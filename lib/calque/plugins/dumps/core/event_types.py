"""The names of the log's events in a dump, and the kinds of events that have a definition or files there.

Sources: `DumpType` and the event handlers of Hive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calque.core.events.decode import fields, flag_at
from calque.model.journal import Event, EventKind, Keys

UNKNOWN = "EVENT_UNKNOWN"
RENAME_DROP_TABLE = "EVENT_RENAME_DROP_TABLE"
"""A rename out of scope: the table goes at the target."""

SPELLED: Mapping[str, str] = {
    "ALTER_PARTITIONS": "EVENT_ALTER_PARTITION",
    "ALLOC_WRITE_ID_EVENT": "EVENT_ALLOC_WRITE_ID",
    "UPDATE_TBL_COL_STAT_EVENT": "EVENT_UPDATE_TABLE_COL_STAT",
    "DELETE_TBL_COL_STAT_EVENT": "EVENT_DELETE_TABLE_COL_STAT",
    "UPDATE_PART_COL_STAT_EVENT": "EVENT_UPDATE_PART_COL_STAT",
    "DELETE_PART_COL_STAT_EVENT": "EVENT_DELETE_PART_COL_STAT",
}
"""Event types whose name in a dump is not `EVENT_` and the type."""

KNOWN = frozenset(
    {
        "CREATE_DATABASE",
        "ALTER_DATABASE",
        "DROP_DATABASE",
        "CREATE_TABLE",
        "ALTER_TABLE",
        "DROP_TABLE",
        "ADD_PARTITION",
        "ALTER_PARTITION",
        "DROP_PARTITION",
        "INSERT",
        "CREATE_FUNCTION",
        "DROP_FUNCTION",
        "ADD_PRIMARYKEY",
        "ADD_FOREIGNKEY",
        "ADD_UNIQUECONSTRAINT",
        "ADD_NOTNULLCONSTRAINT",
        "ADD_DEFAULTCONSTRAINT",
        "ADD_CHECKCONSTRAINT",
        "DROP_CONSTRAINT",
        "OPEN_TXN",
        "COMMIT_TXN",
        "ABORT_TXN",
    }
)


@dataclass(frozen=True, slots=True)
class EventContents:
    """The contents of the directory of one kind of event beside `_dumpmetadata`. `scope` is the scope in its
    `_metadata`, empty where there is no `_metadata`. `files`: there is a data directory. `payload`: `_dumpmetadata` has
    the message."""

    scope: str = ""
    files: bool = False
    payload: bool = True


CONTENTS: Mapping[str, EventContents] = {
    "EVENT_CREATE_DATABASE": EventContents("all"),
    "EVENT_CREATE_TABLE": EventContents("all", files=True, payload=False),
    "EVENT_ADD_PARTITION": EventContents("all", files=True, payload=False),
    "EVENT_INSERT": EventContents("all", files=True),
    "EVENT_ALTER_TABLE": EventContents("metadata"),
    "EVENT_ALTER_PARTITION": EventContents("metadata"),
    "EVENT_CREATE_FUNCTION": EventContents("all", payload=False),
}
NOTHING_BUT_PAYLOAD = EventContents()


def contents_of(kind: str) -> EventContents:
    return CONTENTS.get(kind, NOTHING_BUT_PAYLOAD)


def dumped_kind(event: Event, keys: Keys) -> str:
    """Return the name of the event's kind in a dump, such as `EVENT_ALTER_TABLE`. Raises `Undecodable`."""
    match keys.kind:
        case EventKind.RENAME_TABLE:
            return "EVENT_RENAME_TABLE"
        case EventKind.RENAME_PARTITION:
            return "EVENT_RENAME_PARTITION"
        case _ if event.event_type in ("ALTER_TABLE", "ALTER_PARTITION") and flag_at(fields(event), "isTruncateOp"):
            return event.event_type.replace("ALTER", "EVENT_TRUNCATE")
        case _ if event.event_type in SPELLED:
            return SPELLED[event.event_type]
        case _:
            return f"EVENT_{event.event_type}" if event.event_type in KNOWN else UNKNOWN
