"""The commits of transactions by table: `AcidCommit`, which readers of the journal get as an entry beside those of the
log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calque.core.acid.transaction_states import TransactionStates
from calque.core.acid.write_ids import TableWriteIds
from calque.model.journal import Entry, EventKind, Keys, TableShape
from calque.model.names import EventId, TableName
from calque.model.transactions import TransactionId

COMMITTED = "COMMIT_TXN"


@dataclass(frozen=True, slots=True)
class AcidCommit:
    """The change of one table by one commit. `changed` has the partitions of which readers see other rows after the
    commit, each with its location (`""`: a table without partitions); None where these are not known, so that the table
    has to be read."""

    event_id: EventId
    event_time: int
    table: TableName
    shape: TableShape = TableShape.NOT_SAID
    changed: Mapping[str, str] | None = None

    def entry(self) -> Entry:
        """Return the commit as an entry of the table."""
        changed = self.changed
        if changed is None:
            keys = Keys(EventKind.UNKNOWN, self.table, shape=self.shape, transactional=True)
        else:
            names = tuple(sorted(changed))
            keys = Keys(
                EventKind.COMMIT,
                self.table,
                shape=self.shape,
                partitions=names if names != ("",) else (),
                locations=tuple(changed[name] for name in names),
                transactional=True,
            )
        return Entry(self.event_id, self.event_time, COMMITTED, keys)


@dataclass(frozen=True, slots=True)
class TransactionMemory:
    """The transactions and the write ids of all tables after event `event_id`. States of tables are known for certain
    after event `certain_after` alone, and the write ids of transactions with ids above `known_after`. `gap`
    is the number of the newest gap of the log by then."""

    event_id: EventId
    certain_after: EventId
    known_after: TransactionId = 0
    transactions: TransactionStates = field(default_factory=TransactionStates)
    tables: Mapping[TableName, TableWriteIds] = field(default_factory=dict)
    gap: int = 0
