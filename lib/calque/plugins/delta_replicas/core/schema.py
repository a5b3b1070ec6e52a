"""The columns and partitions of a Hive table in the form of a Delta log: `schemaString`, `partitionColumns`,
`partitionValues`.

A column's name is its physical name, because there is no column mapping. Hive's names are lower-case, Parquet files of
Spark have others, and not all Delta readers find a file's column by a name in another case. So names come from the
schema that Spark keeps in the table's parameters, where it is the schema of the table.

Sources: the Delta transaction log protocol, "Schema Serialization Format" and "Partition Value Serialization"; Spark's
`HiveExternalCatalog` and `CatalogTable.readLargeTableProp` for its parameters; Hive's `ObjectInspectorConverters` for
what a partition value is as a value of its key's type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Context
from decimal import Decimal as Number
from typing import Any

from calque.core.formats.bounded import parse_json
from calque.core.formats.hive_types import (
    Array,
    Decimal,
    HiveType,
    Map,
    Other,
    Primitive,
    Struct,
    parse_type,
    same_but_case,
    type_text,
)
from calque.core.formats.partition_values import FRACTION, WHOLE, converter
from calque.errors import Refused
from calque.model.hive import Column, Table
from calque.model.names import DEFAULT_PARTITION

DELTA_NAMES = {
    "boolean": "boolean",
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
}
"""Hive's primitive types, and Delta's names for them."""
HIVE_NAMES = {delta: hive for hive, delta in DELTA_NAMES.items()}
SPARK_SCHEMA = "spark.sql.sources.schema"
"""The parameter with Spark's schema of a table, partition keys last; a long one lies in `.numParts` and `.part.N`."""
CUT = re.compile(r"([+-]?\d+)\.\d*", re.ASCII)
MICROSECONDS = re.compile(r"(.*\.\d{6})\d+")


def schema_of(table: Table) -> str:
    """Return the `schemaString` of a table that `fit.why_plain` has nothing against."""
    return schema_text([*data_columns(table), *key_columns(table)])


def partition_columns(table: Table) -> tuple[str, ...]:
    """Return the names of the partition keys as `schema_of` has them."""
    return tuple(column.name for column in key_columns(table))


def data_columns(table: Table) -> tuple[Column, ...]:
    """Return the columns that lie in the table's files, by the names that `schema_of` has, those of struct fields
    too."""
    return named(table)[: len(own_columns(table))]


def key_columns(table: Table) -> tuple[Column, ...]:
    return named(table)[len(own_columns(table)) :]


def schema_text(columns: Sequence[Column]) -> str:
    """Return a Delta schema of these columns, with their comments; each may be null. Raises `Refused` for types that
    Delta does not have."""
    fields = [
        field(column.name, delta_type(column.name, parse_type(column.type)), column.comment) for column in columns
    ]
    return json.dumps({"type": "struct", "fields": fields}, ensure_ascii=False, separators=(",", ":"))


def partition_values(table: Table, values: Sequence[str]) -> dict[str, str | None]:
    """Return a partition's values as Delta writes them, by `partition_columns`. `values` are the metastore's, not
    escaped. The default partition, and a text that is no value of its key's type, become None, because Hive reads both
    as NULL."""
    return {
        column.name: partition_value(parse_type(column.type), value)
        for column, value in zip(key_columns(table), values, strict=True)
    }


def partition_value(kind: HiveType, value: str) -> str | None:
    if value in ("", DEFAULT_PARTITION):
        return None
    match kind:
        case Decimal(precision, scale):
            return rounded(value, precision, scale)
        case Primitive(name) if name in WHOLE:
            # `1.5` of an INT is 1, for Hive (`LazyInteger.parse`) and for Spark.
            cut = CUT.fullmatch(value)
            value = cut[1] if cut is not None else value
    convert = converter(type_text(kind))
    converted = convert(value) if convert is not None else value
    if kind == Primitive("timestamp") and converted is not None:
        return MICROSECONDS.sub(r"\1", converted)
    return converted


def rounded(value: str, precision: int, scale: int) -> str | None:
    """Round a number with more digits than the type, as Hive (`HiveDecimalUtils.enforcePrecisionScale`) and Spark do.
    Return None where the text is no number, or one that the type can't hold."""
    if not FRACTION.fullmatch(value):
        return None
    number = Number(value)
    if number and number.adjusted() >= precision - scale:
        return None
    number = number.quantize(Number(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=200))
    return format(number, "f") if number.adjusted() < precision - scale or not number else None


def field(name: str, kind: str | dict[str, Any], comment: str | None = None) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {"comment": comment} if comment else {}}


def delta_type(column: str, kind: HiveType) -> str | dict[str, Any]:
    match kind:
        case Primitive(name):
            return DELTA_NAMES[name]
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case Array(element):
            return {"type": "array", "elementType": delta_type(column, element), "containsNull": True}
        case Map(key, value):
            key_type, value_type = delta_type(column, key), delta_type(column, value)
            return {"type": "map", "keyType": key_type, "valueType": value_type, "valueContainsNull": True}
        case Struct(fields):
            return {"type": "struct", "fields": [field(name, delta_type(column, part)) for name, part in fields]}
        case Other(text):
            raise Refused(f"{column} can't be a column of a Delta table", f"It has the type {text}")


def named(table: Table) -> tuple[Column, ...]:
    """Return all columns of the table, keys last, with Spark's names where Spark's schema is the table's."""
    columns = (*own_columns(table), *(table.partition_keys or ()))
    spark_columns = spark_schema(table.parameters or {})
    if len(spark_columns) != len(columns) or not all(
        name.lower() == column.name.lower() and same_but_case(kind, parse_type(column.type))
        for (name, kind), column in zip(spark_columns, columns, strict=True)
    ):
        return columns
    return tuple(
        Column(name, type_text(kind), column.comment)
        for (name, kind), column in zip(spark_columns, columns, strict=True)
    )


def own_columns(table: Table) -> tuple[Column, ...]:
    return (table.storage.columns if table.storage else None) or ()


def spark_schema(parameters: Mapping[str, str]) -> tuple[tuple[str, HiveType], ...]:
    """Return the names and types of Spark's schema; empty where there is none, or none that can be read."""
    text = parameters.get(SPARK_SCHEMA)
    if text is None:
        count = parameters.get(f"{SPARK_SCHEMA}.numParts", "0")
        parts = range(int(count)) if count.isdigit() and len(count) < 5 else ()
        text = "".join(parameters.get(f"{SPARK_SCHEMA}.part.{number}", "") for number in parts)
    try:
        schema = spark_type(parse_json(text))
    except (ValueError, KeyError, TypeError):
        return ()
    return schema.fields if isinstance(schema, Struct) else ()


def spark_type(kind: Any) -> HiveType:
    """Return the type that Spark's JSON means. Raises KeyError or TypeError where it means none."""
    match kind:
        case str():
            return Primitive(HIVE_NAMES[kind]) if kind in HIVE_NAMES else parse_type(kind)
        case {"type": "array", "elementType": element}:
            return Array(spark_type(element))
        case {"type": "map", "keyType": key, "valueType": value}:
            return Map(spark_type(key), spark_type(value))
        case {"type": "struct", "fields": fields}:
            return Struct(tuple((one["name"], spark_type(one["type"])) for one in fields))
    raise TypeError(f"No type of Spark: {kind}")
