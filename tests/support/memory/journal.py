"""The journal in memory (port `Journal`). Two holders of one object are two writers of one journal."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from calque.core.events.decode import weight_of
from calque.core.events.rows import entries_of, events_of
from calque.core.records.continuity import check_continues, check_there, first_and_last
from calque.core.records.weight import first_ones
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span


class MemoryJournal:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[EventId, tuple[Entry, Event]] = {}
        """In order of event id."""
        self._last: EventId | None = None

    def last(self) -> EventId | None:
        return self._last

    def oldest(self) -> EventId | None:
        with self._lock:
            return next(iter(self._rows), None)

    def append(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        first, last = first_and_last(rows)
        with self._lock:
            check_continues(self._last, first, "in memory")
            for entry, event in zip(entries_of(rows), events_of(rows), strict=True):
                self._rows[entry.event_id] = (entry, event)
            self._last = last

    def entries(self, span: Span) -> Sequence[Entry]:
        return tuple(entry for entry, _ in self._found(range(span.after + 1, span.upto + 1)))

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        events = (event for _, event in self._found(sorted(set(ids))))
        return {event.event_id: event for event in first_ones(events, weight_of, most)}

    def forget(self, upto: EventId) -> int:
        with self._lock:
            forgotten_ids = [event_id for event_id in self._rows if event_id <= upto]
            for event_id in forgotten_ids:
                del self._rows[event_id]
            return len(forgotten_ids)

    def restart(self, event_id: EventId) -> None:
        with self._lock:
            self._rows.clear()
            self._last = event_id

    def _found(self, ids: Sequence[EventId]) -> list[tuple[Entry, Event]]:
        with self._lock:
            if ids:
                last = self._last or 0
                check_there(ids[0], ids[-1], next(iter(self._rows), last + 1), last)
            return [self._rows[event_id] for event_id in ids]
