"""The reasons why readers of a Delta table would show other rows of a Parquet file than Hive does: `why_misread`.

Readers of Delta go by the table's schema. Where a file has another type, some readers convert its values, some fail,
and some make other values of them. What Spark with Delta and delta-rs read equally was tried with both: see
`reads_equally`. Types of Parquet: LogicalTypes.md of its format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow.parquet as pq

from calque.core.formats.hive_types import Array, Decimal, HiveType, Map, Primitive, Struct, parse_type, type_text
from calque.core.formats.partition_values import WHOLE
from calque.model.hive import Column
from calque.plugins.delta_replicas.core.parquet_columns import (
    Leaf,
    ListNode,
    MapNode,
    Node,
    StructNode,
    columns_of,
    metadata_of,
)
from calque.plugins.delta_replicas.core.parquet_ranges import raw_bounds

INT_DIGITS = 10
"""The decimal digits of the largest INT32."""


def why_misread(tail: bytes, columns: Sequence[Column]) -> str:
    """Say why the rows of the file that ends with `tail` would be other ones in a Delta table with these
    `data_columns`; empty where they are the same. Columns that only one of the two has are no reason. Raises `Refused`
    for a file that is not Parquet."""
    metadata = metadata_of(tail)
    return next(reasons(metadata, columns), "")


def reasons(metadata: pq.FileMetaData, columns: Sequence[Column]) -> Iterator[str]:
    file_columns = columns_of(metadata)
    counts = Counter(name.lower() for name, _ in file_columns)
    nodes = {name.lower(): (name, node) for name, node in file_columns}
    for column in columns:
        name, node = nodes.get(column.name.lower(), ("", None))
        if node is None:
            continue
        if counts[name.lower()] > 1:
            yield f"the file has several columns {column.name} whose names differ by case alone"
        elif name != column.name:
            yield f"the file has the column {name}, the table {column.name}: not all readers find it"
        else:
            yield from differences(column.name, parse_type(column.type), node, metadata)


def differences(
    path: str, kind: HiveType, node: Node, metadata: pq.FileMetaData, in_map: bool = False
) -> Iterator[str]:
    match kind, node:
        case Array(element), ListNode(file_element):
            yield from differences(f"{path}.element", element, file_element, metadata, in_map)
        case Map(key, value), MapNode(file_key, file_value):
            yield from differences(f"{path}.key", key, file_key, metadata, True)
            yield from differences(f"{path}.value", value, file_value, metadata, True)
        case Struct(fields), StructNode(file_fields):
            yield from field_differences(path, fields, dict(file_fields), metadata, in_map)
        case _, Leaf():
            if not reads_equally(node, kind, metadata):
                yield f"the file's column {path} is {node.text()}, the table's {type_text(kind)}"
        case _:
            yield f"the file's column {path} is nested in another way than the table's {type_text(kind)}"


def field_differences(
    path: str,
    fields: Sequence[tuple[str, HiveType]],
    nodes: dict[str, Node],
    metadata: pq.FileMetaData,
    in_map: bool,
) -> Iterator[str]:
    """Yield the reasons why readers of a Delta table would show other values of the struct at `path` than Hive does.
    `nodes` are the file's columns below it, by name. A reason of the struct itself is that delta-rs makes no struct
    where the file has none of its fields, and, where the struct lies in a map (`in_map`), none where the file lacks one
    of them."""
    by_case = Counter(name.lower() for name in nodes)
    common = [name for name, _ in fields if name in nodes]
    if not common or (in_map and len(common) < len(fields)):
        yield f"the file's column {path} has other fields than the table's"
    for name, kind in fields:
        if by_case[name.lower()] > (name in nodes):
            yield f"the file's column {path} has fields that differ from {name} by case alone"
        elif name in nodes:
            yield from differences(f"{path}.{name}", kind, nodes[name], metadata, in_map)


def reads_equally(leaf: Leaf, kind: HiveType, metadata: pq.FileMetaData) -> bool:
    """Tell whether Spark with Delta and delta-rs read the same values of the type from such a column.

    They do not for: narrower types, except whole numbers of 32 bits that are all in the type's range (Spark cuts bits
    off, delta-rs fails); unsigned numbers; INT64 as DOUBLE or DECIMAL, timestamps of nanoseconds, FLOAT16, UUID and
    columns without a type (Spark fails). Bytes without annotation are a STRING's, as Impala and old writers have them.
    """
    match kind:
        case Primitive("boolean"):
            return is_plain(leaf, "BOOLEAN")
        case Primitive("tinyint" | "smallint" | "int" as name):
            bits = signed_bits(leaf)
            return bits <= WHOLE[name] or (bits == 32 and in_range(leaf, WHOLE[name], metadata))
        case Primitive("bigint"):
            return signed_bits(leaf) <= 64
        case Primitive("float"):
            return is_plain(leaf, "FLOAT")
        case Primitive("double"):
            return is_plain(leaf, "FLOAT", "DOUBLE") or signed_bits(leaf) <= 32
        case Primitive("string"):
            return leaf.physical == "BYTE_ARRAY" and leaf.logical in ("STRING", "NONE")
        case Primitive("binary"):
            is_text = leaf.physical == "BYTE_ARRAY" and leaf.logical == "STRING"
            return is_text or is_plain(leaf, "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
        case Primitive("date"):
            return leaf.logical == "DATE"
        case Primitive("timestamp"):
            unit = leaf.annotation.get("timeUnit")
            return is_plain(leaf, "INT96") or (leaf.logical == "TIMESTAMP" and unit in ("milliseconds", "microseconds"))
        case Decimal(precision, scale):
            if leaf.logical != "DECIMAL":
                return signed_bits(leaf) <= 32 and precision - scale >= INT_DIGITS
            file_precision, file_scale = leaf.annotation["precision"], leaf.annotation["scale"]
            return bool(file_scale <= scale and file_precision - file_scale <= precision - scale)
    return False


def is_plain(leaf: Leaf, *physical: str) -> bool:
    return leaf.logical == "NONE" and leaf.physical in physical


def signed_bits(leaf: Leaf) -> int:
    """Return the bits of a signed whole number; for any other leaf more than a type has."""
    if is_plain(leaf, "INT32", "INT64"):
        return 32 if leaf.physical == "INT32" else 64
    return int(leaf.annotation["bitWidth"]) if leaf.logical == "INT" and leaf.annotation["isSigned"] else 1 << 10


def in_range(leaf: Leaf, bits: int, metadata: pq.FileMetaData) -> bool:
    """Tell whether the footer proves that all values fit into so many bits."""
    bounds = raw_bounds(metadata, leaf)
    return bounds is not None and all(-(1 << bits - 1) <= low and high < 1 << bits - 1 for low, high in bounds)
