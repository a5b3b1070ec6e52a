"""The transactions of a metastore, as its ACID tables have them."""

from __future__ import annotations

from dataclasses import dataclass

TransactionId = int


@dataclass(frozen=True, slots=True)
class OpenTransactions:
    """The transactions of a metastore at one moment: those from 1 to `high` are committed, except those that are
    `open` or `aborted`. An aborted transaction that wrote nothing is forgotten after a while, and then counts as
    committed."""

    high: TransactionId = 0
    open: frozenset[TransactionId] = frozenset()
    aborted: frozenset[TransactionId] = frozenset()

    def is_committed(self, transaction: TransactionId) -> bool:
        return transaction <= self.high and transaction not in self.open and transaction not in self.aborted


@dataclass(frozen=True, slots=True)
class CommitMark:
    """A parameter of one table that a commit sets. The table has a parameter `key` already, and `key` begins with
    `_meta`. `table_id` is `Table.id`."""

    table_id: int
    key: str
    value: str
