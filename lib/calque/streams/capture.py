"""Capture of one source: its log is copied into the journal, and evidence, retention, scans and the look for gaps go on
beside: `SourceCapture`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from calque.adapters.spark.contiguous import EventRepeated
from calque.adapters.spark.contiguous import HoleInLog as LogGap
from calque.adapters.spark.log_stream import log_stream
from calque.adapters.spark.news import brisk
from calque.control.believed_time import with_believed_clock
from calque.control.identity import settle_source
from calque.control.requests import leave_request
from calque.control.status_records import failing_of, iso, tell
from calque.core.records.continuity import first_and_last
from calque.engine.capture.capture import Capture
from calque.engine.capture.continuity import Continuity, Interrupted
from calque.engine.capture.gap_guard import fenced
from calque.engine.capture.log_watch import watch
from calque.engine.sides.journal_reads import newest
from calque.engine.source.commits import CommitFinder, is_followed
from calque.engine.source.evidence import EvidenceGatherer
from calque.engine.source.scanner import Scanner, ScanSelection
from calque.engine.source.unscanned_reloads import UnscannedReloads
from calque.engine.sweep.retention import Limits, keep
from calque.errors import CalqueError, Unavailable
from calque.logs.fields import with_fields
from calque.model.names import EventId, TableName
from calque.model.requests import Action
from calque.ports.records import Json
from calque.serve.liveness_probe import PATIENCE_SECONDS
from calque.serve.samples import CaptureSample
from calque.streams.background import BackgroundThread, BackgroundWork
from calque.streams.batch_extension import BatchExtension
from calque.streams.link_admissions import LinkAdmissions
from calque.streams.shared import ProcessContext, SourceStream
from calque.streams.source_query import SourceQuery
from calque.streams.supervisor import (
    ONLY_UNANSWERED,
    AttemptSchedule,
    StatusRecord,
    SupervisedWork,
    Supervisor,
    no_problem,
    nothing,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from calque.core.policy.admit import Admission
    from calque.engine.sides.sides import SourceSide
    from calque.wiring.target import TargetWiring

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptureAddition:
    """The work that capture does for sources of one kind alone, such as remote catalogs.

    `before` is called before each attempt, and may raise `Refused` and `Unavailable`. `background` returns work that
    goes on beside capture, by the names of its threads. `problem` returns what is wrong though capture goes on, or
    None. `status_keys` returns further keys of the source's status. `end` is called once, when no attempt follows."""

    before: Callable[[SourceCapture], None]
    background: Callable[[SourceCapture], Mapping[str, BackgroundWork]]
    problem: Callable[[], str | None]
    status_keys: Callable[[], Mapping[str, Json]]
    end: Callable[[], None]


NO_ADDITION = CaptureAddition(
    before=lambda _: None, background=lambda _: {}, problem=no_problem, status_keys=dict, end=nothing
)


