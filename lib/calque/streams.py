"""The always-on job: one query that captures, one for each target, each kept up by itself.

Queries end and begin again; what they did is in the journal and the ledgers. What does not answer is tried again with
back-off while the process stays up. A target that is refused is told, and tried again while another one goes on; one
that is broken is left alone. The process ends when no target is left, or with capture.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_not_exception_type,
    wait_random_exponential,
)
from tenacity.wait import wait_base

from calque.adapters.control import MISSING, Json, Stamp, locked, unavailable
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.messages import GET_VERSION, Lacking
from calque.adapters.spark.contiguous import Gap as LogGap
from calque.adapters.spark.contiguous import Repeated
from calque.adapters.spark.journal_source import JournalStream
from calque.adapters.spark.log_source import LogStream
from calque.adapters.spark.query import Apply, Query, Stream, rows_of, start
from calque.adapters.spark.watch import bump, touch
from calque.core.mended import dealt_with
from calque.core.standing import Standing, standing
from calque.engine.attended import ending_source
from calque.engine.beside import Beside
from calque.engine.capture import Capture, Gatherer
from calque.engine.fenced import fenced
from calque.engine.gaps import Continuity, Interrupted, begin_of, newest
from calque.engine.lease import Held
from calque.engine.paused import hold_back
from calque.engine.replica import Replica
from calque.engine.retention import Limits, keep
from calque.engine.scan import Chosen, Scanner
from calque.engine.tables import OUT
from calque.engine.vigil import watch
from calque.errors import Broken, CalqueError, Refused, Unavailable
from calque.heads import Heads
from calque.journals import configured
from calque.metrics import CaptureLook, Look, Meters, TargetLook
from calque.model.lease import Writer
from calque.model.ledger import TableState
from calque.model.names import EventId, Span, TableName
from calque.pausing import chosen_by, is_paused, rules_of, stamp_of
from calque.presence import Answer, Presence
from calque.pulse import PATIENCE_SECONDS, Pulse
from calque.reloading import Reread, difference, require_reloadable
from calque.requests import asked, done, take_up
from calque.roles import CAPTURE, Roles, role_of
from calque.servers import require_strong_log
from calque.session import own_session
from calque.telling import CAPTURING, HELD_BACK, copying_of, position_of, reading_of, record_of, tell
from calque.wiring import Wiring, query_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from calque.config import Config
    from calque.core.admit import Admission
    from calque.engine.world import SourceSide

LOG = logging.getLogger(__name__)
BACK_OFF: wait_base = wait_random_exponential(multiplier=0.25, max=15)
TICK_SECONDS, SILENT_SECONDS = 0.5, 30.0
BEGIN_SECONDS = 20.0
LANDING_SECONDS = 0.5
"""Tables that land are recorded, and let join the windows, together: single ones would cost a commit and a batch of
Spark's each."""
AGAIN_SECONDS, LONGEST_SECONDS = 2.0, 60.0
"""After which a target that was refused is tried again, while others go on: first, and in the end."""
CUT_SECONDS, LEAVE_SECONDS = 2.0, 8.0
"""After a request to stop: how long windows in hand go on, and how long calls in hand are waited for."""


