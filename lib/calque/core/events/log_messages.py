"""Rows of a metastore's log in the form in which Hive's own listener writes them (format `json-0.2`).

Shapes were taken from recorded messages of 3.1.3, 4.1.0 and 4.2.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calque.core.events.encode import tjson
from calque.model.hive import Database, Partition, Table
from calque.model.journal import Event
from calque.model.names import EventId, partition_name

FORMAT = "json-0.2"
CATALOG = "hive"
encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class LogMessage:
    """An event before it has its id and time. `body` is the message without the parts that all messages have."""

    event_type: str
    database: str
    table: str
    body: Mapping[str, Any]


def logged(message: LogMessage, event_id: EventId, now: int) -> Event:
    """Return the row of the log for the message, with its id and the time `now`, in seconds since the epoch."""
    text = encoded({"server": "", "servicePrincipal": "", **message.body, "timestamp": now})
    return Event(
        event_id,
        now,
        message.event_type,
        CATALOG,
        message.database,
        message.table,
        FORMAT,
        text,
    )


def database_created(database: Database) -> LogMessage:
    return LogMessage("CREATE_DATABASE", database.name, "", {"db": database.name, "dbJson": tjson(database)})


def database_altered(before: Database, after: Database) -> LogMessage:
    body = {"db": before.name, "dbObjBeforeJson": tjson(before), "dbObjAfterJson": tjson(after)}
    return LogMessage("ALTER_DATABASE", before.name, "", body)


def table_created(table: Table, files: Sequence[str] | None = None) -> LogMessage:
    """Return the message of a table's creation. `files` are the paths of its files, None for files that were not
    listed."""
    listed = {} if files is None else {"files": encoded_files(files)}
    return LogMessage("CREATE_TABLE", table.database, table.name, {**of(table), **listed})


def encoded_files(paths: Sequence[str]) -> list[str]:
    """Return the entries of a message's file list, `path#checksum#root#directory`. A text in `paths` with a `#` is such
    an entry and stays as it is; any other is a plain path, which gets three empty fields, because most storages have no
    checksums."""
    return [path if "#" in path else f"{path}###" for path in paths]


def table_altered(before: Table, after: Table, write_ids: bool = False, *, truncates: bool = False) -> LogMessage:
    """Return the message of a table's alteration. The row is under the new name; `db` and `table` of the message are
    the old ones."""
    body = {
        "db": before.database,
        "table": before.name,
        "tableType": before.type,
        "tableObjBeforeJson": tjson(before),
        "tableObjAfterJson": tjson(after),
        **alteration(truncates, write_ids),
    }
    return LogMessage("ALTER_TABLE", after.database, after.name, body)


def table_dropped(table: Table) -> LogMessage:
    return LogMessage("DROP_TABLE", table.database, table.name, of(table))


def partitions_added(
    table: Table, partitions: Sequence[Partition], files: Sequence[Sequence[str]] | None = None
) -> LogMessage:
    """Return the message of added partitions. `files` has the paths of each partition's files, in the order of
    `partitions`; None for files that were not listed."""
    body = {
        **of(table),
        "partitions": [key_values(table, partition) for partition in partitions],
        "partitionListJson": [tjson(partition) for partition in partitions],
        "partitionFiles": [
            {"partitionName": partition_name(key_names(table), partition.values), "files": encoded_files(paths)}
            for partition, paths in (() if files is None else zip(partitions, files, strict=True))
        ],
    }
    return LogMessage("ADD_PARTITION", table.database, table.name, body)


def partition_altered(
    table: Table, before: Partition, after: Partition, write_ids: bool = False, *, truncates: bool = False
) -> LogMessage:
    """Return the message of a partition's alteration. `keyValues` are those from before, for a rename too."""
    body = {
        **of(table),
        **alteration(truncates, write_ids),
        "keyValues": key_values(table, before),
        "partitionObjBeforeJson": tjson(before),
        "partitionObjAfterJson": tjson(after),
    }
    return LogMessage("ALTER_PARTITION", table.database, table.name, body)


def partitions_altered(
    table: Table, partitions: Sequence[Partition], write_ids: bool = False, *, truncates: bool = False
) -> LogMessage:
    body = {
        **of(table),
        **alteration(truncates, write_ids),
        "partitions": [key_values(table, partition) for partition in partitions],
        "partitionListJson": [tjson(partition) for partition in partitions],
    }
    return LogMessage("ALTER_PARTITIONS", table.database, table.name, body)


def partitions_dropped(table: Table, partitions: Sequence[Partition]) -> LogMessage:
    body = {**of(table), "partitions": [key_values(table, partition) for partition in partitions]}
    return LogMessage("DROP_PARTITION", table.database, table.name, body)


def of(table: Table) -> dict[str, Any]:
    return {"db": table.database, "table": table.name, "tableType": table.type, "tableObjJson": tjson(table)}


def alteration(truncates: bool, write_ids: bool) -> dict[str, Any]:
    return {"isTruncateOp": str(truncates).lower()} | ({"writeId": -1} if write_ids else {})


def key_names(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.partition_keys or ())


def key_values(table: Table, partition: Partition) -> dict[str, str]:
    return dict(zip(key_names(table), partition.values, strict=True))
