"""What a statement gives back: rows under the names of their columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time

Row = tuple[object, ...]
"""Values of JSON."""


@dataclass(frozen=True, slots=True)
class Result:
    """No columns: the statement gives nothing back."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


NO_RESULT = Result((), ())


@dataclass(frozen=True, slots=True)
class StreamedResult:
    """Rows that come while they are read, once; values are Python's, as the engine's client has them."""

    columns: tuple[str, ...]
    rows: Iterator[Row]


AnyResult = Result | StreamedResult


def json_value(value: object) -> object:
    """The value as JSON can say it: exact numbers, times and bytes (in hexadecimal) are texts."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes() | bytearray():
            return value.hex()
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            return {str(json_value(key)): json_value(each) for key, each in value.items()}
        case tuple() if hasattr(value, "asDict"):
            return json_value(value.asDict())
        case list() | tuple():
            return [json_value(each) for each in value]
    return str(value)


def result_of(columns: Sequence[str], documents: Iterable[Mapping[str, object]]) -> Result:
    """Those fields of the documents."""
    return Result(tuple(columns), tuple(tuple(document[name] for name in columns) for document in documents))
