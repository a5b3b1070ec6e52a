"""What went at a metastore, by its own log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.core.events.keys import entry_of
from calque.model.journal import Entry, Event, EventKind
from calque.model.names import EventId, TableName

GOES = frozenset({EventKind.RENAME_TABLE, EventKind.DROP_TABLE})


def logged(uri: str, after: EventId) -> list[Entry]:
    """What the log says since the event."""
    log, events = HiveLog(Client(uri)), list[Event]()
    while page := log.read(events[-1].event_id if events else after, 1000):
        events += page
    return list(map(entry_of, events))


def departures(entries: Iterable[Entry]) -> Counter[TableName]:
    """How often each name went."""
    gone = (entry.keys.other or entry.keys.table for entry in entries if entry.keys.kind in GOES)
    return Counter(name for name in gone if name is not None)
