"""Does the log go on where the journal ends? And what to do where it does not.

Ids rise one by one in the order of commits, so a hole among them is a hole. What was read is told from what another
history has under the same ids (a metastore restored from a backup, which went on) by the journal's last rows: they must
be in the log as they are in the journal. That can't be seen where the log has none of them any more.
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
"""Events of the journal's end that are compared with the log's; more where second events of an id may come late."""
AGAIN_SECONDS = 0.5
"""Before what was found is believed: a read may have been served by another server of the source's list."""
CURE = 'Start again with gap = "when_needed": what may have changed is read anew'


@dataclass(frozen=True, slots=True)
class LogBreak:
    """The log does not continue the journal: `what`, and `why` that may be."""

    cause: GapCause
    what: str
    why: str


class Interrupted(Exception):
    """The log does not seem to continue the journal; whoever meets it asks `Continuity.mend`."""


class Continuity:
    """Watches over the seam between the log and the journal, which begins after event `start_event` when nothing else
    is known. With `stop` a gap is refused; in a `weak` log second events of an id may come late."""

    def __init__(self, source: SourceSide, start_event: EventId, *, stop: bool = False, weak: bool = False) -> None:
        assert source.gaps is not None
        self.source, self.gaps, self.start_event, self.stop = source, source.gaps, start_event, stop
        self.tail = WEAK_TAIL if weak else TAIL
        self.before: Mapping[EventId, Sequence[Sign]] = {}
        """The log's last events when the journal began anew. Nothing outlives the process."""

    def last(self) -> EventId:
        """The newest event id in the journal, or where it begins."""
        last = self.source.journal.last()
        return begin_of(self.gaps, self.start_event) if last is None else last

    def look(self, *, far: bool = False) -> LogBreak | None:
        """What is wrong now: at the seam, or with `far` anywhere up to the log's end. Raises `Unavailable`."""
        last, current = self.last(), self.source.log.current()
        if current < last:
            return went_back(f"it ends at event {current}, but event {last} was read already")
        return self.compare(last) or (self.follow if far else self.next_to)(last, current)

    def compare(self, last: EventId) -> LogBreak | None:
        """What was read last with what the log has in its place, where it still has some."""
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
        """The last events that were read, as they were: the journal's, and before it what the newest gap left."""
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
        """Whether the event behind the journal's last is the log's next one."""
        if last >= current:
            return None
        rows = self.source.log.read(last, 1)
        next_id = rows[0].event_id if rows else current + 1
        return purged(last + 1, next_id - 1) if next_id > last + 1 else None

    def follow(self, last: EventId, current: EventId) -> LogBreak | None:
        """The same of all events up to `current`, and whether one comes twice."""
        for events in of_one_id(events_after(self.source.log, last, current)):
            event_id = events[0].event_id
            if event_id > last + 1:
                return purged(last + 1, event_id - 1)
            if len(events) > 1:
                return came_twice(event_id)
            last = event_id
        return purged(last + 1, current) if last < current else None

    def read(self, upto: EventId) -> Iterator[pa.Table]:
        """The journal's next rows, up to that event, which the log has, in pieces whose messages weigh at most
        `AT_ONCE`, or of one row. Raises `Interrupted` where it does not."""
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
        """Raise `Interrupted` unless the log goes on where the journal ends."""
        if (log_break := self.look()) is not None:
            raise Interrupted(log_break.what)

    def mend(self, suspected: str = "") -> Gap | None:
        """Let the journal begin anew where the log does not continue it; None where it does. Nothing else may append to
        the journal and the evidence meanwhile. What was `suspected` and is not found is `Unavailable`.

        Raises `Refused` where a gap is to stop capture."""
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
        """Finish what a death left half done."""
        known_gaps = self.gaps.recorded()
        if known_gaps and self.gaps.settled() < known_gaps[-1].number:
            self.begin_anew(known_gaps[-1])

    def begin_anew(self, gap: Gap) -> None:
        """Drop what was captured: targets that need it meet the gap first. May be done again."""
        self.source.journal.restart(gap.at)
        self.source.evidence.restart(gap.at)
        if self.source.pins is not None:
            self.source.pins.release(self.source.pins.events())
        self.gaps.settle(gap.number)


def sign_of(event: Event) -> Sign:
    """What tells a row from any other of its id, in the log and in the journal."""
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
