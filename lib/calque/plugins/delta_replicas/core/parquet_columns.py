"""The columns of a Parquet file as a tree, from its footer alone.

`tail` is everywhere the end of a file, with at least the bytes that `footer_length` says. Format: parquet.thrift and
the file format's description of footers and nested types.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from calque.errors import Refused

MAGIC, ENCRYPTED = b"PAR1", b"PARE"
TRAILER = 8
"""Bytes behind the footer: its length and the magic."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column with values, in the tree of a file's columns. `number` is its place in every row group."""

    number: int
    physical: str
    logical: str
    """The annotation: `NONE`, `INT`, `STRING`, `DECIMAL`, `DATE`, `TIMESTAMP` and others."""
    annotation: Mapping[str, Any] = field(hash=False)
    """The details of the annotation: `bitWidth`, `isSigned`, `precision`, `scale`, `timeUnit`, `isAdjustedToUTC`."""
    is_required: bool

    def text(self) -> str:
        """Return the column's type as a text for people."""
        match self.logical:
            case "NONE":
                return self.physical
            case "INT":
                return (
                    f"{self.physical} ({'' if self.annotation['isSigned'] else 'U'}INT_{self.annotation['bitWidth']})"
                )
            case "DECIMAL":
                return f"{self.physical} (DECIMAL {self.annotation['precision']},{self.annotation['scale']})"
            case "TIMESTAMP":
                return f"{self.physical} (TIMESTAMP in {self.annotation['timeUnit']})"
        return f"{self.physical} ({self.logical})"


@dataclass(frozen=True, slots=True)
class StructNode:
    fields: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class ListNode:
    element: Node


@dataclass(frozen=True, slots=True)
class MapNode:
    key: Node
    value: Node


Node = Leaf | StructNode | ListNode | MapNode


def footer_length(tail: bytes) -> int:
    """Return the bytes at the end of the file that are its footer, the trailer included. `tail` has at least the last 8
    bytes. Raises `Refused` for a file that is not Parquet, or has an encrypted footer."""
    magic = tail[-len(MAGIC) :]
    if magic == ENCRYPTED:
        raise Refused("A file's footer can't be read", "It is encrypted", "Keep the table plain")
    if len(tail) < TRAILER or magic != MAGIC:
        raise Refused("A file's footer can't be read", "The file is no Parquet file: it does not end with PAR1")
    return int.from_bytes(tail[-TRAILER : -len(MAGIC)], "little") + TRAILER


def metadata_of(tail: bytes) -> pq.FileMetaData:
    """Return the footer in `tail`. Raises `Refused` where the tail has no whole footer, or one that can't be read."""
    length = footer_length(tail)
    if length > len(tail):
        raise Refused("A file's footer can't be read", f"It has {length} bytes, of which {len(tail)} are there")
    try:
        return pq.read_metadata(pa.BufferReader(tail))
    except (pa.ArrowException, OSError) as error:
        raise Refused("A file's footer can't be read", f"{type(error).__name__}: {error}") from error


def columns_of(metadata: pq.FileMetaData) -> tuple[tuple[str, Node], ...]:
    """Return the file's columns by name. Raises `Refused` for types that Arrow does not know.

    Arrow knows the layouts in which older writers put lists and maps. Leaves come in the same order in Arrow's schema
    and in the file's, so one walk matches them.
    """
    try:
        schema = metadata.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        raise Refused("A file's columns can't be read", f"{type(error).__name__}: {error}") from error
    leaves = iter([leaf_of(number, metadata.schema.column(number)) for number in range(metadata.num_columns)])
    columns = tuple((column.name, node_of(column.type, leaves)) for column in schema)
    if next(leaves, None) is not None:
        raise mismatch()
    return columns


def node_of(kind: pa.DataType, leaves: Iterator[Leaf]) -> Node:
    while isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_struct(kind):
        return StructNode(tuple((one.name, node_of(one.type, leaves)) for one in kind))
    if pa.types.is_map(kind):
        return MapNode(node_of(kind.key_type, leaves), node_of(kind.item_type, leaves))
    if hasattr(kind, "value_type") and pa.types.is_nested(kind):
        return ListNode(node_of(kind.value_type, leaves))
    leaf = next(leaves, None)
    if leaf is None or pa.types.is_nested(kind):
        raise mismatch()
    return leaf


def leaf_of(number: int, column: pq.ColumnSchema) -> Leaf:
    return Leaf(
        number,
        column.physical_type,
        column.logical_type.type,
        json.loads(column.logical_type.to_json()),
        column.max_definition_level == 0,
    )


def mismatch() -> Refused:
    return Refused("A file's columns can't be read", "Arrow does not see the columns that the footer has")