@dataclass(slots=True)
class Run:
    """One process: capture and the named targets. `until` is the event id to stop at, "head", or None for ever.
    `reread` is how it reads its configuration again."""

    wiring: Wiring
    targets: Sequence[str]
    capture: bool = True
    held: InitVar[Roles | None] = None
    reread: Reread | None = None
    roles: Roles = field(init=False)
    presence: Presence = field(init=False)
    begin: Beginning = field(init=False)
    stopping: threading.Event = field(default_factory=threading.Event)
    failure: CalqueError | None = None
    parts: list[Part] = field(default_factory=list)
    gaps: int = 0
    """Found so far, as far as a part knows."""
    starting: threading.Lock = field(default_factory=threading.Lock)
    meters: Meters = field(init=False)
    heads: Heads = field(default_factory=Heads)
    looked: threading.Event = field(default_factory=threading.Event)
    """Capture has looked whether the log goes on where the journal ends, or could not."""

    def __post_init__(self, held: Roles | None) -> None:
        self.roles = held or Roles(self.wiring.state)
        self.wiring.session = self.spark
        self.wiring.open_journal()
        self.presence = Presence(self.wiring.control)
        self.begin = Beginning(self.wiring)
        self.meters = Meters(self.look)

    def spark(self) -> SparkSession:
        return own_session(self.wiring.state)

    def start(self) -> None:
        """Start every part on a thread of its own; whoever needs Spark first waits for it, while the others open what
        they need. Returns at once."""
        self.presence.begin(self.targets)
        if self.capture:
            self.begin_part(CapturePart(self, self.begin))
        else:
            self.looked.set()
        for name in self.targets:
            self.begin_part(TargetPart(self, self.begin, name))

    def begin_part(self, part: Part) -> None:
        self.parts.append(part)
        part.start()

    def stop(self, cut: float = CUT_SECONDS, leave: float = LEAVE_SECONDS) -> bool:
        """Finish the windows in hand if that takes no time, else the calls in hand; record, end. False where a call is
        not answered: what runs then is left to end with the process, like after a crash. Idempotent."""
        self.stopping.set()
        began = time.monotonic()
        for part in self.parts:
            part.stop()
        while (left := self.running()) and time.monotonic() < began + leave:
            if time.monotonic() > began + cut:
                self.wiring.ending.set()
                for part in self.parts:
                    part.cut()
            left[0].join(0.1)
        for part in self.parts:
            if part.thread.is_alive():
                LOG.warning("%s is left behind: a call of it is not answered", part.name)
        self.presence.end()
        return not left

    def running(self) -> list[threading.Thread]:
        return [thread for part in self.parts for thread in part.threads() if thread.is_alive()]

    def look(self) -> Look:
        """How the process is, without asking anybody."""
        parts = list(self.parts)
        capture = next((part.look() for part in parts if isinstance(part, CapturePart)), None)
        targets = tuple(part.look() for part in parts if isinstance(part, TargetPart))
        silent = () if self.stopping.is_set() else tuple(part.name for part in parts if not part.turns())
        return Look(self.wiring.config.source.name, capture, targets, self.gaps, silent)

    def reload(self) -> None:
        """Read the configuration again, and take over what it says; all is as before where that is refused."""
        self.presence.asked.clear()
        request = self.presence.request()
        try:
            if self.reread is None:
                raise Refused("This process can't read its configuration again", "", "Stop it, and start it again")
            config = self.reread.load()
            self.take_over(config, self.reread.targets(config))
        except CalqueError as error:
            LOG.warning("the configuration is not taken over: %s", error)
            self.presence.answer(Answer(request, error.exit_code, str(error)), self.targets)
        else:
            LOG.info("the configuration is taken over")
            self.presence.answer(Answer(request), self.targets)

    def take_over(self, config: Config, targets: Sequence[str]) -> None:
        """End what has another configuration now, then begin it anew; the rest is not disturbed. Capture knows what
        targets admit before they list it, so that no evidence is missed."""
        require_reloadable(self.wiring.config, config)
        found = difference(self.wiring.config, config, self.targets, targets)
        self.take_roles(found.added)
        self.wiring = Wiring(config, self.spark, self.wiring.hit)
        captures = found.capture and self.capture
        ending = {*found.ended, *([CAPTURE] if captures else [])}
        self.end_parts([part for part in self.parts if part.name in ending])
        for name in found.removed:
            self.roles.give_back(role_of(name))
        self.targets = tuple(targets)
        if captures:
            self.begin_part(CapturePart(self, self.begin))
        for name in found.begun:
            self.begin_part(TargetPart(self, self.begin, name))

    def take_roles(self, targets: Sequence[str]) -> None:
        """All or none."""
        taken: list[str] = []
        for name in targets:
            try:
                self.roles.take(role_of(name))
            except Unavailable:
                for role in taken:
                    self.roles.give_back(role)
                raise
            taken.append(role_of(name))

    def end_parts(self, parts: Sequence[Part], cut: float = CUT_SECONDS, leave: float = LEAVE_SECONDS) -> None:
        """Like `stop`, of some: a call that is not answered is left behind, and holds up nobody."""
        for part in parts:
            part.stop()
        began = time.monotonic()
        for part in parts:
            for thread in part.threads():
                thread.join(max(0.0, began + cut - time.monotonic()))
            if part.thread.is_alive():
                part.cut()
        for part in parts:
            for thread in part.threads():
                thread.join(max(0.0, began + leave - time.monotonic()))
            if part.thread.is_alive():
                LOG.warning("%s is left behind: a call of it is not answered", part.name)
            self.parts.remove(part)

    def fail(self, error: CalqueError) -> None:
        """Nothing can go on: the process ends with its error."""
        self.failure = self.failure or error
        self.stopping.set()

    def wait(self, until: EventId | None, seconds: float = float("inf")) -> Standing:
        """Until stopped, or every target shows `until`. WITHOUT: tables that are set aside are missing for good.
        Raises what ended capture, or all targets that do not show it."""
        deadline = time.monotonic() + seconds
        while not self.stopping.wait(0.05):
            if self.presence.asked.is_set():
                self.reload()
            targets = [part for part in self.parts if isinstance(part, TargetPart)]
            failures = [part.failure for part in targets if part.failure is not None]
            if failures and len(failures) == len(targets):
                raise failures[0]
            if until is not None:
                found = [part.standing(until) for part in targets if part.failure is None]
                if all(item is not Standing.GOING for item in found):
                    if failures:
                        raise failures[0]
                    return Standing.WITHOUT if Standing.WITHOUT in found else Standing.REACHED
            if time.monotonic() > deadline:
                return Standing.GOING
        if self.failure is not None:
            raise self.failure
        return Standing.GOING


