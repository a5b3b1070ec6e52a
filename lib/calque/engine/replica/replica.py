"""The replica at one target, window by window: what is live follows the journal; what is not is read exactly beside it.

The ledger is the truth: `open` reads it, `window` advances it. Nothing else is remembered between processes, and a
window that died half-way is simply done again: what the target already shows is observed, never assumed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace

from calque.core.records.lifecycle import UNREAD, State
from calque.engine.apply.database_looks import DatabaseLooks
from calque.engine.apply.databases import Databases
from calque.engine.apply.functions import Functions
from calque.engine.apply.hive_positions import HivePositions
from calque.engine.exact_reads import gap_recovery
from calque.engine.exact_reads.bootstrap import Bootstrap, BootstrapStart
from calque.engine.exact_reads.build_in_batches import BATCH
from calque.engine.exact_reads.coordinator import ExactReads
from calque.engine.exact_reads.drop_limit import DropLimit
from calque.engine.exact_reads.pool import READERS, ExactReadPool
from calque.engine.exact_reads.start_at_event import StartAtEvent
from calque.engine.policy.change import PolicyChange
from calque.engine.replica.adopt import Adoption
from calque.engine.replica.epochs import Epochs
from calque.engine.replica.release import Release
from calque.engine.replica.replay import Replay
from calque.engine.replica.requests import OperatorRequests
from calque.engine.sides import told_states
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TableStates
from calque.engine.target.fault_isolation import FaultIsolation
from calque.engine.target.origin_registry import CatalogWithoutOwnTables, OriginDiscovery
from calque.engine.target.recovered_rows import unsure
from calque.engine.window.advance import Interpreter, carry_out
from calque.engine.window.consistency import Consistency
from calque.engine.window.groups import GroupSpreader
from calque.engine.window.long_copies import BYTES_PER_SECOND, PATIENCE, STAGERS, LongCopies
from calque.engine.window.pause import PauseRules, Pauses
from calque.engine.window.play import LARGE, WindowPlayer
from calque.engine.window.prepare import TargetIsAhead
from calque.engine.window.result import WindowResult, all_own
from calque.engine.window.retries import RetrySchedule
from calque.engine.window.run_boundaries import RunBoundaries
from calque.engine.window.scan_backlog import ScanBacklog
from calque.engine.window.unrecorded_progress import UnrecordedProgress
from calque.errors import EventsForgotten, Refused, Unavailable
from calque.model.gaps import Gap
from calque.model.journal import EventKind
from calque.model.ledger import Epoch, TableState
from calque.model.names import EventId, Span, TableName
from calque.model.records import BootstrapBeginning, one_of
from calque.model.requests import Request

LOG = logging.getLogger(__name__)
APPLIERS = 4


class Replica:
    """The replica at one target. `begin` says after which event the journal begins; `wake` is called when a background
    read is finished; `spread` prepares the groups of windows of more than `large` events. `readers` tables are read at
    a time, and those with more than `batch` partitions are built in batches; what was read is recorded every `pace`
    seconds. `patience` is the seconds that a group's copies may hold up a window. `interpret` applies the groups'
    plans, or explains them."""

    def __init__(
        self,
        source: SourceSide,
        side: TargetSide,
        begin: Callable[[], EventId],
        wake: Callable[[], None],
        pool: Callable[[int, str], Executor] = ThreadPoolExecutor,
        *,
        spread: GroupSpreader | None = None,
        large: int = LARGE,
        patience: float = PATIENCE,
        readers: int = READERS,
        batch: int = BATCH,
        pace: float = 0.0,
        interpret: Interpreter = carry_out,
    ) -> None:
        self.source = replace(source, catalog=CatalogWithoutOwnTables(source.catalog, side.origins))
        self.unfiltered_source, self.side, self.begin = source, side, begin
        self.wake, self.make_pool, self.patience = wake, pool, patience
        self.spread, self.large = spread, large
        self.readers, self.batch, self.pace = readers, batch, pace
        self.interpret = interpret
        self.pause_rules = PauseRules()
        self.looks = DatabaseLooks(self.source, side, wake)
        self.forget()

    def forget(self) -> None:
        """Forget everything, as at the start of a process; what is under way is given up."""
        source, side, wake, make_pool = self.source, self.side, self.wake, self.make_pool
        self.opened = False
        """True as soon as all that the ledger says is taken up."""
        self.tables, self.unrecorded_progress, self.runs, self.retries = (
            TableStates(),
            UnrecordedProgress(),
            RunBoundaries(),
            RetrySchedule(),
        )
        self.pool = make_pool(APPLIERS, f"apply-{side.policy.target}")
        self.faults = FaultIsolation(source, side)
        self.databases = Databases(source, side, self.faults)
        self.functions = Functions(source, side, self.faults)
        self.consistency = Consistency(side, self.databases)
        self.positions = HivePositions(side, source.clock)
        self.scanned = ScanBacklog(source, side, self.tables)
        self.policies = PolicyChange(source, side, self.databases, self.functions, self.consistency)
        self.origin_discovery = OriginDiscovery(self.unfiltered_source, side)
        self.reading = ExactReadPool(
            source,
            side,
            self.databases,
            self.tables,
            self.faults,
            wake,
            make_pool,
            readers=self.readers,
            batch=self.batch,
            retained=self.policies.retained,
            pace=self.pace,
            is_held=self.pause_rules.holds,
        )
        self.comparing = DropLimit(source, side, self.tables, self.reading, self.begin, wake)
        self.bootstrap = Bootstrap(
            source, side, self.begin, self.databases, self.functions, self.consistency, self.scanned
        )
        self.start_at = StartAtEvent(
            source,
            self.unfiltered_source.catalog,
            side,
            self.begin,
            self.functions,
            self.bootstrap.names_at_source,
            self.pool,
        )
        self.reads = ExactReads(
            source,
            side,
            tables=self.tables,
            databases=self.databases,
            functions=self.functions,
            consistency=self.consistency,
            scanned=self.scanned,
            reading=self.reading,
            comparing=self.comparing,
            retries=self.retries,
            rules=self.pause_rules,
        )
        self.pauses = Pauses(
            self.pause_rules,
            source,
            side,
            self.tables,
            self.consistency,
            self.scanned,
            self.reads,
            self.begin,
        )
        pace = min(BYTES_PER_SECOND, side.policy.bandwidth or BYTES_PER_SECOND)
        self.copies = LongCopies(make_pool(STAGERS, f"copy-{side.policy.target}"), wake, pace, self.patience)
        self.player = WindowPlayer(
            source,
            side,
            tables=self.tables,
            databases=self.databases,
            consistency=self.consistency,
            scanned=self.scanned,
            copies=self.copies,
            pauses=self.pauses,
            reads=self.reads,
            retries=self.retries,
            faults=self.faults,
            origin_discovery=self.origin_discovery,
            unrecorded_progress=self.unrecorded_progress,
            begin=self.begin,
            pool=self.pool,
            interpret=self.interpret,
            spread=self.spread,
            large=self.large,
        )
        self.requests = OperatorRequests(
            self.reads,
            Adoption(
                source,
                side,
                self.tables,
                self.databases,
                self.functions,
                self.positions,
                self.reads,
                self.pool,
                self.begin,
            ),
            Release(source, self.databases, self.functions, self.reads),
            Replay(source, side, self.databases, self.functions, self.reads),
        )
        self.epochs = Epochs(source, side, self.tables, self.databases, self.consistency, self.scanned, self.comparing)

    @property
    def name(self) -> str:
        return self.side.policy.target

    @property
    def cursor(self) -> EventId:
        """The event that the windows have come to."""
        return self.tables.cursor

    @property
    def epoch(self) -> Epoch | None:
        """The last epoch; None before the first."""
        return self.epochs.last

    # Start and stop

    def open(self) -> None:
        """Take up where the ledger says, after learning of origins. A target without epochs begins with a bootstrap, or
        at `start`; one that has not dealt with a gap of the log begins again."""
        self.side.stopping.clear()
        self.origin_discovery.read_origins()
        self.restore()

    def restore(self) -> None:
        """Take up where the ledger says, as `open` does, but ask the target only where that is necessary."""
        self.find_beginning()
        records, rows = self.side.ledger.records(), self.side.ledger.tables()
        self.side.read_requests.load(records)
        self.unrecorded_progress.tried = self.source.journal.last() or 0
        self.unrecorded_progress.unrecorded = max(self.unrecorded_progress.tried, self.newest())
        self.tables.load(rows.values(), self.cursor)
        self.side.announced.load(records, self.cursor)
        self.restore_unread()
        self.reads.read_asked()
        self.pauses.apply_rules()
        self.reads.leave_forgotten()
        self.opened = True
        LOG.info("%s opens at event %d, epoch %s", self.name, self.cursor, self.epoch.epoch if self.epoch else "none")

    def find_beginning(self) -> None:
        """Find where the target goes on: at its last epoch, at a beginning that left no epoch yet, or at a new one,
        which a gap needs, too."""
        records, rows = self.side.ledger.records(), self.side.ledger.tables()
        self.epochs.last = self.side.ledger.last_epoch()
        recovery = self.comparing.recovery = gap_recovery.recovery_of(records, self.epoch)
        recorded = one_of(records, BootstrapBeginning)
        has_begun = self.epoch is not None or recorded is not None
        start = self.side.policy.start if not has_begun else None
        self.scanned.open(records)
        self.databases.adopt(rows.values())
        self.functions.adopt(rows.values())
        self.tables.cursor = gap_recovery.goes_on_from(records, self.epoch) if start is None else start
        if recorded is not None and (self.epoch is None or recovery.unpublished is not None):
            self.epochs.listed = recorded.listed_by or 0
        before = self.cursor
        if not has_begun or self.gaps_behind() or self.own_gap():
            self.origin_discovery.read_origins_once()
        if start is not None:
            self.start(start)
        self.side.announced.load(records, self.cursor)
        self.epochs.unpublished += self.policies.open(records, rows, self.cursor)
        if not has_begun and start is None:
            self.begin_at(beginning := self.bootstrap.bootstrap())
            LOG.info("%s: bootstrap of %d tables from event %d", self.name, beginning.tables, beginning.low)
        elif gaps := self.gaps_behind() or self.own_gap():
            current_rows = self.side.ledger.tables()
            reached = max(max(gap.after, self.source.journal.last() or 0) for gap in gaps)
            beginning = self.bootstrap.again(current_rows, gaps, recovery, self.cursor, self.epoch)
            # Tables without a row until now may have been made, or dropped, by a window that died.
            all_rows = {**self.side.ledger.tables(), **current_rows}
            self.epochs.unpublished += unsure(all_rows.values(), self.cursor, reached)
            self.begin_at(beginning)
            text = "%s starts again at event %d: %s; %d tables may have changed"
            LOG.warning(text, self.name, beginning.low, gap_recovery.said(gaps[-1]), beginning.tables)
        elif recovery.unpublished is not None:
            self.epochs.unpublished += unsure(rows.values(), self.cursor, self.source.journal.last() or 0)
        if self.origin_discovery.is_done and not (has_begun and self.cursor == before):
            # What was written down at the source since then, up to the cursor, comes in no window.
            self.origin_discovery.read_origins()

    def restore_unread(self) -> None:
        """Take up the tables that are to be read, and those that a process before this one has read."""
        ahead = told_states.ahead(self.tables)
        self.consistency.open(ahead, bootstrapping=self.epochs.bootstrapping(self.cursor))
        first = self.epoch is None and self.side.policy.start is None
        landed = self.tables.rejoin(nothing_was_published=first)
        if not first and (early_names := [name for name in ahead if self.tables.is_(name, UNREAD)]):
            # A death after their rows and before the epoch: the next epochs are not theirs until they join.
            self.side.ledger.put_tables(told_states.recorded(self.tables, early_names))
        requested_reasons = self.side.read_requests.reasons()
        unread = self.tables.in_state(*UNREAD)
        for name in unread:
            self.consistency.rebase(name.database)
            if name in landed and name not in requested_reasons:
                self.reading.rejoin(name, landed[name])
        self.reads.read([name for name in unread if name not in landed or name in requested_reasons])

    def start(self, event_id: EventId) -> None:
        """Take the target as the source was at the event; gaps before that do not concern it."""
        rows = self.start_at.tables(event_id)
        self.consistency.bootstrap({row.database for row in rows if row.state is TableState.UNKNOWN})
        recovery = self.comparing.recovery = gap_recovery.before(self.source.gaps, event_id)
        # Two commits, in this order: without the records the next start comes here again, and makes the same rows.
        self.side.ledger.put_tables(rows)
        self.side.ledger.put_records([BootstrapBeginning(event_id), recovery])
        self.tables.cursor = event_id

    def begin_at(self, beginning: BootstrapStart) -> None:
        """Take up a beginning that the ledger has: all tables are unknown now."""
        self.comparing.recovery = beginning.recovery
        self.tables.cursor, self.epochs.listed = beginning.low, beginning.listed

    def gaps_behind(self) -> list[Gap]:
        """Return the gaps that this target has not dealt with."""
        return gap_recovery.newer(self.source.gaps, self.comparing.recovery)

    def own_gap(self) -> list[Gap]:
        """Return the gap between the position and the journal, which has let go of events that this target has not
        taken; none where there is none."""
        return gap_recovery.left_behind(self.source, self.begin(), self.cursor, self.comparing.recovery)

    def newest(self) -> EventId:
        """Return the source's newest event, because a journal that lost its end had more than it has; 0 where the
        source does not answer."""
        try:
            return self.source.log.current()
        except Unavailable:
            return 0

    def close(self) -> None:
        """End the background work after the calls in hand."""
        self.player.stopping.set()
        self.side.stopping.set()
        self.reading.close()
        self.copies.close()
        self.pool.shutdown(wait=True)

    def rest(self) -> None:
        """Publish an epoch without changes where events without an epoch have moved the position, so that the ledger
        says it. Not to be called beside a window."""
        if self.opened:
            self.epochs.rest()

    # Windows

    def window(self, upto: EventId) -> WindowResult | None:
        """Take everything to event `upto`, or further where a window can't end there; None when there was nothing to
        do. Raises `Unavailable` when the target or the source does not answer: the next call goes on."""
        if not self.opened or self.gaps_behind():
            self.close()
            self.forget()
            self.open()
        self.epochs.adopt_unacknowledged()
        self.looks.apply(self.databases, self.cursor)
        try:
            return self.apply_up_to(upto)
        except Refused as error:
            if self.gaps_behind():
                return None
            if not isinstance(error, EventsForgotten):
                raise
            self.opened = not self.own_gap()
            if self.opened and not self.reads.leave_forgotten():
                raise
            return None

    def apply_up_to(self, upto: EventId) -> WindowResult | None:
        self.reads.expire_waiting()
        self.reads.read_later()
        if self.is_quiet() and upto <= self.cursor and (self.epoch is not None or self.epochs.bootstrapping(upto)):
            self.positions.look_again()
            return None
        upto = self.end_of_run(max(upto, self.cursor))
        while True:
            try:
                return self.apply_and_publish(upto)
            except TargetIsAhead as ahead:
                if ahead.event_id <= upto or ahead.event_id > (self.source.journal.last() or 0):
                    raise Unavailable(
                        f"{self.name} shows event {ahead.event_id}, which the journal does not have",
                        "Capture is behind, or the state folder is older than the target",
                        "It is tried again",
                    ) from ahead
                upto = ahead.event_id

    def is_quiet(self) -> bool:
        """Tell whether nothing but new events gives a window anything to do."""
        if self.epoch is not None and self.consistency.owes(self.not_shown_as_is()):
            return False
        of_tables = self.tables.positions or self.tables.changed or not self.reading.finished.empty()
        others = self.scanned.news() or self.comparing.has_news() or self.epochs.has_news()
        return not of_tables and not others

    def end_of_run(self, upto: EventId) -> EventId:
        """Return the event at which a window to `upto` ends, as `run_boundaries.RunBoundaries.end` says, and note that
        a window goes there."""
        low = max(self.begin(), self.cursor)
        end = self.runs.end(self.source, low, self.unrecorded_progress.tried, upto, self.player.stopping.is_set)
        self.unrecorded_progress.try_to(end)
        return end

    def apply_and_publish(self, upto: EventId) -> WindowResult:
        window = WindowResult(Span(self.cursor, upto))
        try:
            self.apply_groups(window, upto)
        except Exception:
            self.epochs.keep(window)
            self.unrecorded_progress.fail_at(upto)
            raise
        self.epochs.publish(window, upto)
        if self.epoch is not None:
            self.consistency.take_back(self.not_shown_as_is())
        if window.epoch is not None:
            self.positions.show(window.epoch.event_id)
        return window

    def apply_groups(self, window: WindowResult, upto: EventId) -> None:
        """Play everything of one window but its epoch."""
        self.reads.land_finished(upto, window)
        self.player.take_copied(window)
        self.reads.read_asked()
        window.events = max(0, upto - max(self.cursor, self.begin()))
        entries, groups = self.player.part(upto)
        events = [entry for entry in entries if entry.event_id > self.cursor and not self.policies.knows(entry)]
        window.own = len(events) == window.events > 0 and all_own(events)
        self.databases.before(events, window.applied)
        self.player.advance_groups(groups, upto, window)
        self.functions.apply(events, window.applied)
        self.databases.after(events, window.applied)
        nameless = [
            entry.event_id for entry in events if entry.keys.kind is EventKind.UNKNOWN and entry.keys.table is None
        ]
        if nameless:
            text = "%s: %d events do not say what they touched, event %d first"
            LOG.warning(text, self.name, len(nameless), nameless[0])
        self.pauses.end_window(upto)
        self.consistency.meet(self.tables.positions.keys() | self.tables.paused)
        self.scanned.done()

    def not_shown_as_is(self) -> list[TableName]:
        """Return the tables that are to be read, and quarantined ones that the target shows as they once were."""
        quarantined = self.tables.in_state(State.QUARANTINED)
        stale = [name for name in quarantined if self.tables.rows[name].shows is not None]
        return [*self.tables.in_state(*UNREAD), *stale]

    # What operators ask for

    def hold_back(self, takes: Callable[[TableName], bool]) -> None:
        """Hold back the tables that `takes` chooses from now on, and no others. Called between windows only."""
        self.pause_rules.takes = takes
        self.pauses.apply_rules()

    def take_request(self, request: Request) -> Sequence[TableName] | None:
        """Take up an operator's request by `OperatorRequests.execute`; None, too, until the replica is open. Raises
        `Unavailable`: what was half taken up is forgotten, and the next window begins as at the start of a process."""
        try:
            return self.requests.execute(request) if self.opened else None
        except Unavailable:
            self.opened = False
            raise
