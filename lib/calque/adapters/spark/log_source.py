"""The metastore's notification log as a stream: the offset is the event id.

A span of at most `small` events gets no partitions, hence no tasks: the driver reads it itself (measured: the job
behind a one-event frame costs 70–85 ms, the read in it 2 ms). A larger one is read by tasks, `partition` events each.
"""

# ruff: noqa: N802, ARG002  (names and arguments are Spark's)
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from calque.adapters.spark.contiguous import checked, missing, repeated, went_back
from calque.adapters.spark.packed import OPTION, pack, unpack
from calque.adapters.spark.watch import STUCK_SECONDS, Offset, Watch, announce, brisk, count, offset
from calque.core.events import rows
from calque.core.events.decode import weight_of
from calque.model.names import EventId, Span
from calque.ports import EventLog


@dataclass(frozen=True, slots=True)
class LogStream:
    """A source's log after `starting`, as a query reads it.

    `open` is called in other processes, also of other machines when there are executors: a module's function, or
    `functools.partial` of one, over small values without secrets. `wake` is a local file (see `watch.bump`), and so is
    `coming`, where events are announced as soon as they are seen (`watch.announce`). `poll`, `wait` and `stuck` are
    seconds: between looks at the log, how long one call waits for news, and how much longer it may take (see `Watch`).
    """

    open: Callable[[], EventLog]
    starting: EventId
    wake: Path
    coming: Path | None = None
    poll: float = 0.25
    wait: float = 5.0
    stuck: float = STUCK_SECONDS
    max_events: int = 20_000
    """No batch spans more."""
    small: int = 1_000
    """Spans of at most so many events carry no frame."""
    partition: int = 10_000
    page: int = 1_000
    """Events of one read, and rows of one Arrow batch."""
    share: int = 64 << 20
    """Bytes of messages after which a task ends, whatever it has left: `query.rows_of` holds what all of them bring."""

    def frame(self, session: SparkSession) -> DataFrame:
        """The streaming frame, with the columns of `core.events.rows.SCHEMA`."""
        session.dataSource.register(LogSource)
        return session.readStream.format(LogSource.name()).option(OPTION, pack(self)).load()


class LogSource(DataSource):
    """Spark's handle on a `LogStream`."""

    @classmethod
    def name(cls) -> str:
        return "calque_log"

    def schema(self) -> StructType:
        return from_arrow_schema(rows.SCHEMA)

    def streamReader(self, schema: StructType) -> LogReader:
        return LogReader(cast(LogStream, unpack(self.options[OPTION])))


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One lives in the source process of the query; a copy of it in each task calls nothing but `read`.

    It opens the log when it first needs it, and is pickled as its description alone (measured: Spark builds a reader
    twice and pickles it).
    """

    def __init__(self, stream: LogStream) -> None:
        self._stream = stream
        self._log: EventLog | None = None
        pauses = stream.poll, brisk(stream.poll), stream.wait, stream.stuck
        self._watch = Watch(self._newest, compare, lambda: count(stream.wake), *pauses)

    def __reduce__(self) -> tuple[type[LogReader], tuple[LogStream]]:
        return LogReader, (self._stream,)

    def initialOffset(self) -> Offset:
        return offset(self._stream.starting, 0)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._stream.max_events)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> Offset:
        reached = self._watch.latest(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        if self._stream.coming is not None and reached["event_id"] > start["event_id"]:
            announce(self._stream.coming, reached["event_id"])
        return reached

    def reportLatestOffset(self) -> Offset | None:
        return self._watch.newest_seen()

    def prepareForTriggerAvailableNow(self) -> None:
        self._watch.freeze()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        span = Span(start["event_id"], end["event_id"])
        return partitions_of(span, self._stream.small, self._stream.partition)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return pages(self._stream.open(), partition.value, self._stream.page, self._stream.share)

    def _newest(self) -> EventId:
        if self._log is None:
            self._log = self._stream.open()
        return self._log.current()


def compare(start: EventId, newest: EventId) -> None:
    """A log that ends before `start` would look like one without news for ever (facts)."""
    if newest < start:
        raise went_back(start, newest)


def partitions_of(span: Span, small: int, size: int) -> list[InputPartition]:
    """The span in pieces of at most `size` events, each the `Span` of one task; none when the driver reads it."""
    if span.upto - span.after <= small:
        return []
    return [InputPartition(Span(after, min(after + size, span.upto))) for after in range(span.after, span.upto, size)]


def pages(log: EventLog, span: Span, page: int, share: int) -> Iterator[pa.RecordBatch]:
    """The rows of exactly `span`, in Arrow batches of at most `page` rows; not its last ones, once so many were read
    that their messages weigh `share` bytes. Raises `HoleInLog` and `EventRepeated`."""

    last, weight = span.after, 0
    while last < span.upto and weight < share:
        limit = min(page, span.upto - last)
        read_events = log.read(last, limit + 1)
        events, next_events = read_events[:limit], read_events[limit:]
        if not events:
            raise missing(Span(last, span.upto), "the log ends there")
        last = checked((event.event_id for event in events), last)
        if next_events and next_events[0].event_id == last:
            raise repeated(last, last)
        weight += sum(map(weight_of, events))
        yield from rows.rows_of_events(events).combine_chunks().to_batches()
