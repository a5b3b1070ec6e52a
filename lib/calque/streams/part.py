"""What capture and targets have in common: a query that is kept up, and told about, until it is to end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_not_exception_type,
    wait_random_exponential,
)
from tenacity.wait import wait_base

from calque.adapters.spark.query import Apply, CheckpointUnusable, Query, Stream, discard, start
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
BEGIN_SECONDS = 20.0


class Part:
    """A query over a source that is started again whenever something does not answer."""

    def __init__(
        self, run: RunForParts, stream: SourceStream, name: str, query: str, role: str, **log_fields: str
    ) -> None:
        self.run, self.stream, self.name, self.query_name, self.role = run, stream, name, query, role
        self.wiring = run.wiring
        self.source = run.wiring.sources[stream.name]
        self.ending = threading.Event()
        self.query: Query | None = None
        self.has_failed_to_begin = False
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

    @property
    def wake_file(self) -> Path:
        return self.wiring.folder.wake_file(self.query_name)

    def wake(self) -> None:
        """Let the query run a batch, an empty one if there are no events."""
        self.wiring.folder.wake(self.query_name)

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

    def halted(self) -> bool:
        """Whether the query that runs is to end."""
        return self.stopped()

    def is_stuck(self) -> bool:
        """Whether the query that runs begins no batch though it could."""
        return False

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
        """Open what is needed, run the query until it ends."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back what `once` opened."""

    def follow(self, stream: Stream, apply: Apply, gap: int) -> None:
        """Run a query, behind that gap, until it ends by itself or the process stops. Its checkpoint is made anew: the
        journal and the ledger say where it begins, and may be older than a checkpoint that was there, or damaged where
        that says nothing of it."""
        checkpoint = self.wiring.folder.checkpoint(self.query_name, gap, self.run.roles.takeovers(self.role))
        discard(self.run.spark(), checkpoint)
        try:
            self.run_query(stream, apply, checkpoint)
        except CheckpointUnusable as unbegun:
            if self.has_failed_to_begin or self.stopped():
                raise
            self.has_failed_to_begin = True
            what = f"The query {self.query_name} did not begin"
            raise Unavailable(what, str(unbegun), "It is tried again, once") from unbegun

    def run_query(self, stream: Stream, apply: Apply, checkpoint: str) -> None:
        """Queries begin one after the other: each starts several processes, which must answer within Spark's ten
        seconds. A query that is taken up again runs no batch without news, hence the wake."""
        with self.run.starting:
            self.wake()
            deadline = time.monotonic() + BEGIN_SECONDS
            query = start(self.run.spark(), stream, self.logged(apply), name=self.query_name, checkpoint=checkpoint)
            self.query = query
            while query.active and not query.begun.wait(0.05):
                if self.halted() or time.monotonic() > deadline:
                    break
        while not query.join(0.5):
            if self.halted():
                query.stop()
            elif self.is_stuck():
                query.stop()
                what = f"The query {self.query_name} begins no batch"
                raise Unavailable(what, "Its source gives it no news", "It begins anew; see Spark's log")
