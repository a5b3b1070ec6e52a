"""The check that the log goes on where the journal ends, and the repair where it does not.

Ids rise one by one in the order of commits, so a missing id is a hole in the log. A metastore that was restored from a
backup and went on has another history under the same ids. The journal's last rows tell the two apart, because they must
be in the log as they are in the journal:

    The journal ends at event 120. The metastore is restored to event 100, and goes on to event 130. The log's events
    113 to 120 are not those of the journal, so the log does not continue it.

The check can't see the difference where the log has none of these rows any more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from calque.core.events.decode import weight_of
from calque.core.events.rows import rows_of_events, storable
from calque.engine.sides.journal_reads import AT_ONCE, begin_of, messages
from calque.engine.sides.log_reads import events_after, of_one_id
from calque.engine.sides.sides import SourceSide
from calque.errors import Refused, Unavailable
from calque.model.gaps import Gap, GapCause
from calque.model.journal import Event
from calque.model.names import EventId

Sign = tuple[int, str, int]
LOG = logging.getLogger(__name__)
TAIL, WEAK_TAIL = 8, 200
"""Events of the journal's end that are compared with the log's; `WEAK_TAIL` of them where second events of an id may
come late."""
AGAIN_SECONDS = 0.5
"""Seconds before a second look that must confirm the first: another server of the source's list may have served the
first."""
CURE = 'Start again with gap = "when_needed": what may have changed is read anew'


@dataclass(frozen=True, slots=True)
class LogBreak:
    """A place where the log does not continue the journal: `what` is wrong, and `why` that may be."""

    cause: GapCause
    what: str
    why: str


class Interrupted(Exception):
    """Raised where the log does not seem to continue the journal. The caller that catches it asks `Continuity.mend`."""


class Continuity:
    """The watch over the seam between the log and the journal, which begins after event `start_event` when no gap is
    known. With `stop` a gap is refused. In a `weak` log a second event of an id may come late."""

    def __init__(self, source: SourceSide, start_event: EventId, *, stop: bool = False, weak: bool = False) -> None:
        assert source.gaps is not None
        self.source, self.gaps, self.start_event, self.stop = source, source.gaps, start_event, stop
        self.tail = WEAK_TAIL if weak else TAIL
        self.before: Mapping[EventId, Sequence[Sign]] = {}
        """The log's last events when the journal began anew, in memory only: it does not outlive the process."""

    def last(self) -> EventId:
        """Return the newest event id in the journal; if it is empty, the event after which it begins."""
        last = self.source.journal.last()
        return begin_of(self.gaps, self.start_event) if last is None else last

    def look(self, *, far: bool = False) -> LogBreak | None:
        """Return what is wrong now at the seam, or, with `far`, anywhere up to the log's end; None if all is well.
        Raises `Unavailable`."""
        last, current = self.last(), self.source.log.current()
        if current < last:
            return went_back(f"it ends at event {current}, but event {last} was read already")
        return self.compare(last) or (self.follow if far else self.next_to)(last, current)

    def compare(self, last: EventId) -> LogBreak | None:
        """Compare the last events that were read with what the log has under their ids, as far as it still has them.
        Return the difference, None if there is none."""
        known_signs = self.expected_signs(last)
        for events in of_one_id(events_after(self.source.log, max(last - self.tail, 0), last)):
            event_id, log_signs = events[0].event_id, [sign_of(event) for event in events]
            if event_id not in known_signs:
                continue
            if not set(known_signs[event_id]) <= set(log_signs):
                return went_back(f"event {event_id} is not the one that was read before")
            if len(log_signs) > len(known_signs[event_id]):
                return came_twice(event_id)
        return None

    def expected_signs(self, last: EventId) -> Mapping[EventId, Sequence[Sign]]:
        """Return the last events that were read, as they were read: those of the journal, and before them those that
        the newest gap left in memory."""
        oldest = self.source.journal.oldest()
        if oldest is None:
            return self.before
        tail = range(max(last - self.tail + 1, oldest), last + 1)
        try:
            journal_signs = {event.event_id: [sign_of(event)] for event in messages(self.source.journal, tail)}
        except Refused:
            return self.before
        return {**self.before, **journal_signs}

    def next_to(self, last: EventId, current: EventId) -> LogBreak | None:
        """Return a break if the log's next event is not the one after the journal's last; else None."""
        if last >= current:
            return None
        rows = self.source.log.read(last, 1)
        next_id = rows[0].event_id if rows else current + 1
        return purged(last + 1, next_id - 1) if next_id > last + 1 else None

    def follow(self, last: EventId, current: EventId) -> LogBreak | None:
        """Return a break if an event up to `current` is missing or comes twice; else None."""
        for events in of_one_id(events_after(self.source.log, last, current)):
            event_id = events[0].event_id
            if event_id > last + 1:
                return purged(last + 1, event_id - 1)
            if len(events) > 1:
                return came_twice(event_id)
            last = event_id
        return purged(last + 1, current) if last < current else None

    def read(self, upto: EventId) -> Iterator[pa.Table]:
        """Yield the journal's next rows up to the event `upto`, which the log has, in pieces whose messages weigh at
        most `AT_ONCE` bytes, or of one row. Raises `Interrupted` where the log does not have all of them."""
        last = self.last()
        piece: list[Event] = []
        weight = 0
        for event in events_after(self.source.log, last, upto):
            if event.event_id != last + 1:
                raise Interrupted(f"After event {last} the log goes on with event {event.event_id}")
            last += 1
            weight += weight_of(event)
            if piece and weight > AT_ONCE:
                yield rows_of_events(piece)
                piece, weight = [], weight_of(event)
            piece.append(event)
        if last < upto:
            raise Interrupted(f"The log ends at event {last}, not {upto}")
        if piece:
            yield rows_of_events(piece)

    def require(self) -> None:
        """Raise `Interrupted` unless the log goes on where the journal ends. Raises `Unavailable`."""
        if (log_break := self.look()) is not None:
            raise Interrupted(log_break.what)

    def mend(self, suspected: str = "") -> Gap | None:
        """Let the journal begin anew behind the log's end, if the log does not continue it, and return the gap; None if
        it does continue it. No other code may append to the journal and the evidence meanwhile. Raises `Unavailable` if
        what was `suspected` is not found.

        Raises `Refused` where a gap is to stop capture.
        """
        self.heal()
        if self.look(far=bool(suspected)) is not None:
            self.source.clock.sleep(AGAIN_SECONDS)
            log_break = self.look(far=True)
            if log_break is not None:
                return self.pass_over(log_break)
        if suspected:
            raise Unavailable(
                "The log seemed not to continue", f"{suspected}, and it does when it is read again", "It is tried again"
            )
        return None

    def pass_over(self, log_break: LogBreak) -> Gap:
        if self.stop:
            raise Refused(log_break.what, log_break.why, CURE)
        number = len(self.gaps.recorded()) + 1
        now = datetime.fromtimestamp(self.source.clock.now_ns() / 1e9, UTC).isoformat(timespec="seconds")
        gap = Gap(number, self.last(), self.source.log.current(), log_break.cause, now)
        rows = of_one_id(events_after(self.source.log, max(gap.at - self.tail, 0), gap.at))
        self.before = {events[0].event_id: [sign_of(event) for event in events] for events in rows}
        LOG.warning("%s. %s. The journal begins anew behind event %d", log_break.what, log_break.why, gap.at)
        self.gaps.add(gap)
        self.begin_anew(gap)
        return gap

    def heal(self) -> None:
        """Finish the new beginning of the journal that a dead process left half done."""
        known_gaps = self.gaps.recorded()
        if known_gaps and self.gaps.settled() < known_gaps[-1].number:
            self.begin_anew(known_gaps[-1])

    def begin_anew(self, gap: Gap) -> None:
        """Drop all that was captured. Targets that would need it meet the gap first. A second call has the same
        result."""
        self.source.journal.restart(gap.at)
        self.source.evidence.restart(gap.at)
        if self.source.pins is not None:
            self.source.pins.release(self.source.pins.events())
        self.gaps.settle(gap.number)


def sign_of(event: Event) -> Sign:
    """Return a value by which a row can be told from any other row of its id, in the log and in the journal."""
    return event.event_time, storable(event.event_type), hash(storable(event.message))


def purged(first: EventId, last: EventId) -> LogBreak:
    missing_events = f"event {first} is" if first == last else f"events {first} to {last} are"
    return LogBreak(
        GapCause.PURGED,
        f"The log has a gap: {missing_events} missing",
        "They were removed before they were read (metastore.event.db.listener.timetolive says when that happens)",
    )


def went_back(what: str) -> LogBreak:
    return LogBreak(
        GapCause.WENT_BACK,
        f"The log went back: {what}",
        "The metastore was restored from a backup, or another one answers at its address",
    )


def came_twice(event_id: EventId) -> LogBreak:
    return LogBreak(
        GapCause.REPEATED,
        f"The log gave event id {event_id} to two events",
        "It is written by something else than a transactional DbNotificationListener",
    )
