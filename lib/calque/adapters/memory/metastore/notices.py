"""Rows of the log as Hive's own listener writes them (format `json-0.2`).

Shapes were taken from recorded messages of 3.1.3, 4.1.0 and 4.2.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calque.adapters.memory.metastore.habits import ServerHabits
from calque.core.encode import tjson
from calque.model import facets
from calque.model.facets import (
    AnalyzedColumns,
    AnalyzedObject,
    Check,
    ColumnStatistics,
    Constraint,
    DefaultValue,
    ForeignKey,
    NotNull,
    PrimaryKey,
    UniqueKey,
)
from calque.model.hive import Database, Function, Partition, Table
from calque.model.journal import Event
from calque.model.names import EventId, TableName, partition_name

FORMAT = "json-0.2"
CATALOG = "hive"
CONSTRAINT_EVENTS: Mapping[type[Constraint], tuple[str, str]] = {
    PrimaryKey: ("ADD_PRIMARYKEY", "primaryKeyListJson"),
    ForeignKey: ("ADD_FOREIGNKEY", "foreignKeyListJson"),
    UniqueKey: ("ADD_UNIQUECONSTRAINT", "uniqueConstraintListJson"),
    NotNull: ("ADD_NOTNULLCONSTRAINT", "notNullConstraintListJson"),
    DefaultValue: ("ADD_DEFAULTCONSTRAINT", "defaultConstraintListJson"),
    Check: ("ADD_CHECKCONSTRAINT", "checkConstraintListJson"),
}
encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Notice:
    """An event before it has its id and time. `body` is the message without its common parts."""

    event_type: str
    database: str
    table: str
    body: Mapping[str, Any]


def logged(notice: Notice, event_id: EventId, now: int) -> Event:
    message = {"server": "", "servicePrincipal": "", **notice.body, "timestamp": now}
    return Event(
        event_id,
        now,
        notice.event_type,
        CATALOG,
        notice.database,
        notice.table,
        FORMAT,
        encoded(message),
    )


def database_created(database: Database) -> Notice:
    return Notice("CREATE_DATABASE", database.name, "", {"db": database.name, "dbJson": tjson(database)})


def database_altered(before: Database, after: Database) -> Notice:
    body = {"db": before.name, "dbObjBeforeJson": tjson(before), "dbObjAfterJson": tjson(after)}
    return Notice("ALTER_DATABASE", before.name, "", body)


def database_dropped(database: Database, habits: ServerHabits) -> Notice:
    body = {"db": database.name} | ({"dbJson": tjson(database)} if habits.bulk_events else {})
    return Notice("DROP_DATABASE", database.name, "", body)


def table_created(table: Table, files: Sequence[str]) -> Notice:
    return Notice("CREATE_TABLE", table.database, table.name, {**of(table), "files": encoded_files(files)})


def encoded_files(paths: Sequence[str]) -> list[str]:
    """Those that come without checksums lie where there are none."""
    return [path if "#" in path else f"{path}###" for path in paths]


def table_altered(before: Table, after: Table, habits: ServerHabits, *, truncates: bool = False) -> Notice:
    """The row is under the new name, `db` and `table` of the message are the old ones."""
    body = {
        "db": before.database,
        "table": before.name,
        "tableType": before.type,
        "tableObjBeforeJson": tjson(before),
        "tableObjAfterJson": tjson(after),
        **alteration(truncates, habits),
    }
    return Notice("ALTER_TABLE", after.database, after.name, body)


def table_dropped(table: Table) -> Notice:
    return Notice("DROP_TABLE", table.database, table.name, of(table))


def partitions_added(
    table: Table, partitions: Sequence[Partition], files: Sequence[Sequence[str]], habits: ServerHabits
) -> Notice:
    """`files` lie in the directories of the partitions."""
    lists = table.type == "MANAGED_TABLE" or habits.lists_external
    body = {
        **of(table),
        "partitions": [key_values(table, partition) for partition in partitions],
        "partitionListJson": [tjson(partition) for partition in partitions],
        "partitionFiles": [
            {"partitionName": partition_name(key_names(table), partition.values), "files": encoded_files(paths)}
            for partition, paths in zip(partitions, files, strict=True)
            if lists
        ],
    }
    return Notice("ADD_PARTITION", table.database, table.name, body)


def partition_altered(
    table: Table, before: Partition, after: Partition, habits: ServerHabits, *, truncates: bool = False
) -> Notice:
    """`keyValues` are those from before, also of a rename."""
    body = {
        **of(table),
        **alteration(truncates, habits),
        "keyValues": key_values(table, before),
        "partitionObjBeforeJson": tjson(before),
        "partitionObjAfterJson": tjson(after),
    }
    return Notice("ALTER_PARTITION", table.database, table.name, body)


def partitions_altered(
    table: Table, partitions: Sequence[Partition], habits: ServerHabits, *, truncates: bool = False
) -> Notice:
    body = {
        **of(table),
        **alteration(truncates, habits),
        "partitions": [key_values(table, partition) for partition in partitions],
        "partitionListJson": [tjson(partition) for partition in partitions],
    }
    return Notice("ALTER_PARTITIONS", table.database, table.name, body)


def partitions_dropped(table: Table, partitions: Sequence[Partition]) -> Notice:
    body = {**of(table), "partitions": [key_values(table, partition) for partition in partitions]}
    return Notice("DROP_PARTITION", table.database, table.name, body)


def inserted(table: Table, partition: Partition | None, files: Sequence[str], replace: bool) -> Notice:
    """`files`: path, checksum, change-manager root and encoded subdirectory, joined by `#`."""
    body = {
        **of(table),
        "ptnObjJson": tjson(partition) if partition else None,
        "replace": str(replace).lower(),
        "files": list(files),
    }
    return Notice("INSERT", table.database, table.name, body)


def constraints_added(table: TableName, constraints: Sequence[Constraint]) -> Notice:
    """The row names the parent of a foreign key."""
    first = constraints[0]
    event_type, holder = CONSTRAINT_EVENTS[type(first)]
    about = first.parent if isinstance(first, ForeignKey) else table
    return Notice(event_type, *about, {holder: [tjson(constraint) for constraint in constraints]})


def constraint_dropped(table: TableName, constraint: str) -> Notice:
    body = {"dbName": table.database, "tableName": table.table, "constraintName": constraint}
    return Notice("DROP_CONSTRAINT", *table, body)


def statistics_updated(table: Table, partition: Partition | None, columns: Sequence[ColumnStatistics]) -> Notice:
    of_one = partition_name(key_names(table), partition.values) if partition else None
    analyzed = AnalyzedColumns(
        AnalyzedObject(partition is None, table.database, table.name, of_one), tuple(columns), facets.ENGINE
    )
    body = {
        "database": table.database,
        "colStatsJson": tjson(analyzed),
        "parameters": dict((partition or table).parameters or {}),
        "tableObjJson": tjson(table),
    }
    if partition is None:
        return Notice("UPDATE_TBL_COL_STAT_EVENT", table.database, table.name, body)
    body |= {"partVals": list(partition.values)}
    return Notice("UPDATE_PART_COL_STAT_EVENT", table.database, table.name, body)


def statistics_deleted(table: Table, partition: Partition | None, column: str) -> Notice:
    body: dict[str, Any] = {"database": table.database, "colName": column}
    if partition is None:
        return Notice("DELETE_TBL_COL_STAT_EVENT", table.database, table.name, body)
    body |= {"partName": partition_name(key_names(table), partition.values), "partValues": list(partition.values)}
    return Notice("DELETE_PART_COL_STAT_EVENT", table.database, table.name, body)


def function_created(function: Function) -> Notice:
    body = {"db": function.database, "functionObjJson": tjson(function)}
    return Notice("CREATE_FUNCTION", function.database, "", body)


def function_dropped(function: Function) -> Notice:
    return Notice("DROP_FUNCTION", function.database, "", {"db": function.database, "functionName": function.name})


def of(table: Table) -> dict[str, Any]:
    return {"db": table.database, "table": table.name, "tableType": table.type, "tableObjJson": tjson(table)}


def alteration(truncates: bool, habits: ServerHabits) -> dict[str, Any]:
    return {"isTruncateOp": str(truncates).lower()} | ({"writeId": -1} if habits.write_ids else {})


def key_names(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.partition_keys or ())


def key_values(table: Table, partition: Partition) -> dict[str, str]:
    return dict(zip(key_names(table), partition.values, strict=True))
