"""Bounds of all values of a column, from a Parquet footer, in the form in which a Delta log has them: `bounds_of`.

What a writer may have got wrong, and what readers take for different values, has no bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context
from decimal import Decimal as Number
from itertools import takewhile
from math import isfinite
from typing import Any

import pyarrow.parquet as pq

from calque.core.formats.hive_types import Decimal, HiveType, Primitive
from calque.plugins.delta_replicas.core.parquet_columns import Leaf
from calque.plugins.delta_replicas.core.parquet_ranges import raw_bounds

PREFIX = 32
"""Characters of a string that a bound keeps."""
LAST_CHARACTER = "\U0001ffff"
"""Ends an upper bound that is cut. delta-rs misreads the pair of escapes that JSON may have for a character behind it:
no bound has one."""
FIRST_DAY, LAST_DAY = date(1582, 10, 15), date(9999, 12, 31)
"""Older writers count earlier days by another calendar; some readers convert these, and some do not."""
FIRST_MOMENT, LAST_MOMENT = datetime(1900, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
"""Likewise of moments, for which it also counts that time zones had other offsets."""
EPOCH_DAY, EPOCH = date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
ORDERED_DECIMALS = re.compile(r"parquet-cpp-arrow version .*|parquet-mr version 1\.1\d\..*")
"""Writers whose bounds of decimals in bytes are in the order of numbers; older ones compared byte by byte."""
NAN_IS_GREATEST = re.compile(r"parquet-mr version 1\.1[0-7]\..*")
"""Writers that give NaN, which Arrow takes for no bound, as the upper bound of floating numbers where one of them is
NaN. Others pass over NaN, which is greater than all numbers for some readers."""
EXACT = Context(prec=100)

Bound = bool | int | float | str | Number


def bounds_of(kind: HiveType, leaf: Leaf, metadata: pq.FileMetaData) -> tuple[Bound | None, Bound | None]:
    """Of all values of the leaf; None for a side that is not known."""
    lower, upper = bound_readers(kind, leaf, metadata.created_by or "")
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


def bound_readers(kind: HiveType, leaf: Leaf, created_by: str) -> tuple[ReadBound, ReadBound]:
    """What makes a lower and an upper bound of the type from values as they are stored; None from doubtful ones.

    Readers keep no bounds of BINARY, and INT96 is in no order."""
    match kind:
        case Primitive("boolean"):
            return bool, bool
        case Primitive("tinyint" | "smallint" | "int" | "bigint"):
            return int, int
        case Primitive("float" | "double"):
            return floating_least, floating_greatest if NAN_IS_GREATEST.fullmatch(created_by) else unknown
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


def floating_greatest(value: float) -> float | None:
    return float(value) or 0.0 if isfinite(value) else None


def text_least(value: bytes) -> str | None:
    """A beginning of the text."""
    text = text_of(value)
    return None if text is None else "".join(takewhile(LAST_CHARACTER.__gt__, text[:PREFIX]))


def text_greatest(value: bytes) -> str | None:
    """A longer one is cut, and ends then with what is greater than the part cut off."""
    text = text_of(value)
    if text is None or max(text[: PREFIX + 1], default="") >= LAST_CHARACTER:
        return None
    return text if len(text) <= PREFIX else text[:PREFIX] + LAST_CHARACTER


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