class Beginning:
    """Where the journal begins: fixed by the first process that asks, before anything else, and by each gap."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.lock = threading.Lock()
        self.found: EventId | None = None

    def event(self) -> EventId:
        """The event id after which the journal begins. Raises `Unavailable`, `Refused`."""
        return begin_of(self.wiring.gaps(), self.first())

    def first(self) -> EventId:
        """The same before any gap."""
        with self.lock:
            if self.found is None:
                if not self.wiring.config.source.allow_weak_log:
                    require_strong_log(Client(",".join(self.wiring.config.source.metastore)))
                with unavailable("journal"), locked(self.wiring.state / "locks" / "journal.lock"):
                    self.found = self.look()
            return self.found

    def look(self) -> EventId:
        config, control = self.wiring.config, self.wiring.control
        record = control.read("journal")
        if record is not None:
            if record["source"] != config.source.name:
                raise Refused(
                    f"The state folder belongs to source {record['source']}, not {config.source.name}",
                    "its journal is of another log",
                    "Give each source a state folder of its own",
                )
            return int(str(record["after"]))
        current = self.wiring.source().log.current()
        starts = [config.policy(name).start for name in config.targets]
        after = min([current, *(start for start in starts if start is not None)])
        where = configured(config).record()
        control.put("journal", {"source": config.source.name, "after": after, "at": time.time(), **where})
        return after

    def begun_ns(self) -> int:
        """When the journal began; 0 where that was not recorded."""
        match self.wiring.control.read("journal"):
            case {"at": float(at)}:
                return int(at * 1e9)
        return 0


class Part:
    """A query that is started again whenever something does not answer."""

    def __init__(self, run: Run, begin: Beginning, name: str) -> None:
        self.run, self.begin, self.name = run, begin, name
        self.wiring = run.wiring
        self.ending = threading.Event()
        self.query_name = name
        self.query: Query | None = None
        self.state = "starting"
        self.last_error: str | None = None
        self.pulse = Pulse(self.ask, name)
        self.told_at = time.monotonic()
        self.thread = threading.Thread(target=self.keep_up, name=name, daemon=True)
        self.reported = threading.Thread(target=self.report, name=f"report-{name}", daemon=True)

    @property
    def wake_file(self) -> Path:
        return self.wiring.wake_file(self.query_name)

    def start(self) -> None:
        self.thread.start()
        self.reported.start()
        self.pulse.begin()

    def threads(self) -> Sequence[threading.Thread]:
        """What is waited for at the end."""
        return (self.thread, self.reported)

    def stop(self) -> None:
        """Begin nothing more."""
        self.ending.set()
        self.pulse.stop()

    def cut(self) -> None:
        """Make no call any more, though a window may be in hand."""

    def stopped(self) -> bool:
        return self.ending.is_set() or self.run.stopping.is_set()

    def halted(self) -> bool:
        """Whether the query that runs is to end."""
        return self.stopped()

    def ask(self) -> EventId:
        """Something of the part's metastore: of a source its newest event id. Raises `Unavailable`."""
        raise NotImplementedError

    def client_to_ask(self, metastore: Sequence[str]) -> Client:
        seconds = PATIENCE_SECONDS
        return Client(",".join(metastore), connect_timeout=seconds, call_timeout=seconds, connections=1)

    def problem(self) -> str | None:
        """What is wrong now, so that the part gets no further."""
        return self.last_error or self.pulse.problem

    def turns(self) -> bool:
        """Whether the part's threads do what they are there for."""
        return self.state == "failed" or (self.thread.is_alive() and time.monotonic() - self.told_at < SILENT_SECONDS)

    def tell_state(self) -> None:
        """Write what `calque status` is to know. Raises `Unavailable`."""
        raise NotImplementedError

    def take_back(self) -> None:
        """The part has ended: its record goes, unless it failed."""
        raise NotImplementedError

    def report(self) -> None:
        """Tell the status what only this process knows, until the part has ended."""
        while True:
            self.thread.join(TICK_SECONDS)
            lives, self.told_at = self.thread.is_alive(), time.monotonic()
            try:
                if lives or self.state == "failed":
                    self.tell_state()
                else:
                    self.take_back()
            except (CalqueError, OSError) as error:
                LOG.warning("status of %s: %s", self.name, error)
            if not lives:
                return

    def keep_up(self) -> None:
        try:
            self.patiently(self.once)
        except CalqueError as error:
            self.failed(error)
        except Exception as error:
            LOG.exception("%s ended", self.name)
            self.failed(Broken(f"{self.name} ended with {type(error).__name__}", str(error), "See the log"))
        finally:
            self.close()

    def failed(self, error: CalqueError) -> None:
        if not self.stopped():
            self.state, self.last_error = "failed", str(error)
            self.run.fail(error)

    def patiently(self, action: Callable[[], None]) -> None:
        """Try again with back-off while something does not answer."""
        retrying = Retrying(
            retry=retry_if_exception_type(Unavailable) & retry_if_not_exception_type(Held),
            wait=BACK_OFF,
            stop=lambda _: self.stopped(),
            sleep=self.sleep,
            before_sleep=self.tell,
            reraise=True,
        )
        for attempt in retrying:
            with attempt:
                try:
                    action()
                except Unavailable as error:
                    self.last_error = str(error)
                    raise

    def tell(self, state: RetryCallState) -> None:
        self.run.meters.retries.labels(self.name).inc()
        LOG.warning("%s is tried again: %s", self.name, state.outcome.exception() if state.outcome else "")

    def sleep(self, seconds: float) -> None:
        self.ending.wait(seconds)

    def once(self) -> None:
        """Open what is needed, run the query until it ends."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back what `once` opened."""

    def follow(self, stream: Stream, apply: Apply, gap: int) -> None:
        """Run a query, behind that gap, until it ends by itself or the process stops. Queries begin one after the
        other: each starts several processes, which must answer within Spark's ten seconds. A query that is taken up
        again runs no batch without news, hence the wake."""
        with self.run.starting:
            bump(self.wake_file)
            deadline = time.monotonic() + BEGIN_SECONDS
            query = start(
                self.run.spark(),
                stream,
                apply,
                name=self.query_name,
                checkpoint=self.wiring.checkpoint(self.query_name, gap),
            )
            self.query = query
            while query.active and not query.begun.wait(0.05):
                if self.halted() or time.monotonic() > deadline:
                    break
        while not query.join(0.5):
            if self.halted():
                query.stop()


