"""Does the log go on where the journal ends? And what to do where it does not.

Ids rise one by one in the order of commits, so a hole among them is a hole. What was read is told from what another
history has under the same ids (a metastore restored from a backup, which went on) by the journal's last rows: they must
be in the log as they are in the journal. That can't be seen where the log has none of them any more.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from calque.core.repeats import covers, joined, of_one_id
from calque.core.rows import storable, table_of
from calque.engine.pages import events_after
from calque.engine.world import SourceSide
from calque.errors import Refused, Unavailable
from calque.model.gaps import Cause, Gap
from calque.model.journal import Event
from calque.model.names import EventId, Span
from calque.ports import Gaps

LOG = logging.getLogger(__name__)
TAIL, WEAK_TAIL = 8, 200
"""Rows of the journal's end that are compared with the log; of a weak log, where a second event may come late, more."""
AGAIN_SECONDS = 0.5
"""Before what was found is believed: a read may have been served by another server of the source's list."""
CURE = 'Start again with gap = "when_needed": what may have changed is read anew'


@dataclass(frozen=True, slots=True)
class Break:
    """The log does not continue the journal: `what`, and `why` that may be."""

    cause: Cause
    what: str
    why: str


class Interrupted(Exception):
    """The log does not seem to continue the journal; whoever meets it asks `Continuity.mend`."""


class Continuity:
    """Watches over the seam between the log and the journal, which begins after event `begun` when nothing else is
    known. With `stop` a gap is refused; a `weak` log may give one id to several events."""

    def __init__(self, source: SourceSide, begun: EventId, *, stop: bool = False, weak: bool = False) -> None:
        assert source.gaps is not None
        self.source, self.gaps, self.begun, self.stop, self.weak = source, source.gaps, begun, stop, weak

    def last(self) -> EventId:
        """The newest event id in the journal, or where it begins."""
        last = self.source.journal.last()
        return begin_of(self.gaps, self.begun) if last is None else last

    def look(self, *, far: bool = False) -> Break | None:
        """What is wrong now: at the seam, or with `far` anywhere up to the log's end. Raises `Unavailable`."""
        last, current = self.last(), self.source.log.current()
        if current < last:
            return went_back(f"it ends at event {current}, but event {last} was read already")
        after = max(last - (WEAK_TAIL if self.weak else TAIL), (self.source.journal.oldest() or last + 1) - 1)
        return self.compare(after, last) or (self.follow if far else self.next_to)(last, current)

    def compare(self, after: EventId, last: EventId) -> Break | None:
        """The journal's last rows with what the log has in their place, where it still has some."""
        try:
            known = self.source.journal.events(range(after + 1, last + 1))
            entries = self.source.journal.entries(Span(after, last))
        except Refused:
            return None
        keys = {entry.event_id: entry.keys for entry in entries}
        for events in of_one_id(events_after(self.source.log, after, last)):
            event_id = events[0].event_id
            others = [event for event in events if not is_same(event, known[event_id])]
            if len(others) == len(events):
                return went_back(f"event {event_id} is not the one that was read before")
            if not all(covers(keys[event_id], event) for event in others):
                return came_twice(event_id)
        return None

    def next_to(self, last: EventId, current: EventId) -> Break | None:
        """Whether the event behind the journal's last is the log's next one."""
        if last >= current:
            return None
        rows = self.source.log.read(last, 1)
        found = rows[0].event_id if rows else current + 1
        return purged(last + 1, found - 1) if found > last + 1 else None

    def follow(self, last: EventId, current: EventId) -> Break | None:
        """The same of all events up to `current`, and whether one row can stand for those that share an id."""
        for events in of_one_id(events_after(self.source.log, last, current)):
            found = events[0].event_id
            if found > last + 1:
                return purged(last + 1, found - 1)
            if len(events) > 1 and (not self.weak or joined(events) is None):
                return came_twice(found)
            last = found
        return purged(last + 1, current) if last < current else None

    def read(self, upto: EventId) -> pa.Table:
        """The journal's next rows, up to that event, which the log has. Raises `Interrupted` where it does not."""
        last, rows = self.last(), []
        for events in of_one_id(events_after(self.source.log, last, upto)):
            row = joined(events) if len(events) == 1 or self.weak else None
            if events[0].event_id != last + 1 or row is None:
                what = f"it goes on with event {events[0].event_id}" + (" twice" if len(events) > 1 else "")
                raise Interrupted(f"After event {last} {what}")
            rows.append(row)
            last += 1
        if last < upto:
            raise Interrupted(f"It ends at event {last}, not {upto}")
        return table_of(rows)

    def require(self) -> None:
        """Raise `Interrupted` unless the log goes on where the journal ends."""
        if (found := self.look()) is not None:
            raise Interrupted(found.what)

    def mend(self, suspected: str = "") -> Gap | None:
        """Let the journal begin anew where the log does not continue it; None where it does. Nothing else may append to
        the journal and the evidence meanwhile. What was `suspected` and is not found is `Unavailable`.

        Raises `Refused` where a gap is to stop capture."""
        self.heal()
        if self.look(far=bool(suspected)) is not None:
            self.source.clock.sleep(AGAIN_SECONDS)
            found = self.look(far=True)
            if found is not None:
                return self.pass_over(found)
        if suspected:
            raise Unavailable(
                "The log seemed not to continue", f"{suspected}, and it does when it is read again", "It is tried again"
            )
        return None

    def pass_over(self, found: Break) -> Gap:
        if self.stop:
            raise Refused(found.what, found.why, CURE)
        number = len(self.gaps.found()) + 1
        now = datetime.fromtimestamp(self.source.clock.now_ns() / 1e9, UTC).isoformat(timespec="seconds")
        gap = Gap(number, self.last(), self.source.log.current(), found.cause, now)
        LOG.warning("%s. %s. The journal begins anew behind event %d", found.what, found.why, gap.at)
        self.gaps.add(gap)
        self.begin_anew(gap)
        return gap

    def heal(self) -> None:
        """Finish what a death left half done."""
        found = self.gaps.found()
        if found and self.gaps.settled() < found[-1].number:
            self.begin_anew(found[-1])

    def begin_anew(self, gap: Gap) -> None:
        """Drop what was captured: targets that need it meet the gap first. May be done again."""
        self.source.journal.restart(gap.at)
        self.source.evidence.restart(gap.at)
        if self.source.pins is not None:
            self.source.pins.release(self.source.pins.events())
        self.gaps.settle(gap.number)


