"""A streaming query that gives the events of each batch to a function of calque's, on the driver."""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from calque.adapters.spark.event_source import EventStream
from calque.errors import Broken, CalqueError, Unavailable
from calque.state_files import FULL_TEXTS

Apply = Callable[[pa.Table], None]
"""A function that gets the rows of one batch, ascending. A batch without rows comes first where nothing is new when a
query begins. A batch that was cut off is run again after a restart, with the same rows."""
BEFORE_BATCHES = ("Initializing", "Terminated")
"""The beginnings of Spark's account of a query that has not read its checkpoint yet, or has ended."""


def start(
    session: SparkSession,
    stream: EventStream,
    apply: Apply,
    *,
    name: str,
    checkpoint: str | None,
) -> Query:
    """Start a query that calls `apply` for each batch of `stream`, on a thread of its own, one batch after the other.

    `checkpoint` wins over the stream's `starting` once it exists; with None Spark makes one for this run alone. Raises
    what `Query.join` does where the query could not begin.
    """
    query = Query(apply)
    writer = stream.frame(session).writeStream.queryName(name).foreachBatch(query.run)
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", checkpoint)
    session.sparkContext.setLocalProperty("spark.scheduler.pool", name)
    try:
        query.started(writer.start())
    except Exception as problem:
        raise explained(problem, CheckpointUnusable) from problem
    finally:
        session.sparkContext.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
    return query


class CheckpointUnusable(Broken):
    """A query ended before it began, as a rule because it can't use its checkpoint."""


def discard(session: SparkSession, checkpoint: str) -> None:
    """Remove the checkpoint of a query that does not run. It has nothing but offsets that are known elsewhere."""
    assert session._jvm is not None
    path = session._jvm.org.apache.hadoop.fs.Path(checkpoint)
    path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()).delete(path, True)


class QueryStopping(Exception):
    """The end of a query that is being stopped. It is raised so that a batch which was not applied is not committed."""


class Query:
    """A running query."""

    def __init__(self, apply: Apply) -> None:
        self._apply = apply
        self._state = threading.Condition()
        self._has_begun = False
        self._busy = False
        self._stopping = False
        self._failure: BaseException | None = None
        self._query: StreamingQuery

    def started(self, query: StreamingQuery) -> None:
        self._query = query

    def run(self, frame: DataFrame, _batch_id: int) -> None:
        """Apply one batch. Spark calls it."""
        with self._state:
            if self._stopping:
                raise QueryStopping
            self._busy = self._has_begun = True
        try:
            self._apply(rows_of(frame))
        except BaseException as failure:
            self._failure = failure
            raise
        finally:
            with self._state:
                self._busy = False
                self._state.notify_all()

    def has_begun(self) -> bool:
        """Return whether the query has read its checkpoint, and waits for events or takes some."""
        self._has_begun = self._has_begun or not self._query.status["message"].startswith(BEFORE_BATCHES)
        return self._has_begun

    @property
    def active(self) -> bool:
        return bool(self._query.isActive)

    def stop(self) -> None:
        """Let the batch in hand be finished, begin no other, and end the query. Raises nothing of what ended it.

        Spark's own stop would cancel the jobs of the batch in hand.
        """
        with self._state:
            self._stopping = True
            self._state.wait_for(lambda: not self._busy)
        self._query.stop()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end of the query, at most `timeout` seconds, and return whether it came. Raises what ended the
        query: the exception object that `apply` raised, the `CalqueError` that was raised in a process of Spark's,
        rebuilt, or `CheckpointUnusable`."""
        try:
            ended = self._query.awaitTermination(None if timeout is None else max(timeout, 0.001))  # type: ignore[arg-type]
        except Exception as problem:
            if self._failure is not None:
                raise self._failure from None
            if self._stopping:
                return True
            raise explained(problem, Broken if self._has_begun else CheckpointUnusable) from problem
        return ended is not False


def rows_of(frame: DataFrame) -> pa.Table:
    """Return the rows of a batch, on the driver. Raises what the task raised that read them again."""
    try:
        return frame.toArrow()
    except PySparkException as problem:
        raise rebuilt(str(problem)) or problem from problem


def rebuilt(text: str) -> CalqueError | None:
    """Return calque's error that was raised in another process, from Spark's account of it; None when there is none."""
    for name, message in reversed(re.findall(r"^(?:\S+: )?(calque\.[\w.]+): (.+)$", text, re.MULTILINE)):
        module, _, kind = name.rpartition(".")
        error_class = getattr(importlib.import_module(module), kind, None)
        if isinstance(error_class, type) and issubclass(error_class, CalqueError):
            return error_class(message)
    return None


WORKER_TROUBLE = ("Python worker failed to connect back", "Python worker exited unexpectedly")
"""The texts of Spark where a worker could not start, or was killed: the machine is overloaded or short of memory."""
SOURCE_TROUBLE = ("java.io.EOFException", "java.net.SocketException")
"""The causes that Spark names when a source's process was killed, or hung: the connection to it ended."""


def explained(problem: Exception, default_class: type[Broken]) -> CalqueError:
    """Return calque's error behind a query's end: the rebuilt one, `Unavailable` where a disk is full or a worker is
    gone, or `default_class` with the first line of what Spark says."""
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
