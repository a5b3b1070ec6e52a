"""The valid write ids of ACID tables, folded from the transactions of the log: `WriteIdFold`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from calque.core.acid.transactions import (
    Aborted,
    Allocated,
    Committed,
    Compacted,
    Opened,
    TransactionEvent,
    transaction_event,
)
from calque.core.events.decode import table_after, table_before
from calque.model.hive import is_full_acid
from calque.model.journal import Event
from calque.model.names import TableName, table_name
from calque.model.transactions import TransactionId

CONVERTED = 10_000_000
"""The highest write id of a table that became a full ACID table, with rows or without. The metastore seeds it without
an event."""
WriteId = int
NOT_KNOWN: TransactionId = 0
"""The id of a transaction that is not known; no transaction has it."""


@dataclass(frozen=True, slots=True)
class ValidWriteIds:
    """The write ids of one table whose rows a reader sees: those from 1 to `high` that are neither `open` nor
    `aborted`. A write id that no transaction was given counts as committed, as the metastore counts it."""

    high: WriteId = 0
    open: frozenset[WriteId] = frozenset()
    aborted: frozenset[WriteId] = frozenset()

    @property
    def invalid(self) -> frozenset[WriteId]:
        return self.open | self.aborted

    def holds(self, write_id: WriteId) -> bool:
        return write_id <= self.high and write_id not in self.open and write_id not in self.aborted

    def holds_any(self, low: WriteId, high: WriteId) -> bool:
        """Tell whether a write id from `low` to `high` is valid."""
        last = min(high, self.high)
        invalid = sum(low <= write_id <= last for write_id in self.invalid) if self.open or self.aborted else 0
        return last - max(low, 1) + 1 > invalid

    def holds_all(self, upto: WriteId) -> bool:
        """Tell whether no write id up to `upto` is open, so that a directory which has them all compacted hides nothing
        that may come. Aborted ones do not matter: their rows are in no compacted directory."""
        return upto <= self.high and not any(write_id <= upto for write_id in self.open)


NONE = ValidWriteIds()
"""The write ids of a table to which no transaction has written."""


@dataclass(frozen=True, slots=True)
class TableWriteIds:
    """The write ids of one table, with the transactions of those that are open. The transaction is `NOT_KNOWN` where
    the write id was given before anything was known of the log."""

    high: WriteId = 0
    open: Mapping[WriteId, TransactionId] = field(default_factory=lambda: MappingProxyType({}))
    aborted: frozenset[WriteId] = frozenset()

    def valid(self) -> ValidWriteIds:
        return ValidWriteIds(self.high, frozenset(self.open), self.aborted)

    def allocated(self, write_ids: Mapping[WriteId, TransactionId]) -> TableWriteIds:
        open_ids = MappingProxyType({**self.open, **write_ids})
        return replace(self, high=max(self.high, *write_ids), open=open_ids) if write_ids else self

    def ended(self, transaction: TransactionId, *, is_committed: bool) -> TableWriteIds:
        own = {write_id for write_id, owner in self.open.items() if owner == transaction}
        left = MappingProxyType({write_id: owner for write_id, owner in self.open.items() if write_id not in own})
        return replace(self, open=left, aborted=self.aborted if is_committed else self.aborted | own)


class WriteIdFold:
    """The valid write ids of all tables after the events that were taken, in the order of the log.

    A transaction's rows become visible at its commit, in all its tables at once; every other event leaves them as they
    are. Example: event 81 gives transaction 7 the write id 4 of `f`, event 82 the write id 2 of `g`. Up to event 85 a
    reader sees neither, and event 86, the commit of 7, shows both.

    A write id may be given before its table is created, as CREATE TABLE AS does, so that tables are known by their
    names here, whether they exist or not.
    """

    def __init__(self, tables: Mapping[TableName, TableWriteIds] | None = None) -> None:
        """Begin with the write ids of `tables`, without them with none."""
        self._tables: dict[TableName, TableWriteIds] = dict(tables or {})
        self._written: dict[TransactionId, set[TableName]] = {}
        """The tables of which a transaction that is open has write ids."""
        for name, known in self._tables.items():
            for transaction in known.open.values():
                self._written.setdefault(transaction, set()).add(name)

    def tables(self) -> dict[TableName, TableWriteIds]:
        """Return the write ids of all tables that have some."""
        return dict(self._tables)

    def valid(self, table: TableName) -> ValidWriteIds:
        """Return the table's valid write ids now; `NONE` for a table without any."""
        known = self._tables.get(table)
        return known.valid() if known is not None else NONE

    def tables_named(self, *names: TableName | None) -> list[TableName]:
        """Return those of the names that stand for tables with write ids."""
        return [name for name in names if name is not None and name in self._tables]

    def seen_by(self, event: TransactionEvent) -> dict[TableName, ValidWriteIds]:
        """Return the valid write ids before the event of the tables that the ending transaction has written to."""
        if not isinstance(event, Committed | Aborted):
            return {}
        return {name: self.valid(name) for name in self._written.get(event.transaction, ())}

    def may_have_written(self, transaction: TransactionId) -> frozenset[TableName]:
        """Return the tables to which the transaction may have written, because they have open write ids of transactions
        that are not known, and none is known of this one."""
        return frozenset(() if transaction in self._written else self._written.get(NOT_KNOWN, ()))

    def settle(self, table: TableName, valid: ValidWriteIds) -> bool:
        """Take over what the metastore says of the table's write ids whose transactions are not known. Return whether
        any of them has been committed."""
        known = self._tables[table]
        unknown = {write_id for write_id, owner in known.open.items() if owner == NOT_KNOWN}
        ended = {write_id for write_id in unknown if write_id <= valid.high and write_id not in valid.open}
        left = MappingProxyType({write_id: owner for write_id, owner in known.open.items() if write_id not in ended})
        self._tables[table] = replace(known, open=left, aborted=known.aborted | (ended & valid.aborted))
        if ended == unknown:
            self._written[NOT_KNOWN].discard(table)
        return not ended <= valid.aborted

    def written_by(self, transaction: TransactionId) -> frozenset[TableName]:
        """Return the tables of which the transaction, which is open, has write ids."""
        return frozenset(self._written.get(transaction, ()))

    def take(self, event: TransactionEvent) -> frozenset[TableName]:
        """Take the next event of the log that is about transactions. Return the tables of which readers see other rows
        after it: those of a transaction that commits."""
        match event:
            case Allocated():
                self._tables[event.table] = self._tables.get(event.table, TableWriteIds()).allocated(event.write_ids)
                for transaction in event.write_ids.values():
                    self._written.setdefault(transaction, set()).add(event.table)
                return frozenset()
            case Committed() | Aborted():
                is_committed = isinstance(event, Committed)
                tables = self._written.pop(event.transaction, set())
                for table in tables:
                    self._tables[table] = self._tables[table].ended(event.transaction, is_committed=is_committed)
                return frozenset(tables) if is_committed else frozenset()
            case Opened() | Compacted():
                return frozenset()

    def take_event(self, event: Event) -> frozenset[TableName]:
        """Take the next event of the log, also one of another type. Return what `take` does. Raises `Undecodable`."""
        change = transaction_event(event)
        if change is not None:
            return self.take(change)
        if event.event_type == "DROP_TABLE":
            self.dropped(table_name(event.database, event.table))
        elif event.event_type == "ALTER_TABLE":
            before, after = table_before(event), table_after(event)
            names = table_name(before.database, before.name), table_name(after.database, after.name)
            if names[0] != names[1]:
                self.renamed(*names)
            if is_full_acid(after) and not is_full_acid(before):
                self.converted(names[1])
        return frozenset()

    def renamed(self, before: TableName, after: TableName) -> None:
        """Have the table's write ids go with its new name."""
        known = self._tables.pop(before, None)
        if known is not None:
            self._tables[after] = known
        for tables in self._written.values():
            if before in tables:
                tables.remove(before)
                tables.add(after)

    def converted(self, table: TableName) -> None:
        """Note that a table has become a full ACID table: its rows have the write id 0, and the next write id is above
        `CONVERTED`. A table that becomes insert-only goes on from its last write id (measured with 3.1.3 and
        4.2.0)."""
        known = self._tables.get(table, TableWriteIds())
        self._tables[table] = replace(known, high=max(known.high, CONVERTED))

    def dropped(self, table: TableName) -> None:
        """Forget the table. Another one of its name begins without write ids."""
        self._tables.pop(table, None)
        for tables in self._written.values():
            tables.discard(table)
