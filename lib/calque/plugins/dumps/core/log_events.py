"""The events of a dump as the source's log had them.

A dump has the messages of most events. For an event whose objects stand in a `_metadata` beside it the dump has no
message: the message is made anew from the objects. A dump adds to each definition the id of the event that it was
dumped at; this module takes that parameter away again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import orjson

from calque.core.events.decode import Fields, Undecodable, parsed, thrift_object
from calque.core.events.encode import tjson
from calque.model.hive import Database, Function, Partition, Table
from calque.model.journal import Event
from calque.model.names import partition_name
from calque.plugins.dumps.core.dump_metadata import DumpMetadata
from calque.plugins.dumps.core.event_types import RENAME_DROP_TABLE, SPELLED, UNKNOWN
from calque.plugins.dumps.core.metadata import LAST_EVENT, LOADING

Thing = TypeVar("Thing", Table, Partition)
TYPES: Mapping[str, str] = {
    **{dumped: logged for logged, dumped in SPELLED.items() if dumped != "EVENT_ALTER_PARTITION"},
    "EVENT_RENAME_TABLE": "ALTER_TABLE",
    "EVENT_TRUNCATE_TABLE": "ALTER_TABLE",
    "EVENT_RENAME_PARTITION": "ALTER_PARTITION",
    "EVENT_TRUNCATE_PARTITION": "ALTER_PARTITION",
}
"""Kinds of events in a dump whose type in the log is not their name without `EVENT_`."""
CATALOG = "hive"
FORMAT = "json-0.2"
ALTER_PARTITION = "EVENT_ALTER_PARTITION"


@dataclass(frozen=True, slots=True)
class DumpedObjects:
    """The objects in the `_metadata` beside an event. Every field is empty where there is no such file."""

    table: Table | None = None
    partitions: Sequence[Partition] = ()
    database: Database | None = None
    function: Function | None = None


NO_OBJECTS = DumpedObjects()


def logged_event(metadata: DumpMetadata, objects: DumpedObjects, otherwise: int) -> Event | None:
    """Return the event as the log had it; `otherwise` is its time, in seconds since the epoch, where the dump does not
    say it. Return None for an event that did nothing to what is replicated. Raises `Undecodable`."""
    kind = metadata.kind
    if kind == UNKNOWN:
        if not is_of_partitions(metadata.payload or ""):
            return None
        kind = ALTER_PARTITION
    message = parsed(metadata.payload, "the payload") if metadata.payload is not None else message_of(kind, objects)
    event_type = TYPES.get(kind, kind.removeprefix("EVENT_"))
    if kind == ALTER_PARTITION and "partitionObjBeforeJson" not in message:
        event_type = "ALTER_PARTITIONS"
    if kind == RENAME_DROP_TABLE:
        event_type, message = "DROP_TABLE", dropped_before(message)
    time = message.get("timestamp")
    return Event(
        metadata.to_event,
        time if type(time) is int else otherwise,
        event_type,
        CATALOG,
        *names_in(message, objects),
        FORMAT,
        orjson.dumps(message).decode(),
    )


def is_of_partitions(payload: str) -> bool:
    """Tell whether `payload` is the message of a change of several partitions. Hive before 4.1 does not know such an
    event, and dumps it as `EVENT_UNKNOWN`."""
    try:
        return {"tableObjJson", "partitionListJson", "isTruncateOp"} <= parsed(payload, "the payload").keys()
    except Undecodable:
        return False


def message_of(kind: str, objects: DumpedObjects) -> Fields:
    """Return the message of an event for which the dump has only the objects. The message names no files: the dump
    lists them elsewhere. Raises `Undecodable` where the objects are missing."""
    table = objects.table
    match kind:
        case "EVENT_CREATE_TABLE" if table is not None:
            return {**of_table(table), "files": []}
        case "EVENT_ADD_PARTITION" if table is not None:
            return {
                **of_table(table),
                "partitions": [values_by_key(table, partition) for partition in objects.partitions],
                "partitionListJson": [tjson(partition) for partition in objects.partitions],
                "partitionFiles": [],
            }
        case "EVENT_CREATE_FUNCTION" if objects.function is not None:
            return {"db": objects.function.database, "functionObjJson": tjson(objects.function)}
        case "EVENT_CREATE_DATABASE" if objects.database is not None:
            return {"db": objects.database.name, "dbJson": tjson(objects.database)}
    raise Undecodable(f"{kind} has neither a payload nor its object")


def of_table(table: Table) -> dict[str, Any]:
    return {"db": table.database, "table": table.name, "tableType": table.type, "tableObjJson": tjson(table)}


def values_by_key(table: Table, partition: Partition) -> dict[str, str]:
    return {key.name: value for key, value in zip(table.partition_keys or (), partition.values, strict=True)}


def dropped_before(message: Fields) -> Fields:
    """Return the message of the drop of the table that a rename took out of scope, under the table's name before the
    rename. Raises `Undecodable`."""
    before = message.get("tableObjBeforeJson")
    if type(before) is not str:
        raise Undecodable("a rename has no table before")
    table = thrift_object(Table, before)
    return {**of_table(table), "timestamp": message.get("timestamp")}


def names_in(message: Fields, objects: DumpedObjects) -> tuple[str, str]:
    """Return the database and the table that the event is on, as far as the message says them. These are the event's
    own columns in the log."""
    database = first_text(message, "db", "dbName", "database") or (objects.table.database if objects.table else "")
    return database, first_text(message, "table", "tableName")


def first_text(message: Fields, *keys: str) -> str:
    return next((value for key in keys if type(value := message.get(key)) is str), "")


# Definitions without what dumps add


def logged_table(text: str) -> Table:
    """Return the table of a `_metadata` as the source had it. Raises `Undecodable`."""
    return without_dump_marks(thrift_object(Table, text))


def logged_partitions(texts: Iterable[str]) -> list[Partition]:
    return [without_dump_marks(thrift_object(Partition, text)) for text in texts]


def logged_database(text: str) -> Database:
    database = thrift_object(Database, text)
    return replace(database, parameters=without_marks(database.parameters))


def without_dump_marks(thing: Thing) -> Thing:
    return replace(thing, parameters=without_marks(thing.parameters))


CUSTOM = "hive.repl.is.custom.db."
MARKS = frozenset({LAST_EVENT, *LOADING})


def without_marks(parameters: Mapping[str, str] | None) -> Mapping[str, str]:
    return {key: value for key, value in (parameters or {}).items() if key not in MARKS and not key.startswith(CUSTOM)}


def name_of(table: Table, partition: Partition) -> str:
    """Return the name of the partition, such as `ds=1`. Raises `Undecodable`."""
    keys = [column.name for column in table.partition_keys or ()]
    if len(keys) != len(partition.values):
        raise Undecodable(f"a partition has {len(partition.values)} values for {len(keys)} keys")
    return partition_name(keys, partition.values)
