"""The source's log into the journal, and what goes on beside: evidence, retention, scans, the look for gaps."""

from __future__ import annotations

import logging
import threading
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
from calque.control.status_records import tell
from calque.core.records.continuity import first_and_last
from calque.engine.capture.capture import Capture
from calque.engine.capture.continuity import Continuity, Interrupted
from calque.engine.capture.gap_guard import fenced
from calque.engine.capture.log_watch import watch
from calque.engine.sides.journal_reads import newest
from calque.engine.source.evidence import EvidenceGatherer
from calque.engine.source.scanner import Scanner, ScanSelection
from calque.engine.source.unscanned_reloads import UnscannedReloads
from calque.engine.sweep.retention import Limits, keep
from calque.errors import CalqueError, Unavailable
from calque.logs.fields import with_fields
from calque.model.names import EventId, TableName
from calque.model.requests import Action
from calque.ports.records import Json
from calque.serve.heartbeat import PATIENCE_SECONDS
from calque.serve.metrics import CaptureLook
from calque.streams.background import BackgroundThread
from calque.streams.batch_extension import BatchExtension
from calque.streams.link_admissions import LinkAdmissions
from calque.streams.shared import RunForParts, SourceStream
from calque.streams.source_query import SourceQuery
from calque.streams.supervisor import ONLY_UNANSWERED, Attempts, StatusRecord, Supervisor, Work, no_problem, nothing

if TYPE_CHECKING:
    import pyarrow as pa

    from calque.core.policy.admit import Admission
    from calque.engine.sides.sides import SourceSide
    from calque.wiring.target import TargetWiring

LOG = logging.getLogger(__name__)


