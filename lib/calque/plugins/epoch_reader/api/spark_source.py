"""Epochs as a source of data for Spark: `spark.read.format("calque")`.

    spark.dataSource.register(calque.EpochSource)
    spark.read.format("calque").option("target", "dr").option("event", 812).load("sales.orders")

Options: `config`, the path of the configuration, which Spark's executors must reach, as they must the ledger and the
warehouse; `target`, which may be left out where there is one; `event`, as `at` of `open_epoch`. The epoch is held for
an hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from calque.errors import Refused
from calque.model.names import EventId
from calque.plugins.epoch_reader.api.open_epoch import HOLD, OpenEpoch, open_epoch

MOST_TASKS = 32


@dataclass(frozen=True, slots=True)
class EpochShare(InputPartition):
    """Every `of`-th fragment of the table, from the `number`-th on, at the epoch of that event."""

    event_id: EventId
    number: int
    of: int


class EpochSource(DataSource):
    """A table of a target as of an epoch. Raises what `open_epoch` raises."""

    @classmethod
    def name(cls) -> str:
        return "calque"

    def schema(self) -> StructType:
        with opened(self.options, None, 0) as epoch:
            return from_arrow_schema(epoch.arrow(table_of(self.options)).schema)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return EpochReader(dict(self.options))


class EpochReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        epoch = opened(self.options, None, HOLD)
        fragments = sum(1 for _ in epoch.arrow(table_of(self.options)).get_fragments())
        tasks = max(1, min(MOST_TASKS, fragments))
        return [EpochShare(epoch.event_id, number, tasks) for number in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, EpochShare)
        with opened(self.options, partition.event_id, 0) as epoch:
            dataset = epoch.arrow(table_of(self.options))
            for number, fragment in enumerate(dataset.get_fragments()):
                if number % partition.of == partition.number:
                    yield from fragment.to_batches(schema=dataset.schema)


def opened(options: Mapping[str, str], event_id: EventId | None, hold: float) -> OpenEpoch:
    """At the event, else at the one that the options name. Raises `Refused` for options that are none."""
    text = options.get("event", "")
    if text and not text.isdigit():
        raise Refused(f'"{text}" is no event id', "The option event takes a number", "Write e.g. 812")
    at = event_id if event_id is not None else int(text) if text else None
    config, target = options.get("config", "calque.toml"), options.get("target")
    return open_epoch(config, target, tables=[table_of(options)], at=at, hold=hold)


def table_of(options: Mapping[str, str]) -> str:
    table = options.get("path") or options.get("table")
    if not table:
        raise Refused("No table is named", "A read is of one table", 'Write load("sales.orders")')
    return table
