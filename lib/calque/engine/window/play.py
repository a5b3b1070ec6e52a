"""The groups of one window, from the journal to the target: which go through it, which leave it, and what became of
each."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace

from calque.core.defects import ObjectDefect, work_on
from calque.core.events.decode import Undecodable
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
from calque.engine.target.origin_registry import OriginLearning, carried, tells
from calque.engine.window.advance import GroupOutcome, Interpreter, advance, carry_out
from calque.engine.window.attempts import Attempts
from calque.engine.window.awaited_evidence import AwaitedEvidence
from calque.engine.window.consistency import Consistency, order_of
from calque.engine.window.exact_reads import ExactReadRequests
from calque.engine.window.failures import FAILURES, Failure
from calque.engine.window.groups import Group, GroupSpreader, WindowBounds, size_of
from calque.engine.window.long_copies import CopyTakesLong, LongCopies, LongCopy
from calque.engine.window.message_prefetch import prefetched_messages
from calque.engine.window.pause import Pauses
from calque.engine.window.prepare import Positions, ReadyPlan, TargetIsAhead
from calque.engine.window.result import Window
from calque.engine.window.retries import ReadRetries
from calque.engine.window.scan_backlog import ScanBacklog
from calque.engine.window.view_order import ViewWave, bases_of, is_of_views, upto_drop, wave_of
from calque.errors import AlterationRefused, EventsForgotten, Refused, Unavailable
from calque.logs.fields import about, inherited
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, TableName
from calque.ports import Conflict, FormatMisfit

LOG = logging.getLogger(__name__)
LARGE = 50_000
"""Events of a window whose groups are prepared by other processes, where there are some."""
EXPECTED = (*FAILURES, TargetIsAhead, CopyTakesLong)
"""What the work on a group may raise beside calque's own errors."""
ARRIVED = "a rename brought it from where the target has nothing of it"


