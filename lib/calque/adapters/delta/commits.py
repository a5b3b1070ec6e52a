"""The commits of transactions that changed ACID tables, as a Delta table, and beside it the memory that they are told
from, as one Parquet file (port `Commits`).

The table has a row for each commit and table. The application transaction `upto` carries the event id up to which all
commits are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from calque.adapters.delta.columns import TEXTS
from calque.adapters.delta.seal import read_table, write_table
from calque.adapters.delta.snapshot import Snapshot, SnapshotChange
from calque.adapters.delta.table import RangedTable
from calque.core.acid.commits import AcidCommit, TransactionMemory
from calque.core.acid.transaction_states import TransactionStates
from calque.core.acid.write_ids import TableWriteIds
from calque.model.journal import TableShape
from calque.model.names import EventId, Span, TableName

UPTO = "upto"
NUMBERS = pa.list_(pa.int64())
SCHEMA = pa.schema(
    [
        pa.field("event_id", pa.int64(), nullable=False),
        pa.field("event_time", pa.int64()),
        pa.field("database", pa.string()),
        pa.field("table", pa.string()),
        pa.field("shape", pa.string()),
        pa.field("is_known", pa.bool_()),
        pa.field("partitions", TEXTS),
        pa.field("locations", TEXTS),
    ]
)
MEMORY = pa.schema(
    [
        pa.field("database", pa.string()),
        pa.field("table", pa.string()),
        pa.field("high", pa.int64()),
        pa.field("open", NUMBERS),
        pa.field("transactions", NUMBERS),
        pa.field("aborted", NUMBERS),
    ]
)
"""A row for each table, and one without a name for the transactions themselves."""
EVENT, CERTAIN_AFTER = b"calque.event", b"calque.certain_after"
KNOWN_AFTER, GAP = b"calque.known_after", b"calque.gap"
NUMBERS_SAID = (EVENT, CERTAIN_AFTER, KNOWN_AFTER, GAP)
TRANSACTIONS = TableName("", "")


class DeltaCommits:
    """The commits below `folder`, a path of this machine."""

    def __init__(self, folder: str) -> None:
        self._table = RangedTable(f"{folder}/found", SCHEMA, (UPTO,))
        self._memory = Path(folder) / "memory.parquet"

    def upto(self) -> EventId:
        return self._table.snapshot().marks.get(UPTO, 0)

    def append(self, commits: Sequence[AcidCommit], upto: EventId) -> None:
        def decide(snapshot: Snapshot) -> SnapshotChange | None:
            before = snapshot.marks.get(UPTO, 0)
            if upto <= before:
                return None
            rows = [record(commit) for commit in commits if commit.event_id > before]
            return SnapshotChange(
                add=self._table.write([pa.Table.from_pylist(rows, schema=SCHEMA)]), marks={UPTO: upto}
            )

        self._table.commit(decide)
        self._table.compact()

    def commits(self, span: Span) -> Sequence[AcidCommit]:
        rows = self._table.read(range(span.after + 1, span.upto + 1))
        ordered = rows.sort_by([("event_id", "ascending"), ("database", "ascending"), ("table", "ascending")])
        return [commit_of(row) for row in ordered.to_pylist()]

    def forget(self, upto: EventId) -> int:
        return self._table.forget(upto)

    def restart(self, event_id: EventId) -> None:
        self._table.commit(lambda snapshot: SnapshotChange(remove=snapshot.files, marks={UPTO: event_id}))

    def remembered(self) -> TransactionMemory | None:
        try:
            rows = read_table(self._memory)
            said = rows.schema.metadata or {}
            states = {TableName(row["database"], row["table"]): row for row in rows.to_pylist()}
            own = states.pop(TRANSACTIONS)
            transactions = TransactionStates(own["high"], set(own["open"]), set(own["aborted"]))
            tables = {name: write_ids_of(row) for name, row in states.items()}
            event, certain_after, known_after, gap = (int(said[name]) for name in NUMBERS_SAID)
            return TransactionMemory(event, certain_after, known_after, transactions, tables, gap)
        except (OSError, KeyError, ValueError, pa.ArrowInvalid):
            return None

    def remember(self, memory: TransactionMemory) -> None:
        rows = pa.Table.from_pylist(list(memory_records(memory)), schema=MEMORY)
        numbers = (memory.event_id, memory.certain_after, memory.known_after, memory.gap)
        said = {name: str(number).encode() for name, number in zip(NUMBERS_SAID, numbers, strict=True)}
        write_table(self._memory, rows.replace_schema_metadata(said))


def record(commit: AcidCommit) -> dict[str, Any]:
    changed = commit.changed or {}
    return {
        "event_id": commit.event_id,
        "event_time": commit.event_time,
        "database": commit.table.database,
        "table": commit.table.table,
        "shape": commit.shape.value,
        "is_known": commit.changed is not None,
        "partitions": list(changed),
        "locations": list(changed.values()),
    }


def commit_of(row: Mapping[str, Any]) -> AcidCommit:
    changed = dict(zip(row["partitions"], row["locations"], strict=True)) if row["is_known"] else None
    name = TableName(row["database"], row["table"])
    return AcidCommit(row["event_id"], row["event_time"], name, TableShape(row["shape"]), changed)


def memory_records(memory: TransactionMemory) -> Iterable[dict[str, Any]]:
    states = memory.transactions
    own = TableWriteIds(states.high, dict.fromkeys(states.open, 0), frozenset(states.aborted))
    for name, known in {TRANSACTIONS: own, **memory.tables}.items():
        yield {
            "database": name.database,
            "table": name.table,
            "high": known.high,
            "open": list(known.open),
            "transactions": list(known.open.values()),
            "aborted": sorted(known.aborted),
        }


def write_ids_of(row: Mapping[str, Any]) -> TableWriteIds:
    owners = dict(zip(row["open"], row["transactions"], strict=True))
    return TableWriteIds(row["high"], owners, frozenset(row["aborted"]))
