"""The feed of a channel at a target: it sends what each epoch shows anew, and marks that are done there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from calque.engine.sides.journal_reads import begin_of, newest, reach
from calque.engine.sides.sides import SourceSide
from calque.errors import EventsForgotten
from calque.model.ledger import Epoch
from calque.model.names import EventId, TableName
from calque.plugins.marks.model import Mark
from calque.plugins.marks.ports import MarkStore
from calque.plugins.notices.core.from_ledger import LedgerNotices, ShownTables, restated
from calque.plugins.notices.core.notice import HistoryGap, Occasion, SetDone
from calque.plugins.notices.core.table_keys import TableKeys
from calque.plugins.notices.engine.ordered_publisher import OrderedPublisher
from calque.plugins.notices.engine.positions import SNAPSHOT_EVENTS, KeyRecords, Position, follow
from calque.plugins.notices.engine.shown import shown_tables, tables_before
from calque.ports import Ledger
from calque.ports.records import Records

EPOCHS_AT_ONCE = 100


class TargetMarks(Protocol):
    """The judge of marks at one target: it says which marks the target shows."""

    def judge(self, marks: Sequence[Mark]) -> Mapping[int, bool]:
        """Return, by the mark's number, True for a mark that is done at the target by now and False for a mark that
        never will be. Marks that may still come to be done are left out."""


class TargetFeed:
    """The feed of one channel at a target. `name` is the record of its position in `records`; `first` is the event
    after which the journal began."""

    def __init__(
        self,
        source: SourceSide,
        target: str,
        ledger: Ledger,
        publisher: OrderedPublisher,
        records: Records,
        name: str,
        key_records: KeyRecords,
        first: EventId,
        *,
        marks: MarkStore | None = None,
        target_marks: TargetMarks | None = None,
    ) -> None:
        self.source, self.target, self.ledger, self.publisher = source, target, ledger, publisher
        self.records, self.name, self.key_records, self.first = records, name, key_records, first
        self.marks, self.target_marks = marks, target_marks
        self.position = Position()
        self.shown: ShownTables | None = None
        self.keys: TableKeys | None = None
        self.keys_gap = self.snapshot_at = 0
        self.told: dict[int, SetDone] = {}
        """Notices of marks, by the mark's number, while it is not known that the broker has all of them. They are sent
        again exactly as they were."""

    def open(self) -> None:
        """Continue at the recorded position. A channel without a record begins with the next epoch and the next
        mark."""
        record = self.records.read(self.name)
        if record is None:
            last, mark = self.ledger.last_epoch(), self.marks.last() if self.marks else 0
            number, event_id = (last.epoch, last.event_id) if last is not None else (0, 0)
            self.put(Position(newest(self.source.gaps), event_id, mark, number))
        else:
            self.position = Position.of(record)
        self.shown = self.keys = None

    def send(self) -> bool:
        """Send the notices of the next epochs, at most `EPOCHS_AT_ONCE`, and of marks that are done. Return whether
        there were any. Raises `Unavailable` and `Refused`, as `SourceFeed.send` does."""
        last = self.ledger.last_epoch()
        number = last.epoch if last is not None else 0
        if number < self.position.epoch:
            # The ledger was lost, and another one begins.
            self.put(replace(self.position, epoch=0, event_id=0))
            self.shown = None
        went_on = False
        if number > self.position.epoch:
            for epoch in self.ledger.epochs(self.position.epoch)[:EPOCHS_AT_ONCE]:
                went_on |= self.send_epoch(epoch)
        return self.send_marks() or went_on

    def lag(self) -> int:
        """Return the number of event ids between the epoch that was sent last and the newest epoch."""
        last = self.ledger.last_epoch()
        return max(last.event_id - self.position.event_id, 0) if last is not None else 0

    def send_epoch(self, epoch: Epoch) -> bool:
        if self.position.epoch and epoch.epoch > self.position.epoch + 1:
            self.pass_forgotten(epoch)
        shown = self.shown = self.shown or shown_tables(self.ledger, epoch.epoch - 1)
        rows = self.ledger.objects(epoch.epoch)
        keys = self.keys_at(epoch.event_id)
        try:
            if rows or epoch.gap is not None:
                notices = LedgerNotices(self.source.name, self.target, shown, keys)
                before = tables_before(self.ledger, restated(rows), epoch.epoch)
                finds = self.publisher.channel.selection.finds
                self.publisher.send(notices.of_epoch(epoch, rows, before, finds))
        except BaseException:
            # `shown` is ahead of what was sent: it is read again at the next attempt.
            self.shown = None
            raise
        self.record_keys(keys)
        self.put(replace(self.position, gap=self.keys_gap, event_id=epoch.event_id, epoch=epoch.epoch))
        return True

    def pass_forgotten(self, epoch: Epoch) -> None:
        """Send a notice that the ledger forgot the epochs before `epoch` before they were sent, and go on behind
        them."""
        position = self.position
        identity = f"{self.source.name}@{self.target}:forgotten:{position.epoch}"
        occasion = Occasion(identity, TableName(""), "", epoch.from_event_id, epoch.event_id, epoch.published_at)
        self.publisher.send([HistoryGap(occasion, position.event_id + 1, epoch.from_event_id, "forgotten")])
        self.shown = None
        self.put(replace(position, epoch=epoch.epoch - 1, event_id=epoch.from_event_id))

    # Marks

    def send_marks(self) -> bool:
        """Send the marks that the target shows by now, in the order of their numbers, and keep the others pending.
        Return whether there was anything to do. Where an epoch is not sent yet, nothing is sent and True is returned:
        the epoch goes first, because a set may be done by it."""
        marks, target_marks, position = self.marks, self.target_marks, self.position
        if marks is None or target_marks is None or (marks.last() <= position.mark and not position.pending):
            return False
        first = min([position.mark, *(number - 1 for number in position.pending)])
        known = marks.after(first)
        waiting = [mark for mark in known if mark.number > position.mark or mark.number in position.pending]
        verdicts = target_marks.judge(waiting)
        done = [mark for mark in waiting if verdicts.get(mark.number)]
        last = self.ledger.last_epoch()
        if done and last is not None and last.epoch > position.epoch:
            return True
        pending = tuple(mark.number for mark in waiting if mark.number not in verdicts)
        newest_mark = max([position.mark, *(mark.number for mark in waiting)])
        if newest_mark == position.mark and pending == position.pending:
            return False
        keys = self.keys_at(self.position.event_id) if done else TableKeys()
        self.told |= {mark.number: self.of_mark(mark, keys) for mark in done if mark.number not in self.told}
        self.publisher.send([self.told[mark.number] for mark in done])
        self.told.clear()
        self.put(replace(self.position, mark=newest_mark, pending=pending))
        return True

    def of_mark(self, mark: Mark, keys: TableKeys) -> SetDone:
        identity = f"{self.source.name}@{self.target}:mark:{mark.number}"
        now = datetime.fromtimestamp(self.source.clock.now_ns() / 1e9, UTC).isoformat(timespec="milliseconds")
        key = keys.key(mark.table, mark.event_id)
        position = max(self.position.event_id, mark.event_id)
        return SetDone(Occasion(identity, mark.table, key, mark.event_id, position, now), mark)

    # Keys of tables

    def keys_at(self, event_id: EventId) -> TableKeys:
        """Return the keys of all tables, brought up to `event_id`, or to the journal's end where that is earlier. Keys
        that know more are returned as they are."""
        journal, gap = self.source.journal, newest(self.source.gaps)
        upto = min(event_id, journal.last() or 0)
        keys = self.keys if self.keys_gap == gap else None
        try:
            if keys is None or keys.upto < reach(journal):
                begin = begin_of(self.source.gaps, self.first)
                keys = self.key_records.keys(journal, gap, begin, max(upto, begin))
                self.snapshot_at = keys.upto
            follow(journal, keys, upto)
        except EventsForgotten:
            keys = keys or TableKeys(upto)
        self.keys, self.keys_gap = keys, gap
        return keys

    def record_keys(self, keys: TableKeys) -> None:
        if keys.upto - self.snapshot_at >= SNAPSHOT_EVENTS:
            keys.forget(min(keys.upto, reach(self.source.journal)))
            self.key_records.put(self.keys_gap, keys)
            self.snapshot_at = keys.upto

    def put(self, position: Position) -> None:
        self.records.put(self.name, position.record())
        self.position = position
        if not self.told:
            self.publisher.recorded()