class WindowPlayer:
    """Takes the groups of windows through one target. `begin` says where the journal begins; groups of windows of more
    than `large` events are prepared by `spread`; `pool` applies groups side by side, and `interpret` says what
    becomes of their plans."""

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
        retries: ReadRetries,
        faults: FaultIsolation,
        origins: OriginLearning,
        attempts: Attempts,
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
        self.reads, self.retries, self.faults, self.origins = reads, retries, faults, origins
        self.attempts, self.begin, self.pool = attempts, begin, pool
        self.interpret, self.spread, self.large = interpret, spread, large
        self.lost: dict[TableName, tuple[EventId, set[Lost]]] = {}
        """Files of a group, by its first table, that could not be copied since it last arrived at a window's end, and
        the group's last rename after which they were tried: the next one may bring them back."""
        self.fetched = prefetched_messages(source.journal, ())
        self.wholes: dict[EventId, list[Entry]] = {}
        """Of a spread window, by its first event: the groups that are wanted whole after all."""
        self.reading_whole = threading.Lock()

    # What goes through a window

    def part(self, upto: EventId) -> tuple[Sequence[Entry], list[Group]]:
        """Entries, among them all of databases and functions, and the groups; those of large windows are prepared."""
        self.wholes = {}
        cut = self.cut(upto)
        if self.spread is not None and len(cut.span) > self.large:
            self.origins.learn()
        if self.spread is None or self.consistency.by_database or len(cut.span) <= self.large or self.side.home.names:
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
        """The window from where the tables are."""
        positions, copied = self.tables.positions, self.tables.copied
        if copied:
            positions = {name: shows for name, shows in positions.items() if name not in copied}
        return WindowBounds(self.begin(), self.tables.cursor, upto, positions)

    def positions(self, group: Sequence[Entry], upto: EventId) -> Positions:
        """Of the group's tables, in a window to `upto`."""
        aside = frozenset(name for name in names_in(group) if self.tables.is_(name, ASIDE))
        return replace(self.cut(upto).positions(group), aside=aside)

    def entries(self, upto: EventId) -> list[Entry]:
        """What the tables that are behind, and the window itself, have not shown yet."""
        span = self.cut(upto).span
        entries = self.source.journal.entries(span) if len(span) else []
        if any(map(tells, entries)):
            self.origins.learn()
        elif entries:
            self.origins.learn_once()
        return list(carried(self.source.journal, self.side, self.tables, entries))

    def with_scans(self, entries: Sequence[Entry], upto: EventId) -> Sequence[Entry]:
        """The entries, and among them what scans found without any event."""
        scans, lost = self.scanned.due(upto, entries, self.tables.shown)
        for name in lost:
            reason = "its files changed without an event while it was changed by others"
            self.reads.need(name, reason, self.tables.cursor)
        return sorted([*entries, *scans], key=order_of) if scans else entries

    def live_groups(self, entries: Sequence[Entry]) -> list[list[Entry]]:
        """Groups of live tables with what they have not shown yet; what can't stay live leaves."""
        of_tables = [entry for entry in entries if not is_of_database(entry)]
        groups = self.cut(self.tables.cursor).groups(self.side.admission, of_tables)
        return self.consistency.chains([group for group in groups if not self.leaves_or_fails(group)])

    def admitted(self, group: Sequence[Entry]) -> list[TableName]:
        return self.side.admission.taken(names_in(group))

    def moved(self, group: Sequence[Entry]) -> list[TableName]:
        """The admitted tables of the group that the window takes on."""
        return [name for name in self.admitted(group) if not self.tables.is_(name, ASIDE)]

    # What leaves a window

    def leaves_or_fails(self, group: Sequence[Entry]) -> bool:
        """As `leaves`; a group that calque's own defect keeps from being looked at is set aside after its attempts.
        Raises `Unavailable` until then."""
        work = f"looking at {work_of(self.admitted(group))}"
        try:
            with work_on(work, *EXPECTED):
                return self.leaves(group)
        except ObjectDefect as defect:
            self.faults.require_own_fault(work, defect)
            self.set_aside(group, defect)
            return True

    def leaves(self, group: Sequence[Entry]) -> bool:
        """Whether the group can't go through this window; its tables are set aside or read."""
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
        """Events that no window can take its tables through."""
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
        elif keys.transactional and keys.kind is not EventKind.DROP_TABLE:
            self.reads.quarantine(name, f"{ACID} are not replicated: {REASONS[ACID]}", event_id)
        elif keys.kind is EventKind.UNKNOWN and keys.defect:
            self.reads.quarantine(name, f"event {event_id} can't be read: {keys.defect}", event_id)
        elif keys.kind is EventKind.UNKNOWN:
            why = why_unknown(self.source.journal.events([event_id])[event_id])
            reason = f"event {event_id} ({entry.event_type}) can't be folded, as {why}; nothing is to be done"
            self.reads.need(name, reason, event_id)

    def copied_table(self, group: Sequence[Entry]) -> TableName | None:
        """A table that is being copied beside the windows, and that the group has to wait for."""
        copied = self.tables.copied
        if not copied:
            return None
        if self.consistency.by_database:
            databases = {name.database: name for name in copied}
            return next((databases[name.database] for name in names_in(group) if name.database in databases), None)
        return next((name for name in names_in(group) if name in copied), None)

    def hold(self, names: Sequence[TableName], copied_table: TableName, event_id: EventId) -> None:
        """Tables that can't go on before one that is copied beside the windows stay as they are."""
        self.scanned.miss(names)
        copied_with = self.tables.copied[copied_table]
        for name in names:
            if name not in self.tables.copied and not self.tables.is_(name, ASIDE):
                reason = f"it waits for {copied_table}, whose files are being copied"
                self.tables.wait_for_copy(name, copied_with, reason, event_id)

    def copy_beside(self, group: Group, upto: EventId, long: CopyTakesLong) -> None:
        """Apply the group beside the windows: its files take long to copy."""
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

    def take_copied(self, window: Window) -> list[LongCopy]:
        """Groups that were applied beside the windows rejoin; those that could not be go through this window."""
        jobs = self.copies.finished()
        for job in jobs:
            self.tables.end_copy(job.names[0])
            try:
                self.settle(Group(job.entries), job.upto, window, job.future)
            except (Unavailable, TargetIsAhead, EventsForgotten) as error:
                self.attempts.fail_at(job.upto)
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

    def advance_groups(self, groups: Sequence[Group], upto: EventId, window: Window) -> None:
        """All groups of a wave side by side."""
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
        """Begin with the groups in the order of their sizes. The largest one is the first, so that it does not end long
        after the others; then come the smallest, which wait for no larger one."""
        ordered = sorted(range(len(groups)), key=lambda place: size_of(groups[place]))
        ordered = [*ordered[-1:], *ordered[:-1]]
        self.fetched = prefetched_messages(self.source.journal, [groups[place] for place in ordered])
        futures = {place: self.pool.submit(inherited(self.advance), groups[place], upto) for place in ordered}
        return [futures[place] for place in range(len(groups))]

    def drop_views(
        self, groups: Sequence[Group], upto: EventId, window: Window
    ) -> Unavailable | TargetIsAhead | EventsForgotten | None:
        """Views that come back go before their tables do. What fails here is met again when they come back."""
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
        """Views wait for tables that are read, or wait for files."""
        waiting_tables = {*self.tables.in_state(*BEHIND, *UNREAD)}
        if not waiting_tables or wave_of(group) is not ViewWave.VIEWS or not is_of_views(group):
            return False
        names = self.moved(group)
        try:
            with work_on(work_of(self.admitted(group)), *EXPECTED):
                bases = sorted(bases_of(self.source.journal, group) & waiting_tables - {*names})
        except (Undecodable, ObjectDefect):
            # Whoever takes the group on meets it again, and says so.
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
        tried, positions = entries[0].event_id <= self.attempts.unrecorded, self.positions(entries, upto)
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
        return advance(*parts, interpret=self.interpret, tried=tried)

    def accept(self, ready: ReadyPlan) -> None:
        """Before a plan is carried out. Raises `CopyTakesLong`."""
        self.copies.require_short(ready)
        self.rebase_for_arrivals(ready)

    def rebase_for_arrivals(self, ready: ReadyPlan) -> None:
        """A table that was renamed from where the target has nothing of it is read after the window: its database goes
        on without it."""
        for name in sorted(ready.arrived):
            self.consistency.rebase(name.database)

    def lost_of(self, names: Sequence[TableName], entries: Sequence[Entry]) -> set[Lost]:
        """Files that could not be copied since the tables last arrived at a window's end, or were renamed."""
        renamed_before, lost = self.lost.setdefault(names[0], (0, set()))
        renamed_at = max((entry.event_id for entry in entries if may_move(entry)), default=0) if lost else 0
        if renamed_at > renamed_before:
            self.lost[names[0]] = renamed_at, (lost := set())
        return lost

    def whole(self, group: Group, upto: EventId) -> Sequence[Entry]:
        """All entries of a group of which the gist is here: the window is read once for all that ask."""
        with self.reading_whole:
            if not self.wholes:
                groups = self.cut(upto).groups(self.side.admission, self.entries(upto))
                self.wholes = {entries[0].event_id: entries for entries in groups}
            return self.wholes[group.first]

    # What became of a group

    def settle(self, group: Group, upto: EventId, window: Window, future: Future[GroupOutcome]) -> list[list[Entry]]:
        """What became of a group; the parts in which it is to be tried again."""
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
                self.attempts.fail_at(upto)
                return parts
            self.set_aside(group.entries, error)
            return []
        self.faults.succeeded(work_of(self.admitted(group.entries)))
        window.add(advanced)
        self.take_shown(group, upto, advanced)
        return []

    def take_shown(self, group: Group, upto: EventId, advanced: GroupOutcome) -> None:
        """The group's tables show the window's end, or the last state whose files are known."""
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
        """Tables of a group that failed are quarantined or read; what is gone by now is read, and found missing."""
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
    """The work on a group of these tables, by its first one."""
    return f"table {names[0]}"


def ends_gone(group: Sequence[Entry], name: TableName) -> bool:
    """Whether the group's last event on the name drops the table, or gives it another name."""
    last = next(entry for entry in reversed(group) if name in names_of(entry))
    return last.keys.kind is EventKind.DROP_TABLE or last.keys.table != name
