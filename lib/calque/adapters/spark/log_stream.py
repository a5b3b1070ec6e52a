"""The metastore's notification log as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from calque.adapters.spark.contiguous import checked, missing, repeated, went_back
from calque.adapters.spark.event_source import EventStream
from calque.core.events import rows
from calque.core.events.decode import weight_of
from calque.model.names import EventId, Span
from calque.ports import EventLog

PAGE = 1_000
"""The events of one read, and the rows of one Arrow batch."""


def log_stream(opening: Callable[[], EventLog], starting: EventId, poll: float) -> EventStream:
    """Return a stream of the log's events after `starting`, with the columns of `core.events.rows.SCHEMA`. `opening`
    opens the log in the process that reads, and `poll` are the seconds between looks at the log."""
    return EventStream(partial(opened, opening), rows.SCHEMA, starting, poll)


def opened(opening: Callable[[], EventLog]) -> LogEvents:
    return LogEvents(opening())


@dataclass(frozen=True, slots=True)
class LogEvents:
    """The `event_source.Events` of a log. Raises `HoleInLog` and `EventRepeated`."""

    log: EventLog
    page: int = PAGE

    def newest(self, after: EventId) -> EventId:
        """Return the newest event id. Raises `HoleInLog` for a log that ends before `after`, because a query that waits
        for later events would take it for a log without news for ever."""
        newest = self.log.current()
        if newest < after:
            raise went_back(after, newest)
        return newest

    def pages(self, span: Span, most_bytes: float) -> Iterator[pa.RecordBatch]:
        last, weight = span.after, 0
        while last < span.upto and weight < most_bytes:
            limit = min(self.page, span.upto - last)
            # One more event is read, because a second event with the id of a page's last one would come behind it.
            read_events = self.log.read(last, limit + 1)
            events, next_events = read_events[:limit], read_events[limit:]
            if not events:
                raise missing(Span(last, span.upto), "the log ends there")
            last = checked((event.event_id for event in events), last)
            if next_events and next_events[0].event_id == last:
                raise repeated(last, last)
            weight += sum(map(weight_of, events))
            yield from rows.rows_of_events(events).combine_chunks().to_batches()
