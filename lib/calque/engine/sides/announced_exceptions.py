"""The exceptions that readers are told of: bridges, and operations in parts. The ledger has an announcement before the
first effect of the operation, and keeps it until an epoch after the last effect lists it. So an operation that a crash
cut short is told of too.

A crash between the epoch and the removal of the announcement makes a second epoch list it. That is safe; an exception
of which no epoch tells would not be.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from calque.model.ledger import Bridge, Parts
from calque.model.names import EventId, TableName
from calque.model.records import AnnouncedBridge, AnnouncedParts, Record, RecordKey, all_of, record_key
from calque.ports import Ledger

Announcement = AnnouncedBridge | AnnouncedParts
ToAnnounce = tuple[type[Announcement], tuple[TableName, ...], EventId]
"""The kind of an operation's announcement, its tables, and the event that they go to."""


class AnnouncedExceptions:
    """The announcements of which no epoch has told yet. For each kind and table there is one record, which spans all of
    them. Safe from several threads."""

    def __init__(self) -> None:
        self.cursor: EventId = 0
        self.records: dict[RecordKey, Announcement] = {}
        self.lock = threading.Lock()

    def load(self, records: Iterable[Record], cursor: EventId) -> None:
        """Take over the announcements that the ledger has. `cursor` is the event that live tables show."""
        with self.lock:
            self.records = {record_key(one): one for one in records if isinstance(one, Announcement)}
            self.cursor = cursor

    def add(self, ledger: Ledger, kind: type[Announcement], tables: Iterable[TableName], to_event: EventId) -> None:
        """Announce in the ledger, before its first effect, an operation of `kind` that brings `tables` to `to_event`.
        Raises what the ledger raises; nothing is announced then."""
        with self.lock:
            first = min(self.cursor, to_event)
            spans = [merged(kind(table, first, to_event), self.records) for table in sorted(set(tables))]
            news = [one for one in spans if self.records.get(record_key(one)) != one]
            if news:
                ledger.put_records(news)
                self.records |= {record_key(one): one for one in news}

    def waiting(self) -> tuple[Announcement, ...]:
        """Return the announcements that the next epoch has to list."""
        with self.lock:
            return tuple(self.records[key] for key in sorted(self.records))

    def mark_published(self, ledger: Ledger, records: Sequence[Announcement], cursor: EventId) -> None:
        """Remove `records`, which the newest epoch lists, from the ledger. Live tables show `cursor` from now on. A
        record that was extended since the epoch took it stays."""
        with self.lock:
            self.cursor = cursor
            removed_keys = [record_key(one) for one in records if self.records.get(record_key(one)) == one]
            if removed_keys:
                ledger.remove_records(removed_keys)
            for key in removed_keys:
                del self.records[key]


def merged(one: Announcement, records: Mapping[RecordKey, Announcement]) -> Announcement:
    """Return `one`, extended by the span of the record of its kind and table that waits already."""
    before = records.get(record_key(one))
    if before is None:
        return one
    return replace(one, from_event=min(before.from_event, one.from_event), to_event=max(before.to_event, one.to_event))


def bridges(records: Iterable[Record]) -> tuple[Bridge, ...]:
    return tuple(Bridge(str(one.table), one.from_event, one.to_event) for one in all_of(records, AnnouncedBridge))


def parts(records: Iterable[Record]) -> tuple[Parts, ...]:
    return tuple(Parts(str(one.table), one.from_event, one.to_event) for one in all_of(records, AnnouncedParts))


def in_parts(records: Iterable[Record]) -> tuple[str, ...]:
    return tuple(str(one.table) for one in all_of(records, AnnouncedParts))
