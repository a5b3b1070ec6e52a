"""The loop that keeps the work of one part of a process up, tells of it and ends it: `Supervisor`."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_not_exception_type,
    wait_random_exponential,
)
from tenacity.wait import wait_base

from calque.engine.lease.keeper import LeaseHeldByOther
from calque.errors import Broken, CalqueError, Unavailable
from calque.logs.fields import with_fields
from calque.model.names import EventId
from calque.model.part_states import FAILING, FAILING_ATTEMPTS, HELD_BACK, Failing
from calque.serve.liveness_probe import LivenessProbe
from calque.streams.shared import ProcessContext

LOG = logging.getLogger(__name__)
BACK_OFF: wait_base = wait_random_exponential(multiplier=0.25, max=15)
TICK_SECONDS, SILENT_SECONDS = 0.5, 30.0


def nothing() -> None:
    pass


def no_problem() -> str | None:
    return None


def disregard(_error: CalqueError) -> None:
    pass


class StatusRecord(NamedTuple):
    """The record by which `calque status` knows of a part. `write` refreshes it; `remove` takes it away when the part
    has ended without a failure. Both may raise `Unavailable`."""

    write: Callable[[], None]
    remove: Callable[[], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class SupervisedWork:
    """The work of one part, as functions that its `Supervisor` calls.

    `run_attempt` opens what is needed, and works until `Supervisor.stopped`. `close` gives back what one attempt
    opened, `end` what all attempts share. `failed` gets the error that ended an attempt, `unanswered` each
    `Unavailable` that is tried again. `stop` and `cancel_calls` are called from another thread: `stop` has the work
    begin nothing more, `cancel_calls` has it give up calls in hand. `problem` returns what is wrong though no attempt
    has ended. `ask` makes a small call to the part's metastore, and raises `Unavailable` where it is not answered; None
    for a part without such calls."""

    run_attempt: Callable[[], None]
    close: Callable[[], None]
    failed: Callable[[CalqueError], None]
    unanswered: Callable[[CalqueError], None] = disregard
    stop: Callable[[], None] = nothing
    cancel_calls: Callable[[], None] = nothing
    end: Callable[[], None] = nothing
    problem: Callable[[], str | None] = no_problem
    ask: Callable[[], EventId] | None = None
    status: StatusRecord | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptSchedule:
    """The pauses between the attempts of a part.

    After an `Unavailable` the same attempt is tried again as `unanswered` says. After any other error the next attempt
    follows in `first` seconds, and in twice as many each time up to `longest`. No attempt follows an error of a type in
    `never`.
    """

    unanswered: wait_base = BACK_OFF
    first: float = 2.0
    longest: float = 60.0
    never: tuple[type[CalqueError], ...] = ()


ONLY_UNANSWERED = AttemptSchedule(never=(CalqueError,))
"""The attempts of a part that waits for services which do not answer, and ends at any other error."""


class Supervisor:
    """The loop that runs the work of a part on one thread, begins it anew as `attempts` say, and writes its status on
    another thread."""

    def __init__(
        self,
        run: ProcessContext,
        name: str,
        work: SupervisedWork,
        attempts: AttemptSchedule,
        log_fields: Mapping[str, str],
    ) -> None:
        self.run, self.name, self.work, self.attempts = run, name, work, attempts
        self.runtime = run.wiring.runtime
        self.ending = threading.Event()
        self.state = "starting"
        self.last_error: str | None = None
        self.failure: CalqueError | None = None
        """The error that ended the last attempt; None once the work gets on again."""
        self.attempt_failed = False
        """Whether this attempt has failed, and is to begin nothing any more."""
        self.retry_seconds = attempts.first
        self.failing_since: float | None = None
        """When the first of the attempts failed that have failed one after the other, in seconds since 1970; None while
        none has."""
        self.failed_attempts = 0
        self.next_attempt_at: float | None = None
        """When the next attempt begins, in seconds since 1970; None while one runs."""
        self.problem_noticed_at: float | None = None
        """When a problem that no attempt has met was first told, in seconds since 1970."""
        self.status_error: str | None = None
        """Why the status record could not be written last; None where it was written."""
        self.probe = LivenessProbe(work.ask, name) if work.ask is not None else None
        self.status_written_at = time.monotonic()
        self.thread = threading.Thread(target=with_fields(self.run_until_stopped, **log_fields), name=name, daemon=True)
        report = with_fields(self.report, **log_fields)
        self.reported = threading.Thread(target=report, name=f"report-{name}", daemon=True)

    def start(self) -> None:
        self.thread.start()
        if self.work.status is not None:
            self.reported.start()
        if self.probe is not None:
            self.probe.begin()

    def threads(self) -> Sequence[threading.Thread]:
        """Return the threads that the process waits for at the end of the part."""
        return (self.thread,) if self.work.status is None else (self.thread, self.reported)

    def stop(self) -> None:
        """Have the part begin nothing more. Its calls in hand go on."""
        self.ending.set()
        if self.probe is not None:
            self.probe.stop()
        self.work.stop()

    def cancel_calls(self) -> None:
        """Have the part make no call any more, though a window may be in hand. Objects that several parts share are
        given up only when the whole process ends."""
        if self.run.stopping.is_set():
            self.runtime.ending.set()
        self.work.cancel_calls()

    def ends(self) -> bool:
        """Tell whether the part is to end, and not to be begun anew."""
        return self.ending.is_set() or self.run.stopping.is_set()

    def stopped(self) -> bool:
        """Tell whether the attempt that runs is to end."""
        return self.ends() or self.attempt_failed

    def answers(self) -> bool:
        """Tell whether the part's metastore answered when it was asked last."""
        return self.probe is not None and self.probe.answered_at is not None and self.probe.problem is None

    def problem(self) -> str | None:
        """Return what keeps the part from getting on now; None where nothing does."""
        silence = self.probe.problem if self.probe is not None else None
        return self.last_error or silence or self.status_error or self.work.problem()

    def failing(self) -> Failing | None:
        """Return since when `problem` keeps the part from going on, and what is tried; None where nothing does."""
        if self.problem() is None:
            self.problem_noticed_at = None
            return None
        if self.last_error is not None and self.failing_since is not None:
            return Failing(self.failing_since, self.failed_attempts, self.next_attempt_at)
        probe = self.probe
        if probe is not None and probe.problem is not None and probe.failing_since is not None:
            return Failing(probe.failing_since, probe.failed_calls, probe.next_at)
        self.problem_noticed_at = self.problem_noticed_at or time.time()
        return Failing(self.problem_noticed_at, 1, None)

    def shown_state(self) -> str:
        """Return the state that users are told: "failing" for a part that goes on trying after `FAILING_ATTEMPTS` and
        more failed attempts, else `state`."""
        failing = self.failing()
        is_failing = failing is not None and failing.attempts >= FAILING_ATTEMPTS
        return FAILING if is_failing and self.state in HELD_BACK else self.state

    def is_alive(self) -> bool:
        """Tell whether the part's threads live and its status was refreshed within `SILENT_SECONDS`. True of a part
        that has failed, because its status says so."""
        is_fresh = self.work.status is None or time.monotonic() - self.status_written_at < SILENT_SECONDS
        return self.state == "failed" or (self.thread.is_alive() and is_fresh)

    def report(self) -> None:
        """Refresh the part's status record every `TICK_SECONDS`, until the part has ended; then remove it, unless the
        part failed."""
        status = self.work.status
        assert status is not None
        while True:
            self.thread.join(TICK_SECONDS)
            is_alive, self.status_written_at = self.thread.is_alive(), time.monotonic()
            try:
                if is_alive or self.state == "failed":
                    status.write()
                else:
                    status.remove()
                self.status_error = None
            except (CalqueError, OSError) as error:
                if self.status_error is None:
                    LOG.warning("status of %s is not told, which is tried again: %s", self.name, error)
                self.status_error = str(error)
            if not is_alive:
                return

    def run_until_stopped(self) -> None:
        """Make attempts until the part is to end, or no attempt follows."""
        try:
            while True:
                self.attempt()
                if self.ends() or not self.attempt_failed or isinstance(self.failure, self.attempts.never):
                    return
                self.sleep(self.retry_seconds)
                if self.ends():
                    return
                self.retry_seconds = min(2 * self.retry_seconds, self.attempts.longest)
                self.attempt_failed = False
        finally:
            self.work.end()

    def attempt(self) -> None:
        try:
            self.retry(self.work.run_attempt)
        except CalqueError as error:
            self.fail(error)
        except Exception as error:
            LOG.exception("%s ended", self.name)
            self.fail(Broken(f"{self.name} ended with {type(error).__name__}", str(error), "See the log"))
        finally:
            self.work.close()

    def fail(self, error: CalqueError) -> None:
        """End the attempt that runs with `error`. Called from other threads, too, such as the one that renews the
        lease."""
        if not self.stopped():
            self.attempt_failed, self.failure = True, error
            self.state, self.last_error = "failed", str(error)
            self.note_failure()
            self.work.failed(error)

    def note_progress(self, state: str) -> None:
        """Note that the work gets on in this `state`: its last error is over, and the pauses between attempts are short
        again."""
        if not self.attempt_failed:
            self.state, self.last_error, self.failure = state, None, None
            self.failing_since, self.failed_attempts, self.next_attempt_at = None, 0, None
            self.retry_seconds = self.attempts.first

    def note_failure(self) -> None:
        """Note that one more attempt has failed, behind the last progress."""
        self.failing_since = self.failing_since or time.time()
        self.failed_attempts += 1

    def retry(self, action: Callable[[], None]) -> None:
        """Call `action` again, after longer and longer pauses, while it raises `Unavailable`. Raises its last error
        when the attempt is to end, and any other error at once, `LeaseHeldByOther` too."""
        retrying = Retrying(
            retry=retry_if_exception_type(Unavailable) & retry_if_not_exception_type(LeaseHeldByOther),
            wait=self.attempts.unanswered,
            stop=lambda _: self.stopped(),
            sleep=self.sleep,
            before_sleep=self.tell_retry,
            reraise=True,
        )
        for attempt in retrying:
            with attempt:
                try:
                    action()
                except Unavailable as error:
                    self.last_error = str(error)
                    self.note_failure()
                    raise

    def tell_retry(self, state: RetryCallState) -> None:
        self.run.meters.retries.labels(self.name).inc()
        error = state.outcome.exception() if state.outcome else None
        LOG.warning("%s is tried again: %s", self.name, error or "")
        if isinstance(error, CalqueError):
            self.work.unanswered(error)

    def sleep(self, seconds: float) -> None:
        self.next_attempt_at = time.time() + seconds
        self.ending.wait(seconds)
        self.next_attempt_at = None
