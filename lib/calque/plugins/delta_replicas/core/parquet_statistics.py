"""The statistics with which readers of a Delta table skip a file, made of the file's Parquet footer: `file_statistics`.

A wrong bound makes rows vanish, a missing one costs a reader time, so doubtful bounds are left out. Sources: the Delta
transaction log protocol, "Per-file Statistics"; parquet.thrift for what a footer's bounds mean.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal as Number
from typing import Any

import pyarrow.parquet as pq

from calque.core.formats.hive_types import Decimal, HiveType, Primitive, Struct, parse_type
from calque.model.hive import Column
from calque.plugins.delta_replicas.core.parquet_bounds import Bound, bounds_of
from calque.plugins.delta_replicas.core.parquet_columns import Leaf, Node, StructNode, columns_of, metadata_of
from calque.plugins.delta_replicas.core.parquet_fit import reads_equally
from calque.plugins.delta_replicas.core.parquet_ranges import null_count

INDEXED_LEAVES = 100
"""The number of columns from the left, fields of structs counted, that have statistics. Delta's own writers take 32
(`delta.dataSkippingNumIndexedCols`), and with fewer than all there are no bounds: see `complete`."""


@dataclass(slots=True)
class Collected:
    """The statistics of a file's leaves, as nested as the columns."""

    least: dict[str, Any] = field(default_factory=dict)
    greatest: dict[str, Any] = field(default_factory=dict)
    nulls: dict[str, Any] = field(default_factory=dict)


def file_statistics(tail: bytes, columns: Sequence[Column]) -> str:
    """Return the `stats` of an add action, a text in JSON, for the file that ends with `tail`, in a table with these
    `data_columns`. Columns that the file does not have are null in all rows. A column whose values readers might
    convert (`parquet_fit.why_misread`) has no statistics. Raises `Refused` for a file that is not Parquet.

    They hold for these columns alone: when a table gets another column, each file is added anew with statistics of it.
    delta-rs takes a column that the statistics do not name for one without NULL.
    """
    metadata = metadata_of(tail)
    nodes = columns_of(metadata)
    collected = Collected()
    for path, kind in leaves_of(columns):
        collect(collected, path, kind, nodes, metadata)
    statistics: dict[str, Any] = {"numRecords": metadata.num_rows}
    if complete(collected.least, columns, collected.nulls, metadata.num_rows):
        statistics["minValues"] = collected.least
    if complete(collected.greatest, columns, collected.nulls, metadata.num_rows):
        statistics["maxValues"] = collected.greatest
    return json_text({**statistics, "nullCount": collected.nulls})


def complete(bounds: Mapping[str, Any], columns: Sequence[Column], nulls: Mapping[str, Any], rows: int) -> bool:
    """Tell whether each column has a bound that must have one if any has.

    delta-rs, where it makes a data set for Arrow, takes a bound that is missing beside others for NULL, and then finds
    no row of the file in any filter on that column. Structs, lists, maps, bytes, and columns that are null in all rows
    need no bound. Without `minValues` (or `maxValues`) it knows of no bounds at all, which is safe.
    """
    return bool(bounds) and all(
        column.name in bounds or nulls.get(column.name) == rows
        for column in columns
        if isinstance(kind := parse_type(column.type), Primitive | Decimal) and kind != Primitive("binary")
    )


def leaves_of(columns: Sequence[Column]) -> list[tuple[tuple[str, ...], HiveType]]:
    """Return the first `INDEXED_LEAVES` leaves of the table with their paths. Lists and maps count as leaves."""

    def leaves(path: tuple[str, ...], kind: HiveType) -> Iterator[tuple[tuple[str, ...], HiveType]]:
        if isinstance(kind, Struct):
            for name, part in kind.fields:
                yield from leaves((*path, name), part)
        else:
            yield path, kind

    every_leaf = [leaf for column in columns for leaf in leaves((column.name,), parse_type(column.type))]
    return every_leaf[:INDEXED_LEAVES]


def collect(
    collected: Collected,
    path: tuple[str, ...],
    kind: HiveType,
    nodes: Sequence[tuple[str, Node]],
    metadata: pq.FileMetaData,
) -> None:
    is_known, node = located(path, nodes)
    if is_known and node is None:
        put(collected.nulls, path, metadata.num_rows)
    if not is_known or not isinstance(node, Leaf) or not reads_equally(node, kind, metadata):
        return
    nulls = null_count(metadata, node)
    if nulls is not None:
        put(collected.nulls, path, nulls)
    least, greatest = bounds_of(kind, node, metadata)
    if least is not None:
        put(collected.least, path, least)
    if greatest is not None:
        put(collected.greatest, path, greatest)


def located(path: Sequence[str], nodes: Sequence[tuple[str, Node]]) -> tuple[bool, Node | None]:
    """Return whether it is certain which of the file's columns readers take for the path, and that column, None where
    the file has none."""
    name, *rest = path
    if Counter(one.lower() for one, _ in nodes)[name.lower()] > 1:
        return False, None
    for one, node in nodes:
        if one.lower() == name.lower():
            if one != name:
                return False, None
            if not rest:
                return True, node
            return located(rest, node.fields) if isinstance(node, StructNode) else (False, None)
    return True, None


def put(tree: dict[str, Any], path: Sequence[str], value: Bound) -> None:
    *parents, name = path
    for parent in parents:
        tree = tree.setdefault(parent, {})
    tree[name] = value


def json_text(value: Mapping[str, Any] | Bound) -> str:
    """Return the value as JSON. Decimals are numbers with all of their digits, which `json` does not write."""
    match value:
        case Mapping():
            return "{" + ",".join(f"{json.dumps(name)}:{json_text(part)}" for name, part in value.items()) + "}"
        case Number():
            return format(value, "f")
    return json.dumps(value)
