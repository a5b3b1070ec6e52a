"""The states of one target's tables, between the ledger and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from calque.model.ledger import StateKey, StateRow, TableRow, TableState, Why
from calque.model.names import EventId, TableName

TABLE = "table"
OUT = frozenset({TableState.UNKNOWN, TableState.READING, TableState.STAGING})
"""States in which a table is being read; the window passes it by."""
LIVE = frozenset({TableState.LIVE})
ASIDE = OUT | {TableState.QUARANTINED}
JOINS = "it was read, and joins the stream at that event"


@dataclass(slots=True)
class Tables:
    """Rows by the source's names. `apart` are live or waiting tables that show another event than the window's start.
    Changes are kept until `record` writes them; READING and STAGING are told to nobody but the status."""

    rows: dict[TableName, TableRow] = field(default_factory=dict)
    apart: dict[TableName, EventId] = field(default_factory=dict)
    changed: set[TableName] = field(default_factory=set)
    not_live: set[TableName] = field(default_factory=set)
    """So that a window costs nothing that grows with all tables."""

    def load(self, rows: Iterable[StateRow], cursor: EventId) -> None:
        self.rows = {row.name: row for row in rows if isinstance(row, TableRow)}
        self.not_live = {name for name, row in self.rows.items() if row.state is not TableState.LIVE}
        for name, row in self.rows.items():
            if row.state is TableState.WAITING or (row.state is TableState.LIVE and (row.shows or 0) > cursor):
                self.apart[name] = row.shows or 0

    def landed(self, cursor: EventId) -> dict[TableName, EventId]:
        """Tables that a process before this one read, and that show an event which no window has reached since: they
        are out until one does."""
        found = {name: shows for name, shows in self.apart.items() if shows > cursor and self.is_(name, LIVE)}
        for name in found:
            del self.apart[name]
            self.rows[name] = landed_row(name, found[name])
            self.not_live.add(name)
        return self.staged()

    def landed_before_any_epoch(self) -> dict[TableName, EventId]:
        """Where nothing was published all that a process before this one read has landed."""
        for name in [name for name, row in self.rows.items() if row.state in (TableState.LIVE, TableState.WAITING)]:
            self.rows[name] = replace(self.rows[name], state=TableState.STAGING)
            self.apart.pop(name, None)
            self.not_live.add(name)
        return self.staged()

    def staged(self) -> dict[TableName, EventId]:
        rows = (row for row in self.rows.values() if row.state is TableState.STAGING)
        return {TableName(row.database, row.table): row.shows or 0 for row in rows}

    def put(
        self,
        name: TableName,
        state: TableState,
        shows: EventId | None,
        reason: str = "",
        since: EventId = 0,
        why: Why = Why.OWN,
    ) -> None:
        """The table's state; recorded at the next `record` where it is another one than before."""
        row = TableRow(*name, state, shows, reason, since or None, why=why)
        before = self.rows.get(name)
        self.rows[name] = row
        (self.not_live.discard if state is TableState.LIVE else self.not_live.add)(name)
        if before is None or replace(before, shows=shows) != row:
            self.changed.add(name)

    def busy(self, name: TableName, state: TableState) -> None:
        """READING or STAGING, of a table that is to be read, for the status; after a restart it is UNKNOWN again."""
        row = self.rows.get(name)
        if row is not None and row.state in OUT:
            self.rows[name] = replace(row, state=state)

    def forget(self, name: TableName) -> None:
        if self.rows.pop(name, None) is not None:
            self.changed.add(name)
        self.not_live.discard(name)
        self.apart.pop(name, None)

    def is_(self, name: TableName, states: Iterable[TableState]) -> bool:
        row = self.rows.get(name)
        return row is not None and row.state in states

    def in_state(self, *states: TableState) -> list[TableName]:
        names = tuple(self.rows if TableState.LIVE in states else self.not_live)
        return sorted(name for name in names if self.is_(name, states))

    def counts(self) -> dict[str, int]:
        """How many tables are in each state; safe beside the windows, and then not exact."""
        found = dict.fromkeys((state.value for state in TableState), 0)
        others = [row for name in tuple(self.not_live) if (row := self.rows.get(name)) is not None]
        for row in others:
            found[row.state.value] += 1
        found[TableState.LIVE.value] = len(self.rows) - len(others)
        return found

    def record(self, write: Callable[[list[TableRow], list[StateKey]], None]) -> None:
        """Hand the rows to write and the keys to remove to `write`; they count as recorded when it returns."""
        names = set(self.changed)
        kept = [as_recorded(self.rows[name]) for name in sorted(names) if name in self.rows]
        gone: list[StateKey] = [(TABLE, *name) for name in sorted(names) if name not in self.rows]
        write(kept, gone)
        self.changed -= names


def landed_row(name: TableName, exact_at: EventId) -> TableRow:
    """Of a table that shows an event which no window has reached."""
    return TableRow(*name, TableState.STAGING, exact_at, JOINS, exact_at)


def as_recorded(row: TableRow) -> TableRow:
    return replace(row, state=TableState.UNKNOWN) if row.state in OUT else row
