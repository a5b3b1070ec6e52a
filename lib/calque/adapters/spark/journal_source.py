"""The journal as a stream: the offset is the event id, and evidence or a bumped counter wakes it too.

Frames carry the rows without their messages, of spans larger than `small` only; the driver reads smaller ones itself.
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
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from calque.adapters.spark.contiguous import checked, missing
from calque.adapters.spark.log_source import partitions_of
from calque.adapters.spark.packed import OPTION, pack, unpack
from calque.adapters.spark.watch import STUCK_SECONDS, Offset, Stamp, Watch, announced, count, offset, touched
from calque.core.events import rows
from calque.errors import Unavailable
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span
from calque.ports import EvidenceStore, Journal

SCHEMA = pa.schema([rows.SCHEMA.field(name) for name in rows.ENTRY_COLUMNS])


@dataclass(frozen=True, slots=True)
class JournalStream:
    """The journal after `starting`, as a target's query reads it.

    `open` is called in other processes: a module's function, or `functools.partial` of one, over small values without
    secrets. `wake` and `news` are local files: one that is bumped runs a batch, one that is touched (see `watch`) says
    that capture wrote something, and what is announced in `coming` runs a batch before it is there. `poll`, `wait` and
    `stuck` are seconds, as a `LogStream` has them.
    """

    open: Callable[[], tuple[Journal, EvidenceStore]]
    starting: EventId
    wake: Path
    news: Path
    coming: Path | None = None
    poll: float = 0.04
    wait: float = 5.0
    stuck: float = STUCK_SECONDS
    small: int = 5_000
    partition: int = 20_000

    def frame(self, session: SparkSession) -> DataFrame:
        """The streaming frame, with the columns of `SCHEMA`; the metastore's own names (`catalog`, `database`,
        `table`) are empty in it, the key columns are not."""
        session.dataSource.register(JournalSource)
        return session.readStream.format(JournalSource.name()).option(OPTION, pack(self)).load()


class JournalSource(DataSource):
    """Spark's handle on a `JournalStream`."""

    @classmethod
    def name(cls) -> str:
        return "calque_journal"

    def schema(self) -> StructType:
        return from_arrow_schema(SCHEMA)

    def streamReader(self, schema: StructType) -> JournalReader:
        return JournalReader(cast(JournalStream, unpack(self.options[OPTION])))


class JournalReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """As `log_source.LogReader`."""

    def __init__(self, stream: JournalStream) -> None:
        self._stream = stream
        self._opened: tuple[Journal, EvidenceStore] | None = None
        pauses = stream.poll, stream.poll, stream.wait, stream.stuck
        self._watch = Watch(self._newest, self._compare, self._wakes, *pauses, self._told)
        self._considered: EventId = 0

    def __reduce__(self) -> tuple[type[JournalReader], tuple[JournalStream]]:
        return JournalReader, (self._stream,)

    def initialOffset(self) -> Offset:
        return offset(self._stream.starting, 0)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> Offset:
        return self._watch.latest(start, None)

    def reportLatestOffset(self) -> Offset | None:
        return self._watch.newest_seen()

    def prepareForTriggerAvailableNow(self) -> None:
        self._watch.freeze()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        span = Span(start["event_id"], end["event_id"])
        return partitions_of(span, self._stream.small, self._stream.partition)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        span: Span = partition.value
        journal, _ = self._stream.open()
        entries = journal.entries(span)
        last = checked((entry.event_id for entry in entries), span.after)
        if last < span.upto:
            raise missing(Span(last, span.upto), "the journal ends there")
        yield from table_of(entries).combine_chunks().to_batches()

    def _newest(self) -> EventId:
        journal, evidence = self._open()
        last, self._considered = journal.last(), evidence.considered()
        return self._stream.starting if last is None else last

    def _told(self) -> Stamp | None:
        """What changes with each word that there is news; None where no capture writes from this state folder."""
        stream = self._stream
        return (touched(stream.wake.parent), touched(stream.news.parent)) if touched(stream.news) is not None else None

    def _wakes(self) -> int:
        """As of the last look. All three only grow, so that their sum changes when one does."""
        coming = announced(self._stream.coming) if self._stream.coming is not None else 0
        return count(self._stream.wake) + self._considered + coming

    def _open(self) -> tuple[Journal, EvidenceStore]:
        if self._opened is None:
            self._opened = self._stream.open()
        return self._opened

    def _compare(self, start: EventId, newest: EventId) -> None:
        """A journal may lie behind `starting`: a target can be told to start ahead of it, and waits for it then. It may
        have lost its end, too: capture appends that again as soon as it looks, or finds a gap."""
        if newest < start != self._stream.starting:
            raise Unavailable(
                f"The journal ends at event {newest}, but this target read event {start} of it already",
                "It lost its end, or was replaced by an older one; capture goes on where it ends",
                "It is tried again; where capture does not run, let it",
            )


def table_of(entries: Sequence[Entry]) -> pa.Table:
    """The entries as one Arrow table of `SCHEMA`."""
    return rows.table_of((bare(entry), entry.keys) for entry in entries).select(list(rows.ENTRY_COLUMNS))


def bare(entry: Entry) -> Event:
    return Event(entry.event_id, entry.event_time, entry.event_type, "", "", "", "", "")
