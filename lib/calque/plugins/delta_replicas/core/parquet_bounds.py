"""The bounds of all values of a column, from a Parquet footer, in the form in which a Delta log has them: `bounds_of`.

A column has no bound where a writer may have got it wrong, or where readers make different values of it.
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
"""The most characters of a string that a bound keeps."""
LAST_CHARACTER = "\U0001ffff"
"""The end of an upper bound that is cut. No bound has a greater character, because delta-rs misreads the pair of
escapes that JSON may have for one."""
FIRST_DAY, LAST_DAY = date(1582, 10, 15), date(9999, 12, 31)
"""The days that have bounds. Older writers count earlier days by another calendar, which some readers convert and some
do not."""
FIRST_MOMENT, LAST_MOMENT = datetime(1900, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
"""The moments that have bounds. Earlier ones are in doubt like earlier days, and because time zones had other offsets
then."""
EPOCH_DAY, EPOCH = date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
ORDERED_DECIMALS = re.compile(r"parquet-cpp-arrow version .*|parquet-mr version 1\.1\d\..*")
"""Writers whose bounds of decimals in bytes are in the order of numbers; older ones compared byte by byte."""
NAN_IS_GREATEST = re.compile(r"parquet-mr version 1\.1[0-7]\..*")
"""Writers that give NaN, which Arrow takes for no bound, as the upper bound of floating numbers where one of them is
NaN. Other writers pass over NaN, which is greater than all numbers for some readers."""
EXACT = Context(prec=100)

Bound = bool | int | float | str | Number


def bounds_of(kind: HiveType, leaf: Leaf, metadata: pq.FileMetaData) -> tuple[Bound | None, Bound | None]:
    """Return the least and the greatest of all values of the leaf; None for a side that is not known."""
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
    """Return None, for a type that has no bounds."""


def bound_readers(kind: HiveType, leaf: Leaf, created_by: str) -> tuple[ReadBound, ReadBound]:
    """Return two functions, which make a lower and an upper bound of the type from values as they are stored, and None
    from doubtful ones. There are none for BINARY, of which readers keep no bounds, and for INT96, which is in no
    order."""
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
    """Return the value as a lower bound; None where it is not finite. Zero becomes -0.0, because writers give either
    zero for the other, and 0.0 is greater than -0.0 for some readers."""
    if not isfinite(value):
        return None
    return float(value) or -0.0


def floating_greatest(value: float) -> float | None:
    return float(value) or 0.0 if isfinite(value) else None


def text_least(value: bytes) -> str | None:
    """Return a beginning of the text as its lower bound; None where the bytes are no text."""
    text = text_of(value)
    return None if text is None else "".join(takewhile(LAST_CHARACTER.__gt__, text[:PREFIX]))


def text_greatest(value: bytes) -> str | None:
    """Return an upper bound of the text; None where the bytes are no text, or hold a character that can't be bounded. A
    longer text is cut, and ends then with a character that is greater than the part cut off."""
    text = text_of(value)
    if text is None or max(text[: PREFIX + 1], default="") >= LAST_CHARACTER:
        return None
    return text if len(text) <= PREFIX else text[:PREFIX] + LAST_CHARACTER


def text_of(value: bytes) -> str | None:
    """Decode the text; None where that fails, because writers may cut bounds between the bytes of a character."""
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
    """Return the moment to the millisecond, as Delta has it; None where it is outside the moments that have bounds.
    `added` microseconds round an upper bound up."""
    milliseconds = (microseconds + added) // 1000
    try:
        bound = EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    if not FIRST_MOMENT <= bound <= LAST_MOMENT:
        return None
    return bound.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def decimal(value: int | bytes, scale: int) -> Number:
    """Return the number. Bytes hold it without its point, in two's complement, the highest byte first."""
    number = value if isinstance(value, int) else int.from_bytes(value, signed=True)
    return Number(number).scaleb(-scale, EXACT)
