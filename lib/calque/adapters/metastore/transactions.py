"""The transactions of a metastore over Thrift, read and replicated."""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from calque.adapters.metastore.calls import HiveCalls
from calque.adapters.metastore.client import Client, ConnectionLost
from calque.adapters.metastore.messages import Call, CallUnknown
from calque.adapters.metastore.messages_of_transactions import (
    ABORT_TRANSACTION,
    ALLOCATE_WRITE_IDS,
    COMMIT_TRANSACTION,
    GET_OPEN_TRANSACTIONS,
    GET_VALID_WRITE_IDS,
    OPEN_TRANSACTIONS,
    REPL_CREATED,
    AbortRequest,
    AllocatedWriteIds,
    AllocateRequest,
    CommitRequest,
    OpenedTransactions,
    OpenRequest,
    OpenTransactionsResult,
    TransactionWriteId,
    ValidWriteIdsRequest,
    ValidWriteIdsResult,
)
from calque.core.acid.write_ids import NONE, ValidWriteIds
from calque.core.plan.limits import batches
from calque.errors import Refused
from calque.model.names import TableName
from calque.model.transactions import CommitMark, OpenTransactions, TransactionId
from calque.ports import Conflict

NAMES_AT_ONCE = 200
"""The tables in one `get_valid_write_ids`, for each of which a server runs up to three statements."""
NO_OPEN_TRANSACTION = (1 << 63) - 1
"""The lowest open transaction in a snapshot in which none is open."""


class HiveTransactionReader:
    """The port `ports.transactions.TransactionReader` over Thrift."""

    def __init__(self, client: Client) -> None:
        self.client, self._calls = client, HiveCalls(client)

    def open_transactions(self) -> OpenTransactions:
        result: OpenTransactionsResult = called(self._calls, GET_OPEN_TRANSACTIONS)
        if result.aborted is None:
            raise older_than_3(self.client, "get_open_txns tells of no aborted transactions")
        return OpenTransactions(result.high, *open_and_aborted(result.open, result.aborted))

    def valid_write_ids(self, names: Collection[TableName]) -> Mapping[TableName, ValidWriteIds]:
        if not names:
            return {}
        snapshot = snapshot_text(self.open_transactions())
        full_names = {str(name): name for name in names}
        valid = dict.fromkeys(names, NONE)
        for batch in batches([*full_names], NAMES_AT_ONCE):
            request = ValidWriteIdsRequest(tuple(batch), snapshot)
            result: ValidWriteIdsResult = called(self._calls, GET_VALID_WRITE_IDS, request)
            for one in result.tables:
                write_ids = ValidWriteIds(one.high, *open_and_aborted(one.invalid, one.aborted))
                valid[full_names[one.table.lower()]] = write_ids
        return valid


class HiveReplicatedTransactions:
    """The port `ports.transactions.ReplicatedTransactions` over Thrift. Numbers belong to `policy`, which is a text of
    the form `NAME.*`: 4.x takes what stands before the dot for the database that it marks as incompatible when a
    transaction timed out."""

    def __init__(self, client: Client, policy: str) -> None:
        self.client, self.policy, self._calls = client, policy, HiveCalls(client)

    def open(self, number: int) -> TransactionId:
        user, host = self.client.access.user_name(), socket.gethostname()
        request = OpenRequest(1, user, host, self.policy, (number,), REPL_CREATED)
        opened: OpenedTransactions = called(self._calls, OPEN_TRANSACTIONS, request)
        [transaction] = opened.transactions
        return transaction

    def allocate(self, number: int, table: TableName, write_id: int) -> None:
        request = AllocateRequest(*table, policy=self.policy, numbered=(TransactionWriteId(number, write_id),))
        result: AllocatedWriteIds = self._allocated(request, f"write id {write_id} of {table}")
        given = [one.write_id for one in result.allocated]
        if given != [write_id]:
            has = f"has write id {given[0]} of {table}" if given else "is not open"
            raise Conflict(f"the transaction under {self.policy} {number} {has}")

    def commit(self, number: int, mark: CommitMark | None = None) -> None:
        called(self._calls, COMMIT_TRANSACTION, CommitRequest(number, self.policy, mark, REPL_CREATED))

    def roll_back(self, number: int) -> None:
        called(self._calls, ABORT_TRANSACTION, AbortRequest(number, self.policy, REPL_CREATED))

    def _allocated(self, request: AllocateRequest, what: str) -> AllocatedWriteIds:
        """Make the call, which may be repeated. 3.1 hangs up on a write id that is not the next one, while it goes on
        answering other calls: this raises `Refused`."""
        result: AllocatedWriteIds
        try:
            result = called(self._calls, ALLOCATE_WRITE_IDS, request)
        except ConnectionLost:
            if not self._calls.answers():
                raise
            try:
                result = called(self._calls, ALLOCATE_WRITE_IDS, request)
            except ConnectionLost as lost:
                raise Refused(
                    f"The metastore at {self.client.uris} does not give {what}",
                    f"A metastore of 3.1 gives the next write id alone ({lost.why})",
                    "Give the write ids between, too",
                ) from lost
        return result


def called(calls: HiveCalls, call: Call, *arguments: Any) -> Any:
    """Make the call and return its result. Raises `Refused` where the server does not have it."""
    try:
        return calls.call(call, *arguments)
    except CallUnknown as unknown:
        raise older_than_3(calls.client, str(unknown)) from unknown


def older_than_3(client: Client, why: str) -> Refused:
    problem = f"The metastore at {client.uris} has no write ids"
    return Refused(problem, why, "Leave ACID tables out, or use a metastore of 3.1 or later")


def open_and_aborted(ids: Sequence[int], aborted: bytes) -> tuple[frozenset[int], frozenset[int]]:
    """Return the ids that are open, and those of which the bits of `aborted` say that they are aborted: one bit for
    each id, from the lowest bit of the first byte on."""
    bits = int.from_bytes(aborted, "little")
    aborted_ids = frozenset(one for place, one in enumerate(ids) if bits >> place & 1)
    return frozenset(ids) - aborted_ids, aborted_ids


def snapshot_text(transactions: OpenTransactions) -> str:
    """Return the text of a reader's snapshot (Hive's `ValidReadTxnList`): the high water mark, the lowest open
    transaction, those that are open, and those that are aborted."""
    lowest = min(transactions.open, default=NO_OPEN_TRANSACTION)
    return f"{transactions.high}:{lowest}:{listed(transactions.open)}:{listed(transactions.aborted)}"


def listed(ids: Iterable[int]) -> str:
    return ",".join(map(str, sorted(ids)))
