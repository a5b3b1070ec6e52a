"""The events at which a window may end: never inside a run of events that may be one call of the source.

For example, one call alters the partitions `ds=1`, `ds=2` and `ds=3` of `t`, and the log has it as events 81, 82 and
83. A window to 82 would show half of the call, which readers of the source may never have seen. So the window ends at
83, or at 80.
"""

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
"""Seconds for which a window waits for more of a run that the journal ends with: since the run last grew, and in
all."""


@dataclass(slots=True)
class RunBoundaries:
    """The run that the journal ended with when it was last looked at: `before` is the event before the run, `last` its
    newest event, `begun_ns` when the run was first seen and `grown_ns` when it last grew."""

    before: EventId = -1
    last: EventId = -1
    begun_ns: int = 0
    grown_ns: int = 0

    def end(
        self, source: SourceSide, low: EventId, least: EventId, upto: EventId, stopped: Callable[[], bool]
    ) -> EventId:
        """Return where a window to `upto` ends: at `upto`, or at the end of the run that `upto` would cut. Where the
        journal ends with a run of several events, more of it may come: the window then ends before the run, or, where
        nothing else is to be done, waits a moment for more. `low` is where the window begins. No window may end before
        `least`, to which an earlier one came. The wait ends when `stopped` says so."""
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
        """Tell whether no more of the run is waited for, because it has not grown for `STILL_SECONDS` or was first seen
        `LONGEST_SECONDS` ago."""
        if self.before != before:
            self.before, self.last, self.begun_ns, self.grown_ns = before, last, now_ns, now_ns
        elif self.last != last:
            self.last, self.grown_ns = last, now_ns
        return now_ns - self.grown_ns > STILL_SECONDS * 1e9 or now_ns - self.begun_ns > LONGEST_SECONDS * 1e9


def end_of_run(journal: Journal, low: EventId, upto: EventId, last: EventId) -> EventId:
    """Return the last event of the run that goes on after `upto`; `upto` where none does. A journal that has the events
    of one database alone has holes, which end a run."""
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
    """Return the event before the run that ends with `last`, not below `low`."""
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
