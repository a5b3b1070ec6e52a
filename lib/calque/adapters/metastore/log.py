"""The notification log of a metastore, read in answers of bounded weight."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from calque.adapters.metastore.client import Client, ServerFailed
from calque.adapters.metastore.faults import settled
from calque.adapters.metastore.log_access import refusal
from calque.adapters.metastore.messages import (
    GET_CURRENT_EVENT_ID,
    GET_NEXT_NOTIFICATION,
    Call,
    CurrentEventId,
    EventRequest,
    Events,
    Fault,
)
from calque.adapters.metastore.weighed import AnswerTooLarge
from calque.core.events.decode import bounded
from calque.errors import CallFailed
from calque.model.bounds import MESSAGE
from calque.model.journal import Event
from calque.model.names import EventId

logger = logging.getLogger(__name__)

PAGE_BYTES = 32 << 20
"""The bytes that an answer should weigh. An answer of several events that comes to weigh more than twice as much is
given up."""
FIRST = 16
"""The events that are asked for while nothing is known of their weight: the server makes the whole answer in its memory
before it sends any of it."""
STEP = 8
"""The factor by which the next answer may have more events than the last one, and by which it has fewer after an answer
that failed. The number falls to two events before it falls to one, because another event of the same id is seen only
where two are read."""
ROW_BYTES = 200
"""The bytes of an event beside its message."""


class HiveLog:
    """The port `ports.EventLog` over Thrift. Messages come as the server's encoder wrote them (`message_format` says
    which).

    The number of events that are asked for at once follows from the weight of the last ones, and is remembered between
    calls. An event of more than `page_bytes` comes alone, and so does an event that the server can't give together with
    others; only in these cases another event of its id would be missed.

    A message that comes to more than `max_message` bytes when it is unpacked says so in its format (`decode.bounded`).

    2.3 takes every row behind `after` into its memory at any limit, and may give two events one id (HIVE-16886): never
    read it from far behind.
    """

    def __init__(self, client: Client, page_bytes: int = PAGE_BYTES, max_message: int = MESSAGE) -> None:
        self.client, self.page_bytes, self.max_message = client, page_bytes, max_message
        self.page = FIRST
        """The events that the next answer may have."""
        self.heavy: EventId = 0
        """About the last event id of a stretch of which an answer was too heavy: up to it no answer may have more
        events than the last one."""

    def close(self) -> None:
        """Close idle connections."""
        self.client.close()

    def current(self) -> EventId:
        answer: CurrentEventId = self._call(GET_CURRENT_EVENT_ID)
        return answer.event_id

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        if limit <= 0:
            return ()
        events: Sequence[Event] = ()
        count, too_many = min(limit, self.page), limit + 1
        while len(events) < count < too_many:
            try:
                events = self._page(after, count)
            except (AnswerTooLarge, CallFailed) as problem:
                # A server that failed may lack the memory for the answer.
                if count == 1:
                    raise
                logger.debug("%d events at once: %s", count, problem)
                self.heavy = after + count
                too_many, count = count, max(self._fewer(count), (len(events) + count) // 2 if events else 1)
                continue
            self._learn(events)
            if len(events) < count or count == limit:
                break
            if complete_events := without_last(events):
                return complete_events
            if count == 1 and len(events[0].message) > self.page_bytes:
                break
            count = min(2 * count, limit, too_many - 1)
        return events

    def _page(self, after: EventId, count: int) -> Sequence[Event]:
        max_bytes = 2 * self.page_bytes if count > 1 else None
        answer: Events = self._call(GET_NEXT_NOTIFICATION, EventRequest(after, count), max_bytes=max_bytes)
        return [bounded(event, self.max_message) for event in answer.events]

    def _fewer(self, count: int) -> int:
        self.page = max(count // STEP, 2) if count > 2 else 1
        return self.page

    def _learn(self, events: Sequence[Event]) -> None:
        if not events:
            return
        weight = sum(len(event.message) + ROW_BYTES for event in events) // len(events)
        fitting_events = max(self.page_bytes // weight, min(2 * self.page_bytes // weight, 2), 1)
        max_events = self.page if events[-1].event_id < self.heavy else max(self.page, STEP * len(events))
        self.page = min(max_events, fitting_events)

    def _call(self, call: Call, *arguments: Any, max_bytes: int | None = None) -> Any:
        try:
            return self.client.call(call, *arguments, max_bytes=max_bytes)
        except Fault as fault:
            raise settled(fault, call) from fault
        except ServerFailed as failure:
            raise refusal(self.client) or failure from failure


def without_last(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events without those of the last one's id, because more of them may follow."""
    return [event for event in events if event.event_id != events[-1].event_id]
