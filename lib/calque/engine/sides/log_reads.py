"""Reads of a part of the log in pages. Events that share an id always come from one page.

No function here holds more messages than one answer of the log, which is of bounded weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from calque.model.journal import Event
from calque.model.names import EventId
from calque.ports import EventLog

PAGE = 1000


def events_after(log: EventLog, after: EventId, upto: EventId, page: int = PAGE) -> Iterator[Event]:
    """Yield all rows of the log with ids in `(after, upto]`, ascending, as the log has them: with holes, and with ids
    that come twice."""
    limit = 0
    while after < upto:
        limit = max(limit, 2, min(page, upto - after + 1))
        events = log.read(after, limit)
        if not events:
            return
        edge = events[-1].event_id
        if len(events) == limit and events[0].event_id == edge:
            limit *= 2
            continue
        full = len(events) == limit
        yield from (event for event in events if event.event_id <= upto and not (full and event.event_id == edge))
        after, limit = (edge - 1 if full else edge), 0


def of_one_id(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Yield the events of each id as a list, in their order."""
    return (list(same_id_events) for _, same_id_events in groupby(events, key=lambda event: event.event_id))
