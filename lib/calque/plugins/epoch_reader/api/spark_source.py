"""Epochs as a source of data for Spark: `format("calque")`, registered by

    spark.dataSource.register(calque.EpochSource)

A table as of an epoch. Executors must reach the configuration, the ledger and the warehouse; the epoch is held for an
hour:

    spark.read.format("calque").option("target", "dr").option("event", 812).load("sales.orders")

What epochs changed, a row for each change of a table or partition (`core.changes.SCHEMA`): epoch after epoch, or one
epoch. Executors must reach the ledger:

    spark.readStream.format("calque").option("ledger", "…/ledgers/dr").option("startingEpoch", "latest").load()
    spark.read.format("calque").option("ledger", "…/ledgers/dr").option("epoch", 17).load()

`api.source_options` has all options.
"""

# ruff: noqa: N802, ARG002  (names and arguments are Spark's)
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from calque.errors import Refused
from calque.model.names import EventId
from calque.plugins.epoch_reader.api.change_stream import EpochChangesReader, EpochStreamReader
from calque.plugins.epoch_reader.api.source_options import (
    CONFIG,
    TARGET,
    Use,
    address_of,
    change_options,
    event_of,
    require_known,
    table_in,
)
from calque.plugins.epoch_reader.core.changes import SCHEMA

if TYPE_CHECKING:
    from calque.plugins.epoch_reader.api.open_epoch import OpenEpoch

MOST_TASKS = 32


@dataclass(frozen=True, slots=True)
class EpochShare(InputPartition):
    """Every `of`-th fragment of the table, from the `number`-th on, at the epoch of that event."""

    event_id: EventId
    number: int
    of: int


class EpochSource(DataSource):
    """A table of a target as of an epoch, or the changes of epochs. Raises what `open_epoch` raises, and `Refused` for
    options that mean nothing."""

    @classmethod
    def name(cls) -> str:
        return "calque"

    def schema(self) -> StructType:
        if table_in(self.options):
            with opened(self.options, None, holds=False) as epoch:
                return from_arrow_schema(epoch.arrow(table_in(self.options)).schema)
        change_options(self.options, Use.EPOCH, Use.STREAM)
        return from_arrow_schema(SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        if table_in(self.options):
            return EpochReader(dict(self.options))
        return EpochChangesReader(address_of(self.options), change_options(self.options, Use.EPOCH))

    def simpleStreamReader(self, schema: StructType) -> EpochStreamReader:
        if table := table_in(self.options):
            raise Refused(
                f"The table {table} can't be read as a stream",
                "A stream has what epochs changed, not rows of tables",
                f'Write load() with the option tables = "{table}"',
            )
        return EpochStreamReader(address_of(self.options), change_options(self.options, Use.STREAM))


class EpochReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        epoch = opened(self.options, None, holds=True)
        fragments = sum(1 for _ in epoch.arrow(table_in(self.options)).get_fragments())
        tasks = max(1, min(MOST_TASKS, fragments))
        return [EpochShare(epoch.event_id, number, tasks) for number in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, EpochShare)
        with opened(self.options, partition.event_id, holds=False) as epoch:
            dataset = epoch.arrow(table_in(self.options))
            for number, fragment in enumerate(dataset.get_fragments()):
                if number % partition.of == partition.number:
                    yield from fragment.to_batches(schema=dataset.schema)


def opened(options: Mapping[str, str], event_id: EventId | None, *, holds: bool) -> OpenEpoch:
    """At the event, else at the one that the options name. Raises `Refused` for options that are none."""
    # Not above: a stream of changes needs no configuration, nor what reads one (`wiring`).
    from calque.plugins.epoch_reader.api.open_epoch import HOLD, open_epoch

    require_known(options, Use.TABLE)
    at = event_id if event_id is not None else event_of(options)
    config, target = options.get(CONFIG, "calque.toml"), options.get(TARGET)
    return open_epoch(config, target, tables=[table_in(options)], at=at, hold=HOLD if holds else 0)
