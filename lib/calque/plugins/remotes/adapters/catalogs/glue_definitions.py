"""The conversion of Glue's databases, tables and partitions into Hive's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calque.model.hive import Column, Database, Partition, SerDe, Skew, SortColumn, Storage, Table

Given = Mapping[str, Any]


def database_of(given: Given) -> Database:
    return Database(
        given["Name"].lower(),
        given.get("Description"),
        given.get("LocationUri") or None,
        dict(given.get("Parameters") or {}),
    )


def table_of(given: Given, database: str) -> Table:
    """Return Glue's table as Hive's. A table without a type becomes an external one, because Glue owns no files."""
    kind = given.get("TableType") or "EXTERNAL_TABLE"
    parameters = dict(given.get("Parameters") or {})
    if kind == "EXTERNAL_TABLE":
        parameters = {**parameters, "EXTERNAL": "TRUE"}
    return Table(
        given["Name"].lower(),
        database,
        owner=given.get("Owner"),
        create_time=int(given["CreateTime"].timestamp()) if given.get("CreateTime") else None,
        retention=given.get("Retention"),
        storage=storage_of(given.get("StorageDescriptor") or {}),
        partition_keys=columns_of(given.get("PartitionKeys")),
        parameters=parameters,
        view_original_text=given.get("ViewOriginalText"),
        view_expanded_text=given.get("ViewExpandedText"),
        type=kind,
    )


def partition_of(given: Given, table: Table) -> Partition:
    return Partition(
        tuple(given["Values"]),
        table.database,
        table.name,
        create_time=int(given["CreationTime"].timestamp()) if given.get("CreationTime") else None,
        storage=storage_of(given.get("StorageDescriptor") or {}),
        parameters=dict(given.get("Parameters") or {}),
    )


def storage_of(given: Given) -> Storage:
    serde = given.get("SerdeInfo") or {}
    return Storage(
        columns_of(given.get("Columns")),
        given.get("Location") or None,
        given.get("InputFormat"),
        given.get("OutputFormat"),
        given.get("Compressed"),
        given.get("NumberOfBuckets"),
        SerDe(serde.get("Name"), serde.get("SerializationLibrary"), dict(serde.get("Parameters") or {})),
        tuple(given.get("BucketColumns") or ()),
        tuple(SortColumn(one["Column"].lower(), one["SortOrder"]) for one in given.get("SortColumns") or ()),
        dict(given.get("Parameters") or {}),
        skew_of(given.get("SkewedInfo")),
        given.get("StoredAsSubDirectories"),
    )


def columns_of(given: Sequence[Given] | None) -> tuple[Column, ...]:
    return tuple(Column(one["Name"].lower(), one.get("Type", "string"), one.get("Comment")) for one in given or ())


def skew_of(given: Given | None) -> Skew | None:
    """Return the skewed columns without their values, because Glue writes the values in a form of its own; None where
    no column is skewed."""
    return Skew(tuple(given["SkewedColumnNames"]), (), {}) if given and given.get("SkewedColumnNames") else None
