"""The transactions of metastores with ACID tables: those of a source are read, and those of a target are made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from calque.core.acid.write_ids import ValidWriteIds
from calque.model.names import TableName
from calque.model.transactions import CommitMark, OpenTransactions, TransactionId


class TransactionReader(Protocol):
    """The reads of a metastore's transactions. Every method raises `Refused` where the metastore is older than 3.0,
    which has no write ids."""

    def open_transactions(self) -> OpenTransactions: ...

    def valid_write_ids(self, names: Collection[TableName]) -> Mapping[TableName, ValidWriteIds]:
        """Return the valid write ids of each of the tables, all at one moment: as a reader has them whose query begins
        at the call. They are read in batches. A table to which no transaction wrote, or that does not exist, has none
        (`write_ids.NONE`).

        A metastore of 4.x may leave out write ids that are invalid. Where it knows of no committed transaction that
        wrote to the table, `high` is the lowest invalid write id, and those above it are not told. Which write ids are
        valid is right all the same: with 1 and 2 open, its answer is `high` 1 with 1 open.

        A metastore of 4.x keeps the write ids of a table that is dropped without its data. The next table of that name
        has them, too, and no table that has write ids can be renamed to that name (`Conflict`).
        """


class ReplicatedTransactions(Protocol):
    """Transactions of a target under numbers that the caller chooses, so that a call may be made again after a lost
    answer. The metastore keeps numbers apart by the policy of this port's maker, and forgets a number when its
    transaction ends. An open transaction needs no heartbeat for 11 days (`hive.repl.txn.timeout`).

    Readers see what a transaction wrote, in all its tables at once, from its commit on. Every method raises `Refused`
    where the metastore is older than 3.0.
    """

    def open(self, number: int) -> TransactionId:
        """Open a transaction under the number, unless one is open under it. Return its id at the target. After an end
        of the transaction the same number opens another one."""

    def allocate(self, number: int, table: TableName, write_id: int) -> None:
        """Give the open transaction this write id of the table. A transaction has one write id of a table: the same
        one again changes nothing, and another one raises `Conflict`, as it does where no transaction is open under the
        number.

        A metastore of 4.x takes any write id. With another one than the next, it forgets what it knows of the table's
        write ids: all below this one count as committed, also aborted ones, and where this one is lower than the last,
        readers go back to it at once. A metastore of 3.1 takes the next one alone. It raises `Refused` for any other,
        and where no transaction is open, because it does not tell why it gives none.
        """

    def commit(self, number: int, mark: CommitMark | None = None) -> None:
        """Commit the transaction, and set the mark in the same step. Nothing happens where none is open under the
        number: then `TransactionReader.valid_write_ids` tells whether it was committed. A mark that can't be set
        raises `Unavailable`, and the transaction stays open. A metastore of 3.1 sets no marks."""

    def roll_back(self, number: int) -> None:
        """Abort the transaction. Nothing happens where none is open under the number.

        The event that a metastore of 4.x writes of it names `number` in place of the transaction's id, so that a
        follower of its log takes the transaction for open, or another one for aborted.
        """
