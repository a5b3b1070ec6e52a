"""Events as a stream of rows: the offset is `{"event_id": N}`, and the rows of a batch are the events between two.

One source reads the metastore's notification log (`log_stream`), or calque's copy of it (`journal_stream`). It is a
`SimpleDataSourceStreamReader`: one call waits for news and returns the rows, which travel to the JVM with the offset,
so that the task behind a frame needs no Python worker. Only a batch that is run again after a restart is read by a
worker.
"""

# ruff: noqa: N802, ARG002  (names and arguments are Spark's)
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from calque.adapters.spark.news import STUCK_SECONDS, LongPoll
from calque.adapters.spark.packed import OPTION, pack, unpack
from calque.model.names import EventId, Span

Offset = dict[str, int]


class Events(Protocol):
    """The log or the journal that a stream reads. Every method may raise `Unavailable`."""

    def newest(self, after: EventId) -> EventId:
        """Return the newest event id. Raises where the log or journal does not continue event `after`."""

    def pages(self, span: Span, most_bytes: float) -> Iterator[pa.RecordBatch]:
        """Give the rows of exactly `span`, ascending; without its last ones, once the rows before weigh `most_bytes`.
        Raises where a row is missing or comes twice."""


@dataclass(frozen=True, slots=True)
class EventStream:
    """A stream of the events after `starting`; a query whose checkpoint says another event goes on from that.

    `open` is called in other processes, also of other machines when there are executors: it is a module's function, or
    `functools.partial` of one, over small values without secrets. `poll`, `wait` and `stuck` are seconds (see
    `LongPoll`). No batch has more than `max_events`, or many more bytes of messages than `max_bytes`, because all of a
    batch lies in the memory of the source's process, of the JVM, and of the driver.
    """

    open: Callable[[], Events]
    schema: pa.Schema
    starting: EventId
    poll: float = 0.25
    wait: float = 5.0
    stuck: float = STUCK_SECONDS
    max_events: int = 20_000
    max_bytes: int = 64 << 20

    def frame(self, session: SparkSession) -> DataFrame:
        """Return the streaming frame, with the columns of `schema`."""
        session.dataSource.register(StreamOfEvents)
        return session.readStream.format(StreamOfEvents.name()).option(OPTION, pack(self)).load()


class StreamOfEvents(DataSource):
    """Spark's handle on an `EventStream`."""

    @classmethod
    def name(cls) -> str:
        return "calque_events"

    @property
    def stream(self) -> EventStream:
        return cast(EventStream, unpack(self.options[OPTION]))

    def schema(self) -> StructType:
        return from_arrow_schema(self.stream.schema)

    def simpleStreamReader(self, schema: StructType) -> EventReader:
        return EventReader(self.stream)


class EventReader(SimpleDataSourceStreamReader):
    """A reader of an `EventStream`. One lives in the source process of the query, and one more in each task that reads
    a batch again.

    It opens what it reads when it first needs it (measured: Spark builds a reader twice).
    """

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._events: Events | None = None
        self._poll = LongPoll(stream.poll, stream.wait, stream.stuck)

    def __reduce__(self) -> tuple[type[EventReader], tuple[EventStream]]:
        return EventReader, (self._stream,)

    def initialOffset(self) -> Offset:
        return offset(self._stream.starting)

    def read(self, start: Offset) -> tuple[Iterator[pa.RecordBatch], Offset]:
        """Return the rows behind `start` and the offset of the last one, once there are some; no rows, and `start`
        itself, when nothing came in time."""
        after = start["event_id"]
        batches = self._poll.until_news(lambda: self._look(after))
        if batches is None:
            return iter(()), start
        return iter(batches), offset(batches[-1]["event_id"][-1].as_py())

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Iterator[pa.RecordBatch]:
        return self._open().pages(Span(start["event_id"], end["event_id"]), float("inf"))

    def _look(self, after: EventId) -> list[pa.RecordBatch] | None:
        """Return the rows of the events after `after`, None when there are none. They are a list, because Spark copies
        the iterator over it."""
        events, stream = self._open(), self._stream
        newest = events.newest(after)
        if newest <= after:
            return None
        return list(events.pages(Span(after, min(newest, after + stream.max_events)), stream.max_bytes))

    def _open(self) -> Events:
        if self._events is None:
            self._events = self._stream.open()
        return self._events


def offset(event_id: EventId) -> Offset:
    return {"event_id": event_id}
