"""The source's event log as a journal to read from, so that verifying waits for no capture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

import pyarrow as pa

from calque.core.events.decode import weight_of
from calque.core.events.keys import entry_of
from calque.core.records.weight import first_ones
from calque.errors import Broken, Refused
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span
from calque.ports import EventLog

PAGE = 1000


class LogJournal:
    """The reading half of a journal, on the event log itself. With it `read_exact` waits for no capture. Writing to it
    raises `Broken`."""

    def __init__(self, log: EventLog) -> None:
        self.log = log

    def last(self) -> EventId | None:
        return self.log.current()

    def oldest(self) -> EventId | None:
        page = self.log.read(0, 1)
        return page[0].event_id if page else None

    def entries(self, span: Span) -> Sequence[Entry]:
        return [entry_of(event) for event in self.read(span)]

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        events = (event for event_id in sorted(set(ids)) for event in self.read(Span(event_id - 1, event_id)))
        return {event.event_id: event for event in first_ones(events, weight_of, most)}

    def append(self, _rows: pa.Table) -> None:
        self.read_only()

    def forget(self, _upto: EventId) -> int:
        self.read_only()

    def restart(self, _at: EventId) -> None:
        self.read_only()

    def read(self, span: Span) -> Iterator[Event]:
        """Yield the events of the span. Raises `Refused` when the log does not have them all any more."""
        after = span.after
        while after < span.upto:
            page = self.log.read(after, min(PAGE, span.upto - after))
            if not page or page[0].event_id != after + 1:
                raise Refused(
                    f"The source's log does not have event {after + 1} any more",
                    "The metastore removes old events",
                    "Let it keep them longer",
                )
            yield from (event for event in page if event.event_id <= span.upto)
            after = page[-1].event_id

    def read_only(self) -> NoReturn:
        raise Broken("The source's log is not written to", "It was taken for a journal", "Report this")
