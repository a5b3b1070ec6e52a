"""Where a window may end: never inside a run of events that may be one call of the source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from calque.core.states.fold import same_run
from calque.engine.sides.sides import SourceSide
from calque.model.names import EventId, Span
from calque.ports import Journal

PAGE = 1000
"""Entries read at once."""
STILL_SECONDS, LONGEST_SECONDS = 0.05, 0.5
"""How long more of a run that the journal ends with is waited for: since it last grew, and in all."""


@dataclass(slots=True)
class RunBoundaries:
    """What is known of the run that the journal ended with: the event before it, its newest one, when it was first seen
    and when it last grew."""

    before: EventId = -1
    last: EventId = -1
    begun_ns: int = 0
    grown_ns: int = 0

    def end(
        self, source: SourceSide, low: EventId, least: EventId, upto: EventId, stopped: Callable[[], bool]
    ) -> EventId:
        """`upto`, or the end of the run that it would cut. Where the journal ends with a run of several events, more of
        it may come: the window ends before it, or where nothing else is to be done waits a moment. `low` is where the
        window begins, `least` how far one came before."""
        while True:
            last = source.journal.last() or 0
            upto = end_of_run(source.journal, low, upto, last)
            if upto != last:
                return upto
            before = self.before if self.last == last else start_of_run(source.journal, low, last)
            if before >= last - 1 or self.is_still(before, last, source.clock.elapsed_ns()) or stopped():
                return upto
            if before > low and before >= least:
                return before
            source.clock.sleep(STILL_SECONDS / 5)

    def is_still(self, before: EventId, last: EventId, now_ns: int) -> bool:
        """Whether no more is waited for: nothing came for a moment, or it came for long."""
        if self.before != before:
            self.before, self.last, self.begun_ns, self.grown_ns = before, last, now_ns, now_ns
        elif self.last != last:
            self.last, self.grown_ns = last, now_ns
        return now_ns - self.grown_ns > STILL_SECONDS * 1e9 or now_ns - self.begun_ns > LONGEST_SECONDS * 1e9


def end_of_run(journal: Journal, low: EventId, upto: EventId, last: EventId) -> EventId:
    """The last event of the run that goes on after `upto`; `upto` where none does. A journal that has the events of one
    database alone has holes, which end a run."""
    while low < upto < last:
        page = journal.entries(Span(upto - 1, min(upto + PAGE, last)))
        if not page or page[0].event_id != upto:
            return upto
        for one, after in pairwise(page):
            if not same_run(one, after):
                return one.event_id
        if page[-1].event_id == upto:
            return upto
        upto = page[-1].event_id
    return upto


def start_of_run(journal: Journal, low: EventId, last: EventId) -> EventId:
    """The event before the run that ends with `last`, not below `low`."""
    first, size = last, 1
    while first - 1 > low:
        page = journal.entries(Span(max(low, first - 1 - size), first))
        if not page or page[-1].event_id != first:
            return first - 1
        for one, after in reversed(list(pairwise(page))):
            if not same_run(one, after):
                return after.event_id - 1
        if page[0].event_id == first:
            return first - 1
        first, size = page[0].event_id, PAGE
    return first - 1
