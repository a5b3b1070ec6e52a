"""What a metastore makes of the objects that clients hand it: defaults filled in, names lowered, places chosen.

Observed on 3.1.3 and 4.2.0; `tests/contract` holds both beside this.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from calque.core.events.log_messages import CATALOG, key_names
from calque.model.hive import BY_PARAMETER, Column, Database, Function, Partition, SerDe, Skew, Storage, Table, type_of
from calque.model.names import partition_name

T = TypeVar("T", Table, Partition)

DDL_TIME = "transient_lastDdlTime"
ACCURATE = "COLUMN_STATS_ACCURATE"
USER = 1


def stored_database(database: Database, location: str) -> Database:
    return replace(
        database,
        name=database.name.lower(),
        location=location,
        parameters=dict(database.parameters or {}),
        owner_type=database.owner_type or USER,
        catalog=CATALOG,
    )


def stored_table(table: Table) -> Table:
    """Whether a table is external is said by its parameter alone; its type follows."""
    parameters = dict(table.parameters or {})
    kind = table.type or "MANAGED_TABLE"
    if kind in BY_PARAMETER:
        kind = type_of(parameters)
    return replace(
        table,
        name=table.name.lower(),
        database=table.database.lower(),
        last_access_time=table.last_access_time or 0,
        retention=table.retention or 0,
        storage=stored_storage(table.storage),
        partition_keys=lowered(table.partition_keys),
        parameters=parameters,
        type=kind,
        temporary=None,
        rewrite_enabled=bool(table.rewrite_enabled),
        catalog=CATALOG,
        owner_type=table.owner_type or USER,
    )


def stored_partition(partition: Partition, table: Table) -> Partition:
    return replace(
        partition,
        values=tuple(partition.values),
        database=table.database,
        table=table.name,
        create_time=partition.create_time or 0,
        last_access_time=partition.last_access_time or 0,
        storage=stored_storage(partition.storage),
        parameters=dict(partition.parameters or {}),
        catalog=CATALOG,
    )


def stored_storage(storage: Storage | None) -> Storage:
    storage = storage or Storage()
    serde = storage.serde or SerDe()
    skew = storage.skew or Skew()
    return replace(
        storage,
        columns=lowered(storage.columns),
        compressed=bool(storage.compressed),
        buckets=storage.buckets or 0,
        serde=replace(serde, parameters=dict(serde.parameters or {})),
        bucket_columns=tuple(storage.bucket_columns or ()),
        sort_columns=tuple(replace(one, column=one.column.lower()) for one in storage.sort_columns or ()),
        parameters=dict(storage.parameters or {}),
        skew=Skew(tuple(skew.columns or ()), tuple(skew.values or ()), dict(skew.locations or {})),
        sub_directories=bool(storage.sub_directories),
    )


def stored_function(function: Function, now: int) -> Function:
    return replace(
        function,
        name=function.name.lower(),
        database=function.database.lower(),
        owner_type=function.owner_type or USER,
        create_time=now,
        resources=tuple(function.resources or ()),
        catalog=CATALOG,
    )


def lowered(columns: tuple[Column, ...] | None) -> tuple[Column, ...]:
    return tuple(replace(column, name=column.name.lower()) for column in columns or ())


def dated(entity: T, now: int) -> T:
    """With the time of the change, unless the client said one."""
    parameters = dict(entity.parameters or {})
    parameters.setdefault(DDL_TIME, str(now))
    return replace(entity, parameters=parameters)


def analyzed(entity: T, columns: Iterable[str]) -> T:
    """With the columns among those whose statistics are accurate."""
    parameters = dict(entity.parameters or {})
    accurate = json.loads(parameters.get(ACCURATE, "{}"))
    of_columns = accurate.get("COLUMN_STATS", {}) | dict.fromkeys(columns, "true")
    accurate["COLUMN_STATS"] = dict(sorted(of_columns.items()))
    parameters[ACCURATE] = json.dumps(accurate, separators=(",", ":"))
    return replace(entity, parameters=parameters)


def placed(entity: T, location: str | None) -> T:
    return replace(entity, storage=replace(entity.storage or Storage(), location=location))


def partition_place(table: Table, partition: Partition) -> str:
    """The natural directory of a partition."""
    table_place = table.storage.location if table.storage else ""
    return f"{table_place}/{partition_name(key_names(table), partition.values)}"
