"""A streaming query that runs a function of ours on the driver for each span, with a frame for large spans only."""

from __future__ import annotations

import importlib
import json
import re
import threading
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from calque.adapters.spark.contiguous import ascending
from calque.errors import Broken, CalqueError, Unavailable
from calque.model.names import Span
from calque.state_files import FULL_TEXTS

Apply = Callable[[Span, DataFrame | None, int], None]
"""`(span, frame, batch id)`. The frame is there for spans larger than the stream's `small`. An empty span means that
something other than an event woke the query, or that it has just started. A batch that was cut off is run again with
the same end after a restart; its start may have moved when it was the first of its checkpoint."""


class Stream(Protocol):
    """`log_source.LogStream` or `journal_source.JournalStream`."""

    @property
    def small(self) -> int: ...

    def frame(self, session: SparkSession) -> DataFrame: ...


class Until(Enum):
    """When a query ends by itself."""

    STOPPED = "stopped"
    CAUGHT_UP = "caught up"
    """With all that was there when it started."""


def start(
    session: SparkSession,
    stream: Stream,
    apply: Apply,
    *,
    name: str,
    checkpoint: Path | str,
    until: Until = Until.STOPPED,
    pool: str = "",
) -> Query:
    """Start `apply` over `stream`; it runs on a thread of its own, one span after the other.

    `checkpoint` wins over the stream's `starting` once it exists. Spark jobs of `apply` run in the fair pool `pool`.
    Raises what `Query.join` does where the first batch never came.
    """
    query = Query(stream.small, apply)
    writer = stream.frame(session).writeStream.queryName(name).option("checkpointLocation", str(checkpoint))
    writer = writer.foreachBatch(query.run)
    if until is Until.CAUGHT_UP:
        writer = writer.trigger(availableNow=True)
    session.sparkContext.setLocalProperty("spark.scheduler.pool", pool or name)
    try:
        query.started(writer.start())
    except Exception as problem:
        raise explained(problem, CheckpointUnusable) from problem
    finally:
        session.sparkContext.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
    return query


class CheckpointUnusable(Broken):
    """A query ended before its first batch: with a checkpoint that it can't use, as a rule."""


def discard(session: SparkSession, checkpoint: str) -> None:
    """Remove a checkpoint of a query that does not run. Nothing is in it but offsets that are known elsewhere."""
    assert session._jvm is not None
    path = session._jvm.org.apache.hadoop.fs.Path(checkpoint)
    path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()).delete(path, True)


class QueryStopping(Exception):
    """Ends a query that is being stopped, so that a span that nobody applied is not committed."""


class Query:
    """A running query."""

    def __init__(self, small: int, apply: Apply) -> None:
        self._small, self._apply = small, apply
        self._ready = threading.Event()
        self.begun = threading.Event()
        """Its first batch has come."""
        self._state = threading.Condition()
        self._busy = False
        self._stopping = False
        self._failure: BaseException | None = None
        self._query: StreamingQuery
        self._execution: Any

    def started(self, query: StreamingQuery) -> None:
        self._query, self._execution = query, query._jsq.streamingQuery()
        self._ready.set()

    def run(self, frame: DataFrame, batch_id: int) -> None:
        """Spark's call for one batch."""
        self._ready.wait()
        self.begun.set()
        with self._state:
            if self._stopping:
                raise QueryStopping
            self._busy = True
        try:
            span = span_of(self._execution)
            self._apply(span, frame if span.upto - span.after > self._small else None, batch_id)
        except BaseException as failure:
            self._failure = (isinstance(failure, PySparkException) and rebuilt(str(failure))) or failure
            raise
        finally:
            with self._state:
                self._busy = False
                self._state.notify_all()

    @property
    def active(self) -> bool:
        return bool(self._query.isActive)

    @property
    def run_id(self) -> str:
        """Spark's job group of this run."""
        return str(self._query.runId)

    def stop(self) -> None:
        """Let the span in hand be finished, begin no other, and end the query. Raises nothing of what ended it.

        Spark's own stop would cancel the jobs of the span in hand.
        """
        with self._state:
            self._stopping = True
            self._state.wait_for(lambda: not self._busy)
        self._query.stop()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; whether it came. Raises what ended the query: the exception
        object that `apply` raised, the `CalqueError` that was raised in a process of Spark's, rebuilt, or
        `CheckpointUnusable`."""
        try:
            ended = self._query.awaitTermination(None if timeout is None else max(timeout, 0.001))  # type: ignore[arg-type]
        except Exception as problem:
            if self._failure is not None:
                raise self._failure from None
            if self._stopping:
                return True
            raise explained(problem, Broken if self.begun.is_set() else CheckpointUnusable) from problem
        return ended is not False


def span_of(execution: Any) -> Span:
    """The span of the batch that `execution` (Spark's StreamExecution) runs now, from the offsets in its own plan:
    right for batch 0, whose start is in no log yet, and for a batch that is run again."""
    scan = execution.lastExecution().analyzed().collectLeaves().head()
    after, upto = (json.loads(end.get().json())["event_id"] for end in (scan.startOffset(), scan.endOffset()))
    return Span(min(after, upto), upto)


def rows_of(frame: DataFrame, span: Span) -> pa.Table:
    """The rows of a span's frame on the driver, in order; where they weigh too much the last ones of each task are left
    out. Raises `Broken` when they are not the span's, and what the tasks raised."""
    try:
        table = frame.toArrow()
    except PySparkException as problem:
        raise rebuilt(str(problem)) or problem from problem
    ascending(table.column("event_id").to_pylist(), span)
    return table


def rebuilt(text: str) -> CalqueError | None:
    """The error of ours that was raised in another process, from Spark's account of it; None when there is none."""
    for name, message in reversed(re.findall(r"^(?:\S+: )?(calque\.[\w.]+): (.+)$", text, re.MULTILINE)):
        module, _, kind = name.rpartition(".")
        error_class = getattr(importlib.import_module(module), kind, None)
        if isinstance(error_class, type) and issubclass(error_class, CalqueError):
            return error_class(message)
    return None


WORKER_TROUBLE = ("Python worker failed to connect back", "Python worker exited unexpectedly")
"""A worker could not start, or was killed: the machine is overloaded or short of memory."""
SOURCE_TROUBLE = ("java.io.EOFException", "java.net.SocketException")
"""The cause that Spark names when a source's process was killed, or hung: the connection to it ended."""


def explained(problem: Exception, default_class: type[Broken]) -> CalqueError:
    """The error of ours behind a query's end: rebuilt, a worker's, or `default_class` with what Spark says first."""
    text_of_problem = str(problem)
    if own_error := rebuilt(text_of_problem):
        return own_error
    cause = str(getattr(problem, "_cause", None))
    if full := next((text for text in FULL_TEXTS if text in text_of_problem or text in cause), None):
        todo = "Free or add space there; it is tried again"
        return Unavailable("The disk of Spark's checkpoints, or of its scratch files, is full", full, todo)
    signs = [text for text in WORKER_TROUBLE if text in text_of_problem]
    signs += [text for text in SOURCE_TROUBLE if text in cause]
    if signs:
        todo = "Give the machine more memory or less to do, and see Spark's log"
        return Unavailable("A worker process of Spark's is gone", signs[0], todo)
    return default_class("A streaming query ended", next(iter(text_of_problem.splitlines()), ""), "See Spark's log")
