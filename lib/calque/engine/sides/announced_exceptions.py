"""What readers are told of: bridges, and operations in parts. Each stands in the ledger before its first effect and
stays there until an epoch after its last one lists it, so that one that a crash cut short is told of all the same.

A crash between the epoch and the removal makes a second epoch tell of it too: too much is safe, too little is not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace

from calque.model.ledger import Bridge, TableRow, TableState
from calque.model.names import EventId, TableName
from calque.ports import Ledger

BRIDGE, IN_PARTS = "bridge", "in_parts"
KINDS = frozenset({BRIDGE, IN_PARTS})
Key = tuple[str, str, str]


class Announced:
    """Rows of the ledger's tables: `shows` is the event that the table showed, `since_event` the one that it went to.
    One row for each kind and table spans all that no epoch has told of. Safe from several threads."""

    def __init__(self) -> None:
        self.cursor: EventId = 0
        self.rows: dict[Key, TableRow] = {}
        self.lock = threading.Lock()

    def load(self, rows: Iterable[TableRow], cursor: EventId) -> None:
        """Take up what the ledger says. `cursor` is the event that live tables show."""
        with self.lock:
            self.rows = {key_of(row): row for row in rows if row.kind in KINDS}
            self.cursor = cursor

    def add(self, ledger: Ledger, kind: str, tables: Iterable[TableName], to_event: EventId) -> None:
        """Before the first effect. Raises what the ledger raises: then nothing was done."""
        with self.lock:
            found = [
                merged(TableRow(*table, TableState.LIVE, min(self.cursor, to_event), "", to_event, kind), self.rows)
                for table in sorted(set(tables))
            ]
            news = [row for row in found if self.rows.get(key_of(row)) != row]
            if news:
                ledger.put_tables(news)
                self.rows |= {key_of(row): row for row in news}

    def waiting(self) -> tuple[TableRow, ...]:
        """For the next epoch to list."""
        with self.lock:
            return tuple(self.rows[key] for key in sorted(self.rows))

    def told(self, ledger: Ledger, rows: Sequence[TableRow], cursor: EventId) -> None:
        """An epoch lists `rows` now, which are done; live tables show `cursor`. What grew meanwhile stays."""
        with self.lock:
            self.cursor = cursor
            gone = [key_of(row) for row in rows if self.rows.get(key_of(row)) == row]
            if gone:
                ledger.remove_tables(gone)
            for key in gone:
                del self.rows[key]


def key_of(row: TableRow) -> Key:
    return row.kind, row.database, row.table


def merged(row: TableRow, rows: dict[Key, TableRow]) -> TableRow:
    """`row`, spanning what waits already."""
    before = rows.get(key_of(row))
    if before is None:
        return row
    return replace(
        row,
        shows=min(before.shows or 0, row.shows or 0),
        since_event=max(before.since_event or 0, row.since_event or 0),
    )


def bridges(rows: Iterable[TableRow]) -> tuple[Bridge, ...]:
    return tuple(
        Bridge(str(TableName(row.database, row.table)), row.shows or 0, row.since_event or 0)
        for row in rows
        if row.kind == BRIDGE
    )


def in_parts(rows: Iterable[TableRow]) -> tuple[str, ...]:
    return tuple(str(TableName(row.database, row.table)) for row in rows if row.kind == IN_PARTS)
