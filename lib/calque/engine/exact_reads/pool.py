"""The pool that reads tables exactly, beside the windows: a few at a time, each landed as soon as it is read."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, assert_never

from calque.core.defects import ObjectDefect, work_on
from calque.core.events.decode import Undecodable
from calque.core.states.fold import Unfoldable
from calque.engine.apply import AppliedChanges
from calque.engine.apply.databases import Databases
from calque.engine.apply.facet_sources import copy_facets
from calque.engine.exact_reads.build_in_batches import BATCH, build
from calque.engine.exact_reads.compare_in_pages import compare_pages
from calque.engine.exact_reads.land import land, land_absence
from calque.engine.exact_reads.progress import ReadProgress
from calque.engine.files.copies import ContentLost
from calque.engine.policy.retained import RetainedReplicas
from calque.engine.sides.journal_reads import reach, touching
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TableStates, as_recorded, landed_row
from calque.engine.source.exact_read import TableIsLarge, TableIsTooBusy, read_exact
from calque.engine.target.fault_isolation import FaultIsolation, facts
from calque.engine.target.observe import NotOurReplica
from calque.engine.target.recovered_rows import as_it_is
from calque.engine.window.advance import GroupOutcome
from calque.engine.window.failures import FAILURES, Failure
from calque.engine.window.prepare import FARTHEST, Unreachable
from calque.errors import EventsForgotten, Refused, Unavailable
from calque.logs.fields import beside_windows, log_fields
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId, Span, TableName
from calque.model.plan import GroupPlan
from calque.model.records import ReadRequest
from calque.ports import Clock, Conflict, Ledger

READERS = 4


@dataclass(frozen=True, slots=True)
class ReadOutcome:
    """The outcome of the read of a table: landed at event `exact_at`, or a `problem` (with `retry`: worth another try;
    with `world`: it says nothing of the table)."""

    table: TableName
    exact_at: EventId = 0
    advanced: GroupOutcome | None = None
    problem: str = ""
    retry: bool = False
    world: bool = False
    requests: frozenset[ReadRequest] = frozenset()
    """The requests for the table that were there when the read began."""
    is_held: bool = False
    """True where the read did not begin, because an operator holds the table back."""
    defect: ObjectDefect | None = None
    """The defect of calque that made the read fail; None where another problem or none did."""


def ends(entry: Entry, name: TableName) -> bool:
    """Tell whether the event takes the table of that name away."""
    return entry.keys.other == name or (entry.keys.kind is EventKind.DROP_TABLE and entry.keys.table == name)


class LandingRecorder:
    """The recorder of tables that land. It records them as STAGING: they show the event that the row says, and join the
    windows at the first one that ends there or later. `finish` gets the outcome when the row is durable; `note_defect`
    gets the futures of writes, which may have met a defect. At most one commit in `pace` seconds is made, for all that
    have landed by then: after a death the tables that landed since the last commit are read again."""

    def __init__(
        self,
        ledger: Ledger,
        finish: Callable[[ReadOutcome], None],
        note_defect: Callable[[Future[None]], None],
        stopping: threading.Event,
        pace: float,
        clock: Clock,
    ) -> None:
        self.ledger, self.finish, self.note_defect = ledger, finish, note_defect
        self.stopping, self.pace, self.clock = stopping, pace, clock
        self.written_ns = 0
        self.waiting: list[ReadOutcome] = []
        self.adding, self.writing = threading.Lock(), threading.Lock()
        self.writer = ThreadPoolExecutor(1, "landed") if pace else None

    def record(self, landed: ReadOutcome) -> None:
        """Have a table that has landed recorded. With a pace, a thread of the recorder does so later."""
        with self.adding:
            self.waiting.append(landed)
            first = len(self.waiting) == 1
        if self.writer is None:
            self.write()
        elif first:
            self.writer.submit(beside_windows(self.write_later)).add_done_callback(self.note_defect)

    def write_later(self) -> None:
        self.stopping.wait(max(0.0, self.pace - (self.clock.elapsed_ns() - self.written_ns) / 1e9))
        self.write()
        self.written_ns = self.clock.elapsed_ns()

    def write(self) -> None:
        with self.writing:
            with self.adding:
                landed, self.waiting = self.waiting, []
            try:
                if landed:
                    self.ledger.put_tables([landed_row(read.table, read.exact_at) for read in landed])
            except (Refused, Unavailable) as error:
                world = isinstance(error, Unavailable)
                landed = [replace(failed(read.table, error), world=world) for read in landed]
        for read in landed:
            self.finish(read)

    def close(self) -> None:
        """End after the last table that has landed is recorded."""
        if self.writer is not None:
            self.writer.shutdown(wait=True)


def failed(name: TableName, error: Failure) -> ReadOutcome:
    """Return the outcome of a read that ended with `error`."""
    match error:
        case Unavailable():
            return ReadOutcome(name, problem=facts(error), retry=True)
        case EventsForgotten() | Unreachable() | ContentLost() | Unfoldable():
            return ReadOutcome(name, problem=str(error), retry=True)
        case Conflict():
            return ReadOutcome(name, problem=f"it was changed at the target by another: {error}", retry=True)
        case ObjectDefect():
            return ReadOutcome(name, problem=str(error), retry=True, defect=error)
        case NotOurReplica() | TableIsTooBusy() | Refused() | Undecodable():
            return ReadOutcome(name, problem=str(error))
    assert_never(error)


def read_of(name: TableName) -> str:
    """Return the name of the work of reading the table exactly."""
    return f"read of table {name}"


class ExactReadPool:
    """The readers of one target. `finished` holds outcomes, and defects that readers met; `wake` is called after each.
    The read of a table for which `is_held` is true does not begin."""

    def __init__(
        self,
        source: SourceSide,
        side: TargetSide,
        databases: Databases,
        tables: TableStates,
        faults: FaultIsolation,
        wake: Callable[[], None],
        pool: Callable[[int, str], Executor] = ThreadPoolExecutor,
        *,
        readers: int = READERS,
        batch: int = BATCH,
        retained: RetainedReplicas | None = None,
        pace: float = 0.0,
        is_held: Callable[[TableName], bool] = lambda _: False,
    ) -> None:
        self.retained, self.is_held = retained or RetainedReplicas(side), is_held
        self.source, self.side, self.databases, self.faults = source, side, databases, faults
        self.tables, self.wake = tables, wake
        self.finished: queue.Queue[ReadOutcome | BaseException] = queue.Queue()
        self.batch = batch
        self.reads = ReadProgress(source.clock.now_ns)
        self.stopping = threading.Event()
        self.landed = LandingRecorder(side.ledger, self.finish, self.note_defect, self.stopping, pace, source.clock)
        self.pool = pool(readers, f"read-{side.policy.target}")
        self.target_reader = pool(readers, f"there-{side.policy.target}")
        """Threads that read the target while one of the readers reads the source."""

    def submit(self, name: TableName) -> None:
        """Read the table, and land it, on one of the readers' threads."""
        self.reads.begin(name)
        self.begin(self.run, name)

    def rejoin(self, name: TableName, exact_at: EventId) -> None:
        """Take up a table that a process before this one has landed at event `exact_at`, and that no epoch has told of
        yet."""
        self.begin(self.finish_landed, name, exact_at)

    def begin(self, work: Callable[..., None], *arguments: Any) -> None:
        """Have one of the readers do the work. `drain` raises what the work raises."""
        if not self.stopping.is_set():
            self.pool.submit(beside_windows(work), *arguments).add_done_callback(self.note_defect)

    def note_defect(self, work: Future[None]) -> None:
        """Keep what the work raised, if it did, for `drain`."""
        if not work.cancelled() and (error := work.exception()) is not None:
            self.finish(error)

    def finish_landed(self, name: TableName, exact_at: EventId) -> None:
        """Finish the read of a table that has landed before: its outcome has the rows of what the target shows."""
        try:
            with work_on(read_of(name), *FAILURES):
                applied = AppliedChanges(as_it_is(self.side, name, exact_at, self.batch))
        except FAILURES as error:
            self.finish(failed(name, error))
            return
        self.finish(
            ReadOutcome(
                name, exact_at, GroupOutcome((name,), GroupPlan((name,), 0), True, exact_at, frozenset({name}), applied)
            )
        )

    def close(self) -> None:
        """End after the calls in hand; reads that have not begun are given up."""
        self.stopping.set()
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.target_reader.shutdown(wait=True)
        self.landed.close()

    def run(self, name: TableName) -> None:
        """Read the table and land it, unless it is held back; a failure is an outcome, too."""
        if self.stopping.is_set():
            return
        requests = self.side.read_requests.of(name)
        try:
            with log_fields(table=str(name)), work_on(read_of(name), *FAILURES):
                outcome = ReadOutcome(name, is_held=True) if self.is_held(name) else self.read_and_land(name)
        except FAILURES as error:
            outcome = replace(failed(name, error), world=not self.faults.may_be_own_fault(error))
        outcome = replace(outcome, requests=requests)
        if outcome.advanced is not None and name in outcome.advanced.present:
            self.landed.record(outcome)
        else:
            self.finish(outcome)

    def finish(self, outcome: ReadOutcome | BaseException) -> None:
        self.finished.put(outcome)
        self.wake()

    def read_and_land(self, name: TableName) -> ReadOutcome:
        self.say_unread(name)
        self.tables.begin_reading(name)
        with_files, names = self.side.admission.copies(name), None
        dropped = AppliedChanges()
        try:
            exact = read_exact(self.source, name, with_files, self.batch)
        except TableIsLarge:
            self.databases.ensure(name)
            self.retained.bring(name)
            self.tables.begin_copying(name)
            if (absent_at := self.last_absence(name, self.source.log.current())) is not None:
                dropped = land_absence(self.side, name, absent_at)
            built = build(self.source, self.side, name, self.batch, self.reads.built)
            if built is not None:
                advanced = built.advanced
                advanced.applied.objects[:0] = dropped.objects
                copy_facets(self.source, self.side, built.exact, advanced.plan, advanced.applied, built.partitions)
                self.reads.landed(name, len(built.partitions), advanced.applied.bytes)
                return ReadOutcome(name, built.exact.exact_at, advanced)
            comparison = compare_pages(self.source, self.side, name, self.batch, self.reads.built, self.target_reader)
            if comparison is not None:
                exact, names = comparison.exact, comparison.partitions
            else:
                exact = read_exact(self.source, name, with_files)
        names = list(exact.partitions) if names is None else names
        if exact.table is not None:
            if problem := self.side.obstacle(exact.table):
                return ReadOutcome(name, exact.exact_at, problem=problem)
            self.databases.ensure(name)
            self.retained.bring(name)
            self.tables.begin_copying(name)
        landed = land(self.side, exact, self.batch, lambda: self.last_absence(name, exact.exact_at))
        landed.applied.objects[:0] = dropped.objects
        copy_facets(self.source, self.side, exact, landed.plan, landed.applied, names)
        self.reads.landed(name, len(names), landed.applied.bytes)
        return ReadOutcome(name, exact.exact_at, landed)

    def say_unread(self, name: TableName) -> None:
        """Record in the ledger that the table is not live, before the target shows anything else of it. Without the row
        the next epoch after a death would say that the table still shows what it showed."""
        status = self.tables.rows.get(name)
        if name in self.tables.changed and status is not None and status.shows is not None:
            self.side.ledger.put_tables([as_recorded(status.row(name))])

    def last_absence(self, name: TableName, exact_at: EventId) -> EventId | None:
        """Return the last event up to `exact_at` that took away the table that the target shows under the name, so that
        the source had none then; None where there is no such event, or the journal does not reach back."""
        status = self.tables.rows.get(name)
        shows = status.shows if status is not None else None
        begin = reach(self.source.journal)
        if shows is None or not begin <= shows < exact_at <= shows + FARTHEST:
            return None
        return max(
            (entry.event_id for entry in touching(self.source, name, Span(shows, exact_at)) if ends(entry, name)),
            default=None,
        )

    def drain(self) -> list[ReadOutcome]:
        """Return the outcomes that have come since the last call. Raises a defect that a reader met."""
        outcomes: list[ReadOutcome] = []
        while True:
            try:
                outcome = self.finished.get_nowait()
            except queue.Empty:
                return outcomes
            if isinstance(outcome, BaseException):
                raise outcome
            outcomes.append(outcome)
