"""Reads that operators asked for and that are not done yet: of which tables, and how.

Each stands in the ledger before the request that brought it is gone, and stays there until a read that began after it
has ended: neither a table that is just being copied or read nor a crash makes it forgotten.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from calque.model.ledger import TableRow, TableState
from calque.model.names import TableName
from calque.ports import Ledger

Key = tuple[str, str, str]


class How(StrEnum):
    """What a read is to be. The values are kinds of rows in the ledger's tables."""

    READ = "read_again"
    COUNT = "count_again"
    """What the target would lose by it is counted first."""
    LOOK = "look_again"
    """The content of files is looked at, whatever their times say."""
    ADOPT = "adopt"
    """The same, and what stands at the target need not be ours."""


LOOKING = frozenset({How.LOOK, How.ADOPT})


@dataclass(slots=True)
class Asked:
    """Rows of the ledger's tables by kind and table. `shows` counts how often it was asked for, so that a read that
    began before the last time does not count for it. Safe from several threads."""

    rows: dict[Key, TableRow] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self, rows: Iterable[TableRow]) -> None:
        """Take up what the ledger says."""
        kinds = frozenset(How)
        with self.lock:
            self.rows = {key_of(row): row for row in rows if row.kind in kinds}

    def add(self, ledger: Ledger, how: How, names: Collection[TableName], reason: str) -> None:
        """Make it durable."""
        with self.lock:
            found = [TableRow(*name, TableState.LIVE, 1, reason, kind=how.value) for name in sorted(names)]
            found = [self.once_more(row) for row in found]
            if found:
                ledger.put_tables(found)
            self.rows |= {key_of(row): row for row in found}

    def once_more(self, row: TableRow) -> TableRow:
        before = self.rows.get(key_of(row))
        times = (before.shows or 0) + 1 if before is not None else 1
        return TableRow(row.database, row.table, row.state, times, row.reason, kind=row.kind)

    def of(self, name: TableName) -> frozenset[TableRow]:
        """All that is asked for of a table now."""
        with self.lock:
            keys = ((how.value, *name) for how in How) if self.rows else ()
            return frozenset(row for key in keys if (row := self.rows.get(key)) is not None)

    def looks(self, name: TableName) -> bool:
        return any(row.kind in LOOKING for row in self.of(name))

    def adopts(self, name: TableName) -> bool:
        return any(row.kind == How.ADOPT for row in self.of(name))

    def counts(self, name: TableName) -> bool:
        return any(row.kind == How.COUNT for row in self.of(name))

    def reasons(self) -> dict[TableName, str]:
        """The tables of which something is asked for, with why."""
        with self.lock:
            return {TableName(row.database, row.table): row.reason for row in self.rows.values()}

    def done(self, ledger: Ledger, rows: Collection[TableRow]) -> None:
        """Reads that began when these were asked for have ended."""
        with self.lock:
            gone = [key_of(row) for row in rows if self.rows.get(key_of(row)) == row]
            if gone:
                ledger.remove_tables(gone)
            for key in gone:
                del self.rows[key]


def key_of(row: TableRow) -> Key:
    return row.kind, row.database, row.table
