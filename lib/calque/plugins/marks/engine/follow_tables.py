"""The following of marked tables through the source's events: by the journal, and by the log where the journal lacks
events."""

from __future__ import annotations

from collections.abc import Iterator

from calque.core.events.effects import MAY_REBIND_NAMES
from calque.core.events.keys import entry_of
from calque.engine.sides.journal_reads import PAGE, reach
from calque.engine.sides.log_reads import events_after
from calque.engine.sides.sides import SourceSide
from calque.errors import EventsForgotten
from calque.model.journal import Entry
from calque.model.names import EventId, Span
from calque.plugins.marks.core import expired, followed, lost_by
from calque.plugins.marks.model import Trail
from calque.plugins.marks.ports import MarkStore


class EventsLost(Exception):
    """Raised when neither the journal nor the log has the events `after + 1` to `upto` any more."""

    def __init__(self, after: EventId, upto: EventId) -> None:
        super().__init__(f"events {after + 1} to {upto} are not to be had any more")


def extended(source: SourceSide, trail: Trail, upto: EventId) -> Trail:
    """Return the trail continued to event `upto`, which has happened. Raises `EventsLost`."""
    if trail.ended_by is not None or trail.upto >= upto:
        return trail
    return followed(trail, naming_entries(source, trail.upto, upto), upto)


def naming_entries(source: SourceSide, after: EventId, upto: EventId) -> Iterator[Entry]:
    """Yield the events after `after` up to `upto` that may concern names. Raises `EventsLost`."""
    begin, last = reach(source.journal), source.journal.last() or 0
    yield from filter(names_something, logged(source, after, min(begin, upto)))
    yield from filter(names_something, captured(source, max(after, begin), min(last, upto)))
    yield from filter(names_something, logged(source, max(after, begin, last), upto))


def names_something(entry: Entry) -> bool:
    return entry.keys.kind in MAY_REBIND_NAMES


def captured(source: SourceSide, after: EventId, upto: EventId) -> Iterator[Entry]:
    """Yield the events after `after` up to `upto` from the journal, page by page. Raises `EventsLost`."""
    for begin in range(after, upto, PAGE):
        try:
            yield from source.journal.entries(Span(begin, min(begin + PAGE, upto)))
        except EventsForgotten:
            raise EventsLost(begin, upto) from None


def logged(source: SourceSide, after: EventId, upto: EventId) -> Iterator[Entry]:
    """Yield the events after `after` up to `upto` from the source's log. Raises `EventsLost` where one is missing."""
    reached = after
    for event in events_after(source.log, after, upto) if upto > after else ():
        if event.event_id > reached + 1:
            break
        reached = event.event_id
        yield entry_of(event)
    if reached < upto:
        raise EventsLost(reached, upto)


def remember(source: SourceSide, marks: MarkStore) -> None:
    """Record in the store what became of the tables of all marks up to the journal's end. Forget marks that have
    expired, and marks whose history is lost. A second call changes nothing."""
    number, upto = marks.last(), source.journal.last() or 0
    gaps = source.gaps.recorded() if source.gaps is not None else ()
    known_marks = marks.after(0)
    forgotten_numbers = set(expired(known_marks, source.clock.now_ns()))
    forgotten_numbers |= {mark.number for mark in known_marks if lost_by(mark, gaps) is not None}
    trails = {mark.number: mark.trail for mark in known_marks if mark.number not in forgotten_numbers}
    open_trails = {key: trail for key, trail in trails.items() if trail.ended_by is None and trail.upto < upto}
    while open_trails:
        begin = min(trail.upto for trail in open_trails.values())
        try:
            entries = list(naming_entries(source, begin, upto))
            break
        except EventsLost:
            lost_numbers = {key for key, trail in open_trails.items() if trail.upto == begin}
            forgotten_numbers |= lost_numbers
            open_trails = {key: trail for key, trail in open_trails.items() if key not in lost_numbers}
    if forgotten_numbers:
        marks.forget(forgotten_numbers)
    if open_trails:
        new_trails = {key: followed(trail, entries, upto) for key, trail in open_trails.items()}
        changed_trails = {
            key: trail
            for key, trail in new_trails.items()
            if trail.ended_by is not None or trail.names != trails[key].names
        }
        marks.follow(changed_trails, number, upto)
