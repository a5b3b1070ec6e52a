"""Release from quarantine: what was set aside is tried again."""

from __future__ import annotations

from collections.abc import Callable

from calque.engine.apply import Applied
from calque.engine.apply.databases import DATABASE_KINDS
from calque.engine.apply.functions import FUNCTION_KINDS
from calque.engine.replica.replica import Replica
from calque.errors import Refused
from calque.model.journal import Entry, Kind
from calque.model.ledger import TableRow, TableState
from calque.model.names import Span, TableName
from calque.ports import Journal

KINDS = DATABASE_KINDS | FUNCTION_KINDS | {Kind.UNKNOWN}


def release(
    replica: Replica, takes: Callable[[TableName], bool], covers: Callable[[str], bool], reason: str
) -> list[TableName]:
    """Tables that are chosen are read again; which ones. Chosen functions, and databases all of whose tables are, are
    made now as the event has them that they were set aside at. Raises `Unavailable`."""
    databases, functions = replica.databases, replica.functions
    rows = [row for name, row in sorted(databases.aside.items()) if covers(name)]
    rows += [row for name, row in sorted(functions.owned.items()) if is_aside(row) and takes(name)]
    for row in rows:
        if (entry := entry_of(replica.source.journal, row)) is not None:
            databases.before([entry], Applied())
            functions.apply([entry], Applied())
            databases.after([entry], Applied())
        elif row.table:
            functions.read([TableName(row.database, row.table)], replica.cursor)
        elif (found := replica.source.catalog.database(row.database)) is not None:
            databases.put(found, replica.cursor, Applied())
        else:
            databases.drop(row.database, Applied(), replica.cursor)
    return replica.reread(takes, reason, (TableState.QUARANTINED,))


def is_aside(row: TableRow) -> bool:
    return row.state is TableState.QUARANTINED


def entry_of(journal: Journal, row: TableRow) -> Entry | None:
    """The event that the thing was set aside at; None where the journal does not have it."""
    since = row.since_event or 0
    try:
        found = journal.entries(Span(since - 1, since)) if since else ()
    except Refused:
        return None
    name = TableName(row.database, row.table)
    return next((entry for entry in found if entry.keys.table == name and entry.keys.kind in KINDS), None)
