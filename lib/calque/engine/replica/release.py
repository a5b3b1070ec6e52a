"""The release from quarantine: objects that were set aside are tried again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calque.core.events.effects import MAY_BE_OF_DATABASE_OR_FUNCTION
from calque.core.records.lifecycle import State
from calque.engine.apply import AppliedChanges
from calque.engine.apply.databases import Databases
from calque.engine.apply.functions import Functions
from calque.engine.exact_reads.coordinator import ExactReads
from calque.engine.sides.sides import SourceSide
from calque.errors import Refused
from calque.model.journal import Entry
from calque.model.ledger import DatabaseRow, FunctionRow, TableState
from calque.model.names import Span, TableName
from calque.ports import Journal


@dataclass(frozen=True, slots=True)
class Release:
    """The means to try again what was set aside at one target."""

    source: SourceSide
    databases: Databases
    functions: Functions
    reads: ExactReads

    def tables(self, takes: Callable[[TableName], bool], covers: Callable[[str], bool], reason: str) -> list[TableName]:
        """Have the chosen tables read again, and return them. Chosen functions, and databases all of whose tables are
        chosen, are made now as the event has them that they were set aside at. Raises `Unavailable`."""
        rows: list[DatabaseRow | FunctionRow] = [
            row for name, row in sorted(self.databases.quarantined_rows.items()) if covers(name)
        ]
        rows += [row for name, row in sorted(self.functions.owned.items()) if is_aside(row) and takes(name)]
        for row in rows:
            self.make(row)
        return self.reads.reread(takes, reason, {State.QUARANTINED})

    def make(self, row: DatabaseRow | FunctionRow) -> None:
        """Make the database or function, as its event has it, or, without that event, as the source has it by now."""
        cursor = self.reads.tables.cursor
        if (entry := entry_of(self.source.journal, row)) is not None:
            self.databases.before([entry], AppliedChanges())
            self.functions.apply([entry], AppliedChanges())
            self.databases.after([entry], AppliedChanges())
        elif isinstance(row, FunctionRow):
            self.functions.read([row.name], cursor)
        elif (database := self.source.catalog.database(row.database)) is not None:
            self.databases.put(database, cursor, AppliedChanges())
        else:
            self.databases.drop(row.database, AppliedChanges(), cursor)


def is_aside(row: FunctionRow) -> bool:
    return row.state is TableState.QUARANTINED


def entry_of(journal: Journal, row: DatabaseRow | FunctionRow) -> Entry | None:
    """Return the event that the database or function was set aside at; None where the journal does not have it."""
    since = row.since_event or 0
    try:
        entries = journal.entries(Span(since - 1, since)) if since else ()
    except Refused:
        return None
    of_row = (entry for entry in entries if entry.keys.table == row.name)
    return next((entry for entry in of_row if entry.keys.kind in MAY_BE_OF_DATABASE_OR_FUNCTION), None)
