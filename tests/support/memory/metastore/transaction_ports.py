"""The ports of transactions on a `MemoryMetastore`. Their calls may be watched as those of its catalog."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from calque.core.acid.write_ids import ValidWriteIds
from calque.model.names import TableName
from calque.model.transactions import CommitMark, OpenTransactions, TransactionId
from support.memory.metastore.catalog import Watch, unwatched, watching
from support.memory.metastore.store import MemoryMetastore


class MemoryTransactionReader:
    """`ports.transactions.TransactionReader`."""

    def __init__(self, metastore: MemoryMetastore, before: Watch = unwatched, after: Watch = unwatched) -> None:
        self.metastore, self._watched = metastore, watching(before, after)

    def open_transactions(self) -> OpenTransactions:
        with self._watched("open_transactions"):
            return self.metastore.transactions.snapshot()

    def valid_write_ids(self, names: Collection[TableName]) -> Mapping[TableName, ValidWriteIds]:
        with self._watched("valid_write_ids"), self.metastore.locked():
            transactions = self.metastore.transactions
            snapshot = transactions.snapshot()
            return {name: transactions.valid(name, snapshot) for name in names}


class MemoryReplicatedTransactions:
    """`ports.transactions.ReplicatedTransactions`."""

    def __init__(
        self, metastore: MemoryMetastore, policy: str, before: Watch = unwatched, after: Watch = unwatched
    ) -> None:
        self.metastore, self.policy, self._watched = metastore, policy, watching(before, after)

    def open(self, number: int) -> TransactionId:
        with self._watched("open"):
            return self.metastore.transactions.open_numbered((self.policy, number))

    def allocate(self, number: int, table: TableName, write_id: int) -> None:
        with self._watched("allocate"):
            self.metastore.transactions.allocate_numbered((self.policy, number), table, write_id)

    def commit(self, number: int, mark: CommitMark | None = None) -> None:
        with self._watched("commit"), self.metastore.locked():
            transactions = self.metastore.transactions
            if mark is not None and transactions.is_open((self.policy, number)):
                self.metastore.set_mark(mark)
            transactions.commit_numbered((self.policy, number))

    def roll_back(self, number: int) -> None:
        with self._watched("roll_back"):
            self.metastore.transactions.abort_numbered((self.policy, number))
