"""The statistics with which readers of a Delta table skip a file, made of the file's Parquet footer: `file_statistics`.

A wrong bound makes rows vanish, a missing one costs a reader time: what is in doubt is left out. Sources: the Delta
transaction log protocol, "Per-file Statistics"; parquet.thrift for what a footer's bounds mean.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Context
from decimal import Decimal as Number
from math import isfinite
from typing import Any

import pyarrow.parquet as pq

from calque.core.hive_types import Decimal, HiveType, Primitive, Struct, parse_type
from calque.core.parquet_columns import Leaf, Node, StructNode, columns_of, metadata_of
from calque.core.parquet_fit import reads_equally
from calque.core.parquet_ranges import null_count, raw_bounds
from calque.model.hive import Column

INDEXED_LEAVES = 32
"""Of so many columns from the left, fields of structs counted, Delta's own writers collect statistics
(`delta.dataSkippingNumIndexedCols`)."""
PREFIX = 32
"""Characters of a string that a bound keeps."""
LAST_CHARACTER = "\U0010ffff"
FIRST_DAY, LAST_DAY = date(1582, 10, 15), date(9999, 12, 31)
"""Older writers count earlier days by another calendar; some readers convert these, and some do not."""
FIRST_MOMENT, LAST_MOMENT = datetime(1900, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
"""Likewise of moments, for which it also counts that time zones had other offsets."""
EPOCH_DAY, EPOCH = date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
ORDERED_DECIMALS = re.compile(r"parquet-cpp-arrow version .*|parquet-mr version (1\.[1-9]\d+|[2-9]|\d\d+)\..*")
"""Writers whose bounds of decimals in bytes are in the order of numbers; older ones compared byte by byte."""
EXACT = Context(prec=100)

Bound = int | float | str | Number


@dataclass(slots=True)
class Collected:
    """What is known of the file's leaves, as nested as the columns."""

    least: dict[str, Any] = field(default_factory=dict)
    greatest: dict[str, Any] = field(default_factory=dict)
    nulls: dict[str, Any] = field(default_factory=dict)


def file_statistics(tail: bytes, columns: Sequence[Column]) -> str:
    """The `stats` of an add action for the file that ends with `tail`, in a table with these `data_columns`: a text in
    JSON. Columns that the file does not have are null in all rows. No statistics of a column whose values readers might
    convert (`parquet_fit.why_misread`). `Refused` for what is no Parquet file."""
    metadata = metadata_of(tail)
    nodes = columns_of(metadata)
    collected = Collected()
    for path, kind in leaves_of(columns):
        collect(collected, path, kind, nodes, metadata)
    return json_text(
        {
            "numRecords": metadata.num_rows,
            "minValues": collected.least,
            "maxValues": collected.greatest,
            "nullCount": collected.nulls,
        }
    )


def leaves_of(columns: Sequence[Column]) -> list[tuple[tuple[str, ...], HiveType]]:
    """The first leaves of the table with their paths. Lists and maps count as leaves."""

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
    """Whether it is certain which of the file's columns readers take for the path, and that column, if it has any."""
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


def bounds_of(kind: HiveType, leaf: Leaf, metadata: pq.FileMetaData) -> tuple[Bound | None, Bound | None]:
    """Of all values of the leaf; None for a side that is not known."""
    lower, upper = readers_of_bounds(kind, leaf, metadata.created_by or "")
    stored = raw_bounds(metadata, leaf)
    if not stored:
        return None, None
    lows, highs = [lower(low) for low, _ in stored], [upper(high) for _, high in stored]
    return extreme(min, lows), extreme(max, highs)


def extreme(choose: Callable[[list[Any]], Any], bounds: list[Any]) -> Any:
    return None if None in bounds else choose(bounds)


ReadBound = Callable[[Any], Bound | None]


def unknown(_: Any) -> None:
    """The bound of a type for which there is none."""


def readers_of_bounds(kind: HiveType, leaf: Leaf, created_by: str) -> tuple[ReadBound, ReadBound]:
    """What makes a lower and an upper bound of the type from values as they are stored; None from doubtful ones.

    Readers keep no bounds of BOOLEAN and BINARY. INT96 is in no order. What is greater than all numbers, NaN, is in no
    footer's bounds, so floating numbers have no upper one."""
    match kind:
        case Primitive("tinyint" | "smallint" | "int" | "bigint"):
            return int, int
        case Primitive("float" | "double"):
            return floating_least, unknown
        case Primitive("string"):
            return text_least, text_greatest
        case Primitive("date"):
            return day, day
        case Primitive("timestamp") if leaf.physical == "INT64":
            steps = 1 if leaf.annotation["timeUnit"] == "microseconds" else 1000
            return (lambda value: moment(value * steps, 0)), (lambda value: moment(value * steps, 999))
        case Decimal() if leaf.physical in ("INT32", "INT64") or ORDERED_DECIMALS.fullmatch(created_by):
            scale = leaf.annotation.get("scale", 0)
            return (lambda value: decimal(value, scale)), (lambda value: decimal(value, scale))
    return unknown, unknown


def floating_least(value: float) -> float | None:
    """Writers give either zero for the other, and 0.0 is greater than -0.0 for some readers."""
    if not isfinite(value):
        return None
    return float(value) or -0.0


def text_least(value: bytes) -> str | None:
    text = text_of(value)
    return None if text is None else text[:PREFIX]


def text_greatest(value: bytes) -> str | None:
    """A longer one is cut, and ends then with the last of all characters."""
    text = text_of(value)
    if text is None or len(text) <= PREFIX:
        return text
    return None if text[PREFIX] == LAST_CHARACTER else text[:PREFIX] + LAST_CHARACTER


def text_of(value: bytes) -> str | None:
    """Writers may cut bounds between the bytes of a character."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def day(value: int) -> str | None:
    try:
        bound = EPOCH_DAY + timedelta(days=value)
    except OverflowError:
        return None
    return bound.isoformat() if FIRST_DAY <= bound <= LAST_DAY else None


def moment(microseconds: int, added: int) -> str | None:
    """To the millisecond, as Delta has it."""
    milliseconds = (microseconds + added) // 1000
    try:
        bound = EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    if not FIRST_MOMENT <= bound <= LAST_MOMENT:
        return None
    return bound.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def decimal(value: int | bytes, scale: int) -> Number:
    """Bytes hold the number without its point, in two's complement, the highest byte first."""
    number = value if isinstance(value, int) else int.from_bytes(value, signed=True)
    return Number(number).scaleb(-scale, EXACT)


def json_text(value: Mapping[str, Any] | Bound) -> str:
    """Decimals as numbers with all of their digits, which `json` does not write."""
    match value:
        case Mapping():
            return "{" + ",".join(f"{json.dumps(name)}:{json_text(part)}" for name, part in value.items()) + "}"
        case Number():
            return format(value, "f")
    return json.dumps(value)