BackgroundWork = Callable[[threading.Event], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptureAddition:
    """What the capture of sources of one kind does beside that of any other.

    `before` comes before each attempt, and may raise `Refused` and `Unavailable`; `beside` is what goes on beside
    capture, by the names of its threads; `told` are keys of the source's status; `end` comes when no attempt
    follows."""

    before: Callable[[CapturePart], None]
    beside: Callable[[CapturePart], Mapping[str, BackgroundWork]]
    problem: Callable[[], str | None]
    told: Callable[[], Mapping[str, Json]]
    end: Callable[[], None]


NO_ADDITION = CaptureAddition(before=lambda _: None, beside=lambda _: {}, problem=no_problem, told=dict, end=nothing)


class CapturePart:
    """The source's log into the journal. With `is_vital` what is refused, or fails, ends the process; the capture of
    any other source is tried again."""

    def __init__(
        self,
        run: RunForParts,
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
        work = Work(
            once=self.once,
            close=self.close,
            end=self.addition.end,
            failed=self.failed,
            problem=self.problem,
            ask=self.ask,
            status=StatusRecord(self.tell_state, partial(self.wiring.control.remove, record)),
        )
        attempts = ONLY_UNANSWERED if is_vital else Attempts()
        self.supervisor = Supervisor(run, self.name, work, attempts, {"source": stream.name})
        self.query = SourceQuery(run, self.source.places.query, self.halted)
        self.gatherer: EvidenceGatherer | None = None
        self.background: list[BackgroundThread] = []
        self.continuity: Continuity | None = None
        self.suspected_gap = ""
        self.defect: BaseException | None = None
        """What nobody expected of the work beside capture: it ends capture."""
        self.log = self.source.impatient_log(PATIENCE_SECONDS)
        self.last: EventId | None = None
        self.committed: EventId = 0
        """The event up to which Spark has committed batches: it asks for none of these again."""
        self.links = LinkAdmissions(run, self.source)
        self.pins: str | None = None
        """How files of the source are kept; None while that is not known."""
        self.kept_seconds: float | None = None
        """For how long Hive keeps files itself; None where it keeps none, and while that is not known."""

    def ask(self) -> EventId:
        head = self.log.current()
        self.stream.heads.note_head(head, time.time())
        return head

    def look(self) -> CaptureLook:
        supervisor = self.supervisor
        head = self.stream.heads.newest()
        return CaptureLook(supervisor.state, supervisor.problem(), supervisor.answers(), head, self.last)

    def followers(self) -> list[TargetWiring]:
        """The targets that follow the source, of whatever process."""
        return [self.wiring.target(name) for name in self.wiring.config.targets_of(self.stream.name)]

    def problem(self) -> str | None:
        return (self.gatherer.problem if self.gatherer is not None else None) or self.addition.problem()

    def failed(self, error: CalqueError) -> None:
        if self.is_vital:
            self.run.fail(error)
        else:
            LOG.warning("%s failed: %s", self.name, error)
            self.stream.looked.set()

    def tell_state(self) -> None:
        supervisor, record = self.supervisor, self.source.places.status_record
        more = {"pins": self.pins, "kept_seconds": self.kept_seconds, **self.addition.told()}
        tell(self.wiring.control, record, supervisor.state, supervisor.problem(), **more)

    def once(self) -> None:
        """Capture; where the log does not continue the journal, let that begin anew, and go on. Raises `Refused` where
        the source is another metastore than before."""
        suspected = ""
        try:
            self.addition.before(self)
            settle_source(self.wiring, self.source)
        except CalqueError:
            # Targets go on with what the journal has.
            self.stream.looked.set()
            raise
        while not self.supervisor.stopped():
            self.close()
            try:
                continuity = self.continuity = self.continuity or self.new_continuity()
                continuity.mend(suspected)
            finally:
                self.stream.looked.set()
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
        """Have capture raise it."""
        self.defect = defect
        self.query.stop()

    def halted(self) -> bool:
        """Whether the query that runs is to end."""
        return bool(self.suspected_gap) or self.defect is not None or self.supervisor.stopped()

    def capture(self, continuity: Continuity) -> None:
        """Run the query until it ends. Raises `Interrupted`, `LogGap`, `EventRepeated`."""
        source, after = self.source.side(), self.stream.begin.event()
        admissions = [target.admission() for target in self.followers() if target.plug.links is None]

        def takes(name: TableName) -> bool:
            return any(admission.takes(name) for admission in admissions) or self.links.copies(name)

        gatherer = self.gatherer = EvidenceGatherer(source, takes, self.stream.ring)
        reloads = UnscannedReloads(takes, self.source.plug.keys.intervals(), self.compare, source.clock)
        capture = Capture(source, after, gatherer, continuity, reloads.hear)
        self.stream.ring()
        gatherer.resume(after, capture.last())
        self.start_background("evidence", lambda _: gatherer.run())
        self.start_background("pins", lambda _: self.see_what_is_kept(admissions))
        self.scan(source, admissions, after)
        self.start_background("reloads", reloads.run)
        self.keep(source)
        for name, work in self.addition.beside(self).items():
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

    def take_batch(self, capture: Capture, rows: pa.Table) -> None:
        """Append the rows of a batch, then what comes soon after them."""
        self.supervisor.state = "running"
        if not rows.num_rows:
            return
        first, last = first_and_last(rows)
        self.committed = first - 1
        capture.look()
        capture.append(rows)
        self.come_to(last)
        if self.source.plug.keys.early:
            self.take_early(capture, BatchExtension(self.halted))

    def come_to(self, event_id: EventId) -> None:
        """The journal has events up to that one."""
        self.last = max(self.last or 0, event_id)
        self.supervisor.goes_on("running")
        self.stream.heads.note_event(self.last, time.time())
        self.stream.ring()

    def take_early(self, capture: Capture, extension: BatchExtension) -> None:
        """Take what comes next in the batch in hand. A log that does not answer is the query's to wait for."""
        pause = brisk(self.source.plug.keys.poll)
        with suppress(Unavailable):
            while (newest := extension.next(capture.last(), self.log.current, pause)) is not None:
                capture.take(newest)
                self.come_to(newest)

    def start_background(self, name: str, work: BackgroundWork) -> None:
        """Do the work beside capture, until `close`."""
        self.background.append(BackgroundThread(name, work, self.end_with))
        self.background[-1].begin()

    def see_what_is_kept(self, admissions: Sequence[Admission]) -> None:
        """See once how files of the source can be kept, and for how long Hive keeps them."""

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
        """Have the targets that copy files of these tables compare them."""
        for target in self.followers():
            admission = target.admission()
            if copied := [str(name) for name in names if admission.takes(name) and admission.copies(name)]:
                leave_request(self.wiring, target.plug.name, Action.COMPARE, copied)

    def keep(self, source: SourceSide) -> None:
        """Let go, beside capture, of what is past its retention."""
        plug, ledgers = self.source.plug, [target.ledger() for target in self.followers()]
        retention, limits = plug.journal.retention, Limits(plug.keys.pin_bytes, plug.keys.pin_age)
        side = with_believed_clock(self.wiring, self.stream.name, fenced(source))

        def before() -> None:
            for kind in self.run.retention:
                kind.before_events(self.source, side, self.stream.begin.first())

        self.start_background("retention", lambda stopping: keep(side, ledgers, retention, limits, stopping, before))

    def scan(self, source: SourceSide, admissions: Sequence[Admission], after: EventId) -> None:
        """Look for changes without events, beside capture, where the configuration asks for it."""
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
            source, source.scans, ScanSelection(cache(chosen), databases), pending, after, begun_ns, self.stream.ring
        )
        self.start_background("scan", scanner.run)

    def close(self) -> None:
        if self.gatherer is not None:
            self.gatherer.stop()
        while self.background:
            self.background.pop().stop()
