"""The feed of a channel at the source: it sends the journal's events in order, with each mark behind its event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from calque.engine.capture.gap_guard import fenced
from calque.engine.sides.journal_reads import begin_of, newest, reach
from calque.engine.sides.sides import SourceSide
from calque.errors import EventsForgotten
from calque.model.gaps import Gap
from calque.model.journal import Entry
from calque.model.names import EventId, Span, TableName
from calque.plugins.marks.model import Mark
from calque.plugins.marks.ports import MarkStore
from calque.plugins.notices.core.from_journal import JournalNotices, gap_notice, in_order, iso_ns, stream_of
from calque.plugins.notices.core.notice import HistoryGap, Notice, Occasion
from calque.plugins.notices.core.table_keys import TableKeys
from calque.plugins.notices.engine.ordered_publisher import OrderedPublisher
from calque.plugins.notices.engine.positions import SNAPSHOT_EVENTS, KeyRecords, Position
from calque.ports.records import Records

EVENTS_AT_ONCE = 20_000
FORGOTTEN = "forgotten"


class SourceFeed:
    """The feed of one channel at the source. `name` is the record of its position in `records`; `first` is the event
    after which the journal began."""

    def __init__(
        self,
        source: SourceSide,
        marks: MarkStore | None,
        publisher: OrderedPublisher,
        records: Records,
        name: str,
        key_records: KeyRecords,
        first: EventId,
    ) -> None:
        self.source, self.marks, self.publisher = source, marks, publisher
        self.records, self.name, self.key_records, self.first = records, name, key_records, first
        self.position = Position()
        self.notices: JournalNotices | None = None
        self.snapshot_at: EventId = 0
        self.told_at: dict[str, int] = {}
        """The time, in nanoseconds, at which each notice of forgotten events was made first, by the notice's id. A
        notice that is sent again is then the same."""

    def open(self) -> None:
        """Continue at the recorded position. A channel without a record begins with the next event and the next
        mark."""
        record = self.records.read(self.name)
        if record is None:
            gap, last = newest(self.source.gaps), self.source.journal.last()
            begin = begin_of(self.source.gaps, self.first)
            self.put(Position(gap, begin if last is None else last, self.marks.last() if self.marks else 0))
        else:
            self.position = Position.of(record)
        self.notices = None

    def send(self) -> bool:
        """Send the notices of the next events and marks, at most of `EVENTS_AT_ONCE` events. Return False where there
        was nothing to go through. Raises `Unavailable` and `Refused` of the broker, the journal and the records."""
        known_gaps = self.source.gaps.recorded() if self.source.gaps is not None else ()
        if len(known_gaps) > self.position.gap:
            self.pass_gap(known_gaps[self.position.gap])
            return True
        source = fenced(self.source)
        last, position = source.journal.last(), self.position
        reached = reach(source.journal)
        if last is not None and position.event_id < reached:
            self.pass_forgotten(reached)
            return True
        upto = min(last if last is not None else position.event_id, position.event_id + EVENTS_AT_ONCE)
        marks = self.due(upto)
        if upto <= position.event_id and not marks:
            return False
        try:
            entries = source.journal.entries(Span(position.event_id, upto)) if upto > position.event_id else ()
        except EventsForgotten:
            return True
        notices = self.prepared(source)
        upto = max(upto, position.event_id)
        try:
            self.publisher.send(self.history(notices, entries, marks))
        except BaseException:
            # The keys are ahead of what was sent: they are made again at the next attempt.
            self.notices = None
            raise
        notices.keys.pass_over(upto)
        self.record_keys(notices.keys)
        self.put(replace(position, event_id=upto, mark=marks[-1].number if marks else position.mark))
        return True

    def lag(self) -> int:
        """Return the number of event ids between the channel's position and the journal's end."""
        last = self.source.journal.last()
        return max((last or 0) - self.position.event_id, 0)

    def history(self, notices: JournalNotices, entries: Sequence[Entry], marks: Sequence[Mark]) -> Iterator[Notice]:
        for item in in_order(entries, marks):
            if isinstance(item, Mark):
                yield notices.of_mark(item)
            else:
                yield from notices.of_entry(item)

    def due(self, upto: EventId) -> Sequence[Mark]:
        """Return the next marks, in order, whose events are not after `upto`."""
        if self.marks is None or self.marks.last() <= self.position.mark:
            return ()
        due_marks: list[Mark] = []
        for mark in self.marks.after(self.position.mark):
            if mark.event_id > upto:
                break
            due_marks.append(mark)
        return due_marks

    def prepared(self, source: SourceSide) -> JournalNotices:
        if self.notices is None:
            gap, upto = self.position.gap, self.position.event_id
            keys = self.key_records.keys(source.journal, gap, begin_of(self.source.gaps, self.first), upto)
            self.notices, self.snapshot_at = JournalNotices(self.source.name, gap, keys), keys.upto
        return self.notices

    def record_keys(self, keys: TableKeys) -> None:
        if keys.upto - self.snapshot_at >= SNAPSHOT_EVENTS:
            keys.forget(keys.upto)
            self.key_records.put(self.position.gap, keys)
            self.snapshot_at = keys.upto

    def pass_gap(self, gap: Gap) -> None:
        """Send a notice of this gap in the log, and go on behind it. The notice covers the journal's events before the
        gap that were not sent, because they can't be sent any more."""
        begin_of(self.source.gaps, self.first)
        notice = gap_notice(stream_of(self.source.name, gap.number - 1), gap)
        unsent_event = min(notice.first, self.position.event_id + 1)
        self.publisher.send([replace(notice, first=unsent_event)])
        self.notices = None
        self.put(replace(self.position, gap=gap.number, event_id=gap.at))

    def pass_forgotten(self, reached: EventId) -> None:
        """Send a notice of the events up to `reached` that the journal forgot before they were sent, and go on behind
        them."""
        position = self.position
        identity = f"{stream_of(self.source.name, position.gap)}:forgotten:{position.event_id}"
        forgotten_at = self.told_at.setdefault(f"{identity}:{reached}", self.source.clock.now_ns())
        occasion = Occasion(identity, TableName(""), "", reached, reached, iso_ns(forgotten_at))
        self.publisher.send([HistoryGap(occasion, position.event_id + 1, reached, FORGOTTEN)])
        self.notices = None
        self.put(replace(position, event_id=reached))

    def put(self, position: Position) -> None:
        self.records.put(self.name, position.record())
        self.position = position
        self.publisher.recorded()
