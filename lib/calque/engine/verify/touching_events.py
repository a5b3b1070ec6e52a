"""The events of the source's log by the objects that they touch."""

from __future__ import annotations

import threading
from bisect import bisect_right

from calque.core.events.effects import OF_DATABASES, OF_FUNCTIONS
from calque.core.events.keys import entry_of
from calque.core.images.compare import DATABASE, FUNCTION, TABLE
from calque.engine.verify.log_journal import PAGE
from calque.engine.verify.report import VerifiedObject
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, Span, TableName
from calque.ports import EventLog


class TouchingEvents:
    """The ids of the events after `after`, by the objects that they touch. The log is read on as far as is asked for.
    Safe from several threads."""

    def __init__(self, log: EventLog, after: EventId) -> None:
        self.log, self.after, self.upto = log, after, after
        self.ids: dict[VerifiedObject, list[EventId]] = {}
        self.lock = threading.Lock()

    def first(self, touched_object: VerifiedObject, span: Span) -> EventId | None:
        """Return the first event of the span that touches the object; None for none. Where the log does not reach back
        to the span's begin, return the first id of the span, because that event may have."""
        with self.lock:
            self.read_to(span.upto)
            if span.after < self.after and span.after < span.upto:
                return span.after + 1
            ids = self.ids.get(touched_object, [])
            index = bisect_right(ids, span.after)
            return ids[index] if index < len(ids) and ids[index] <= span.upto else None

    def objects(self, span: Span) -> list[VerifiedObject]:
        """Return the objects that events of the span touch, sorted."""
        with self.lock:
            self.read_to(span.upto)
            indexes = ((touched_object, bisect_right(ids, span.after), ids) for touched_object, ids in self.ids.items())
            return sorted(
                touched_object for touched_object, index, ids in indexes if index < len(ids) and ids[index] <= span.upto
            )

    def read_to(self, upto: EventId) -> None:
        while self.upto < upto:
            page = self.log.read(self.upto, PAGE)
            start = page[0].event_id - 1 if page else upto
            if start > self.upto:
                self.after = start
            for event in page:
                for touched_object in touched_objects(entry_of(event)):
                    self.ids.setdefault(touched_object, []).append(event.event_id)
            self.upto = page[-1].event_id if page else upto


def touched_objects(entry: Entry) -> set[VerifiedObject]:
    keys = entry.keys
    if keys.table is None or keys.kind is EventKind.NOTHING:
        return set()
    if keys.kind in OF_DATABASES or not keys.table.table:
        return {VerifiedObject(DATABASE, TableName(keys.table.database))}
    kind = FUNCTION if keys.kind in OF_FUNCTIONS else TABLE
    return {VerifiedObject(kind, name) for name in (keys.table, keys.other) if name is not None}
