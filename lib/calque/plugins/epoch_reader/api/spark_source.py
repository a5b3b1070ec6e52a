"""The batch reader of `format("calque")` for Spark: a table as of an epoch."""

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
    """The share of one task: every `of`-th fragment of the table, from the `number`-th on, at the epoch of that
    event."""

    event_id: EventId
    number: int
    of: int


class EpochReader(DataSourceReader):
    """A reader of a table as of an epoch. The driver opens the epoch that the options name, and each task opens it
    again; `wired` wires a configuration by its path."""

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
    """Open the epoch at the event, or, for None, the one that the options name. With `holds` it is held against
    `sweep`. Raises `Refused` for an option that is not one of a table's read."""
    # Imported here, because a stream of changes needs neither a configuration nor what reads one (see `wiring`).
    from calque.plugins.epoch_reader.api.open_epoch import HOLD, opened_epoch

    require_known(options, Use.TABLE)
    at = event_id if event_id is not None else event_of(options)
    wiring, target = wired(options.get(CONFIG, "calque.toml")), options.get(TARGET)
    return opened_epoch(wiring, target, [table_in(options)], at, HOLD if holds else 0)