class CapturePart(Part):
    """The source's log into the journal."""

    def __init__(self, run: Run, begin: Beginning) -> None:
        super().__init__(run, begin, CAPTURE)
        self.gatherer: Gatherer | None = None
        self.beside: list[Beside] = []
        self.seam: Continuity | None = None
        self.noticed = ""
        self.log = HiveLog(self.client_to_ask(self.wiring.config.source.metastore))
        self.last: EventId | None = None

    def ask(self) -> EventId:
        head = self.log.current()
        self.run.heads.seen(head, time.time())
        return head

    def look(self) -> CaptureLook:
        reachable = self.pulse.answered_at is not None and self.pulse.problem is None
        return CaptureLook(self.state, self.problem(), reachable, self.run.heads.newest(), self.last)

    def problem(self) -> str | None:
        return super().problem() or (self.gatherer.problem if self.gatherer is not None else None)

    def tell_state(self) -> None:
        tell(self.wiring.control, CAPTURING, self.state, self.problem())

    def take_back(self) -> None:
        self.wiring.control.remove(CAPTURING)

    def once(self) -> None:
        """Capture; where the log does not continue the journal, let that begin anew, and go on."""
        suspected = ""
        while not self.stopped():
            self.close()
            try:
                seam = self.seam = self.seam or self.new_seam()
                seam.mend(suspected)
            finally:
                self.run.looked.set()
            suspected = self.noticed = ""
            try:
                self.capture(seam)
            except (Interrupted, LogGap, Repeated) as error:
                suspected = str(error)
            suspected = suspected or self.noticed
            if not suspected:
                return

    def new_seam(self) -> Continuity:
        source = self.wiring.config.source
        stop, weak = source.gap == "stop", source.allow_weak_log
        return Continuity(self.wiring.source(), self.begin.first(), stop=stop, weak=weak)

    def notice(self, what: str) -> None:
        self.noticed = what
        if self.query is not None:
            self.query.stop()

    def halted(self) -> bool:
        return bool(self.noticed) or self.stopped()

    def capture(self, seam: Continuity) -> None:
        """Run the query until it ends. Raises `Interrupted`, `LogGap`, `Repeated`."""
        source, config, after = self.wiring.source(), self.wiring.config, self.begin.event()
        admissions = [self.wiring.target(name).admission for name in config.targets]

        def takes(name: TableName) -> bool:
            return any(admission.takes(name) for admission in admissions)

        self.gatherer = Gatherer(source, takes, lambda: touch(self.wiring.news_file))
        capture = Capture(source, after, self.gatherer, seam)
        self.gatherer.resume(after, capture.last())
        self.gatherer.begin()
        self.scan(source, admissions, after)
        self.keep(source)
        self.go_on("vigil", lambda stopping: watch(seam, self.notice, stopping))
        stream = LogStream(self.wiring.open_log(), capture.last(), self.wake_file, poll=config.source.poll)

        def apply(span: Span, frame: DataFrame | None, _: int) -> None:
            self.state = "running"
            if not len(span):
                pass
            elif frame is None:
                capture.take(span.upto)
            else:
                capture.look()
                capture.append(rows_of(frame, span))
            self.last, self.last_error = max(self.last or 0, span.upto), None
            self.run.heads.met(self.last, time.time())

        self.run.gaps = newest(source.gaps)
        self.last = capture.last()
        self.follow(stream, apply, newest(source.gaps))

    def go_on(self, name: str, work: Callable[[threading.Event], None]) -> None:
        """Do the work beside capture, until `close`."""
        self.beside.append(Beside(name, work))
        self.beside[-1].begin()

    def keep(self, source: SourceSide) -> None:
        """Let go, beside capture, of what is past its retention."""
        config = self.wiring.config
        ledgers = [self.wiring.ledger(name) for name in config.targets]
        retention, limits = config.journal.retention, Limits(config.source.pin_bytes, config.source.pin_age)
        self.go_on("retention", lambda stopping: keep(fenced(source), ledgers, retention, limits, stopping))

    def scan(self, source: SourceSide, admissions: Sequence[Admission], after: EventId) -> None:
        """Look for changes without events, beside capture, where the configuration asks for it."""
        assert self.gatherer is not None
        if source.scans is None:
            return
        interval = self.wiring.config.source.intervals()

        def chosen(name: TableName) -> float | None:
            return interval(name) if any(admission.takes(name) for admission in admissions) else None

        def databases(name: str) -> bool:
            return any(admission.touches_database(name) for admission in admissions)

        def found() -> None:
            for target in self.wiring.config.targets:
                self.wiring.wake(target)

        pending = self.gatherer.locations
        begun_ns = self.begin.begun_ns()
        scanner = Scanner(source, source.scans, Chosen(cache(chosen), databases), pending, after, begun_ns, found)
        self.go_on("scan", scanner.run)

    def close(self) -> None:
        while self.beside:
            self.beside.pop().stop()
        if self.gatherer is not None:
            self.gatherer.stop()


