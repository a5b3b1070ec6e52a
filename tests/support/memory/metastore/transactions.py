"""Transactions of a `MemoryMetastore` and the write ids of its tables, as the database of a metastore has them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from calque.core.acid.write_ids import CONVERTED, NONE, ValidWriteIds, WriteId
from calque.core.events.log_messages import LogMessage
from calque.errors import Refused, Unavailable
from calque.model.names import TableName
from calque.model.transactions import OpenTransactions, TransactionId
from calque.ports import Conflict
from support.memory.metastore import transaction_notices
from support.memory.metastore.habits import ServerHabits

Write = Callable[[LogMessage, str], None]
"""Writes a message to the log, in a catalog."""
Number = tuple[str, int]
"""Under which a replicated transaction is known: a policy, and a number."""


@dataclass(slots=True)
class TableRows:
    """`next` is the next write id (NEXT_WRITE_ID). `owners` has the transaction of each write id (TXN_TO_WRITE_ID)."""

    next: WriteId = 1
    owners: dict[WriteId, TransactionId] = field(default_factory=dict)

    def write_id_of(self, transaction: TransactionId) -> WriteId | None:
        return next((write_id for write_id, owner in self.owners.items() if owner == transaction), None)


class MemoryTransactions:
    """Transactions as Hive's own clients make them, and replicated ones (`numbered`). The lock is the metastore's;
    `write` appends to its log. Tables are known by their names alone: a transaction may have a write id of one that is
    not there yet."""

    def __init__(self, habits: ServerHabits, lock: threading.RLock, write: Write) -> None:
        self._habits, self._lock, self._write = habits, lock, write
        self._last: TransactionId = 0
        self._open: set[TransactionId] = set()
        self._aborted: set[TransactionId] = set()
        self._numbered: dict[Number, TransactionId] = {}
        self._tables: dict[TableName, TableRows] = {}
        self._compactions = 0

    # As Hive's clients

    def open(self, count: int = 1) -> Sequence[TransactionId]:
        with self._lock:
            opened = tuple(range(self._last + 1, self._last + count + 1))
            self._last = opened[-1]
            self._open.update(opened)
            self._log(transaction_notices.opened(opened))
            return opened

    def allocate(self, table: TableName, transactions: Sequence[TransactionId]) -> Mapping[TransactionId, WriteId]:
        """The write id of each of the transactions: the one that it has, or the next one."""
        with self._lock:
            if not self._open.issuperset(transactions):
                raise Unavailable(f"Write ID allocation failed on {table}", "not all transactions are open")
            rows = self._tables.setdefault(table, TableRows())
            found = {one: write_id for one in transactions if (write_id := rows.write_id_of(one)) is not None}
            return found or self._given(table, rows, rows.next, sorted(transactions))

    def commit(self, transaction: TransactionId) -> None:
        with self._lock:
            if transaction in self._open:
                self._end(transaction, self._log_committed, transaction)
            elif not self._is_committed(transaction) or not self._habits.any_write_id:
                raise Conflict(f"no transaction {transaction} is open")

    def abort(self, transaction: TransactionId) -> None:
        with self._lock:
            if transaction in self._open:
                self._aborted.add(transaction)
                self._end(transaction, self._log_aborted, transaction)
            elif transaction not in self._aborted:
                raise Conflict(f"no transaction {transaction} is open")

    def commit_compaction(
        self, transaction: TransactionId, table: TableName, partition: str, *, is_major: bool
    ) -> None:
        """Commit the transaction of a worker that has compacted the table, or a partition of it."""
        with self._lock:
            self.commit(transaction)
            if self._habits.transaction_details:
                self._compactions += 1
                self._log(transaction_notices.compacted(transaction, self._compactions, table, partition, is_major))

    # Replicated

    def open_numbered(self, number: Number) -> TransactionId:
        with self._lock:
            if number not in self._numbered:
                [self._numbered[number]] = self.open()
            return self._numbered[number]

    def allocate_numbered(self, number: Number, table: TableName, write_id: WriteId) -> None:
        with self._lock:
            transaction = self._numbered.get(number)
            rows = self._tables.get(table, TableRows())
            given = rows.write_id_of(transaction) if transaction is not None else None
            if given == write_id:
                return
            if given is not None or (transaction is None and self._habits.any_write_id):
                raise Conflict(f"the transaction under {number} has write id {given} of {table}")
            if transaction is None or (write_id != rows.next and not self._habits.any_write_id):
                raise Refused(f"Write id {write_id} of {table} is not given", f"the next one is {rows.next}")
            if write_id != rows.next:
                rows.owners.clear()
            self._given(table, self._tables.setdefault(table, rows), write_id, [transaction])

    def commit_numbered(self, number: Number) -> None:
        self._end_numbered(number, self._log_committed)

    def abort_numbered(self, number: Number) -> None:
        with self._lock:
            transaction = self._numbered.get(number)
            if transaction is not None:
                self._aborted.add(transaction)
            self._end_numbered(number, self._log_aborted)

    def is_open(self, number: Number) -> bool:
        with self._lock:
            return number in self._numbered

    # Readers

    def snapshot(self) -> OpenTransactions:
        with self._lock:
            return OpenTransactions(self._last, frozenset(self._open), frozenset(self._aborted))

    def valid(self, table: TableName, snapshot: OpenTransactions) -> ValidWriteIds:
        """The valid write ids of the table for a reader with that snapshot."""
        with self._lock:
            rows = self._tables.get(table)
            if rows is None:
                return NONE
            seen = [write_id for write_id, owner in rows.owners.items() if owner <= snapshot.high]
            high = max(seen, default=rows.next - 1)
            owners = {write_id: owner for write_id, owner in rows.owners.items() if write_id <= high}
            invalid = frozenset(write_id for write_id, owner in owners.items() if not snapshot.is_committed(owner))
            if self._habits.lowest_invalid and invalid and len(invalid) == len(owners):
                high = min(invalid)
                invalid = frozenset({high})
            aborted = frozenset(write_id for write_id in invalid if owners[write_id] in snapshot.aborted)
            return ValidWriteIds(high, invalid - aborted, aborted)

    # What becomes of tables

    def renamed(self, before: TableName, after: TableName) -> None:
        with self._lock:
            if before in self._tables and after in self._tables:
                raise Conflict(f"write ids of {after} already exist")
            if before in self._tables:
                self._tables[after] = self._tables.pop(before)

    def converted(self, table: TableName) -> None:
        with self._lock:
            self._tables.setdefault(table, TableRows(CONVERTED + 1))

    def dropped(self, table: TableName, *, delete_data: bool) -> None:
        with self._lock:
            if delete_data or not self._habits.kept_write_ids:
                self._tables.pop(table, None)

    def dropped_database(self, name: str) -> None:
        with self._lock:
            self._tables = {table: rows for table, rows in self._tables.items() if table.database != name}

    def _given(
        self, table: TableName, rows: TableRows, first: WriteId, transactions: Sequence[TransactionId]
    ) -> Mapping[TransactionId, WriteId]:
        given = {one: first + place for place, one in enumerate(transactions)}
        rows.owners.update((write_id, one) for one, write_id in given.items())
        rows.next = first + len(given)
        self._log(transaction_notices.allocated(table, given))
        return given

    def _end_numbered(self, number: Number, log: Callable[[TransactionId, TransactionId], None]) -> None:
        """4.x looks for what the transaction wrote under its number, as if it were the transaction's id."""
        with self._lock:
            transaction = self._numbered.pop(number, None)
            if transaction is not None:
                self._end(transaction, log, number[1])

    def _end(
        self, transaction: TransactionId, log: Callable[[TransactionId, TransactionId], None], named: TransactionId
    ) -> None:
        self._open.discard(transaction)
        self._numbered = {number: one for number, one in self._numbered.items() if one != transaction}
        log(transaction, named)

    def _log_committed(self, transaction: TransactionId, named: TransactionId) -> None:
        self._log(transaction_notices.committed(transaction, self._written_by(named)))

    def _log_aborted(self, transaction: TransactionId, named: TransactionId) -> None:
        told = named if self._habits.transaction_details else transaction
        self._log(transaction_notices.aborted(told, self._written_by(named)))

    def _written_by(self, transaction: TransactionId) -> Sequence[tuple[str, WriteId]]:
        """The databases and write ids of a transaction, each pair once."""
        return sorted(
            {
                (table.database, write_id)
                for table, rows in self._tables.items()
                for write_id, owner in rows.owners.items()
                if owner == transaction
            }
        )

    def _is_committed(self, transaction: TransactionId) -> bool:
        return self.snapshot().is_committed(transaction)

    def _log(self, notice: transaction_notices.TransactionNotice) -> None:
        self._write(*notice.as_of(self._habits))
