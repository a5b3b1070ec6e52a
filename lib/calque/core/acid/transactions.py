"""The events of the log that are about transactions, decoded.

Messages of 3.1.3 and 4.2.0 agree in what is read here. What 4.2.0 adds to COMMIT_TXN (`writeIds`, `databases`) is not
read: it names no tables, has one number where two tables of a database have the same write id, and is empty or another
transaction's where a replication has written it (measured). So only ALLOC_WRITE_ID_EVENT says what a transaction
writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calque.core.events.decode import Fields, Undecodable, fields, string_at
from calque.model.journal import Event
from calque.model.names import TableName, table_name


@dataclass(frozen=True, slots=True)
class Opened:
    """The transactions from `first` to `last` were opened."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Allocated:
    """Write ids of one table were given to transactions: `write_ids` has the transaction of each."""

    table: TableName
    write_ids: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Committed:
    """A transaction was committed: readers see what it wrote, in all its tables at once."""

    transaction: int


@dataclass(frozen=True, slots=True)
class Aborted:
    """A transaction was given up: no reader ever sees the rows that it wrote. Changes of definitions that it made
    stay."""

    transaction: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compaction has written directories that have the rows of others: readers see the same rows after it, with the
    same row ids. `partition` is the partition's name, empty for a table without partitions."""

    transaction: int
    table: TableName
    partition: str
    is_major: bool


TransactionEvent = Opened | Allocated | Committed | Aborted | Compacted


def transaction_event(event: Event) -> TransactionEvent | None:
    """Return what an event says of transactions; None for an event of another type. Raises `Undecodable`."""
    match event.event_type:
        case "OPEN_TXN":
            message = fields(event)
            return Opened(number_at(message, "fromTxnId"), number_at(message, "toTxnId"))
        case "ALLOC_WRITE_ID_EVENT":
            return allocated(fields(event))
        case "COMMIT_TXN":
            return Committed(number_at(fields(event), "txnid"))
        case "ABORT_TXN":
            return Aborted(number_at(fields(event), "txnid"))
        case "COMMIT_COMPACTION_EVENT":
            message = fields(event)
            table = table_name(string_at(message, "dbname"), string_at(message, "tableName"))
            partition = message.get("partName")
            is_major = string_at(message, "type") != "MINOR"
            return Compacted(
                number_at(message, "txnid"), table, partition if isinstance(partition, str) else "", is_major
            )
    return None


def allocated(message: Fields) -> Allocated:
    transactions, write_ids = numbers_at(message, "txnIdList"), numbers_at(message, "writeIdList")
    if len(transactions) != len(write_ids):
        raise Undecodable("txnIdList and writeIdList differ in length")
    table = table_name(string_at(message, "dbName"), string_at(message, "tableName"))
    return Allocated(table, dict(zip(write_ids, transactions, strict=True)))


def number_at(message: Fields, name: str) -> int:
    return number(message.get(name), name)


def numbers_at(message: Fields, name: str) -> list[int]:
    values = message.get(name)
    if not isinstance(values, list):
        raise Undecodable(f"{name} is no list")
    return [number(value, name) for value in values]


def number(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Undecodable(f"{name} is no number")
    return value
