"""What a statement gives back: rows under the names of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Row = tuple[object, ...]
"""Values of JSON."""


@dataclass(frozen=True, slots=True)
class Result:
    """No columns: the statement gives nothing back."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


NO_RESULT = Result((), ())


def result_of(columns: Sequence[str], documents: Iterable[Mapping[str, object]]) -> Result:
    """Those fields of the documents."""
    return Result(tuple(columns), tuple(tuple(document[name] for name in columns) for document in documents))
