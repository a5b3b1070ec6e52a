"""Transactions as Hive's own clients make them: under ids, and with write ids, that the metastore chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from calque.adapters.metastore.calls import HiveCalls
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.messages_of_transactions import (
    ABORT_TRANSACTION,
    ALLOCATE_WRITE_IDS,
    COMMIT_TRANSACTION,
    OPEN_TRANSACTIONS,
    AbortRequest,
    AllocatedWriteIds,
    AllocateRequest,
    CommitRequest,
    OpenedTransactions,
    OpenRequest,
)
from calque.model.names import TableName


class PlainTransactions(Protocol):
    """`MemoryTransactions` has these, too. They are open for as long as a test takes: nobody sends heartbeats."""

    def open(self, count: int = 1) -> Sequence[int]: ...

    def allocate(self, table: TableName, transactions: Sequence[int]) -> Mapping[int, int]:
        """The write id of each of the open transactions: the one that it has, or the next one."""

    def commit(self, transaction: int) -> None:
        """Raises `Conflict` for one that is not open."""

    def abort(self, transaction: int) -> None:
        """Raises `Conflict` for one that is committed."""

    def commit_compaction(self, transaction: int, table: TableName, partition: str, *, is_major: bool) -> None:
        """Commit the transaction of a worker that has compacted the table, or the partition of that name."""


class HiveTransactions:
    """Of a real metastore."""

    def __init__(self, client: Client) -> None:
        self._calls = HiveCalls(client)

    def open(self, count: int = 1) -> Sequence[int]:
        opened: OpenedTransactions = self._calls.call(OPEN_TRANSACTIONS, OpenRequest(count, "writer", "localhost"))
        return opened.transactions

    def allocate(self, table: TableName, transactions: Sequence[int]) -> Mapping[int, int]:
        request = AllocateRequest(*table, tuple(transactions))
        result: AllocatedWriteIds = self._calls.call(ALLOCATE_WRITE_IDS, request)
        return {one.transaction: one.write_id for one in result.allocated}

    def commit(self, transaction: int) -> None:
        self._calls.call(COMMIT_TRANSACTION, CommitRequest(transaction))

    def abort(self, transaction: int) -> None:
        self._calls.call(ABORT_TRANSACTION, AbortRequest(transaction))

    def commit_compaction(
        self,
        transaction: int,
        table: TableName,  # noqa: ARG002
        partition: str,  # noqa: ARG002
        *,
        is_major: bool,  # noqa: ARG002
    ) -> None:
        """Without COMMIT_COMPACTION_EVENT, which a server of 4.x writes of compactions in its own queue alone."""
        self.commit(transaction)