def begin_of(gaps: Gaps | None, begun: EventId) -> EventId:
    """Where the journal begins: behind the newest gap, else after event `begun`. `Unavailable` while capture has not
    begun it anew."""
    found = gaps.found() if gaps is not None else ()
    if gaps is None or not found:
        return begun
    if gaps.settled() < found[-1].number:
        raise Unavailable(
            "The journal has not begun anew behind a gap yet", f"{found[-1].cause.value}", "Let `calque run` capture"
        )
    return found[-1].at


def newest(gaps: Gaps | None) -> int:
    """The number of the newest gap; 0 for none."""
    return len(gaps.found()) if gaps is not None else 0


def is_same(event: Event, known: Event) -> bool:
    """Whether a row of the log is the journal's."""
    told = (event.event_time, storable(event.event_type), storable(event.message))
    return told == (known.event_time, known.event_type, known.message)


def purged(first: EventId, last: EventId) -> Break:
    gone = f"event {first} is" if first == last else f"events {first} to {last} are"
    return Break(
        Cause.PURGED,
        f"The log has a gap: {gone} missing",
        "They were removed before they were read (metastore.event.db.listener.timetolive says when that happens)",
    )


def went_back(what: str) -> Break:
    return Break(
        Cause.WENT_BACK,
        f"The log went back: {what}",
        "The metastore was restored from a backup, or another one answers at its address",
    )


def came_twice(event_id: EventId) -> Break:
    return Break(
        Cause.REPEATED,
        f"The log gave event id {event_id} to two events",
        "It is written by something else than a transactional DbNotificationListener",
    )
