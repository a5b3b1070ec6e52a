"""The result of a statement: rows under the names of their columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time

Row = tuple[object, ...]
"""A row's values, as JSON has them."""


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of a statement that has been carried out. No columns mean that it gives nothing back."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


NO_RESULT = Result((), ())


@dataclass(frozen=True, slots=True)
class StreamedResult:
    """The rows of a statement at an engine. They come while they are read, once; values are Python's, as the engine's
    client has them."""

    columns: tuple[str, ...]
    rows: Iterator[Row]


AnyResult = Result | StreamedResult


def json_value(value: object) -> object:
    """Return the value as JSON can say it. Exact numbers, times and bytes (in hexadecimal) become texts."""
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
    """Return a result with a row for each document, of the document's fields named by `columns`."""
    return Result(tuple(columns), tuple(tuple(document[name] for name in columns) for document in documents))
