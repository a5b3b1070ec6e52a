"""The groups of one window on their way from the journal to the target: which go through the window, which leave it,
and what became of each."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace

from calque.core.defects import ObjectDefect, work_on
from calque.core.events.decode import Undecodable, table_after
from calque.core.events.effects import DEFINES_TABLE
from calque.core.events.keys import why_unknown
from calque.core.events.kinds import ACID, REASONS
from calque.core.records.lifecycle import ASIDE, BEHIND, UNREAD, State
from calque.core.states.fold import Unfoldable, names_in, names_of
from calque.core.states.moves import may_move
from calque.engine.apply import AppliedChanges
from calque.engine.apply.databases import Databases, is_of_database
from calque.engine.files.copies import ContentLost, Lost
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TableStates
from calque.engine.source.cascade_detection import cascaded
from calque.engine.target.fault_isolation import FaultIsolation, defect_reason
from calque.engine.target.observe import NotOurReplica
from calque.engine.target.origin_registry import OriginDiscovery, carried, tells
from calque.engine.window.advance import GroupOutcome, Interpreter, advance, carry_out
from calque.engine.window.awaited_evidence import AwaitedEvidence
from calque.engine.window.consistency import Consistency, order_of
from calque.engine.window.exact_reads import ExactReadRequests
from calque.engine.window.failures import FAILURES, Failure
from calque.engine.window.groups import Group, GroupSpreader, WindowBounds, size_of
from calque.engine.window.long_copies import CopyTakesLong, LongCopies, LongCopy
from calque.engine.window.message_prefetch import prefetched_messages
from calque.engine.window.pause import Pauses
from calque.engine.window.prepare import Positions, ReadyPlan, TargetIsAhead
from calque.engine.window.result import WindowResult
from calque.engine.window.retries import RetrySchedule
from calque.engine.window.scan_backlog import ScanBacklog
from calque.engine.window.table_looks import TableLooks
from calque.engine.window.unrecorded_progress import UnrecordedProgress
from calque.engine.window.view_order import ViewWave, bases_of, is_of_views, upto_drop, wave_of
from calque.errors import AlterationRefused, EventsForgotten, Refused, Unavailable
from calque.logs.fields import about, inherited
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, TableName
from calque.ports import Conflict, FormatMisfit

LOG = logging.getLogger(__name__)
LARGE = 50_000
"""Events of a window above which its groups are prepared by other processes, where there are some."""
EXPECTED = (*FAILURES, TargetIsAhead, CopyTakesLong)
"""Exceptions that the work on a group may raise beside calque's own errors."""
ARRIVED = "a rename brought it from where the target has nothing of it"


