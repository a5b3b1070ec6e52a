"""Messages about transactions, in the forms of 3.1.3 and 4.2.0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calque.core.events.log_messages import CATALOG, LogMessage
from calque.model.names import TableName
from support.memory.metastore.habits import ServerHabits

NO_DETAILS = dict.fromkeys(("tables", "partitions", "tableObjs", "partitionObjs", "files"))
Written = Sequence[tuple[str, int]]
"""Databases and write ids."""


@dataclass(frozen=True, slots=True)
class TransactionNotice:
    """`details` are what 4.2.0 has besides."""

    event_type: str
    body: Mapping[str, Any]
    table: TableName | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_of(self, habits: ServerHabits) -> tuple[LogMessage, str]:
        """The message, and the catalog of its row. The rows of 3.1.3 name no table, and nothing by words for it."""
        if habits.transaction_details:
            row, catalog = (self.table, CATALOG) if self.table is not None else (TableName("", ""), "")
            return LogMessage(self.event_type, *row, {**self.body, **self.details}), catalog
        database = self.table.database if self.table is not None else "null"
        return LogMessage(self.event_type, database, " ", self.body), ""


def opened(transactions: Sequence[int]) -> TransactionNotice:
    body = {"txnIds": None, "fromTxnId": transactions[0], "toTxnId": transactions[-1]}
    return TransactionNotice("OPEN_TXN", body)


def allocated(table: TableName, given: Mapping[int, int]) -> TransactionNotice:
    """`given` has the write id of each transaction."""
    lists = {"txnIdList": list(given), "writeIdList": list(given.values())}
    return TransactionNotice(
        "ALLOC_WRITE_ID_EVENT", {"dbName": table.database, "tableName": table.table, **lists}, table
    )


def committed(transaction: int, written: Written) -> TransactionNotice:
    details = {"writeIds": [one for _, one in written], "databases": [database for database, _ in written]}
    return TransactionNotice("COMMIT_TXN", {"txnid": transaction}, details=details | NO_DETAILS)


def aborted(transaction: int, written: Written) -> TransactionNotice:
    details = {"dbsUpdated": [database for database, _ in written], "writeIds": [one for _, one in written]}
    return TransactionNotice("ABORT_TXN", {"txnid": transaction}, details=details)


def compacted(transaction: int, compaction: int, table: TableName, partition: str, is_major: bool) -> TransactionNotice:
    body = {
        "txnid": transaction,
        "compactionId": compaction,
        "type": "MAJOR" if is_major else "MINOR",
        "dbname": table.database,
        "tableName": table.table,
        "partName": partition or None,
    }
    return TransactionNotice("COMMIT_COMPACTION_EVENT", body, table)
