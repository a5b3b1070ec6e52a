"""Requests, answers and calls of the metastore's Thrift service that are about transactions, as data.

Source of the numbers: Hive's `hive_metastore.thrift` of 3.1 and 4.x. Fields that 3.1 lacks are named; it skips them.
2.3 has no write ids: the calls that concern them are unknown there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from calque.adapters.metastore.messages import TEXTS, Call
from calque.model.hive import Kind, ListOf
from calque.model.transactions import CommitMark

NUMBERS = ListOf("i64")
DEFAULT, REPL_CREATED, COMPACTION = 0, 1, 3
"""Values of Thrift's `TxnType`, which 3.1 lacks."""


@dataclass(frozen=True, slots=True)
class OpenTransactionsResult:
    """Thrift's `GetOpenTxnsResponse`. `open` has the aborted ones, too: the bits of `aborted`, from the lowest one of
    the first byte on, tell them apart."""

    high: int = 0
    open: tuple[int, ...] = ()
    aborted: bytes | None = None


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """Thrift's `OpenTxnRequest`. `policy` and `numbers` are set together; `kind` is new in 4."""

    count: int
    user: str
    host: str
    policy: str | None = None
    numbers: tuple[int, ...] | None = None
    kind: int = DEFAULT


@dataclass(frozen=True, slots=True)
class OpenedTransactions:
    transactions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TransactionWriteId:
    """Thrift's `TxnToWriteId`."""

    transaction: int
    write_id: int


@dataclass(frozen=True, slots=True)
class AllocateRequest:
    """Thrift's `AllocateTableWriteIdsRequest`: either `transactions`, or `policy` and `numbered`."""

    database: str
    table: str
    transactions: tuple[int, ...] | None = None
    policy: str | None = None
    numbered: tuple[TransactionWriteId, ...] | None = None


@dataclass(frozen=True, slots=True)
class AllocatedWriteIds:
    allocated: tuple[TransactionWriteId, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """Thrift's `CommitTxnRequest`. With `policy`, `transaction` is the number that the transaction was opened under.
    `mark` and `kind` are new in 4."""

    transaction: int
    policy: str | None = None
    mark: CommitMark | None = None
    kind: int | None = None


@dataclass(frozen=True, slots=True)
class AbortRequest:
    """Thrift's `AbortTxnRequest`. 4.2 finds no transaction by `policy` unless `kind`, which is new in 4, says that it
    was replicated."""

    transaction: int
    policy: str | None = None
    kind: int | None = None


@dataclass(frozen=True, slots=True)
class ValidWriteIdsRequest:
    """Thrift's `GetValidWriteIdsRequest`. `tables` are full names; `snapshot` has the transactions of the reader, and
    3.1 requires it."""

    tables: tuple[str, ...]
    snapshot: str


@dataclass(frozen=True, slots=True)
class TableValidWriteIds:
    """`invalid` has the aborted write ids, too: the bits of `aborted` tell them apart."""

    table: str
    high: int
    invalid: tuple[int, ...] = ()
    aborted: bytes = b""


@dataclass(frozen=True, slots=True)
class ValidWriteIdsResult:
    tables: tuple[TableValidWriteIds, ...] = ()


FIELDS: Mapping[type, tuple[tuple[int, str, Kind], ...]] = MappingProxyType(
    {
        OpenTransactionsResult: ((1, "high", "i64"), (2, "open", NUMBERS), (4, "aborted", "binary")),
        OpenRequest: (
            (1, "count", "i32"),
            (2, "user", "string"),
            (3, "host", "string"),
            (5, "policy", "string"),
            (6, "numbers", NUMBERS),
            (7, "kind", "i32"),
        ),
        OpenedTransactions: ((1, "transactions", NUMBERS),),
        TransactionWriteId: ((1, "transaction", "i64"), (2, "write_id", "i64")),
        AllocateRequest: (
            (1, "database", "string"),
            (2, "table", "string"),
            (3, "transactions", NUMBERS),
            (4, "policy", "string"),
            (5, "numbered", ListOf(TransactionWriteId)),
        ),
        AllocatedWriteIds: ((1, "allocated", ListOf(TransactionWriteId)),),
        CommitMark: ((1, "table_id", "i64"), (2, "key", "string"), (3, "value", "string")),
        CommitRequest: (
            (1, "transaction", "i64"),
            (2, "policy", "string"),
            (5, "mark", CommitMark),
            (7, "kind", "i32"),
        ),
        AbortRequest: ((1, "transaction", "i64"), (2, "policy", "string"), (3, "kind", "i32")),
        ValidWriteIdsRequest: ((1, "tables", TEXTS), (2, "snapshot", "string")),
        TableValidWriteIds: (
            (1, "table", "string"),
            (2, "high", "i64"),
            (3, "invalid", NUMBERS),
            (5, "aborted", "binary"),
        ),
        ValidWriteIdsResult: ((1, "tables", ListOf(TableValidWriteIds)),),
    }
)

GET_OPEN_TRANSACTIONS = Call("get_open_txns", (), OpenTransactionsResult, reads=True)
OPEN_TRANSACTIONS = Call("open_txns", (OpenRequest,), OpenedTransactions)
COMMIT_TRANSACTION = Call("commit_txn", (CommitRequest,), None, ("NoSuchTxn", "TxnAborted"))
ABORT_TRANSACTION = Call("abort_txn", (AbortRequest,), None, ("NoSuchTxn",))
GET_VALID_WRITE_IDS = Call(
    "get_valid_write_ids", (ValidWriteIdsRequest,), ValidWriteIdsResult, ("NoSuchTxn", "Meta"), reads=True
)
ALLOCATE_WRITE_IDS = Call(
    "allocate_table_write_ids", (AllocateRequest,), AllocatedWriteIds, ("NoSuchTxn", "TxnAborted", "Meta")
)
