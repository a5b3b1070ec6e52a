"""The states of transactions after the events that were taken: `TransactionStates`."""

from __future__ import annotations

from dataclasses import dataclass, field

from calque.core.acid.transactions import Aborted, Allocated, Committed, Compacted, Opened, TransactionEvent
from calque.model.transactions import TransactionId


@dataclass(slots=True)
class TransactionStates:
    """The states of all transactions up to `high`: those in neither `open` nor `aborted` are committed. A metastore
    forgets aborted transactions whose directories are gone, and counts them as committed; here they stay aborted."""

    high: TransactionId = 0
    open: set[TransactionId] = field(default_factory=set)
    aborted: set[TransactionId] = field(default_factory=set)

    def is_committed(self, transaction: TransactionId) -> bool:
        return transaction <= self.high and transaction not in self.open and transaction not in self.aborted

    def take(self, event: TransactionEvent) -> None:
        """Take the next event of the log that is about transactions."""
        match event:
            case Opened(first, last):
                self.open.update(range(first, last + 1))
                self.high = max(self.high, last)
            case Committed(transaction):
                self.open.discard(transaction)
            case Aborted(transaction):
                self.open.discard(transaction)
                self.aborted.add(transaction)
            case Allocated() | Compacted():
                pass

    def copy(self) -> TransactionStates:
        return TransactionStates(self.high, set(self.open), set(self.aborted))
