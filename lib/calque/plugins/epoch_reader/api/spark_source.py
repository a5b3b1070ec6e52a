"""What reads a table as of an epoch for Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from calque.model.names import EventId
from calque.plugins.epoch_reader.api.source_options import (
    CONFIG,
    TARGET,
    Use,
    event_of,
    require_known,
    table_in,
)

if TYPE_CHECKING:
    from calque.plugins.epoch_reader.api.open_epoch import OpenEpoch
    from calque.wiring.wiring import Wiring

MOST_TASKS = 32


@dataclass(frozen=True, slots=True)
class EpochShare(InputPartition):
    """Every `of`-th fragment of the table, from the `number`-th on, at the epoch of that event."""

    event_id: EventId
    number: int
    of: int


class EpochReader(DataSourceReader):
    """Opens the epoch that the options name here, and again in each task; `wired` wires a configuration."""

    def __init__(self, options: Mapping[str, str], wired: Callable[[str], Wiring]) -> None:
        self.options, self.wired = options, wired

    def partitions(self) -> Sequence[InputPartition]:
        epoch = opened(self.options, self.wired, None, holds=True)
        fragments = sum(1 for _ in epoch.arrow(table_in(self.options)).get_fragments())
        tasks = max(1, min(MOST_TASKS, fragments))
        return [EpochShare(epoch.event_id, number, tasks) for number in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, EpochShare)
        with opened(self.options, self.wired, partition.event_id, holds=False) as epoch:
            dataset = epoch.arrow(table_in(self.options))
            for number, fragment in enumerate(dataset.get_fragments()):
                if number % partition.of == partition.number:
                    yield from fragment.to_batches(schema=dataset.schema)


def opened(
    options: Mapping[str, str], wired: Callable[[str], Wiring], event_id: EventId | None, *, holds: bool
) -> OpenEpoch:
    """At the event, else at the one that the options name. Raises `Refused` for options that are none."""
    # Not above: a stream of changes needs no configuration, nor what reads one (`wiring`).
    from calque.plugins.epoch_reader.api.open_epoch import HOLD, opened_epoch

    require_known(options, Use.TABLE)
    at = event_id if event_id is not None else event_of(options)
    wiring, target = wired(options.get(CONFIG, "calque.toml")), options.get(TARGET)
    return opened_epoch(wiring, target, [table_in(options)], at, HOLD if holds else 0)
