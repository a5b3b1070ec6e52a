"""Reads of the journal that hold only a bounded weight of messages, and waits until the journal has an event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from calque.engine.sides.sides import SourceSide
from calque.errors import Unavailable
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span, TableName
from calque.ports import Gaps, Journal

AT_ONCE = 32 << 20
"""Bytes of messages that one reader holds."""


def messages(journal: Journal, ids: Iterable[EventId], most: int = AT_ONCE) -> Iterator[Event]:
    """Yield the events with these ids, ascending, at most about `most` bytes of messages at a time. Few or light events
    are one call of the journal."""
    event_ids = sorted(set(ids))
    while event_ids:
        events = journal.events(event_ids, most)
        yield from events.values()
        event_ids = event_ids[len(events) :]


def begin_of(gaps: Gaps | None, start_event: EventId) -> EventId:
    """Return the event after which the journal begins: that of the newest gap, else `start_event`. Raises `Unavailable`
    while capture has not begun the journal anew behind the newest gap."""
    known_gaps = gaps.recorded() if gaps is not None else ()
    if gaps is None or not known_gaps:
        return start_event
    if gaps.settled() < known_gaps[-1].number:
        raise Unavailable(
            "The journal has not begun anew behind a gap yet",
            f"{known_gaps[-1].cause.value}",
            "Let `calque run` capture",
        )
    return known_gaps[-1].at


def reach(journal: Journal) -> EventId:
    """Return the event before the first one that the journal has. Of an empty journal, return the last one that it had;
    0 if it never had one."""
    oldest = journal.oldest()
    return oldest - 1 if oldest is not None else journal.last() or 0


def newest(gaps: Gaps | None) -> int:
    """Return the number of the newest gap; 0 for none."""
    return len(gaps.recorded()) if gaps is not None else 0


PAGE = 20_000
"""Events of the journal that one read looks through."""


def touching(source: SourceSide, name: TableName, span: Span) -> list[Entry]:
    """Return the events of the span that touch the table `name`. This waits until the journal has all events of the
    span, and reads page by page. Raises `Unavailable`."""
    return [entry for entry in entries_in(source, span) if name in (entry.keys.table, entry.keys.other)]


def entries_in(source: SourceSide, span: Span) -> Iterator[Entry]:
    """Yield the events of the span page by page, as soon as the journal has them all. Raises `Unavailable` if they do
    not come, or if the span ends before it begins, because the log went back."""
    if span.upto < span.after:
        raise Unavailable("The log went back while a table was read", f"From {span.after} to {span.upto}", "Read again")
    if len(span):
        wait_for_journal(source, span.upto)
    for after in range(span.after, span.upto, PAGE):
        yield from source.journal.entries(Span(after, min(after + PAGE, span.upto)))


def wait_for_journal(source: SourceSide, event_id: EventId, seconds: float = 60.0) -> None:
    """Wait until the journal has the event. Raises `Unavailable` if it does not come within `seconds`."""
    deadline = source.clock.elapsed_ns() + int(seconds * 1e9)
    while (source.journal.last() or 0) < event_id:
        if source.clock.elapsed_ns() > deadline:
            raise Unavailable(
                f"The journal does not reach event {event_id}",
                "Capture is behind or stopped",
                "Look at `calque status`",
            )
        source.clock.sleep(0.01)
