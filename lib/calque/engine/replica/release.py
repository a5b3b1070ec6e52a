"""Release from quarantine: what was set aside is tried again."""

from __future__ import annotations

from collections.abc import Callable

from calque.engine.apply import Applied
from calque.engine.apply.databases import DATABASE_KINDS
from calque.engine.apply.functions import FUNCTION_KINDS
from calque.engine.replica.replica import Replica
from calque.errors import Refused
from calque.model.journal import Entry, Kind
from calque.model.ledger import DatabaseRow, FunctionRow, TableState
from calque.model.names import Span, TableName
from calque.ports import Journal

KINDS = DATABASE_KINDS | FUNCTION_KINDS | {Kind.UNKNOWN}


def release(
    replica: Replica, takes: Callable[[TableName], bool], covers: Callable[[str], bool], reason: str
) -> list[TableName]:
    """Tables that are chosen are read again; which ones. Chosen functions, and databases all of whose tables are, are
    made now as the event has them that they were set aside at. Raises `Unavailable`."""
    databases, functions = replica.databases, replica.functions
    rows: list[DatabaseRow | FunctionRow] = [row for name, row in sorted(databases.aside.items()) if covers(name)]
    rows += [row for name, row in sorted(functions.owned.items()) if is_aside(row) and takes(name)]
    for row in rows:
        if (entry := entry_of(replica.source.journal, row)) is not None:
            databases.before([entry], Applied())
            functions.apply([entry], Applied())
            databases.after([entry], Applied())
        elif isinstance(row, FunctionRow):
            functions.read([row.name], replica.cursor)
        elif (found := replica.source.catalog.database(row.database)) is not None:
            databases.put(found, replica.cursor, Applied())
        else:
            databases.drop(row.database, Applied(), replica.cursor)
    return replica.reread(takes, reason, (TableState.QUARANTINED,))


def is_aside(row: FunctionRow) -> bool:
    return row.state is TableState.QUARANTINED


def entry_of(journal: Journal, row: DatabaseRow | FunctionRow) -> Entry | None:
    """The event that the thing was set aside at; None where the journal does not have it."""
    since = row.since_event or 0
    try:
        found = journal.entries(Span(since - 1, since)) if since else ()
    except Refused:
        return None
    return next((entry for entry in found if entry.keys.table == row.name and entry.keys.kind in KINDS), None)