class SourceCapture:
    """The part of a process that captures one source into its journal.

    With `is_vital` an error other than `Unavailable` ends the process. Without it the part is tried again after such an
    error, and no other part ends.
    """

    def __init__(
        self,
        run: ProcessContext,
        stream: SourceStream,
        addition: CaptureAddition = NO_ADDITION,
        *,
        is_vital: bool = True,
    ) -> None:
        self.run, self.stream = run, stream
        self.wiring = run.wiring
        self.source = run.wiring.sources[stream.name]
        self.name = self.source.places.role
        self.addition, self.is_vital = addition, is_vital
        record = self.source.places.status_record
        work = SupervisedWork(
            run_attempt=self.run_attempt,
            close=self.close,
            end=self.addition.end,
            failed=self.failed,
            problem=self.problem,
            ask=self.ask,
            status=StatusRecord(self.write_status, partial(self.wiring.control.remove, record)),
        )
        attempts = ONLY_UNANSWERED if is_vital else AttemptSchedule()
        self.supervisor = Supervisor(run, self.name, work, attempts, {"source": stream.name})
        self.query = SourceQuery(run, self.source.places.query, self.halted)
        self.gatherer: EvidenceGatherer | None = None
        self.finder: CommitFinder | None = None
        self.background: list[BackgroundThread] = []
        self.continuity: Continuity | None = None
        self.suspected_gap = ""
        """Why the log may not continue the journal, as a thread beside capture has noticed it; empty for no
        suspicion."""
        self.defect: BaseException | None = None
        """An exception of the work beside capture that nothing there has caught: capture ends with it."""
        self.log = self.source.impatient_log(PATIENCE_SECONDS)
        self.last: EventId | None = None
        """The newest event of the journal; None before the journal was opened."""
        self.committed: EventId = 0
        """The event up to which Spark has committed batches: Spark asks for none of these events again."""
        self.links = LinkAdmissions(run, self.source)
        self.pins: str | None = None
        """The way in which files of the source are kept (`hardlink`, `copy` or `none`); None while that is not
        known."""
        self.pinned_bytes: int | None = None
        """Bytes of the source's files that are kept for targets; None while that is not known."""
        self.kept_seconds: float | None = None
        """Seconds for which Hive itself keeps files that it has replaced; None where it keeps none, and while that is
        not known."""

    def ask(self) -> EventId:
        head = self.log.current()
        self.stream.head_times.note_head(head, time.time())
        return head

    def snapshot(self) -> CaptureSample:
        supervisor = self.supervisor
        times = self.stream.head_times
        return CaptureSample(
            state=supervisor.shown_state(),
            problem=supervisor.problem(),
            reachable=supervisor.answers(),
            head=times.newest(),
            last=self.last,
            failing=supervisor.failing(),
            lag_seconds=times.lag_seconds(self.last, time.time()) if self.last is not None else 0.0,
            newest_at=times.newest_at(),
            pinned_bytes=self.pinned_bytes,
        )

    def followers(self) -> list[TargetWiring]:
        """Return all targets that follow the source, also those that another process replicates to."""
        return [self.wiring.target(name) for name in self.wiring.config.targets_of(self.stream.name)]

    def problem(self) -> str | None:
        beside = (self.gatherer, self.finder)
        return next((one.problem for one in beside if one is not None and one.problem), self.addition.problem())

    def failed(self, error: CalqueError) -> None:
        if self.is_vital:
            self.run.fail(error)
        else:
            LOG.warning("%s failed: %s", self.name, error)
            self.stream.continuity_checked.set()

    def write_status(self) -> None:
        sample, record = self.snapshot(), self.source.places.status_record
        more = {
            "failing": failing_of(sample.failing),
            "newest_at": iso(sample.newest_at),
            "pinned_bytes": sample.pinned_bytes,
            "pins": self.pins,
            "kept_seconds": self.kept_seconds,
            **self.addition.status_keys(),
        }
        tell(self.wiring.control, record, sample.state, sample.problem, **more)

    def run_attempt(self) -> None:
        """Capture until the part is to stop, and begin the journal anew wherever the log does not continue it.

        No target counts as having reached an event before this has looked for a gap once, or could not look. Raises
        `Refused` where the source is another metastore than before, or where `[source] gap` is "stop" and a gap was
        found; `Unavailable` where the source does not answer.
        """
        suspected = ""
        try:
            self.addition.before(self)
            settle_source(self.wiring, self.source)
        except CalqueError:
            # Targets go on with what the journal has.
            self.stream.continuity_checked.set()
            raise
        while not self.supervisor.stopped():
            self.close()
            try:
                continuity = self.continuity = self.continuity or self.new_continuity()
                continuity.mend(suspected)
            finally:
                self.stream.continuity_checked.set()
            suspected = self.suspected_gap = ""
            try:
                self.capture(continuity)
            except (Interrupted, LogGap, EventRepeated) as error:
                suspected = str(error)
            suspected = suspected or self.suspected_gap
            if not suspected:
                return
            self.query.begins_anew = True

    def new_continuity(self) -> Continuity:
        keys = self.source.plug.keys
        stop, weak = keys.gap == "stop", keys.allow_weak_log
        return Continuity(self.source.side(), self.stream.begin.first(), stop=stop, weak=weak)

    def notice(self, problem: str) -> None:
        self.suspected_gap = problem
        self.query.stop()

    def end_with(self, defect: BaseException) -> None:
        """End the query that runs, and have capture raise `defect`. Called by threads beside capture."""
        self.defect = defect
        self.query.stop()

    def halted(self) -> bool:
        """Tell whether the query that runs is to end: for a suspected gap, for a defect, or because the part is to
        stop."""
        return bool(self.suspected_gap) or self.defect is not None or self.supervisor.stopped()

    def capture(self, continuity: Continuity) -> None:
        """Run the query, and the work beside it, until the query ends. Raises `Interrupted`, `LogGap` and
        `EventRepeated` where the log does not continue the journal, and the defect of a thread beside capture."""
        source, after = self.source.side(), self.stream.begin.event()
        admissions = [target.admission() for target in self.followers() if target.plug.links is None]

        def takes(name: TableName) -> bool:
            return any(admission.takes(name) for admission in admissions) or self.links.copies(name)

        def copies(name: TableName) -> bool:
            return any(one.takes(name) and one.copies(name) for one in admissions) or self.links.copies(name)

        gatherer = self.gatherer = EvidenceGatherer(source, copies, self.stream.wake)
        reloads = UnscannedReloads(takes, self.source.plug.keys.intervals(), self.compare, source.clock)
        capture = Capture(source, after, gatherer, continuity, reloads.note_entries)
        self.stream.wake()
        gatherer.resume(after, capture.last())
        self.start_background("evidence", lambda _: gatherer.run())
        self.start_background("pins", lambda _: self.probe_retention(admissions))
        self.find_commits(source, admissions)
        self.scan(source, admissions, after)
        self.start_background("reloads", reloads.run)
        self.keep(source)
        for name, work in self.addition.background(self).items():
            self.start_background(name, work)
        self.start_background("vigil", lambda stopping: watch(continuity, self.notice, stopping))
        self.stream.gaps = gap = newest(source.gaps)
        self.last = capture.last()
        stream = log_stream(self.source.open_log(), self.last, self.source.plug.keys.poll)
        checkpoint = self.wiring.folder.checkpoint(self.query.name, gap, self.run.roles.takeovers(self.name))
        self.supervisor.state = "running"
        self.query.follow(stream, with_fields(partial(self.take_batch, capture), source=self.stream.name), checkpoint)
        if self.defect is not None:
            raise self.defect

    def find_commits(self, source: SourceSide, admissions: Sequence[Admission]) -> None:
        """Find out beside capture what transactions change, where some target wants ACID tables."""
        if source.commits is None or source.transactions is None:
            return
        wants = partial(is_followed, admissions)
        self.finder = CommitFinder(source, source.commits, source.transactions, wants, self.stream.wake)
        self.start_background("commits", self.finder.run)

    def take_batch(self, capture: Capture, rows: pa.Table) -> None:
        """Append the rows of one batch to the journal, then the events that come soon after them where `[source] early`
        is set."""
        self.supervisor.state = "running"
        if not rows.num_rows:
            return
        first, last = first_and_last(rows)
        self.committed = first - 1
        capture.look()
        capture.append(rows)
        self.advance_to(last)
        if self.source.plug.keys.early:
            self.take_early(capture, BatchExtension(self.halted))

    def advance_to(self, event_id: EventId) -> None:
        """Note that the journal has all events up to `event_id`, and wake the targets that follow it."""
        self.last = max(self.last or 0, event_id)
        self.supervisor.note_progress("running")
        self.stream.head_times.note_event(self.last, time.time())
        if self.finder is not None:
            self.finder.more.set()
        self.stream.wake()

    def take_early(self, capture: Capture, extension: BatchExtension) -> None:
        """Append events that come while the batch stays. A log that does not answer ends the stay without an error: the
        query waits for the log anyway."""
        pause = brisk(self.source.plug.keys.poll)
        with suppress(Unavailable):
            while (newest := extension.next(capture.last(), self.log.current, pause)) is not None:
                capture.take(newest)
                self.advance_to(newest)

    def start_background(self, name: str, work: BackgroundWork) -> None:
        """Start a thread called `name` that does `work` beside capture until `close`. An exception of the work ends
        capture."""
        self.background.append(BackgroundThread(name, work, self.end_with))
        self.background[-1].begin()

    def probe_retention(self, admissions: Sequence[Admission]) -> None:
        """Find out once how files of the source can be kept, and for how long Hive keeps them. An error is logged
        only."""

        def takes(database: str) -> bool:
            return any(admission.touches_database(database) for admission in admissions)

        try:
            self.pins = self.source.kept_by()
            self.kept_seconds = self.source.kept_seconds(takes)
        except CalqueError as error:
            LOG.warning("how files of the source are kept is not known: %s", error)
        else:
            LOG.info("files of the source are kept for targets that lag by: %s", self.pins)

    def compare(self, names: Sequence[TableName]) -> None:
        """Ask each target that copies files of these tables to compare them with the source. The requests lie in the
        state folder until a window takes them up."""
        for target in self.followers():
            admission = target.admission()
            if copied := [str(name) for name in names if admission.takes(name) and admission.copies(name)]:
                leave_request(self.wiring, target.plug.name, Action.COMPARE, copied)

    def keep(self, source: SourceSide) -> None:
        """Start the thread that lets go of events, evidence, pins and scans past their retention."""
        plug, ledgers = self.source.plug, [target.ledger() for target in self.followers()]
        retention, limits = plug.journal.retention, Limits(plug.keys.pin_bytes, plug.keys.pin_age)
        side = with_believed_clock(self.wiring, self.stream.name, fenced(source))

        def before() -> None:
            for kind in self.run.retention:
                kind.before_events(self.source, side, self.stream.begin.first())

        def note_pinned(size: int) -> None:
            self.pinned_bytes = size

        self.start_background(
            "retention", lambda stopping: keep(side, ledgers, retention, limits, stopping, before, note_pinned)
        )

    def scan(self, source: SourceSide, admissions: Sequence[Admission], after: EventId) -> None:
        """Start the thread that looks for files which changed without an event, where the configuration asks for scans.
        `after` is the event after which the journal begins."""
        assert self.gatherer is not None
        if source.scans is None:
            return
        interval = self.source.plug.keys.intervals()

        def chosen(name: TableName) -> float | None:
            return interval(name) if any(admission.takes(name) for admission in admissions) else None

        def databases(name: str) -> bool:
            return any(admission.touches_database(name) for admission in admissions)

        pending = self.gatherer.locations
        begun_ns = self.stream.begin.begun_ns()
        scanner = Scanner(
            source, source.scans, ScanSelection(cache(chosen), databases), pending, after, begun_ns, self.stream.wake
        )
        self.start_background("scan", scanner.run)

    def close(self) -> None:
        if self.gatherer is not None:
            self.gatherer.stop()
        while self.background:
            self.background.pop().stop()
