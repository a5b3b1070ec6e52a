"""What capture and targets have in common: work that is kept up, and told about, until it is to end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

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
from calque.streams.shared import RunForParts, SourceStream

P = ParamSpec("P")
R = TypeVar("R")
LOG = logging.getLogger(__name__)
BACK_OFF: wait_base = wait_random_exponential(multiplier=0.25, max=15)
TICK_SECONDS, SILENT_SECONDS = 0.5, 30.0


class Part:
    """Work on a thread of its own, begun again whenever something does not answer."""

    def __init__(self, run: RunForParts, stream: SourceStream, name: str, role: str, **log_fields: str) -> None:
        self.run, self.stream, self.name, self.role = run, stream, name, role
        self.wiring = run.wiring
        self.source = run.wiring.sources[stream.name]
        self.ending = threading.Event()
        self.state = "starting"
        self.last_error: str | None = None
        self.untold: str | None = None
        """Why the status does not know how it is."""
        self.pulse = Heartbeat(self.ask, name)
        self.told_at = time.monotonic()
        self.log_fields = {"source": stream.name, **log_fields}
        self.thread = threading.Thread(target=self.logged(self.keep_up), name=name, daemon=True)
        self.reported = threading.Thread(target=self.logged(self.report), name=f"report-{name}", daemon=True)

    def logged(self, work: Callable[P, R]) -> Callable[P, R]:
        """`work`, whose lines in the log say of which part they are."""
        return with_fields(work, **self.log_fields)

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
        """Make no call any more, though a window may be in hand. What parts share goes on until the process ends."""
        if self.run.stopping.is_set():
            self.wiring.runtime.ending.set()

    def stopped(self) -> bool:
        return self.ending.is_set() or self.run.stopping.is_set()

    def ask(self) -> EventId:
        """Something of the part's metastore: of a source its newest event id. Raises `Unavailable`."""
        raise NotImplementedError

    def problem(self) -> str | None:
        """What is wrong now, so that the part gets no further."""
        return self.last_error or self.pulse.problem or self.untold

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
            is_alive, self.told_at = self.thread.is_alive(), time.monotonic()
            try:
                if is_alive or self.state == "failed":
                    self.tell_state()
                else:
                    self.take_back()
                self.untold = None
            except (CalqueError, OSError) as error:
                if self.untold is None:
                    LOG.warning("status of %s is not told, which is tried again: %s", self.name, error)
                self.untold = str(error)
            if not is_alive:
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
            retry=retry_if_exception_type(Unavailable) & retry_if_not_exception_type(LeaseHeldByOther),
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
        """Open what is needed, and work until the part is to end."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back what `once` opened."""
