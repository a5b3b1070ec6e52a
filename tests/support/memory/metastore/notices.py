"""Messages of facets, functions, inserts and dropped databases; those of definitions are in
`core.events.log_messages`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calque.core.events.encode import tjson
from calque.core.events.log_messages import LogMessage, key_names, of
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
from calque.model.names import TableName, partition_name
from support.memory.metastore.habits import ServerHabits

CONSTRAINT_EVENTS: Mapping[type[Constraint], tuple[str, str]] = {
    PrimaryKey: ("ADD_PRIMARYKEY", "primaryKeyListJson"),
    ForeignKey: ("ADD_FOREIGNKEY", "foreignKeyListJson"),
    UniqueKey: ("ADD_UNIQUECONSTRAINT", "uniqueConstraintListJson"),
    NotNull: ("ADD_NOTNULLCONSTRAINT", "notNullConstraintListJson"),
    DefaultValue: ("ADD_DEFAULTCONSTRAINT", "defaultConstraintListJson"),
    Check: ("ADD_CHECKCONSTRAINT", "checkConstraintListJson"),
}


def database_dropped(database: Database, habits: ServerHabits) -> LogMessage:
    body = {"db": database.name} | ({"dbJson": tjson(database)} if habits.bulk_events else {})
    return LogMessage("DROP_DATABASE", database.name, "", body)


def inserted(table: Table, partition: Partition | None, files: Sequence[str], replace: bool) -> LogMessage:
    """`files`: path, checksum, change-manager root and encoded subdirectory, joined by `#`."""
    body = {
        **of(table),
        "ptnObjJson": tjson(partition) if partition else None,
        "replace": str(replace).lower(),
        "files": list(files),
    }
    return LogMessage("INSERT", table.database, table.name, body)


def constraints_added(table: TableName, constraints: Sequence[Constraint]) -> LogMessage:
    """The row names the parent of a foreign key."""
    first = constraints[0]
    event_type, holder = CONSTRAINT_EVENTS[type(first)]
    about = first.parent if isinstance(first, ForeignKey) else table
    return LogMessage(event_type, *about, {holder: [tjson(constraint) for constraint in constraints]})


def constraint_dropped(table: TableName, constraint: str) -> LogMessage:
    body = {"dbName": table.database, "tableName": table.table, "constraintName": constraint}
    return LogMessage("DROP_CONSTRAINT", *table, body)


def statistics_updated(table: Table, partition: Partition | None, columns: Sequence[ColumnStatistics]) -> LogMessage:
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
        return LogMessage("UPDATE_TBL_COL_STAT_EVENT", table.database, table.name, body)
    body |= {"partVals": list(partition.values)}
    return LogMessage("UPDATE_PART_COL_STAT_EVENT", table.database, table.name, body)


def statistics_deleted(table: Table, partition: Partition | None, column: str) -> LogMessage:
    body: dict[str, Any] = {"database": table.database, "colName": column}
    if partition is None:
        return LogMessage("DELETE_TBL_COL_STAT_EVENT", table.database, table.name, body)
    body |= {"partName": partition_name(key_names(table), partition.values), "partValues": list(partition.values)}
    return LogMessage("DELETE_PART_COL_STAT_EVENT", table.database, table.name, body)


def function_created(function: Function) -> LogMessage:
    body = {"db": function.database, "functionObjJson": tjson(function)}
    return LogMessage("CREATE_FUNCTION", function.database, "", body)


def function_dropped(function: Function) -> LogMessage:
    return LogMessage("DROP_FUNCTION", function.database, "", {"db": function.database, "functionName": function.name})