class TargetPart(Part):
    """One target's replica, fed by the journal."""

    def __init__(self, run: Run, begin: Beginning, name: str) -> None:
        super().__init__(run, begin, name)
        self.query_name = query_of(name)
        self.replica: Replica | None = None
        self.lease = self.wiring.lease(name)
        self.writer: Writer | None = None
        self.gap = 0
        """The newest gap that the replica knows."""
        self.mended = 0
        self.most: int | None = None
        """How many events a window may have held; None while that was not looked up."""
        self.failure: CalqueError | None = None
        """Why it gets nowhere, until it does again."""
        self.over = False
        """This attempt has failed, and begins no window any more."""
        self.again = AGAIN_SECONDS
        self.refused: str | None = None
        """Why what was asked for last is not done."""
        self.is_held = False
        record = self.wiring.control.read(record_of(name)) or {}
        self.told = {key: record[key] for key in ("position", "epoch") if key in record}
        self.rules: Stamp = MISSING
        """Of the record of held back tables that the replica goes by."""
        self.metastore = self.client_to_ask(self.wiring.config.target(name).metastore)

    def ask(self) -> EventId:
        with suppress(Lacking):
            self.metastore.call(GET_VERSION)
        return 0

    def stop(self) -> None:
        super().stop()
        if self.replica is not None:
            self.replica.stopping.set()

    def cut(self) -> None:
        self.wiring.target(self.name).stopping.set()

    def problem(self) -> str | None:
        return super().problem() or self.refused

    def once(self) -> None:
        """Replicate; with each gap that is found, begin anew behind it."""
        self.take_lease()
        while not self.stopped():
            self.close()
            self.gap = newest(self.wiring.gaps())
            try:
                self.replicate(self.begin.event())
            except Exception as error:
                if not self.is_behind():
                    raise
                LOG.info("%s begins anew behind a gap: %s", self.name, error)
            if not self.is_behind():
                return

    def keep_up(self) -> None:
        """Nobody else writes to the target until all calls have ended. What was refused is tried again: somebody may
        have mended it."""
        delay = self.again
        try:
            while True:
                super().keep_up()
                if super().stopped() or self.failure is None or isinstance(self.failure, Broken):
                    return
                self.sleep(delay)
                if super().stopped():
                    return
                delay, self.over = min(2 * delay, LONGEST_SECONDS), False
        finally:
            self.lease.release()

    def stopped(self) -> bool:
        return super().stopped() or self.over

    def failed(self, error: CalqueError) -> None:
        """The others go on."""
        if not self.stopped():
            self.over, self.failure = True, error
            self.state, self.last_error = "failed", str(error)
            LOG.warning("%s failed: %s", self.name, error)

    def goes_on(self, state: str) -> None:
        """It got somewhere."""
        if not self.over:
            self.state, self.last_error, self.failure = state, None, None

    def take_lease(self) -> None:
        """Wait until nobody else has it. Raises `Held`."""
        lease = self.lease
        if lease.keeper is not None:
            return
        self.writer = self.writer or self.wiring.writer(self.run.roles.proof(role_of(self.name)))
        while not self.stopped():
            watched = lease.attempt(self.writer)
            if watched is None:
                self.last_error = str(self.failure) if self.failure is not None else None
                lease.keep(self.failed)
                return
            waiting = f"The lease on {self.name} is of {watched.holder.writer}, and taken over if that is dead"
            if self.last_error != waiting:
                LOG.warning("%s: %s, after %g s without a sign of it", self.name, waiting, watched.holder.seconds)
                self.last_error = waiting
            self.sleep(lease.pause())

    def is_behind(self) -> bool:
        """Whether a gap was found that the replica does not know."""
        return newest(self.wiring.gaps()) != self.gap

    def replicate(self, after: EventId) -> None:
        """Run the query over the journal, which begins after that event, until it ends."""
        side = self.wiring.target(self.name)
        self.replica = Replica(
            ending_source(fenced(self.wiring.source()), side.stopping),
            side,
            lambda: after,
            lambda: bump(self.wake_file),
            spread=self.wiring.spread(self.name),
            readers=self.wiring.config.source.connections,
            pace=LANDING_SECONDS,
        )
        self.rules = stamp_of(self.wiring.control, self.name)
        self.replica.paused.takes = chosen_by(rules_of(self.wiring.control, self.name))
        self.replica.paused.whole = self.paused
        self.replica.open()
        self.replica.passed = position_of(self.wiring, self.name, self.replica.epoch) or 0
        if self.replica.epoch is None:
            bump(self.wake_file)
        stream = JournalStream(
            self.wiring.open_journal(),
            after if self.gap else self.replica.cursor,
            self.wake_file,
            self.wiring.news_file,
            max_events=self.wiring.config.window.max_events,
        )
        self.follow(stream, self.apply, self.gap)

    def apply(self, span: Span, _frame: DataFrame | None, _batch: int) -> None:
        """One window; while the target does not answer it is tried again here, so that the query lives on."""
        replica = self.replica
        if replica is not None and not self.is_behind():
            self.patiently(lambda: self.windows(replica, span.upto))
        if self.is_behind():
            raise Interrupted("A gap was found")

    def windows(self, replica: Replica, upto: EventId) -> None:
        """Everything to `upto`. A batch may end far beyond the replica's position (after a pause, a new start): no
        window holds more than `max_events`, and a stop waits for one window only."""
        while not self.is_behind() and not self.paused():
            most = self.longest()
            self.window(replica, min(upto, replica.cursor + most))
            self.keep_longest(self.wiring.config.window.max_events)
            if replica.cursor >= upto or self.stopped():
                return

    def longest(self) -> int:
        """How many events the next window may hold. Not fewer than one that died may have held, under another
        configuration: what that one showed and dropped again carries no mark, and would come back."""
        most = self.wiring.config.window.max_events
        if self.most is None:
            record = self.wiring.control.read(f"windows/{self.name}") or {}
            self.most = int(str(record.get("max_events", 0)))
        if most > self.most:
            self.keep_longest(most)
        return max(most, self.most)

    def keep_longest(self, most: int) -> None:
        """Windows from now on hold at most so many events."""
        if most != self.most:
            self.wiring.control.put(f"windows/{self.name}", {"max_events": most})
            self.most = most

    def window(self, replica: Replica, upto: EventId) -> None:
        self.hold_back(replica)
        for request in asked(self.wiring, self.name):
            try:
                names = take_up(replica, request)
            except Refused as refused:
                names, self.refused = (), str(refused)
                LOG.warning("%s: %s", self.name, refused)
            else:
                self.refused = None
            if names is None:
                continue
            LOG.info("%s: %s of %d tables", self.name, request.action.value, len(names))
            replica.tables.record(replica.record_states)
            done(self.wiring, request)
        began = time.monotonic()
        window = replica.window(upto)
        if window is not None:
            self.run.meters.window(self.name, window, time.monotonic() - began)
        self.goes_on("running" if replica.epoch is not None else "bootstrapping")
        if window is not None and window.epoch is not None:
            LOG.info(
                "%s: epoch %d at event %d: %d events, %d hops, %d calls, %d files",
                self.name,
                window.epoch.epoch,
                window.epoch.event_id,
                window.epoch.events,
                window.epoch.hops,
                window.epoch.calls,
                window.epoch.files,
            )

    def paused(self) -> bool:
        return is_paused(self.wiring.control, self.name)

    def hold_back(self, replica: Replica) -> None:
        """Take over which tables operators hold back, where that changed."""
        stamp = stamp_of(self.wiring.control, self.name)
        if stamp != self.rules:
            rules = rules_of(self.wiring.control, self.name)
            hold_back(replica, chosen_by(rules))
            self.rules = stamp
            LOG.info("%s: tables: %s", self.name, ", ".join(f"{rule} {text}" for rule, text in rules) or "all go on")

    def standing(self, event_id: EventId) -> Standing:
        """A target that is held back is not waited for."""
        found = self.standing_unless_paused(event_id)
        return Standing.WITHOUT if found is Standing.GOING and self.paused() else found

    def standing_unless_paused(self, event_id: EventId) -> Standing:
        replica = self.replica
        if replica is None or not self.run.looked.is_set() or self.is_behind() or not self.is_mended():
            return Standing.GOING
        if not replica.comparing.is_done() or replica.tables.in_state(*OUT) or asked(self.wiring, self.name):
            return Standing.GOING
        return standing(replica.position(), list(replica.tables.rows.values()), event_id).standing

    def is_mended(self) -> bool:
        """Whether the target has dealt with every gap: until then its position is of another history."""
        if self.mended < self.gap:
            self.mended = dealt_with(self.wiring.ledger(self.name).tables().values())
        return self.mended >= self.gap

    def reached(self) -> Mapping[str, Json]:
        """The position, and the epoch that it goes on from; what was told last while that is not looked up."""
        replica = self.replica
        if replica is not None and replica.opened and replica.epoch is not None:
            self.told = {"position": replica.position(), "epoch": replica.epoch.epoch}
        return self.told

    def tell_state(self) -> None:
        """And wake the query while something waits."""
        replica = self.replica
        states: dict[str, Json] = {}
        if replica is not None:
            busy = replica.tables.in_state(TableState.READING, TableState.STAGING)
            states |= {str(name): replica.tables.rows[name].state.value for name in busy}
            beside = (name for job in list(replica.staging.jobs) for name in job.names)
            states |= {str(name): TableState.STAGING.value for name in beside}
        copying = self.wiring.target(self.name).copying.look()
        tell(
            self.wiring.control,
            record_of(self.name),
            self.state,
            self.problem(),
            states=states,
            **self.reached(),
            copying=copying_of(copying),
            reading=reading_of(replica.reading.reads.look() if replica is not None else None, copying),
        )
        was_held, self.is_held = self.is_held, self.paused()
        if replica is None or self.is_held:
            return
        if was_held or has_more(replica) or self.is_behind() or self.is_told():
            bump(self.wake_file)

    def is_told(self) -> bool:
        """Whether operators want something that no window has taken up: who died before it woke the query, too."""
        control = self.wiring.control
        return bool(asked(self.wiring, self.name)) or stamp_of(control, self.name) != self.rules

    def take_back(self) -> None:
        self.wiring.control.remove(record_of(self.name))

    def look(self) -> TargetLook:
        replica = self.replica
        reachable = self.pulse.answered_at is not None and self.pulse.problem is None
        state = "paused" if self.state in HELD_BACK and self.is_held else self.state
        if replica is None:
            return TargetLook(self.name, state, self.problem(), reachable)
        position, head = replica.position(), self.run.heads.newest()
        behind = position is not None and head is not None and head > position
        return TargetLook(
            self.name,
            state,
            self.problem(),
            reachable,
            position,
            replica.epoch.epoch if replica.epoch is not None else None,
            (head or 0) - (position or 0) if behind else 0,
            self.run.heads.lag_seconds(position or 0, time.time()) if behind else 0.0,
            replica.tables.counts(),
            self.wiring.target(self.name).copying.look(),
            replica.reading.reads.look(),
        )

    def close(self) -> None:
        if self.replica is not None:
            if self.stopped() and self.state != "failed":
                with suppress(CalqueError):
                    self.replica.rest()
            self.replica.close()
            self.replica = None


def has_more(replica: Replica) -> bool:
    """Whether a window without events has something to do, now or in a moment."""
    reading = not replica.reading.finished.empty() or replica.comparing.has_news()
    return bool(replica.waiting_since or replica.later) or reading or replica.scanned.owes()
