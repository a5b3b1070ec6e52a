"""The epochs of a target, and the position that they say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from calque.core.records.lifecycle import BEHIND, UNREAD, State
from calque.engine.apply.databases import Databases
from calque.engine.exact_reads.drop_limit import DropLimit
from calque.engine.sides.announced_exceptions import Announcement
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TableStates
from calque.engine.window.consistency import Consistency
from calque.engine.window.result import WindowResult
from calque.engine.window.scan_backlog import ScanBacklog
from calque.model.ledger import Epoch, ObjectRow, StateKey, TableRow
from calque.model.names import EventId, Span, TableName

AWAITED = UNREAD - {State.PARKED}
"""States in which the first epoch waits for a table."""
IDLE_SECONDS = 60.0
"""The least seconds between epochs that tell of nothing but events of calque's own objects, such as leases that are
renewed."""


@dataclass(frozen=True, slots=True)
class UnpublishedWork:
    """The work that windows did: the tables that they changed, and the numbers of hops, calls, files and bytes."""

    tables: frozenset[TableName] = frozenset()
    hops: int = 0
    calls: int = 0
    files: int = 0
    bytes: int = 0
    disarmed: frozenset[TableName] = frozenset()
    together: frozenset[tuple[TableName, ...]] = frozenset()

    @classmethod
    def of(cls, window: WindowResult) -> UnpublishedWork:
        applied = window.applied
        counts = (window.hops, applied.calls, applied.files, applied.bytes)
        return cls(window.tables, *counts, frozenset(applied.disarmed), frozenset(applied.together))

    def __add__(self, more: UnpublishedWork) -> UnpublishedWork:
        return UnpublishedWork(
            self.tables | more.tables,
            self.hops + more.hops,
            self.calls + more.calls,
            self.files + more.files,
            self.bytes + more.bytes,
            self.disarmed | more.disarmed,
            self.together | more.together,
        )


class Epochs:
    """The epochs of one target. No method may be called beside a window."""

    def __init__(
        self,
        source: SourceSide,
        side: TargetSide,
        tables: TableStates,
        databases: Databases,
        consistency: Consistency,
        scanned: ScanBacklog,
        comparing: DropLimit,
    ) -> None:
        self.clock, self.side, self.tables = source.clock, side, tables
        self.databases, self.consistency, self.scanned, self.comparing = databases, consistency, scanned, comparing
        self.listed: EventId = 0
        """The event id after the source was listed: at an earlier one a table may have been there that the listing did
        not meet."""
        self.last: Epoch | None = None
        self.passed: EventId = 0
        """The event up to which nothing but events of calque's own objects came since the last epoch, `passed_events`
        of them."""
        self.passed_events = 0
        self.published_ns = self.clock.elapsed_ns()
        self.unpublished: list[ObjectRow] = []
        self.work = UnpublishedWork()
        """The work of windows that no epoch tells of."""
        self.unacknowledged: tuple[Epoch, tuple[Announcement, ...]] | None = None
        """The epoch whose publication was not answered, with what it announces."""

    def position(self) -> EventId | None:
        """Return the last event id that every live table shows; None before the first epoch. It may be ahead of the
        ledger's by events of calque's own objects."""
        return max(self.last.event_id, self.passed) if self.last is not None else None

    def bootstrapping(self, upto: EventId) -> bool:
        """Tell whether a window to `upto` is too early for the first epoch, or the first one after a gap."""
        return upto < self.listed or (self.last is None and bool(self.tables.in_state(*AWAITED)))

    def has_news(self) -> bool:
        """Tell whether there is anything for an epoch to tell besides the tables' states."""
        return bool(self.unpublished) or (self.last is not None and self.comparing.recovery.unpublished is not None)

    def keep(self, window: WindowResult) -> None:
        """Keep what the window did for the next epoch to tell. Called also for a window that failed on its way."""
        self.unpublished += window.applied.objects
        self.work += UnpublishedWork.of(window)

    def publish(self, window: WindowResult, upto: EventId) -> None:
        """Publish the epoch of the window; before the bootstrap is through, record only the tables' states. A window
        without news, or with nothing but events of calque's own objects, may get no epoch."""
        self.keep(window)
        window.announced = self.side.announced.waiting()
        bootstrapping = self.bootstrapping(upto)
        news = upto != self.tables.cursor or self.last is None or bool(self.unpublished or window.announced)
        news = news or self.comparing.recovery.unpublished is not None
        if not news and not self.tables.changed:
            self.scanned.record()
            return
        if window.own and not window.plans and self.is_idle():
            self.scanned.record()
            self.passed, self.tables.cursor = max(self.passed, upto), upto
            self.passed_events += window.events
            return

        def write(kept_rows: list[TableRow], removed_keys: list[StateKey]) -> None:
            self.record_states([], removed_keys)
            epoch = self.following(window, upto)
            self.unacknowledged = epoch, window.announced
            objects = [replace(row, step=step) for step, row in enumerate(self.unpublished)]
            self.side.ledger.publish(epoch, objects, kept_rows)

        self.tables.record(self.record_states if bootstrapping else write)
        if bootstrapping:
            self.tables.cursor = upto
        else:
            window.epoch = self.adopt_unacknowledged()
        self.scanned.record()

    def adopt_unacknowledged(self) -> Epoch | None:
        """Take up the epoch that was to be published last, if the ledger has it, and return it; None if not. The ledger
        is asked, because a publication may come through without an answer, and no second epoch may have its number."""
        if self.unacknowledged is None:
            return None
        expected, announced = self.unacknowledged
        last_epoch = self.side.ledger.last_epoch()
        self.unacknowledged = None
        if last_epoch is None or not is_same(last_epoch, expected):
            return None
        self.side.claims.forget(row.claim for row in self.unpublished)
        self.side.claims.forget(directory.claim for directory in last_epoch.abandoned)
        self.last, self.tables.cursor, self.unpublished = last_epoch, last_epoch.event_id, []
        self.work = UnpublishedWork()
        del self.tables.rereads[: len(last_epoch.rereads)]
        self.passed, self.passed_events, self.published_ns = self.tables.cursor, 0, self.clock.elapsed_ns()
        self.comparing.mark_published()
        self.side.announced.mark_published(
            self.side.ledger, list(filter(self.has_ended, announced)), self.tables.cursor
        )
        return last_epoch

    def has_ended(self, announced: Announcement) -> bool:
        """Tell whether what was announced is not still being done beside the windows: else the next epoch tells of it,
        too."""
        return not self.tables.is_(announced.table, UNREAD) and announced.table not in self.tables.copied

    def is_idle(self) -> bool:
        """Tell whether there is nothing to tell but that time goes on, and the last epoch is less than `IDLE_SECONDS`
        old."""
        is_all_published = (
            self.comparing.recovery.unpublished is None and not self.unpublished and not self.tables.changed
        )
        is_recent = self.clock.elapsed_ns() - self.published_ns < IDLE_SECONDS * 1e9
        return self.last is not None and is_all_published and is_recent and not self.side.announced.waiting()

    def rest(self) -> None:
        """Have the ledger say what the position is, although there is nothing else to say."""
        if self.last is not None and self.passed > self.last.event_id:
            epoch = self.following(WindowResult(Span(self.passed, self.passed)), self.passed)
            self.unacknowledged = epoch, ()
            self.side.ledger.publish(epoch, [], [])
            self.adopt_unacknowledged()

    def record_states(self, kept_rows: list[TableRow], removed_keys: list[StateKey]) -> None:
        """Write states of tables to the ledger between epochs, and remove those that are gone."""
        if removed_keys:
            self.side.ledger.remove_tables(removed_keys)
        if kept_rows:
            self.side.ledger.put_tables(kept_rows)

    def following(self, window: WindowResult, upto: EventId) -> Epoch:
        """Return the epoch that comes after the last one, for the window to `upto`."""
        last, untold = self.last, self.comparing.recovery.unpublished
        return Epoch(
            epoch=last.epoch + 1 if last else 1,
            event_id=upto,
            from_event_id=last.event_id if last else window.span.after,
            published_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            kind=("window" if untold is None else "repair") if last else "bootstrap",
            tables=len(self.work.tables),
            events=window.events + self.passed_events,
            hops=self.work.hops,
            calls=self.work.calls,
            files=self.work.files,
            bytes=self.work.bytes,
            quarantined=(*sorted(self.databases.quarantined_rows), *map(str, self.tables.in_state(State.QUARANTINED))),
            bridges=window.bridges(),
            in_parts=window.in_parts(),
            rebasing=self.consistency.rebasing(),
            gap=untold,
            set_aside=tuple(str(name) for name in self.not_there_yet()),
            parts=window.parts(),
            rereads=tuple(self.tables.rereads),
            disarmed=tuple(map(str, sorted(self.work.disarmed))),
            abandoned=tuple(self.side.claims.abandoned(self.told())),
            together=tuple(tuple(map(str, tables)) for tables in sorted(self.work.together)),
        )

    def told(self) -> set[tuple[TableName, str]]:
        """Return the objects that the next epoch tells of, by their names at the target."""
        names = {TableName(row.database, row.table) for row in self.unpublished}
        target_names = {name: self.side.admission.name_at_target(name) for name in names}
        return {(target_names[TableName(row.database, row.table)], row.partition) for row in self.unpublished}

    def not_there_yet(self) -> list[TableName]:
        """Return the tables that do not show what the windows have come to, quarantined ones apart."""
        return sorted({*self.tables.in_state(*BEHIND, *UNREAD), *self.tables.positions})


def is_same(epoch: Epoch, expected: Epoch) -> bool:
    """Tell whether a ledger's epoch is the one that was to be published, whenever that was."""
    published_at, digest, previous = epoch.published_at, epoch.digest, epoch.previous_digest
    return epoch == replace(expected, published_at=published_at, digest=digest, previous_digest=previous)
