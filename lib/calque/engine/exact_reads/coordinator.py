"""The coordination of exact reads, between the windows and the pool of readers: which tables are read, when, and what
becomes of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from calque.core.records.lifecycle import BEHIND, UNREAD, State
from calque.engine.apply.databases import Databases
from calque.engine.apply.functions import Functions
from calque.engine.exact_reads.drop_limit import DropLimit
from calque.engine.exact_reads.pool import ExactReadPool, ReadOutcome, read_of
from calque.engine.sides.journal_reads import reach
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TableStates
from calque.engine.target.fault_isolation import RELEASE, defect_reason
from calque.engine.window.consistency import Consistency
from calque.engine.window.pause import PauseRules
from calque.engine.window.result import WindowResult
from calque.engine.window.retries import RetrySchedule
from calque.engine.window.scan_backlog import ScanBacklog
from calque.errors import sentence
from calque.logs.fields import about
from calque.model.ledger import NotLiveReason, RereadCause
from calque.model.names import EventId, TableName
from calque.model.records import ReadMode, ReadRequest

LOG = logging.getLogger(__name__)
WAITING_SECONDS = 30.0
"""Seconds after which a table that waits to know its files is read."""
SETTLED = BEHIND | {State.LIVE, State.QUARANTINED}
"""States in which a table is not on its way to be read."""


class ExactReads:
    """The exact reads of one target, as windows ask for them (`engine.window.exact_reads.ExactReadRequests`) and
    operators do."""

    def __init__(
        self,
        source: SourceSide,
        side: TargetSide,
        *,
        tables: TableStates,
        databases: Databases,
        functions: Functions,
        consistency: Consistency,
        scanned: ScanBacklog,
        reading: ExactReadPool,
        comparing: DropLimit,
        retries: RetrySchedule,
        rules: PauseRules,
    ) -> None:
        self.source, self.side, self.tables = source, side, tables
        self.databases, self.functions = databases, functions
        self.consistency, self.scanned = consistency, scanned
        self.reading, self.comparing, self.retries, self.rules = reading, comparing, retries, rules

    # What must be read

    def need(self, name: TableName, reason: str, event_id: EventId, cause: RereadCause = RereadCause.HOLE) -> None:
        if not self.tables.is_(name, UNREAD):
            self.take_out(name, reason, event_id, cause)
            self.submit(name)

    def need_counted(self, name: TableName, reason: str) -> None:
        if not self.tables.is_(name, UNREAD):
            self.take_out(name, reason, self.tables.cursor, RereadCause.OPERATOR, NotLiveReason.ALL)
            self.scanned.leave(name)
            self.comparing.postponed_names.add(name)

    def take_out(
        self,
        name: TableName,
        reason: str,
        event_id: EventId,
        cause: RereadCause,
        why: NotLiveReason = NotLiveReason.OWN,
    ) -> None:
        """Make the table UNKNOWN, without beginning to read it."""
        self.consistency.rebase(name.database)
        self.tables.need_read(name, reason, event_id, why, cause)
        text, extra = "%s: %s is read again at event %d: %s", about(table=str(name), event=event_id)
        LOG.info(text, self.side.policy.target, name, event_id, reason, extra=extra)

    def submit(self, name: TableName) -> None:
        self.scanned.leave(name)
        if self.rules.takes(name):
            self.reading.reads.leave(name)
            self.tables.pauses.park(name)
        else:
            self.reading.submit(name)

    def read(self, names: Sequence[TableName]) -> None:
        """Read tables that are UNKNOWN, some of them only after they were compared."""
        for name in names:
            self.scanned.leave(name)
        for name in self.comparing.begin(names):
            self.submit(name)

    def quarantine(
        self, name: TableName, reason: str, event_id: EventId, why: NotLiveReason = NotLiveReason.OWN
    ) -> None:
        shows = self.tables.rows[name].shows if name in self.tables.rows else None
        if self.tables.positions.get(name, shows) is not None:
            self.consistency.rebase(name.database)
        self.retries.leave(name)
        self.tables.quarantine(name, reason, event_id, why)
        text, extra = "%s: %s is quarantined at event %d: %s", about(table=str(name), event=event_id)
        LOG.warning(text, self.side.policy.target, name, event_id, reason, extra=extra)

    # What operators ask for

    def reread(
        self,
        takes: Callable[[TableName], bool],
        reason: str,
        states: Collection[State],
        how: ReadMode = ReadMode.READ,
    ) -> list[TableName]:
        """Have the tables read again that are in one of `states` and that `takes` chooses, and return them. Tables
        whose drops wait for an operator are left out, and wait still. Called between windows only."""
        rows = self.tables.rows
        names = [
            name for name in self.tables.in_state(*states) if takes(name) and rows[name].why is not NotLiveReason.HELD
        ]
        self.ask(names, reason, how)
        return names

    def ask(self, names: Collection[TableName], reason: str, how: ReadMode) -> None:
        """Have the tables read again, for an operator: now, or as soon as they are back from where they are copied,
        read or held."""
        passed_by = self.tables.passed_by()
        postponed_names = [
            name for name in names if how is not ReadMode.READ or name in passed_by or self.tables.is_(name, UNREAD)
        ]
        self.side.read_requests.add(self.side.ledger, how, postponed_names, reason)
        for name in names:
            if name not in passed_by:
                self.need(name, reason, self.tables.cursor, RereadCause.OPERATOR)

    def read_all_again(self, reason: str) -> list[TableName]:
        """Have all tables read again, and return them. What the target would lose by that is counted first. Not to be
        called while a comparison is under way."""
        held, passed_by = {*self.comparing.held_drops()}, self.tables.passed_by()
        names = [name for name in self.tables.in_state(*SETTLED) if name not in held]
        self.comparing.begin_all()
        self.side.read_requests.add(
            self.side.ledger, ReadMode.COUNT, [name for name in names if name in passed_by], reason
        )
        free = [name for name in names if name not in passed_by]
        for name in free:
            self.take_out(name, reason, self.tables.cursor, RereadCause.OPERATOR, NotLiveReason.ALL)
        self.read(free)
        return names

    def read_asked(self) -> None:
        """Begin with the reads that operators asked for, but not with those of tables that windows pass by, or whose
        drops wait."""
        reasons = self.side.read_requests.reasons()
        not_now = {*self.tables.passed_by(), *self.comparing.held_drops()} if reasons else ()
        for name, reason in reasons.items():
            if name in not_now:
                continue
            if self.side.read_requests.counts(name):
                self.need_counted(name, reason)
            else:
                self.need(name, reason, self.tables.cursor, RereadCause.OPERATOR)

    def release_drops(self, takes: Callable[[TableName], bool]) -> list[TableName]:
        """Have the tables read again whose drops wait for an operator and that `takes` chooses, and return them. They
        lose what the source does not have."""
        names = list(filter(takes, self.comparing.held_drops()))
        for name in names:
            self.need(name, "its drops were released", self.tables.cursor, RereadCause.OPERATOR)
        return names

    # What time brings

    def read_later(self) -> None:
        """Read tables whose reads failed again as soon as that is due."""
        for name in self.retries.due(self.source.clock.elapsed_ns()):
            if self.tables.is_(name, UNREAD):
                self.submit(name)
            else:
                self.retries.leave(name)

    def expire_waiting(self) -> None:
        """Have tables read exactly that waited too long for evidence. Where such a table holds up its whole database,
        the database's tables go alone first, which shows which of them wait."""
        now = self.source.clock.elapsed_ns()
        late = [name for name, since in self.tables.waiting_for_files.items() if now - since > WAITING_SECONDS * 1e9]
        alone = [name for name in late if self.consistency.goes_alone([name])]
        self.consistency.let_alone({TableName(name.database) for name in late if name not in alone})
        for name in alone:
            unknown_at = self.tables.rows[name].since_event or self.tables.cursor
            self.need(name, f"the files of event {unknown_at} stayed unknown", unknown_at)

    def leave_forgotten(self) -> list[TableName]:
        """Have tables read that wait for events which the journal does not have any more, and return them."""
        oldest, passed_by = reach(self.source.journal), self.tables.passed_by()
        names = [name for name, shows in self.tables.positions.items() if shows < oldest and name not in passed_by]
        for name in names:
            reason = f"the journal has no events up to {oldest} any more"
            self.need(name, reason, self.tables.cursor, RereadCause.GAP)
        return names

    # What became of reads

    def land_finished(self, upto: EventId, window: WindowResult) -> None:
        """Let tables rejoin whose reads are finished, and exact at or before event `upto`; tables whose reads are exact
        later stay for a later window."""
        self.take_compared()
        ended: set[ReadRequest] = set()
        for outcome in self.reading.drain():
            name = outcome.table
            if not self.tables.is_(name, UNREAD):
                self.reading.reads.leave(name)
                self.tables.changed.add(name)
                continue
            if outcome.is_held:
                self.submit(name)
            elif outcome.problem:
                self.failed(outcome)
            elif outcome.exact_at > upto:
                self.reading.finished.put(outcome)
            else:
                self.land(outcome, window)
            if not self.tables.is_(name, UNREAD):
                ended |= outcome.requests
        self.side.read_requests.done(self.side.ledger, ended)

    def land(self, outcome: ReadOutcome, window: WindowResult) -> None:
        """Let the table join the windows at the event that its read is exact at, or pause it there."""
        advanced, name = outcome.advanced, outcome.table
        if advanced is None:
            return
        window.add(advanced)
        window.landed += 1
        self.retries.end(name)
        self.reading.faults.succeeded(read_of(name))
        present = name in advanced.present
        self.tables.land(name, outcome.exact_at, present=present)
        self.consistency.let_alone([name])
        if present and self.rules.takes(name):
            self.tables.pauses.begin(name)

    def take_compared(self) -> None:
        """Take the results of comparisons: tables that are not equal are read, or wait for an operator."""
        compared = self.comparing.take(self.databases, self.functions)
        for name in compared.read:
            row = self.tables.rows[name]
            if row.why is NotLiveReason.GAP:
                self.tables.note_reread(name, row.reason, row.since_event or self.tables.cursor, RereadCause.GAP)
            self.submit(name)
        for name in compared.other_facets:
            if name not in self.tables.copied:
                reason = "its statistics or constraints are not the source's"
                self.need(name, reason, self.tables.cursor, RereadCause.GAP)
        for name, reason in compared.held.items():
            self.quarantine(name, reason, self.tables.cursor, NotLiveReason.HELD)

    def failed(self, outcome: ReadOutcome) -> None:
        """Put off the next try of a read that failed, or set the table aside after its retries. The world's failures
        are waited out."""
        name = outcome.table
        hopeless = not outcome.retry and not outcome.world
        if outcome.defect is not None:
            hopeless = self.reading.faults.gives_up(read_of(name), outcome.defect)
        if self.retries.gives_up(name, own_fault=not outcome.world) or hopeless:
            self.retries.end(name)
            self.reading.reads.leave(name)
            reason = f"{sentence(outcome.problem)} {RELEASE}" if outcome.retry else outcome.problem
            if outcome.defect is not None:
                reason = defect_reason(outcome.defect)
            self.quarantine(name, reason, self.tables.cursor)
            return
        text = "%s: reading %s failed and is tried again: %s"
        LOG.info(text, self.side.policy.target, name, outcome.problem, extra=about(table=str(name)))
        self.tables.fail_read(name)
        if self.retries.put_off(name, self.source.clock.elapsed_ns()) == 2:
            reason = f"{self.tables.rows[name].reason}; reading it is tried again: {outcome.problem}"
            self.tables.explain(name, reason)
