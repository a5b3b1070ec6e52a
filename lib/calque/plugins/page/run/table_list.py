"""The tables of a target as the page lists them: searched, in an order, a page at a time or as a whole."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from io import StringIO
from typing import Any, assert_never

import orjson

from calque.model.ledger import TableRow, TableState
from calque.model.names import TableName
from calque.plugins.page.run.table_sizes import TableSize

COLUMNS = (
    "table",
    "at_target",
    "state",
    "shows",
    "lag_events",
    "lag_seconds",
    "files",
    "bytes",
    "since_event",
    "reason",
)
"""The columns of an export."""
CHUNK = 1_000
"""The number of rows that are made and sent at a time."""
WORST_FIRST = (
    TableState.QUARANTINED,
    TableState.UNKNOWN,
    TableState.WAITING,
    TableState.READING,
    TableState.STAGING,
    TableState.LIVE,
)


class TableOrder(StrEnum):
    """An order of tables: by name; the worst state, the greatest lag, or the greatest size first."""

    NAME = "name"
    STATE = "state"
    LAG = "lag"
    SIZE = "size"


@dataclass(frozen=True, slots=True)
class TableQuery:
    """A search for tables of a target. `text` is a part of a name, or a glob. `state` is a table's state, or empty for
    all. `is_turned` asks for the opposite of the order."""

    target: str
    text: str = ""
    state: str = ""
    offset: int = 0
    limit: int = 50
    order: TableOrder = TableOrder.NAME
    is_turned: bool = False


def takes_text(text: str) -> Callable[[tuple[str, str]], bool]:
    """Return a function that tells whether a name, as (database, table), contains the text, or matches it where the
    text is a glob."""
    wanted = text.strip().lower()
    if not wanted:
        return lambda _: True
    if any(sign in wanted for sign in "*?["):
        return lambda name: fnmatchcase(f"{name[0]}.{name[1]}", wanted)
    return lambda name: wanted in f"{name[0]}.{name[1]}"


def in_order(rows: Iterable[TableRow], query: TableQuery, sizes: Mapping[TableName, TableSize]) -> list[TableRow]:
    """Return the rows in the query's order. Rows that are equal in it go by their names. A table whose size is not
    known counts as the smallest."""

    def key(row: TableRow) -> Any:
        match query.order:
            case TableOrder.NAME:
                return row.name
            case TableOrder.STATE:
                return WORST_FIRST.index(row.state), row.name
            case TableOrder.LAG:
                return -1 if row.shows is None else row.shows, row.name
            case TableOrder.SIZE:
                size = sizes.get(row.name)
                return 1 if size is None else -size.bytes, row.name
            case other:
                assert_never(other)

    return sorted(rows, key=key, reverse=query.is_turned)


def as_csv(documents: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield the rows as CSV with a line of headings, in pieces."""
    yield csv_lines([COLUMNS])
    for chunk in chunks(documents):
        yield csv_lines([document[column] for column in COLUMNS] for document in chunk)


def csv_lines(rows: Iterable[Iterable[object]]) -> bytes:
    text = StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def as_json(documents: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield the rows as one JSON list, in pieces."""
    beginning = b"["
    for chunk in chunks(documents):
        rows = ({column: document[column] for column in COLUMNS} for document in chunk)
        yield beginning + b",\n".join(map(orjson.dumps, rows))
        beginning = b",\n"
    yield b"]\n" if beginning != b"[" else b"[]\n"


def chunks(documents: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    chunk: list[Mapping[str, Any]] = []
    for document in documents:
        chunk.append(document)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
