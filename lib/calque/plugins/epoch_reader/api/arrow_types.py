"""The translation of Hive's types into Arrow's."""

from __future__ import annotations

import pyarrow as pa

from calque.core.formats.hive_types import NESTED, split
from calque.core.formats.partition_values import PARAMETRIC
from calque.errors import Refused

PLAIN = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "double precision": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("ns"),
}


def arrow_type(column: str, kind: str) -> pa.DataType:
    """Return the Arrow type of the Hive type `kind`. Raises `Refused`, which names `column`, for a type that Arrow has
    no match for."""
    text = kind.strip().lower()
    if text in PLAIN:
        return PLAIN[text]
    if match := PARAMETRIC.fullmatch(text):
        name, precision, scale = match.groups()
        if name in ("decimal", "numeric"):
            return pa.decimal128(int(precision or 10), int(scale or 0))
        return pa.string()
    if nested := NESTED.fullmatch(kind.strip()):
        name, parts = nested[1].lower(), split(nested[2])
        if name == "array" and len(parts) == 1:
            return pa.list_(arrow_type(column, parts[0]))
        if name == "map" and len(parts) == 2:
            return pa.map_(arrow_type(column, parts[0]), arrow_type(column, parts[1]))
        if name == "struct":
            pairs = [part.partition(":") for part in parts]
            return pa.struct([(field.strip(), arrow_type(column, inside)) for field, _, inside in pairs])
    raise Refused(f"{column} can't be read with Arrow", f"It has the type {kind}", "Read the table with Spark")
