"""Keeps the work of one part of a process up, tells of it, and ends it: `Supervisor`."""

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
from calque.serve.heartbeat import Heartbeat
from calque.streams.shared import RunForParts

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
    """Writes what `calque status` is to know of a part, and takes it back when the part has ended without a failure.
    Both may raise `Unavailable`."""

    write: Callable[[], None]
    remove: Callable[[], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What a part does.

    `once` opens what is needed, and works until `Supervisor.stopped`; `close` gives back what it opened, after each
    attempt, and `end` what all attempts share. `failed` is told what ended an attempt, `unanswered` each `Unavailable`
    that is tried again. `stop` and `cut` come from another thread: begin nothing more, and give up calls in hand.
    `problem` is what is wrong though no attempt ended. `ask` asks the part's metastore for something, and raises
    `Unavailable`; None where nobody is asked beside the work."""

    once: Callable[[], None]
    close: Callable[[], None]
    failed: Callable[[CalqueError], None]
    unanswered: Callable[[CalqueError], None] = disregard
    stop: Callable[[], None] = nothing
    cut: Callable[[], None] = nothing
    end: Callable[[], None] = nothing
    problem: Callable[[], str | None] = no_problem
    ask: Callable[[], EventId] | None = None
    status: StatusRecord | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempts:
    """When an attempt follows one that ended with an error: after `unanswered` where something did not answer, else
    after `first` seconds, and after twice as many each time until they are `longest`. None follows one of `never`."""

    unanswered: wait_base = BACK_OFF
    first: float = 2.0
    longest: float = 60.0
    never: tuple[type[CalqueError], ...] = ()


ONLY_UNANSWERED = Attempts(never=(CalqueError,))
"""Silence alone is waited for."""


class Supervisor:
    """Runs the work of a part on a thread of its own, begins it anew as `attempts` say, and tells of it on another."""

    def __init__(
        self, run: RunForParts, name: str, work: Work, attempts: Attempts, log_fields: Mapping[str, str]
    ) -> None:
        self.run, self.name, self.work, self.attempts = run, name, work, attempts
        self.runtime = run.wiring.runtime
        self.ending = threading.Event()
        self.state = "starting"
        self.last_error: str | None = None
        self.failure: CalqueError | None = None
        """Why it gets nowhere, until it does again."""
        self.is_over = False
        """This attempt has failed, and begins nothing any more."""
        self.retry_seconds = attempts.first
        self.untold: str | None = None
        """Why the status does not know how it is."""
        self.pulse = Heartbeat(work.ask, name) if work.ask is not None else None
        self.told_at = time.monotonic()
        self.thread = threading.Thread(target=with_fields(self.keep_up, **log_fields), name=name, daemon=True)
        report = with_fields(self.report, **log_fields)
        self.reported = threading.Thread(target=report, name=f"report-{name}", daemon=True)

    def start(self) -> None:
        self.thread.start()
        if self.work.status is not None:
            self.reported.start()
        if self.pulse is not None:
            self.pulse.begin()

    def threads(self) -> Sequence[threading.Thread]:
        """What is waited for at the end."""
        return (self.thread,) if self.work.status is None else (self.thread, self.reported)

    def stop(self) -> None:
        """Begin nothing more."""
        self.ending.set()
        if self.pulse is not None:
            self.pulse.stop()
        self.work.stop()

    def cut(self) -> None:
        """Make no call any more, though a window may be in hand. What parts share goes on until the process ends."""
        if self.run.stopping.is_set():
            self.runtime.ending.set()
        self.work.cut()

    def ends(self) -> bool:
        """Whether the part is to end."""
        return self.ending.is_set() or self.run.stopping.is_set()

    def stopped(self) -> bool:
        """Whether this attempt is to end."""
        return self.ends() or self.is_over

    def answers(self) -> bool:
        """Whether the metastore of the part answered last."""
        return self.pulse is not None and self.pulse.answered_at is not None and self.pulse.problem is None

    def problem(self) -> str | None:
        """What is wrong now, so that the part gets no further."""
        unheard = self.pulse.problem if self.pulse is not None else None
        return self.last_error or unheard or self.untold or self.work.problem()

    def turns(self) -> bool:
        """Whether the part's threads do what they are there for."""
        is_told = self.work.status is None or time.monotonic() - self.told_at < SILENT_SECONDS
        return self.state == "failed" or (self.thread.is_alive() and is_told)

    def report(self) -> None:
        """Tell the status what only this process knows, until the part has ended."""
        status = self.work.status
        assert status is not None
        while True:
            self.thread.join(TICK_SECONDS)
            is_alive, self.told_at = self.thread.is_alive(), time.monotonic()
            try:
                if is_alive or self.state == "failed":
                    status.write()
                else:
                    status.remove()
                self.untold = None
            except (CalqueError, OSError) as error:
                if self.untold is None:
                    LOG.warning("status of %s is not told, which is tried again: %s", self.name, error)
                self.untold = str(error)
            if not is_alive:
                return

    def keep_up(self) -> None:
        """Attempts, until the part is to end or no other follows."""
        try:
            while True:
                self.attempt()
                if self.ends() or not self.is_over or isinstance(self.failure, self.attempts.never):
                    return
                self.sleep(self.retry_seconds)
                if self.ends():
                    return
                self.retry_seconds = min(2 * self.retry_seconds, self.attempts.longest)
                self.is_over = False
        finally:
            self.work.end()

    def attempt(self) -> None:
        try:
            self.retry(self.work.once)
        except CalqueError as error:
            self.fail(error)
        except Exception as error:
            LOG.exception("%s ended", self.name)
            self.fail(Broken(f"{self.name} ended with {type(error).__name__}", str(error), "See the log"))
        finally:
            self.work.close()

    def fail(self, error: CalqueError) -> None:
        """The attempt is over."""
        if not self.stopped():
            self.is_over, self.failure = True, error
            self.state, self.last_error = "failed", str(error)
            self.work.failed(error)

    def goes_on(self, state: str) -> None:
        """It got somewhere."""
        if not self.is_over:
            self.state, self.last_error, self.failure = state, None, None
            self.retry_seconds = self.attempts.first

    def retry(self, action: Callable[[], None]) -> None:
        """Do it again, after longer and longer, while something does not answer."""
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
                    raise

    def tell_retry(self, state: RetryCallState) -> None:
        self.run.meters.retries.labels(self.name).inc()
        error = state.outcome.exception() if state.outcome else None
        LOG.warning("%s is tried again: %s", self.name, error or "")
        if isinstance(error, CalqueError):
            self.work.unanswered(error)

    def sleep(self, seconds: float) -> None:
        self.ending.wait(seconds)
