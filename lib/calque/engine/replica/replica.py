"""One target, window by window: what is live follows the journal; what is not is read exactly beside it.

The ledger is the truth: `open` reads it, `window` advances it. Nothing else is remembered between processes, and a
window that died half-way is simply done again: what the target already shows is observed, never assumed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace

from calque.core.decode import Undecodable
from calque.core.fold import Unfoldable, names_in, names_of
from calque.core.kinds import ACID, REASONS
from calque.engine.apply import Applied
from calque.engine.apply.databases import Databases, is_of_database
from calque.engine.apply.functions import Functions
from calque.engine.exact_reads import gap_recovery
from calque.engine.exact_reads.bootstrap import Afresh, Begun
from calque.engine.exact_reads.build_in_batches import BATCH
from calque.engine.exact_reads.drop_guard import Comparing
from calque.engine.exact_reads.pool import READERS, Read, Reading
from calque.engine.exact_reads.retries import Retries
from calque.engine.exact_reads.start_at_event import StartAtEvent
from calque.engine.files.stage import ContentLost, Lost
from calque.engine.policy.change import Policies
from calque.engine.replica import pause
from calque.engine.replica.epochs import Epochs
from calque.engine.sides.journal_reads import reach
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import ASIDE, OUT, Tables
from calque.engine.source.cascade_detection import cascaded
from calque.engine.target.fault_isolation import RELEASE, Blame
from calque.engine.target.observe import NotOurs
from calque.engine.target.origin_registry import carried, meet, tells, without_returned
from calque.engine.target.recovered_rows import unsure
from calque.engine.window.advance import Advanced, advance, carry_out
from calque.engine.window.consistency import Consistency, order_of
from calque.engine.window.groups import Cut, Group, Spread, size_of
from calque.engine.window.long_copies import BYTES_PER_SECOND, PATIENCE, STAGERS, Long, Staging
from calque.engine.window.message_prefetch import fetched
from calque.engine.window.prepare import Ahead, Unreachable
from calque.engine.window.result import Window, all_own
from calque.engine.window.run_boundaries import Runs
from calque.engine.window.scan_backlog import Scanned
from calque.engine.window.view_order import Wave, bases_of, is_of_views, upto_drop, wave_of
from calque.errors import Forgotten, Refused, Unavailable, sentence
from calque.model.gaps import Gap
from calque.model.journal import Entry, Kind
from calque.model.ledger import Epoch, TableState, Why
from calque.model.names import EventId, Span, TableName
from calque.model.records import BootstrapBeginning, ReadMode, ReadRequest, one_of
from calque.ports import Conflict

LOG = logging.getLogger(__name__)
APPLIERS = 4
LARGE = 50_000
WAITING_SECONDS = 30.0
EVIDENCE_SECONDS = 5.0
FAILED = (Unfoldable, Unreachable, NotOurs, Undecodable, Refused)
"""What may keep a group from going through a window."""
SETTLED = (TableState.LIVE, TableState.WAITING, TableState.QUARANTINED)


class Replica:
    """A target. `begin` says where the journal begins; `wake` is called when a background read is finished; `spread`
    prepares the groups of windows of more than `large` events; `readers` tables are read at a time, and
    those with more than `batch` partitions built in batches; what was read is recorded every `pace` seconds."""

    def __init__(
        self,
        source: SourceSide,
        side: TargetSide,
        begin: Callable[[], EventId],
        wake: Callable[[], None],
        pool: Callable[[int, str], Executor] = ThreadPoolExecutor,
        spread: Spread | None = None,
        large: int = LARGE,
        patience: float = PATIENCE,
        readers: int = READERS,
        batch: int = BATCH,
        pace: float = 0.0,
    ) -> None:
        self.source = replace(source, catalog=without_returned(source.catalog, side.home))
        self.everywhere, self.side, self.begin = source, side, begin
        self.wake, self.make_pool, self.patience = wake, pool, patience
        self.spread, self.large = spread, large
        self.readers, self.batch, self.pace = readers, batch, pace
        self.paused = pause.Paused()
        self.forget()

    def forget(self) -> None:
        """Know nothing, as at the start of a process: what is under way is given up."""
        source, side, wake, pool = self.source, self.side, self.wake, self.make_pool
        self.pool = pool(APPLIERS, f"apply-{side.policy.target}")
        self.databases = Databases(source, side)
        self.functions = Functions(source, side)
        self.consistency = Consistency(side, self.databases)
        self.tables = Tables()
        self.scanned = Scanned(source, side, self.tables)
        self.policies = Policies(source, side, self.databases, self.functions, self.consistency)
        kept, readers, batch = self.policies.kept, self.readers, self.batch
        self.paused.forget()

        def held(name: TableName) -> bool:
            return self.is_held_back(name) or self.paused.whole()

        self.reading = Reading(
            source, side, self.databases, wake, self.tables.busy, pool, readers, batch, kept, self.pace, held
        )
        self.comparing = Comparing(source, side, self.tables, self.reading, self.begin, wake)
        begins = (self.begin, self.databases, self.functions, self.consistency, self.scanned)
        self.afresh = Afresh(source, side, *begins)
        self.starting = StartAtEvent(
            *(source, self.everywhere.catalog, side, self.begin, self.functions, self.afresh.names_at_source), self.pool
        )
        self.learned = False
        """Whether it is known what came from the target."""
        self.opened = False
        """Whether all that the ledger says is known here."""
        self.blame = Blame(source, side)
        self.retries = Retries()
        self.waiting_since: dict[TableName, int] = {}
        self.lost: dict[TableName, set[Lost]] = {}
        pace = min(BYTES_PER_SECOND, side.policy.bandwidth or BYTES_PER_SECOND)
        self.staging = Staging(pool(STAGERS, f"copy-{side.policy.target}"), wake, pace, self.patience)
        parts = (self.tables, self.databases, self.consistency, self.scanned, self.comparing)
        self.epochs = Epochs(source, side, *parts, self.awaits_reads, lambda: self.staging.names)
        self.fetched = fetched(source.journal, ())
        self.wholes: dict[EventId, list[Entry]] = {}
        """Of a spread window, by its first event: the groups that are wanted whole after all."""
        self.reading_whole = threading.Lock()
        self.stopping = threading.Event()
        self.runs = Runs()
        self.tried: EventId = 0
        """How far a window may have come, of this process or of one before: what it dropped carries no mark, so that a
        shorter one might show it again."""
        self.unrecorded: EventId = 0
        """Up to which event something may have been shown without a row in the ledger."""

    @property
    def name(self) -> str:
        return self.side.policy.target

    @property
    def cursor(self) -> EventId:
        """The windows have come to it."""
        return self.epochs.cursor

    @property
    def epoch(self) -> Epoch | None:
        """The last one."""
        return self.epochs.last

    # Start and stop

    def open(self) -> None:
        """Take up where the ledger says. A target without epochs begins with a bootstrap, or at `start`; one that knows
        nothing of a gap of the log starts again."""
        self.side.stopping.clear()
        self.learn()
        self.take_up()

    def take_up(self) -> None:
        """The same without a word to the target as long as it need not be asked."""
        records, rows = self.side.ledger.records(), self.side.ledger.tables()
        self.epochs.last = self.side.ledger.last_epoch()
        mended = self.comparing.mended = gap_recovery.recovery_of(records, self.epoch)
        beginning = one_of(records, BootstrapBeginning)
        begun = self.epoch is not None or beginning is not None
        start = self.side.policy.start if not begun else None
        self.scanned.open(records)
        self.databases.adopt(rows.values())
        self.functions.adopt(rows.values())
        self.epochs.cursor = gap_recovery.goes_on_from(records, self.epoch) if start is None else start
        if beginning is not None and (self.epoch is None or mended.unpublished is not None):
            self.epochs.listed = beginning.listed_by or 0
        before = self.cursor
        if not begun or self.gaps_behind() or self.own_gap():
            self.learn_once()
        if start is not None:
            self.start(start)
        self.side.announced.load(records, self.cursor)
        self.epochs.unpublished += self.policies.open(records, rows, self.cursor)
        if not begun and start is None:
            self.begun(found := self.afresh.bootstrap())
            LOG.info("%s: bootstrap of %d tables from event %d", self.name, found.tables, found.low)
        elif gaps := self.gaps_behind() or self.own_gap():
            again = self.side.ledger.tables()
            reached = max(max(gap.after, self.source.journal.last() or 0) for gap in gaps)
            self.epochs.unpublished += unsure(again.values(), self.cursor, reached)
            self.begun(found := self.afresh.again(again, gaps, mended, self.cursor, self.epoch))
            text = "%s starts again at event %d: %s; %d tables may have changed"
            LOG.warning(text, self.name, found.low, gap_recovery.said(gaps[-1]), found.tables)
        elif mended.unpublished is not None:
            self.epochs.unpublished += unsure(rows.values(), self.cursor, self.source.journal.last() or 0)
        if self.learned and not (begun and self.cursor == before):
            # What was written down at the source since then, up to the cursor, comes in no window.
            self.learn()
        records, rows = self.side.ledger.records(), self.side.ledger.tables()
        self.side.asked.load(records)
        self.tried = self.source.journal.last() or 0
        self.unrecorded = max(self.tried, self.newest())
        self.tables.load(rows.values(), self.cursor)
        self.side.announced.load(records, self.cursor)
        ahead = [name for name, shows in self.tables.apart.items() if shows > self.cursor]
        self.consistency.open(ahead, bootstrapping=self.epochs.bootstrapping(self.cursor))
        first = self.epoch is None and self.side.policy.start is None
        landed = self.tables.landed_before_any_epoch() if first else self.tables.landed(self.cursor)
        if not first and (early := [self.tables.rows[name] for name in ahead if self.tables.is_(name, OUT)]):
            # A death after their rows and before the epoch: the next epochs are not theirs until they join.
            self.side.ledger.put_tables(early)
        wanted = self.side.asked.reasons()
        out = self.tables.in_state(*OUT)
        for name in out:
            self.consistency.rebase(name.database)
            if name in landed and name not in wanted:
                self.reading.rejoin(name, landed[name])
        self.read([name for name in out if name not in landed or name in wanted])
        self.read_asked()
        pause.take_up(self)
        self.leave_late()
        self.opened = True
        LOG.info("%s opens at event %d, epoch %s", self.name, self.cursor, self.epoch.epoch if self.epoch else "none")

    def start(self, event_id: EventId) -> None:
        """Take the target as the source was at the event; it has nothing to do with gaps before that."""
        found = self.starting.tables(event_id)
        self.consistency.bootstrap({row.database for row in found if row.state is TableState.UNKNOWN})
        mended = self.comparing.mended = gap_recovery.before(self.source.gaps, event_id)
        # Two commits, in this order: without the records the next start comes here again, and makes the same rows.
        self.side.ledger.put_tables(found)
        self.side.ledger.put_records([BootstrapBeginning(event_id), mended])
        self.epochs.cursor = event_id

    def gaps_behind(self) -> list[Gap]:
        """Gaps that this target has not dealt with."""
        return gap_recovery.newer(self.source.gaps, self.comparing.mended)

    def own_gap(self) -> list[Gap]:
        """The gap between the position and the journal, which has let go of events that this target has not taken."""
        return gap_recovery.left_behind(self.source, self.begin(), self.cursor, self.comparing.mended)

    def leave_late(self) -> list[TableName]:
        """Tables that wait for events which the journal has no more are read; which ones."""
        at, beside = reach(self.source.journal), self.passed_by()
        found = [name for name, shows in self.tables.apart.items() if shows < at and name not in beside]
        for name in found:
            self.unknown(name, f"the journal has no events up to {at} any more", self.cursor)
        return found

    def begun(self, begun: Begun) -> None:
        """All tables are unknown now."""
        self.comparing.mended = begun.mended
        self.epochs.cursor, self.epochs.listed = begun.low, begun.listed

    def close(self) -> None:
        """End the background work after the calls in hand."""
        self.stopping.set()
        self.side.stopping.set()
        self.reading.close()
        self.staging.close()
        self.pool.shutdown(wait=True)

    def rest(self) -> None:
        """Have the ledger say what the position is. Not beside a window."""
        if self.opened:
            self.epochs.rest()

    def awaits_reads(self) -> bool:
        return bool(set(self.tables.in_state(*OUT)) - self.paused.parked)

    # Tables that leave the window

    def unknown(self, name: TableName, reason: str, event_id: EventId) -> None:
        """The table must be read again."""
        if self.tables.is_(name, OUT):
            return
        self.becomes_unknown(name, reason, event_id)
        self.submit(name)

    def becomes_unknown(self, name: TableName, reason: str, event_id: EventId, why: Why = Why.OWN) -> None:
        self.consistency.rebase(name.database)
        self.waiting_since.pop(name, None)
        self.tables.put(name, TableState.UNKNOWN, self.tables.apart.pop(name, self.cursor), reason, event_id, why)
        LOG.info("%s: %s is read again at event %d: %s", self.name, name, event_id, reason)

    def reread(
        self,
        takes: Callable[[TableName], bool],
        reason: str,
        states: Collection[TableState],
        how: ReadMode = ReadMode.READ,
    ) -> list[TableName]:
        """Tables in one of `states` that are chosen must be read again; which ones. Those whose drops wait for an
        operator do so still. Only between windows."""
        rows = self.tables.rows
        found = [name for name in self.tables.in_state(*states) if takes(name) and rows[name].why is not Why.HELD]
        self.ask(found, reason, how)
        return found

    def ask(self, names: Collection[TableName], reason: str, how: ReadMode) -> None:
        """The tables must be read again: now, or as soon as they are back from where they are copied, read or held."""
        beside = self.passed_by()
        kept = names if how is not ReadMode.READ else [name for name in names if name in beside]
        self.side.asked.add(self.side.ledger, how, kept, reason)
        for name in names:
            if name not in beside:
                self.unknown(name, reason, self.cursor)

    def read_all_again(self, reason: str) -> list[TableName]:
        """All tables must be read again, and what the target would lose by that is counted first. Not while a
        comparison is under way."""
        held, beside = {*self.comparing.held()}, self.passed_by()
        found = [name for name in self.tables.in_state(*SETTLED) if name not in held]
        self.comparing.begin_all()
        self.side.asked.add(self.side.ledger, ReadMode.COUNT, [name for name in found if name in beside], reason)
        free = [name for name in found if name not in beside]
        for name in free:
            self.becomes_unknown(name, reason, self.cursor, Why.ALL)
        self.read(free)
        return found

    def read_asked(self) -> None:
        """What operators asked for is begun with, but of tables that windows pass by, or whose drops wait."""
        asked = self.side.asked.reasons()
        beside = {*self.passed_by(), *self.comparing.held()} if asked else ()
        for name, reason in asked.items():
            if name in beside:
                continue
            if self.side.asked.counts(name):
                self.read_counted(name, reason)
            else:
                self.unknown(name, reason, self.cursor)

    def read_counted(self, name: TableName, reason: str) -> None:
        """The table must be read again, and what the target would lose by that is counted first."""
        if self.tables.is_(name, OUT):
            return
        self.becomes_unknown(name, reason, self.cursor, Why.ALL)
        self.scanned.leave(name)
        self.comparing.later.add(name)

    def release_drops(self, takes: Callable[[TableName], bool]) -> list[TableName]:
        """Tables that wait for an operator, and are chosen, are read again, and lose what the source has not."""
        found = list(filter(takes, self.comparing.held()))
        for name in found:
            self.unknown(name, "its drops were released", self.cursor)
        return found

    def read(self, names: Sequence[TableName]) -> None:
        """Read the tables, some of them after they were compared."""
        for name in names:
            self.scanned.leave(name)
        for name in self.comparing.begin(names):
            self.submit(name)

    def submit(self, name: TableName) -> None:
        self.scanned.leave(name)
        if self.is_held_back(name):
            pause.park(self, name)
        else:
            self.reading.submit(name)

    def is_held_back(self, name: TableName) -> bool:
        return self.paused.takes(name)

    def passed_by(self) -> Collection[TableName]:
        """Tables that windows leave as they are for now."""
        return self.staging.names.keys() | self.paused.names

    def quarantine(self, name: TableName, reason: str, event_id: EventId, why: Why = Why.OWN) -> None:
        """Set the table aside with its reason; everything else goes on."""
        before = self.tables.rows.get(name)
        shows = self.tables.apart.get(name, before.shows if before else None)
        if shows is not None:
            self.consistency.rebase(name.database)
        self.tables.apart.pop(name, None)
        self.waiting_since.pop(name, None)
        self.retries.leave(name)
        self.tables.put(name, TableState.QUARANTINED, shows, reason, event_id, why)
        LOG.warning("%s: %s is quarantined at event %d: %s", self.name, name, event_id, reason)

    def land_finished(self, upto: EventId, window: Window) -> None:
        """Tables whose reads are finished, and exact at or before `upto`, rejoin."""
        self.take_compared()
        ended: set[ReadRequest] = set()
        for outcome in self.reading.drain():
            name = outcome.table
            if outcome.broken is not None:
                raise outcome.broken
            if not self.tables.is_(name, OUT):
                self.reading.reads.leave(name)
                self.tables.changed.add(name)
                continue
            if outcome.held:
                self.submit(name)
            elif outcome.problem:
                self.failed(outcome)
            elif outcome.exact_at > upto:
                self.reading.finished.put(outcome)
            elif outcome.advanced is not None:
                window.add(outcome.advanced)
                window.landed += 1
                self.retries.end(name)
                if name in outcome.advanced.present:
                    self.tables.put(name, TableState.LIVE, outcome.exact_at)
                else:
                    self.tables.forget(name)
                self.tables.apart[name] = outcome.exact_at
                self.consistency.let_alone([name])
                if self.is_held_back(name) and name in outcome.advanced.present:
                    pause.hold(self, name)
            if not self.tables.is_(name, OUT):
                ended |= outcome.asked
        self.side.asked.done(self.side.ledger, ended)

    def take_compared(self) -> None:
        """Tables that were compared and are not equal are read, or wait for an operator."""
        found = self.comparing.take(self.databases, self.functions)
        for name in found.read:
            self.submit(name)
        for name in found.other_facets:
            if name not in self.staging.names:
                self.unknown(name, "its statistics or constraints are not the source's", self.cursor)
        for name, reason in found.held.items():
            self.quarantine(name, reason, self.cursor, Why.HELD)

    def failed(self, outcome: Read) -> None:
        """A table that can't be read is set aside after its retries; the world's failures are waited out."""
        name = outcome.table
        hopeless = not outcome.retry and not outcome.world
        if self.retries.gives_up(name, own_fault=not outcome.world) or hopeless:
            self.retries.end(name)
            self.reading.reads.leave(name)
            why = f"{sentence(outcome.problem)} {RELEASE}" if outcome.retry else outcome.problem
            self.quarantine(name, why, self.cursor)
            return
        LOG.info("%s: reading %s failed and is tried again: %s", self.name, name, outcome.problem)
        self.tables.busy(name, TableState.UNKNOWN)
        if self.retries.put_off(name, self.source.clock.elapsed_ns()) == 2:
            row = self.tables.rows[name]
            reason = f"{row.reason}; reading it is tried again: {outcome.problem}"
            self.tables.put(name, row.state, row.shows, reason, row.since_event or 0, row.why)

    def read_later(self) -> None:
        """Tables whose reads failed are read again as soon as that is due."""
        for name in self.retries.due(self.source.clock.elapsed_ns()):
            if self.tables.is_(name, OUT):
                self.submit(name)
            else:
                self.retries.leave(name)

    def land_staged(self, window: Window) -> None:
        """Groups that were applied beside the windows rejoin; those that could not be go through this window. What was
        asked for of a table that was copied or read then is begun."""
        for job in self.staging.finished():
            try:
                self.settle(Group(job.entries), job.upto, window, job.future)
            except (Unavailable, Ahead, Forgotten) as error:
                self.unrecorded = max(self.unrecorded, job.upto)
                LOG.info("%s: %s did not come through beside the windows: %s", self.name, job.names[0], error)
            for name in job.names:
                # What is gone by `job.upto` may have been made again since.
                if name not in self.tables.rows or self.tables.is_(name, {TableState.LIVE}):
                    self.tables.apart[name] = job.upto
                    if self.is_held_back(name):
                        pause.hold(self, name)
        self.read_asked()

    def expire_waiting(self) -> None:
        """Tables that waited too long for evidence are read exactly; where they hold up a whole database, it is found
        out first which of them do."""
        now = self.source.clock.elapsed_ns()
        late = [name for name, since in self.waiting_since.items() if now - since > WAITING_SECONDS * 1e9]
        alone = [name for name in late if self.consistency.goes_alone([name])]
        self.consistency.let_alone({TableName(name.database) for name in late if name not in alone})
        for name in alone:
            self.unknown(name, "its files stayed unknown", self.cursor)

    # Windows

    def window(self, upto: EventId) -> Window | None:
        """Take everything to `upto`; None when there was nothing to do. Raises `Unavailable` when the target or the
        source does not answer: the next call goes on."""
        if not self.opened or self.gaps_behind():
            self.close()
            self.forget()
            self.open()
        self.epochs.hear()
        try:
            return self.window_to(upto)
        except Refused as error:
            if self.gaps_behind():
                return None
            if not isinstance(error, Forgotten):
                raise
            self.opened = not self.own_gap()
            if self.opened and not self.leave_late():
                raise
            return None

    def window_to(self, upto: EventId) -> Window | None:
        self.expire_waiting()
        self.read_later()
        quiet = self.reading.finished.empty() and not self.tables.apart and not self.tables.changed
        quiet = quiet and not self.scanned.news() and not self.comparing.has_news() and not self.epochs.has_news()
        if self.epoch is not None and self.consistency.owes(self.not_shown_as_is()):
            quiet = False
        if quiet and upto <= self.cursor and (self.epoch is not None or self.epochs.bootstrapping(upto)):
            return None
        upto = self.end_of_run(max(upto, self.cursor))
        while True:
            try:
                return self.through(upto)
            except Ahead as ahead:
                if ahead.event_id <= upto or ahead.event_id > (self.source.journal.last() or 0):
                    raise Unavailable(
                        f"{self.name} shows event {ahead.event_id}, which the journal does not have",
                        "capture is behind, or the state folder is older than the target",
                        "It is tried again",
                    ) from ahead
                upto = ahead.event_id

    def end_of_run(self, upto: EventId) -> EventId:
        """Where a window to `upto` ends: `runs.Runs.end`."""
        low = max(self.begin(), self.cursor)
        found = self.runs.end(self.source, low, self.tried, upto, self.stopping.is_set)
        self.tried = max(self.tried, found)
        return found

    def through(self, upto: EventId) -> Window:
        window = Window(Span(self.cursor, upto))
        try:
            self.go_through(window, upto)
        except Exception:
            self.epochs.unpublished += window.applied.objects
            self.unrecorded = max(self.unrecorded, upto)
            raise
        self.epochs.publish(window, upto)
        if self.epoch is not None:
            self.consistency.take_back(self.not_shown_as_is())
        return window

    def go_through(self, window: Window, upto: EventId) -> None:
        self.wholes = {}
        self.land_finished(upto, window)
        self.land_staged(window)
        window.events = max(0, upto - max(self.cursor, self.begin()))
        entries, found = self.parted(upto)
        events = [entry for entry in entries if entry.event_id > self.cursor and not self.policies.knows(entry)]
        window.own = len(events) == window.events > 0 and all_own(events)
        self.databases.before(events, window.applied)
        self.advance_groups(found, upto, window)
        self.functions.apply(events, window.applied)
        self.databases.after(events, window.applied)
        nameless = [entry.event_id for entry in events if entry.keys.kind is Kind.UNKNOWN and entry.keys.table is None]
        if nameless:
            text = "%s: %d events do not say what they touched, event %d first"
            LOG.warning(text, self.name, len(nameless), nameless[0])
        pause.arrive(self, upto)
        self.consistency.meet(self.tables.apart.keys() | self.paused.names)
        self.scanned.done()

    def not_shown_as_is(self) -> list[TableName]:
        """Tables that are to be read, and quarantined ones that the target shows as they once were."""
        quarantined = self.tables.in_state(TableState.QUARANTINED)
        stale = [name for name in quarantined if self.tables.rows[name].shows is not None]
        return [*self.tables.in_state(*OUT), *stale]

    def parted(self, upto: EventId) -> tuple[Sequence[Entry], list[Group]]:
        """Entries, among them all of databases and functions, and the groups; those of large windows are prepared."""
        cut = self.cut(upto)
        if self.spread is not None and len(cut.span) > self.large:
            self.learn()
        if self.spread is None or self.consistency.by_database or len(cut.span) <= self.large or self.side.home.names:
            entries = self.entries(upto)
            return entries, [Group(group) for group in self.live_groups(self.with_scans(entries, upto))]
        self.wait_for_evidence(upto)
        aside = frozenset(self.tables.in_state(*ASIDE)) | self.paused.names
        beside, gists = self.spread(replace(cut, apart=dict(self.tables.apart), aside=aside))
        found = [group for group in gists if not is_of_database(group.entries[0]) and not self.leaves(group.entries)]
        return beside, [group if group.ready else Group(self.whole(group, upto)) for group in found]

    def cut(self, upto: EventId) -> Cut:
        apart, beside = self.tables.apart, self.staging.names
        if beside:
            apart = {name: shows for name, shows in apart.items() if name not in beside}
        return Cut(self.begin(), self.cursor, upto, apart)

    def entries(self, upto: EventId) -> list[Entry]:
        """What the tables that are behind, and the window itself, have not shown yet."""
        span = self.cut(upto).span
        found = self.source.journal.entries(span) if len(span) else []
        if any(map(tells, found)):
            self.learn()
        elif found:
            self.learn_once()
        return list(carried(self.source.journal, self.side, self.tables, self.cursor, found))

    def newest(self) -> EventId:
        """The source's newest event, while it answers: a journal that lost its end had more than it has."""
        try:
            return self.source.log.current()
        except Unavailable:
            return 0

    def learn(self) -> None:
        """Which sources are the target itself may have been written down at the source, and is passed on."""
        meet(self.everywhere, self.side)
        self.learned = True

    def learn_once(self) -> None:
        if not self.learned:
            self.learn()

    def with_scans(self, entries: Sequence[Entry], upto: EventId) -> Sequence[Entry]:
        """The entries, and among them what scans found without any event."""
        found, lost = self.scanned.due(upto, entries, self.shown)
        for name in lost:
            self.unknown(name, "its files changed without an event while it was changed by others", self.cursor)
        return sorted([*entries, *found], key=order_of) if found else entries

    def live_groups(self, entries: Sequence[Entry]) -> list[list[Entry]]:
        """Groups of live tables with what they have not shown yet; what can't stay live leaves."""
        of_tables = [entry for entry in entries if not is_of_database(entry)]
        found = self.cut(self.cursor).groups(self.side.admission, of_tables)
        return self.consistency.chains([group for group in found if not self.leaves(group)])

    def shown(self, name: TableName) -> EventId:
        return self.tables.apart.get(name, self.cursor)

    def admitted(self, group: Sequence[Entry]) -> list[TableName]:
        return sorted(filter(self.side.admission.takes, names_in(group)))

    def leaves(self, group: Sequence[Entry]) -> bool:
        """Whether the group can't go through this window; its tables are set aside or read."""
        names = self.admitted(group)
        if pause.hold_group(self, group):
            return True
        if (because := self.beside(group)) is not None:
            self.hold(names, because, group[0].event_id)
            return True
        for entry in group:
            name, event_id = entry.keys.table, entry.event_id
            assert name is not None
            was = entry.keys.other
            if was is not None and self.tables.is_(was, {TableState.QUARANTINED}):
                self.unknown(was, "it was renamed at the source", event_id)
            if self.tables.is_(name, {TableState.QUARANTINED}):
                if entry.keys.kind is Kind.DROP_TABLE:
                    self.unknown(name, "it was dropped at the source", event_id)
            elif name not in names or self.tables.is_(name, OUT):
                continue
            elif entry.keys.transactional and entry.keys.kind is not Kind.DROP_TABLE:
                self.quarantine(name, f"{ACID} are not replicated: {REASONS[ACID]}", event_id)
            elif entry.keys.kind is Kind.UNKNOWN and entry.keys.defect:
                self.quarantine(name, f"event {event_id} can't be read: {entry.keys.defect}", event_id)
            elif entry.keys.kind is Kind.UNKNOWN:
                self.unknown(name, f"event {event_id} ({entry.event_type}) can't be folded", event_id)
        if not any(self.tables.is_(name, ASIDE) for name in names):
            return False
        for name in names:
            if not self.tables.is_(name, ASIDE):
                self.unknown(name, "a rename links it to a table that is set aside", group[0].event_id)
        return True

    def beside(self, group: Sequence[Entry]) -> TableName | None:
        """A table that is being copied beside the windows, and that the group has to wait for."""
        waited_for = self.staging.names
        if not waited_for:
            return None
        if self.consistency.by_database:
            databases = {name.database: name for name in waited_for}
            return next((databases[name.database] for name in names_in(group) if name.database in databases), None)
        return next((name for name in names_in(group) if name in waited_for), None)

    def hold(self, names: Sequence[TableName], because: TableName, event_id: EventId) -> None:
        """Tables that can't go on before one that is copied beside the windows stay as they are."""
        late = [name for name in names if name not in self.staging.names and not self.tables.is_(name, ASIDE)]
        self.scanned.miss(names)
        self.leave(late, f"it waits for {because}, whose files are being copied", event_id)
        self.staging.hold(late, because)

    def leave(self, names: Sequence[TableName], reason: str, event_id: EventId) -> None:
        """The tables are not taken on by windows, and show what they show."""
        for name in names:
            shows = self.tables.apart[name] = self.shown(name)
            self.waiting_since.pop(name, None)
            self.tables.put(name, TableState.WAITING, shows, reason, event_id)

    def stage(self, group: Group, upto: EventId, long: Long) -> None:
        """Apply the group beside the windows: its files take long to copy."""
        entries = self.whole(group, upto) if group.ready is not None else group.entries
        cursor, names = self.cut(upto).shown_by_all(entries), self.admitted(entries)
        self.scanned.miss(names)
        self.leave(names, f"its files are being copied: {long}", upto)
        LOG.info("%s: %s leaves the window at event %d: %s", self.name, names[0], upto, long)

        def work() -> Advanced:
            changes = cascaded(self.source, self.side, entries)
            lost = self.lost_of(names)
            return advance(self.source, self.side, entries, cursor, upto, changes, lost=lost, tried=True)

        self.staging.submit(names, entries, upto, work)

    def advance_groups(self, found: Sequence[Group], upto: EventId, window: Window) -> None:
        """All groups of a wave side by side."""
        problem = self.drop_views(found, upto, window)
        for wave in Wave:
            todo = [group for group in found if wave_of(group.entries) is wave and not self.waits(group.entries)]
            while todo:
                futures = list(zip(todo, self.begin_groups(todo, upto), strict=True))
                todo = []
                for group, future in futures:
                    try:
                        todo += map(Group, self.settle(group, upto, window, future))
                    except Long as long:
                        self.stage(group, upto, long)
                    except (Unavailable, Ahead, Forgotten) as error:
                        problem = error
        if problem is not None:
            raise problem
        for name, shows in list(self.tables.apart.items()):
            if shows <= upto and not self.tables.is_(name, {TableState.WAITING}):
                del self.tables.apart[name]

    def begin_groups(self, groups: Sequence[Group], upto: EventId) -> list[Future[Advanced]]:
        """Begin with the groups in the order of their sizes. The largest one is the first, so that it does not end long
        after the others; then come the smallest, which wait for no larger one."""
        ordered = sorted(range(len(groups)), key=lambda place: size_of(groups[place]))
        ordered = [*ordered[-1:], *ordered[:-1]]
        self.fetched = fetched(self.source.journal, [groups[place] for place in ordered])
        begun = {place: self.pool.submit(self.advance, groups[place], upto) for place in ordered}
        return [begun[place] for place in range(len(groups))]

    def drop_views(
        self, found: Sequence[Group], upto: EventId, window: Window
    ) -> Unavailable | Ahead | Forgotten | None:
        """Views that come back go before their tables do. What fails here is met again when they come back."""
        problem: Unavailable | Ahead | Forgotten | None = None
        for group in found:
            if upto_drop(group.entries):
                whole = self.whole(group, upto) if group.ready is not None else group.entries
                going = upto_drop(whole)
                try:
                    window.add(self.advance(Group(going), upto, going[-1].event_id))
                except Unavailable as error:
                    if not self.blame.gives_up((Wave.VIEWS, self.admitted(group.entries)[0]), error):
                        problem = error
                except Ahead as error:
                    # An attempt before this one has brought them back already.
                    problem = error if error.event_id > upto else problem
                except Forgotten as error:
                    problem = error
                except FAILED:
                    continue
        return problem

    def waits(self, group: Sequence[Entry]) -> bool:
        """Views wait for tables that are read, or wait for files."""
        late = {*self.tables.in_state(TableState.WAITING, *OUT)}
        if not late or wave_of(group) is not Wave.VIEWS or not is_of_views(group):
            return False
        names = self.admitted(group)
        try:
            bases = sorted(bases_of(self.source.journal, group) & late - {*names})
        except Undecodable:
            return False
        for name in names if bases else ():
            shows = self.tables.apart[name] = self.shown(name)
            self.tables.put(name, TableState.WAITING, shows, pause.reason_of_view(self, bases[0]), shows)
        return bool(bases)

    def advance(self, group: Group, upto: EventId, end: EventId | None = None) -> Advanced:
        """Take the group through the window to `upto`, or only to its last event, `end`."""
        entries, end = group.entries, upto if end is None else end
        self.wait_for_evidence(max((entry.event_id for entry in entries if entry.keys.locations), default=0))
        for name in self.admitted(entries):
            self.databases.ensure(name)
        applied, accept = Applied(), self.staging.require_short
        tried, cursor = self.may_be_shown(entries), self.cut(upto).shown_by_all(entries)
        if group.ready is not None:
            accept(group.ready)
            source = replace(self.source, journal=self.fetched.take(group.first))
            try:
                advanced = carry_out(source, self.side, group.ready, applied, cursor if tried else None)
            except (Conflict, ContentLost):
                entries, tried = self.whole(group, upto), True
            else:
                # The window may hold the group until its end.
                group.ready.shown.clear()
                return advanced
        changes, lost = cascaded(self.source, self.side, entries), self.lost_of(self.admitted(entries))
        return advance(self.source, self.side, entries, cursor, end, changes, applied, accept, lost, tried=tried)

    def may_be_shown(self, entries: Sequence[Entry]) -> bool:
        """Whether an attempt whose record was lost may have shown some of them."""
        return entries[0].event_id <= self.unrecorded

    def lost_of(self, names: Sequence[TableName]) -> set[Lost]:
        """Files that could not be copied since the tables last arrived at a window's end."""
        return self.lost.setdefault(names[0], set())

    def whole(self, group: Group, upto: EventId) -> Sequence[Entry]:
        """All entries of a group of which the gist is here: the window is read once for all that ask."""
        with self.reading_whole:
            if not self.wholes:
                found = self.cut(upto).groups(self.side.admission, self.entries(upto))
                self.wholes = {entries[0].event_id: entries for entries in found}
            return self.wholes[group.first]

    def wait_for_evidence(self, newest: EventId) -> None:
        """Until capture has looked at the files of all events up to `newest`."""
        clock = self.source.clock
        deadline = clock.elapsed_ns() + int(EVIDENCE_SECONDS * 1e9)
        while self.side.policy.data != "none" and self.source.evidence.considered() < newest:
            if clock.elapsed_ns() > deadline or self.stopping.is_set():
                return
            clock.sleep(0.004)

    def settle(self, group: Group, upto: EventId, window: Window, future: Future[Advanced]) -> list[list[Entry]]:
        """What became of a group; the parts in which it is to be tried again."""
        try:
            advanced = future.result()
        except Forgotten:
            raise
        except (*FAILED, Unavailable) as error:
            if isinstance(error, Unavailable):
                self.blame.take(self.admitted(group.entries)[0], error)
                self.retries.failed_in_a_window(self.admitted(group.entries))
            elif isinstance(error, Refused):
                self.blame.require_storage()
            culprit = error.table if isinstance(error, Unfoldable | NotOurs) else None
            if parts := self.consistency.parts(group.entries, culprit):
                self.unrecorded = max(self.unrecorded, upto)
                return parts
            self.set_aside(group.entries, error)
            return []
        self.blame.succeeded(self.admitted(group.entries)[0])
        window.add(advanced)
        behind: set[TableName] = set()
        if not advanced.complete:
            self.scanned.miss(self.admitted(group.entries))
            whole = self.whole(group, upto) if group.ready is not None else group.entries
            behind = names_in(entry for entry in whole if entry.event_id > advanced.shows)
        for name in self.admitted(group.entries):
            if name in behind:
                self.wait(name, advanced.shows, upto)
            else:
                self.arrive(name, upto, present=name in advanced.present)
        return []

    def set_aside(self, group: Sequence[Entry], error: Exception) -> None:
        """Tables of a group that failed are quarantined or read; what is gone by now is read, and found missing."""
        event_id = group[-1].event_id
        for name in self.admitted(group):
            match error:
                case NotOurs() if name == error.table and not ends_gone(group, name):
                    self.quarantine(name, str(error), event_id)
                case Undecodable() | Refused():
                    self.quarantine(name, str(error), event_id)
                case _:
                    self.unknown(name, str(error), event_id)

    def wait(self, name: TableName, shows: EventId, upto: EventId) -> None:
        """The table shows the last state whose files are known."""
        self.tables.apart[name] = shows
        self.waiting_since.setdefault(name, self.source.clock.elapsed_ns())
        self.tables.put(name, TableState.WAITING, shows, "which files its newest state has is not known yet", upto)

    def arrive(self, name: TableName, upto: EventId, *, present: bool) -> None:
        """The table shows the window's end."""
        self.waiting_since.pop(name, None)
        self.lost.pop(name, None)
        self.tables.apart.pop(name, None)
        if present:
            self.tables.put(name, TableState.LIVE, upto)
        else:
            self.tables.forget(name)


def ends_gone(group: Sequence[Entry], name: TableName) -> bool:
    """Whether the group's last event on the name drops the table, or gives it another name."""
    last = next(entry for entry in reversed(group) if name in names_of(entry))
    return last.keys.kind is Kind.DROP_TABLE or last.keys.table != name
