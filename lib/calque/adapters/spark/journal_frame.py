"""A span of the journal as a frame: `journal_frame`."""

# ruff: noqa: ARG002  (arguments are Spark's)
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from calque.adapters.spark.journal_stream import SCHEMA
from calque.adapters.spark.packed import OPTION, pack, unpack
from calque.model.names import Span

PIECE = 100_000
"""The rows that one task reads."""
Rows = Callable[[Span], pa.Table]


@dataclass(frozen=True, slots=True)
class JournalSpan:
    """A span of the journal to read. `rows` gives the rows of a part of `span` without their messages; it is called in
    other processes."""

    rows: Rows
    span: Span


def journal_frame(session: SparkSession, rows: Rows, span: Span) -> DataFrame:
    """Return the rows of the span as a frame with the columns of `journal_stream.SCHEMA`."""
    session.dataSource.register(SpanOfJournal)
    return session.read.format(SpanOfJournal.name()).option(OPTION, pack(JournalSpan(rows, span))).load()


class SpanOfJournal(DataSource):
    """Spark's handle on a `JournalSpan`."""

    @classmethod
    def name(cls) -> str:
        return "calque_journal"

    def schema(self) -> StructType:
        return from_arrow_schema(SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        return SpanReader(cast(JournalSpan, unpack(self.options[OPTION])))


@dataclass(frozen=True)
class SpanReader(DataSourceReader):
    """A reader of a `JournalSpan`, with one task for each `PIECE` rows."""

    journal: JournalSpan

    def partitions(self) -> Sequence[InputPartition]:
        after, upto = self.journal.span.after, self.journal.span.upto
        return [InputPartition(Span(begin, min(begin + PIECE, upto))) for begin in range(after, upto, PIECE)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from self.journal.rows(partition.value).cast(SCHEMA).combine_chunks().to_batches()
