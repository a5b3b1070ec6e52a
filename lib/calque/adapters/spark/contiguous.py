"""The check that the rows of a span have every event id once, in order, with none missing."""

from __future__ import annotations

from collections.abc import Iterable

from calque.errors import Broken
from calque.model.names import EventId, Span


class HoleInLog(Broken):
    """Events are gone: the log was purged, or its metastore was restored from a backup or replaced."""


class EventRepeated(Broken):
    """An event id came twice or out of order: the log is weak."""


def checked(ids: Iterable[EventId], after: EventId) -> EventId:
    """Return the last of `ids`, which continue the log after `after` one by one; `after` itself when there are none.

    Raises `HoleInLog` when ids are missing, `EventRepeated` when one comes twice or out of order.
    """
    last = after
    for event_id in ids:
        if event_id > last + 1:
            raise missing(Span(last, event_id - 1), f"the log goes on with event {event_id}")
        if event_id <= last:
            raise repeated(event_id, last)
        last = event_id
    return last


def repeated(event_id: EventId, last: EventId) -> EventRepeated:
    return EventRepeated(
        f"The log gave event {event_id} after event {last}",
        "Event ids must grow by one; applying events twice or out of order would damage the replica",
        "Look for a second row with this id in the source's NOTIFICATION_LOG, then start again",
    )


def missing(span: Span, evidence: str) -> HoleInLog:
    return HoleInLog(
        f"The log has a gap: events {span.after + 1} to {span.upto} are missing, {evidence}",
        "They were purged before they were read, or the metastore was restored from a backup",
        'Start again with gap = "when_needed": what may have changed is read anew',
    )


def went_back(start: EventId, current: EventId) -> HoleInLog:
    return HoleInLog(
        f"The log went back: it ends at event {current}, but event {start} was read already",
        "The metastore was restored from a backup, or another one answers at its address",
        'Check the address; if it is the right one start again with gap = "when_needed": what may have changed is '
        "read anew",
    )
