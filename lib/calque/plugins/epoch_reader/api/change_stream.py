"""The changes of a target's tables for Spark: epoch after epoch as a stream, and of one epoch.

A stream's offset is `{"epoch": N}`: the epochs up to N were read.
"""

# ruff: noqa: N802  (names are Spark's)
from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from calque.errors import Unavailable
from calque.plugins.epoch_reader.api.source_options import ChangeOptions
from calque.plugins.epoch_reader.engine.feed import EpochFeed
from calque.plugins.epoch_reader.wiring import LedgerAddress

LOG = logging.getLogger(__name__)
WAIT = 5.0
"""Seconds for which one call waits for an epoch."""
PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two looks for an epoch: at first, and at most, while nothing comes."""
Offset = dict[str, int]


def feed_of(address: LedgerAddress, options: ChangeOptions) -> EpochFeed:
    return EpochFeed(address.open(), address.folder, options.takes())


class EpochStreamReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream of changes. It reads in the source process of the query; a copy of it in a task reads again what a
    restart plays again.

    It opens the ledger when it first needs it, and is pickled without it, because Spark builds a reader twice and
    pickles it.
    """

    def __init__(self, address: LedgerAddress, options: ChangeOptions, wait: float = WAIT) -> None:
        self._address, self._options, self._wait = address, options, wait
        self._feed: EpochFeed | None = None
        self._initial: Offset | None = None
        self._last: int | None = None
        """The newest epoch of a query that is to end (`Trigger.AvailableNow`); None for a query that goes on."""
        self._silent = False

    def __reduce__(self) -> tuple[type[EpochStreamReader], tuple[LedgerAddress, ChangeOptions, float]]:
        return EpochStreamReader, (self._address, self._options, self._wait)

    def initialOffset(self) -> Offset:
        """Return the offset at which the stream begins, the same at each call. Spark asks again until the first batch
        has run, and would pass over epochs that were published between two different answers."""
        if self._initial is None:
            self._initial = {"epoch": self._opened().position_before(self._options.starting)}
        return self._initial

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._opened().newest()

    def read(self, start: Offset) -> tuple[Iterator[pa.RecordBatch], Offset]:
        """Return the rows of the next epochs as soon as there is one, and their offset; no rows and `start` after the
        wait. The rows are an iterator over a list, because Spark copies it."""
        deadline = time.monotonic() + (self._wait if self._last is None else 0.0)
        pause = PAUSE
        while True:
            rows, upto = self._look(start["epoch"])
            if upto > start["epoch"]:
                return iter(rows), {"epoch": upto}
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return iter([]), start
            time.sleep(min(pause, remaining))
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Iterator[pa.RecordBatch]:
        return iter(self._opened().rows(start["epoch"], end["epoch"]))

    def _look(self, position: int) -> tuple[Sequence[pa.RecordBatch], int]:
        """Return the rows of the next epochs, and the number of the last of them. A ledger that does not answer counts
        as no news, except for a query that is to end, which gets the `Unavailable`."""
        try:
            feed = self._opened()
            upto = feed.position_after(position, self._options.most)
            if self._last is not None:
                upto = min(upto, max(self._last, position))
            rows = feed.rows(position, upto)
        except Unavailable as problem:
            if self._last is not None:
                raise
            if not self._silent:
                LOG.warning("no news of epochs: %s", problem)
            self._silent = True
            return (), position
        self._silent = False
        return rows, upto

    def _opened(self) -> EpochFeed:
        if self._feed is None:
            self._feed = feed_of(self._address, self._options)
        return self._feed


@dataclass(frozen=True, slots=True)
class EpochNumber(InputPartition):
    """The epoch whose rows one task reads."""

    number: int


class EpochChangesReader(DataSourceReader):
    """A reader of the changes of one epoch. It chooses the epoch once, on the driver, and one task reads it."""

    def __init__(self, address: LedgerAddress, options: ChangeOptions) -> None:
        self._address, self._options = address, options

    def partitions(self) -> Sequence[InputPartition]:
        feed = feed_of(self._address, self._options)
        return [EpochNumber(feed.number_of(self._options.epoch, self._options.event))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, EpochNumber)
        return iter(feed_of(self._address, self._options).rows(partition.number - 1, partition.number))
