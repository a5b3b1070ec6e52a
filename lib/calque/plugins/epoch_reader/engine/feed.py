"""The feed of the changes that a target published, epoch by epoch: where a reader begins, how far it goes at once, and
its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from calque.errors import Refused, Unavailable
from calque.model.names import EventId, TableName
from calque.plugins.epoch_reader.core.changes import changes_of
from calque.plugins.epoch_reader.ports import EpochLog

BATCH = 10_000
"""The most rows of an Arrow batch."""


class Starting(Enum):
    """The words for the place where a reader begins without naming an epoch."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class EpochFeed:
    """The feed of one ledger's changes. `name` is the ledger's in errors, `takes` says of which tables rows are wanted.
    A position is the number of the last epoch that was read; 0 before the first.

    Every method raises `Refused` where there is no ledger, and `Unavailable` where it does not answer now.
    """

    log: EpochLog
    name: str
    takes: Callable[[TableName], bool]

    def position_before(self, starting: Starting | int) -> int:
        """Return the position from which the epoch `starting` is the next one. Raises `Refused` for an epoch that is
        forgotten, and for one behind the next to come."""
        self._require_ledger()
        numbers = self.log.numbers()
        match starting:
            case Starting.EARLIEST:
                return numbers.start - 1
            case Starting.LATEST:
                return max(numbers.start, numbers.stop - 1) - 1
            case number:
                if number > numbers.stop:
                    raise Refused(
                        f"Epoch {number} of {self.name} is in the future",
                        f"Its newest epoch is {numbers.stop - 1}" if numbers else "It has no epoch yet",
                        f"Begin at {numbers.stop}, the next one, or before it",
                    )
                self._require_kept(number, number, numbers)
                return number - 1

    def newest(self) -> int:
        """Return the number of the newest epoch; 0 before the first."""
        self._require_ledger()
        return self.log.numbers().stop - 1

    def position_after(self, position: int, most: int) -> int:
        """Return the position `most` epochs later, or that of the newest epoch where it comes first. Epochs between may
        be forgotten, which `rows` tells. Raises `Refused` where the ledger ends before `position`."""
        newest = self.log.numbers().stop - 1
        if newest < position:
            self._require_ledger()
            raise Refused(
                f"The ledger {self.name} ends at epoch {newest}, but epoch {position} was read of it already",
                "Another ledger lies there now, or an older one was put back",
                "Read its tables whole, and begin with another checkpoint",
            )
        return min(position + most, newest)

    def rows(self, after: int, upto: int) -> list[pa.RecordBatch]:
        """Return the rows of the epochs after position `after` up to `upto`, as `core.changes.SCHEMA`: in the order of
        epochs, and within each in the order in which things were done. Each call returns the same rows. Raises
        `Refused` where one of the epochs is forgotten."""
        if upto <= after:
            return []
        epochs, rows = self.log.changes(range(after + 1, upto + 1))
        # This is checked after the read, because epochs may be forgotten while they are read.
        self._require_kept(after + 1, upto, self.log.numbers())
        batches: list[pa.RecordBatch] = changes_of(epochs, rows, self.takes).combine_chunks().to_batches(BATCH)
        return batches

    def number_of(self, number: int | None, event_id: EventId | None) -> int:
        """Return the number of an epoch: `number` itself, else the newest one at or below `event_id`, else the newest
        one. Raises `Refused` where it is forgotten, and `Unavailable` where there is no such epoch yet."""
        self._require_ledger()
        numbers = self.log.numbers()
        newest = numbers.stop - 1
        if not numbers:
            raise Unavailable(f"The ledger {self.name} has no epoch yet", "The bootstrap is not through", "Wait for it")
        if number is not None:
            if number > newest:
                what, todo = f"There is no epoch {number} of {self.name} yet", "Wait for it, or read an earlier one"
                raise Unavailable(what, f"Its newest epoch is {newest}", todo)
            self._require_kept(number, number, numbers)
            return number
        if event_id is None:
            return newest
        epochs = self.log.epochs()
        if event_id > epochs[-1].event_id:
            raise Unavailable(
                f"The target of {self.name} has not reached event {event_id}",
                f"Its newest epoch is of event {epochs[-1].event_id}",
                "Say calque wait --event-id, or read an earlier event",
            )
        early_numbers = [epoch.epoch for epoch in epochs if epoch.event_id <= event_id]
        if not early_numbers:
            raise Refused(
                f"The ledger {self.name} has no epoch at or below event {event_id} any more",
                "Epochs are forgotten after the target's `grace`",
                f"Read event {epochs[0].event_id} or a later one, or give the target a longer grace",
            )
        return early_numbers[-1]

    def _require_ledger(self) -> None:
        if not self.log.is_there():
            raise Refused(
                f"There is no ledger at {self.name}",
                "The folder has none of the tables of one",
                "Name the folder of a target's ledger, as [state] path or tables has it: ledgers/TARGET below it",
            )

    def _require_kept(self, first: int, last: int, numbers: range) -> None:
        """Check that the ledger has all epochs from `first` to `last`; `numbers` are those that it has. Raises
        `Refused` where one is forgotten."""
        lost = min(last, numbers.start - 1)
        if first <= lost:
            which = f"Epoch {first}" if first == lost else f"Epochs {first} to {lost}"
            raise Refused(
                f"{which} of {self.name} can't be read any more",
                f"Epochs are forgotten after the target's `grace`, and the oldest one that is left is {numbers.start}",
                f"Read the tables whole, then begin at epoch {numbers.start} or later with another checkpoint; a longer"
                " `grace` gives readers more time",
            )