class WindowPlayer:
    """The player that takes the groups of windows through one target. `begin` says after which event the journal
    begins; groups of windows of more than `large` events are prepared by `spread`; `pool` applies groups side by side,
    and `interpret` applies their plans, or explains them."""

    def __init__(
        self,
        source: SourceSide,
        side: TargetSide,
        *,
        tables: TableStates,
        databases: Databases,
        consistency: Consistency,
        scanned: ScanBacklog,
        copies: LongCopies,
        pauses: Pauses,
        reads: ExactReadRequests,
        retries: RetrySchedule,
        faults: FaultIsolation,
        origin_discovery: OriginDiscovery,
        unrecorded_progress: UnrecordedProgress,
        begin: Callable[[], EventId],
        pool: Executor,
        interpret: Interpreter = carry_out,
        spread: GroupSpreader | None = None,
        large: int = LARGE,
    ) -> None:
        self.stopping = threading.Event()
        self.evidence = AwaitedEvidence(source.evidence, source.clock, self.stopping)
        self.source = replace(source, evidence=self.evidence)
        self.side, self.tables, self.databases = side, tables, databases
        self.consistency, self.scanned, self.copies, self.pauses = consistency, scanned, copies, pauses
        self.reads, self.retries, self.faults, self.origin_discovery = reads, retries, faults, origin_discovery
        self.unrecorded_progress, self.begin, self.pool = unrecorded_progress, begin, pool
        self.interpret, self.spread, self.large = interpret, spread, large
        self.lost: dict[TableName, tuple[EventId, set[Lost]]] = {}
        """Files of a group, by its first table, that could not be copied since it last arrived at a window's end, and
        the group's last rename after which they were tried: the next one may bring them back."""
        self.fetched = prefetched_messages(source.journal, ())
        self.looks = TableLooks(side, ())
        self.wholes: dict[EventId, list[Entry]] = {}
        """The groups of a spread window with all their entries, by their first events; empty until one of them is
        wanted whole."""
        self.reading_whole = threading.Lock()

    # What goes through a window

    def part(self, upto: EventId) -> tuple[Sequence[Entry], list[Group]]:
        """Return the entries and the groups of the window to `upto`. The entries have at least all of databases and
        functions. The groups of large windows are prepared; only groups that go through the window are returned."""
        self.wholes = {}
        cut = self.cut(upto)
        if self.spread is not None and len(cut.span) > self.large:
            self.origin_discovery.read_origins()
        if (
            self.spread is None
            or (self.source.commits is not None and self.source.commits.commits(cut.span))
            or self.consistency.by_database
            or len(cut.span) <= self.large
            or self.side.origins.names
        ):
            entries = self.entries(upto)
            return entries, [Group(group) for group in self.live_groups(self.with_scans(entries, upto))]
        self.evidence.wait(upto)
        aside = frozenset(self.tables.in_state(*ASIDE)) | self.tables.paused
        positions = dict(self.tables.positions)
        others, gists = self.spread(replace(cut, apart=positions, aside=aside))
        table_groups = [
            group for group in gists if not is_of_database(group.entries[0]) and not self.leaves_or_fails(group.entries)
        ]
        return others, [group if group.ready else Group(self.whole(group, upto)) for group in table_groups]

    def cut(self, upto: EventId) -> WindowBounds:
        """Return the bounds of a window to `upto` that begins where the tables are. Tables that are copied beside the
        windows do not make it begin earlier, because it passes them by."""
        positions, copied = self.tables.positions, self.tables.copied
        if copied:
            positions = {name: shows for name, shows in positions.items() if name not in copied}
        return WindowBounds(self.begin(), self.tables.cursor, upto, positions)

    def positions(self, group: Sequence[Entry], upto: EventId) -> Positions:
        """Return which events the group's tables show in a window to `upto`, and which of them are aside."""
        aside = frozenset(name for name in names_in(group) if self.tables.is_(name, ASIDE))
        return replace(self.cut(upto).positions(group), aside=aside)

    def entries(self, upto: EventId) -> list[Entry]:
        """Return the entries that the window to `upto`, or one of the tables that are behind, has not shown yet, as
        they concern the target. Origins are learned first where an entry tells of one."""
        span = self.cut(upto).span
        entries = self.source.journal.entries(span) if len(span) else []
        if any(map(tells, entries)):
            self.origin_discovery.read_origins()
        elif entries:
            self.origin_discovery.read_origins_once()
        return list(carried(self.source.journal, self.side, self.tables, entries))

    def with_scans(self, entries: Sequence[Entry], upto: EventId) -> Sequence[Entry]:
        """Return the entries and, among them in their order, what scans found without any event. A table is to be read
        where it can't be told between which of its events a scan belongs."""
        scans, lost = self.scanned.due(upto, entries, self.tables.shown)
        for name in lost:
            reason = "its files changed without an event while it was changed by others"
            self.reads.need(name, reason, self.tables.cursor)
        return sorted([*entries, *scans], key=order_of) if scans else entries

    def live_groups(self, entries: Sequence[Entry]) -> list[list[Entry]]:
        """Return the groups of live tables with what they have not shown yet. Groups that can't stay live leave the
        windows."""
        of_tables = [entry for entry in entries if not is_of_database(entry)]
        groups = self.cut(self.tables.cursor).groups(self.side.admission, of_tables)
        return self.consistency.chains([group for group in groups if not self.leaves_or_fails(group)])

    def admitted(self, group: Sequence[Entry]) -> list[TableName]:
        return self.side.admission.taken(names_in(group))

    def moved(self, group: Sequence[Entry]) -> list[TableName]:
        """Return the admitted tables of the group that the window takes on."""
        return [name for name in self.admitted(group) if not self.tables.is_(name, ASIDE)]

    # What leaves a window

    def leaves_or_fails(self, group: Sequence[Entry]) -> bool:
        """Tell whether the group can't go through this window, as `leaves` does. A group that can't be looked at
        because of a defect of calque is set aside after its attempts. Raises `Unavailable` until then."""
        work = f"looking at {work_of(self.admitted(group))}"
        try:
            with work_on(work, *EXPECTED):
                return self.leaves(group)
        except ObjectDefect as defect:
            self.faults.require_own_fault(work, defect)
            self.set_aside(group, defect)
            return True

    def leaves(self, group: Sequence[Entry]) -> bool:
        """Tell whether the group can't go through this window; its tables are held back, set aside or read then."""
        names = self.admitted(group)
        if self.pauses.hold_group(group):
            return True
        if (copied_table := self.copied_table(group)) is not None:
            self.hold(names, copied_table, group[0].event_id)
            return True
        for entry in group:
            self.set_aside_by(entry, names)
        return all(self.tables.is_(name, ASIDE) for name in names)

    def set_aside_by(self, entry: Entry, admitted: Sequence[TableName]) -> None:
        """Set aside those of the `admitted` tables that no window can take through the event of `entry`, or have them
        read."""
        keys, event_id = entry.keys, entry.event_id
        name, was = keys.table, keys.other
        assert name is not None
        if was is not None and self.tables.state(was) is State.QUARANTINED:
            self.reads.need(was, "it was renamed at the source", event_id)
        if self.tables.state(name) is State.QUARANTINED:
            if keys.kind is EventKind.DROP_TABLE:
                self.reads.need(name, "it was dropped at the source", event_id)
        elif name not in admitted or self.tables.is_(name, UNREAD):
            return
        elif keys.transactional and keys.kind is not EventKind.DROP_TABLE and (why := self.why_not_acid(entry, name)):
            self.reads.quarantine(name, why, event_id)
        elif keys.kind is EventKind.UNKNOWN and keys.defect:
            self.reads.quarantine(name, f"event {event_id} can't be read: {keys.defect}", event_id)
        elif keys.kind is EventKind.UNKNOWN:
            why = why_unknown(self.source.journal.events([event_id])[event_id])
            reason = f"event {event_id} ({entry.event_type}) can't be folded, as {why}; nothing is to be done"
            self.reads.need(name, reason, event_id)

    def why_not_acid(self, entry: Entry, name: TableName) -> str:
        """Return the reason why an ACID table is not replicated; empty where it is. Events that carry no definition
        leave a table as it is."""
        if self.side.admission.acid(name) == "skip":
            return f"{ACID} are not replicated: {REASONS[ACID]}"
        if entry.keys.kind not in DEFINES_TABLE:
            return ""
        return self.side.obstacle(table_after(self.source.journal.events([entry.event_id])[entry.event_id]))

    def copied_table(self, group: Sequence[Entry]) -> TableName | None:
        """Return a table that is being copied beside the windows and that the group has to wait for, None for none."""
        copied = self.tables.copied
        if not copied:
            return None
        if self.consistency.by_database:
            databases = {name.database: name for name in copied}
            return next((databases[name.database] for name in names_in(group) if name.database in databases), None)
        return next((name for name in names_in(group) if name in copied), None)

    def hold(self, names: Sequence[TableName], copied_table: TableName, event_id: EventId) -> None:
        """Keep tables as they are that can't go on before `copied_table`, which is copied beside the windows."""
        self.scanned.miss(names)
        copied_with = self.tables.copied[copied_table]
        for name in names:
            if name not in self.tables.copied and not self.tables.is_(name, ASIDE):
                reason = f"it waits for {copied_table}, whose files are being copied"
                self.tables.wait_for_copy(name, copied_with, reason, event_id)

    def copy_beside(self, group: Group, upto: EventId, long: CopyTakesLong) -> None:
        """Apply the group beside the windows, up to event `upto`, because its files take long to copy (`long`). Windows
        pass its tables by until `take_copied` lets them rejoin."""
        entries = self.whole(group, upto) if group.ready is not None else group.entries
        positions, names = self.positions(entries, upto), self.moved(entries)
        self.scanned.miss(names)
        for name in names:
            self.tables.wait_for_copy(name, names[0], f"its files are being copied: {long}", upto)
        text, extra = "%s: %s leaves the window at event %d: %s", about(table=str(names[0]), event=upto)
        LOG.info(text, self.side.policy.target, names[0], upto, long, extra=extra)

        def work() -> GroupOutcome:
            with work_on(work_of(names), *EXPECTED):
                for name in self.admitted(entries):
                    self.databases.ensure(name)
                changes = cascaded(self.source, self.side, entries, positions.aside)
                lost = self.lost_of(names, entries)
                parts = (self.source, self.side, entries, positions, upto, changes)
                accept = self.rebase_for_arrivals
                return advance(*parts, accept=accept, lost=lost, interpret=self.interpret, tried=True)

        self.copies.submit(names, entries, upto, work)

    def take_copied(self, window: WindowResult) -> list[LongCopy]:
        """Let groups rejoin that were applied beside the windows, and return them. Those that failed and are to be
        tried again go through this window."""
        jobs = self.copies.finished()
        for job in jobs:
            self.tables.end_copy(job.names[0])
            try:
                self.settle(Group(job.entries), job.upto, window, job.future)
            except (Unavailable, TargetIsAhead, EventsForgotten) as error:
                self.unrecorded_progress.fail_at(job.upto)
                text = "%s: %s did not come through beside the windows: %s"
                LOG.info(text, self.side.policy.target, job.names[0], error, extra=about(table=str(job.names[0])))
            for name in job.names:
                # What is gone by `job.upto` may have been made again since.
                if self.tables.is_(name, {State.OUT, State.LIVE}):
                    self.tables.show(name, job.upto)
                    if self.pauses.rules.takes(name) and self.tables.is_(name, {State.LIVE}):
                        self.pauses.hold(name)
        return jobs

    # Groups side by side

    def advance_groups(self, groups: Sequence[Group], upto: EventId, window: WindowResult) -> None:
        """Take all groups through the window to `upto`, wave by wave; groups of one wave go side by side. Raises
        `Unavailable`, `TargetIsAhead` or `EventsForgotten` after all groups had their turn, if one of them met it."""
        self.looks = TableLooks(self.side, ())
        problem = self.drop_views(groups, upto, window)
        for wave in ViewWave:
            todo = [group for group in groups if wave_of(group.entries) is wave and not self.waits(group.entries)]
            while todo:
                futures = list(zip(todo, self.begin_groups(todo, upto), strict=True))
                todo = []
                for group, future in futures:
                    try:
                        todo += map(Group, self.settle(group, upto, window, future))
                    except CopyTakesLong as long:
                        self.copy_beside(group, upto, long)
                    except (Unavailable, TargetIsAhead, EventsForgotten) as error:
                        problem = error
        if problem is not None:
            raise problem
        self.tables.end_window(upto)

    def begin_groups(self, groups: Sequence[Group], upto: EventId) -> list[Future[GroupOutcome]]:
        """Begin with the groups in the order of their sizes, and return their futures in the order of `groups`. The
        largest one is begun first, so that it does not end long after the others; then come the smallest, which wait
        for no larger one."""
        ordered = sorted(range(len(groups)), key=lambda place: size_of(groups[place]))
        ordered = [*ordered[-1:], *ordered[:-1]]
        self.fetched = prefetched_messages(self.source.journal, [groups[place] for place in ordered])
        self.looks = TableLooks(self.side, [groups[place] for place in ordered])
        futures = {place: self.pool.submit(inherited(self.advance), groups[place], upto) for place in ordered}
        return [futures[place] for place in range(len(groups))]

    def drop_views(
        self, groups: Sequence[Group], upto: EventId, window: WindowResult
    ) -> Unavailable | TargetIsAhead | EventsForgotten | None:
        """Drop the views that come back in this window before their tables are dropped. Return the last problem that
        the window has to be tried again for, None for none; what else fails here is met again when the views come
        back."""
        problem: Unavailable | TargetIsAhead | EventsForgotten | None = None
        for group in groups:
            if upto_drop(group.entries):
                entries = self.whole(group, upto) if group.ready is not None else group.entries
                dropping_entries = upto_drop(entries)
                try:
                    window.add(self.advance(Group(dropping_entries), upto, dropping_entries[-1].event_id))
                except Unavailable as error:
                    if not self.faults.gives_up(f"drop of {work_of(self.admitted(group.entries))}", error):
                        problem = error
                except TargetIsAhead as error:
                    # An attempt before this one has brought them back already.
                    problem = error if error.event_id > upto else problem
                except EventsForgotten as error:
                    problem = error
                except FAILURES:
                    continue
        return problem

    def waits(self, group: Sequence[Entry]) -> bool:
        """Tell whether the group has only views and a table that they show is read, or waits; the views wait with it
        then."""
        waiting_tables = {*self.tables.in_state(*BEHIND, *UNREAD)}
        if not waiting_tables or wave_of(group) is not ViewWave.VIEWS or not is_of_views(group):
            return False
        names = self.moved(group)
        try:
            with work_on(work_of(self.admitted(group)), *EXPECTED):
                bases = sorted(bases_of(self.source.journal, group) & waiting_tables - {*names})
        except (Undecodable, ObjectDefect):
            # The work on the group meets the same again, and says so.
            return False
        for name in names if bases else ():
            self.tables.wait_for_base(name, self.pauses.reason_of_view(bases[0]))
        return bool(bases)

    def advance(self, group: Group, upto: EventId, end: EventId | None = None) -> GroupOutcome:
        """Take the group through the window to `upto`, or only to its last event, `end`. Raises one of `EXPECTED`, or
        an error of calque's own."""
        with work_on(work_of(self.admitted(group.entries)), *EXPECTED):
            return self.carry(group, upto, end)

    def carry(self, group: Group, upto: EventId, end: EventId | None) -> GroupOutcome:
        entries, end = group.entries, upto if end is None else end
        for name in self.admitted(entries):
            self.databases.ensure(name)
        applied = AppliedChanges()
        tried, positions = entries[0].event_id <= self.unrecorded_progress.unrecorded, self.positions(entries, upto)
        if group.ready is not None:
            self.accept(group.ready)
            source = replace(self.source, journal=self.fetched.take(group.first))
            recorded = positions.by_all(names_in(entries)) if tried else None
            try:
                advanced = self.interpret(source, self.side, group.ready, applied, recorded)
            except (Conflict, ContentLost, FormatMisfit):
                entries, tried = self.whole(group, upto), True
            else:
                # The window may hold the group until its end.
                group.ready.shown.clear()
                return advanced
        changes = cascaded(self.source, self.side, entries, positions.aside)
        lost = self.lost_of(self.admitted(entries), entries)
        parts = (self.source, self.side, entries, positions, end, changes, applied, self.accept, lost)
        return advance(*parts, interpret=self.interpret, tried=tried, looked=self.looks.take(group))

    def accept(self, ready: ReadyPlan) -> None:
        """Permit that a plan is carried out: raise `CopyTakesLong` where its copies take too long for a window, and
        else with `consistency = "database"` have the databases of tables that renames bring in (`Chain.arrivals`) say
        `rebasing` from now on."""
        self.copies.require_short(ready)
        self.rebase_for_arrivals(ready)

    def rebase_for_arrivals(self, ready: ReadyPlan) -> None:
        """Have databases say `rebasing` whose tables arrive on the way of this plan. A table that was renamed from
        where the target has nothing of it is read after the window, or is gone by then, so its database goes on
        without it."""
        for name in sorted(ready.lacked):
            self.consistency.rebase(name.database)

    def lost_of(self, names: Sequence[TableName], entries: Sequence[Entry]) -> set[Lost]:
        """Return the files that could not be copied since the tables last arrived at a window's end, or were renamed.
        The set is kept: files that the caller adds are in it the next time."""
        renamed_before, lost = self.lost.setdefault(names[0], (0, set()))
        renamed_at = max((entry.event_id for entry in entries if may_move(entry)), default=0) if lost else 0
        if renamed_at > renamed_before:
            self.lost[names[0]] = renamed_at, (lost := set())
        return lost

    def whole(self, group: Group, upto: EventId) -> Sequence[Entry]:
        """Return all entries of a group of which only the gist is here. The window is read once for all groups that
        ask."""
        with self.reading_whole:
            if not self.wholes:
                groups = self.cut(upto).groups(self.side.admission, self.entries(upto))
                self.wholes = {entries[0].event_id: entries for entries in groups}
            return self.wholes[group.first]

    # What became of a group

    def settle(
        self, group: Group, upto: EventId, window: WindowResult, future: Future[GroupOutcome]
    ) -> list[list[Entry]]:
        """Wait for the `future` of a group and record what became of the group. Return the parts in which it is to be
        tried again, none where it came through or was set aside. Raises what another window has to try again."""
        try:
            advanced = future.result()
        except EventsForgotten:
            raise
        except FAILURES as error:
            if isinstance(error, Unavailable | ObjectDefect):
                self.faults.require_own_fault(work_of(self.admitted(group.entries)), error)
                self.retries.failed_in_a_window(self.moved(group.entries))
            elif isinstance(error, Refused):
                self.faults.require_storage()
            culprit = error.table if isinstance(error, Unfoldable | NotOurReplica) else None
            if parts := self.consistency.parts(group.entries, culprit):
                self.unrecorded_progress.fail_at(upto)
                return parts
            self.set_aside(group.entries, error)
            return []
        self.faults.succeeded(work_of(self.admitted(group.entries)))
        window.add(advanced)
        self.take_shown(group, upto, advanced)
        return []

    def take_shown(self, group: Group, upto: EventId, advanced: GroupOutcome) -> None:
        """Record that the group's tables show the window's end, or the last state whose files are known, for which they
        wait then. Tables that arrived are to be read."""
        unknown_at: dict[TableName, EventId] = {}
        if not advanced.complete:
            self.scanned.miss(self.admitted(group.entries))
            entries = self.whole(group, upto) if group.ready is not None else group.entries
            missing = [entry for entry in entries if entry.event_id > advanced.shows]
            unknown_at = {name: entry.event_id for entry in reversed(missing) for name in names_of(entry)}
        # What was taken out of the windows while its group was copied is read as it is shown then.
        for name in self.moved(group.entries):
            if name in unknown_at and name not in advanced.arrived:
                shows, now_ns = max(advanced.shows, self.tables.shown(name)), self.source.clock.elapsed_ns()
                self.tables.wait_for_files(name, shows, unknown_at[name], now_ns)
                continue
            if name not in unknown_at:
                self.lost.pop(name, None)
            self.tables.arrive(name, upto, present=name in advanced.present)
            if name in advanced.arrived:
                self.reads.need(name, ARRIVED, upto)

    def set_aside(self, group: Sequence[Entry], error: Failure) -> None:
        """Quarantine the tables of a group that failed, or have them read, as `error` demands. A name that holds no
        replica of calque's is quarantined, unless the group ends with the table gone from it: then the table is read,
        and found missing."""
        event_id = group[-1].event_id
        for name in self.moved(group):
            match error:
                case NotOurReplica() if name == error.table and not ends_gone(group, name):
                    self.reads.quarantine(name, str(error), event_id)
                case AlterationRefused():
                    # A table that is read is built anew where it can't be altered. What the read meets sets it aside.
                    self.reads.need(name, str(error), event_id)
                case Undecodable() | Refused():
                    self.reads.quarantine(name, str(error), event_id)
                case ObjectDefect():
                    self.reads.quarantine(name, defect_reason(error), event_id)
                case _:
                    self.reads.need(name, str(error), event_id)


def work_of(names: Sequence[TableName]) -> str:
    """Return the name of the work on a group of these tables, after the first one."""
    return f"table {names[0]}"


def ends_gone(group: Sequence[Entry], name: TableName) -> bool:
    """Tell whether the group's last event on `name` drops the table, or gives it another name."""
    last = next(entry for entry in reversed(group) if name in names_of(entry))
    return last.keys.kind is EventKind.DROP_TABLE or last.keys.table != name
