"""What is kept of epochs, hops and events when the ledger and the journal forget them: no files, no definitions, no
messages.

A row is copied once, just before it is forgotten. Each table's application transaction `kept` carries the last number
that was copied, in the commit that adds the rows: a copy that died is made again, and never twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc

from calque.adapters.delta.columns import EPOCHS
from calque.adapters.delta.ledger import DeltaLedger, passed
from calque.adapters.delta.snapshot import Change, DataFile, Snapshot
from calque.adapters.delta.table import RangedTable
from calque.model.names import EventId, Span
from calque.model.secrets import Options
from calque.plugins.audit.adapters.hop_rows import HOPS, connection, hop_rows
from calque.ports import Journal

KEPT, GAP = "kept", "gap"
"""The application transactions: the last number that was copied, and of events the gap in the log before them."""
LEFT_OUT = ("quarantined", "set_aside", "in_parts", "rebasing", "disarmed", "abandoned", "previous_digest")
KEPT_EPOCHS = pa.schema([field for field in EPOCHS if field.name not in LEFT_OUT])
KEPT_EVENTS = pa.schema(
    [
        pa.field("event_id", pa.int64(), nullable=False),
        pa.field("event_time", pa.int64()),
        pa.field("event_type", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("database", pa.string()),
        pa.field("table", pa.string()),
        pa.field("other_database", pa.string()),
        pa.field("other_table", pa.string()),
        pa.field("partitions", pa.int32()),
        pa.field("facets_only", pa.bool_()),
        pa.field("gap", pa.int32()),
    ]
)
EPOCHS_AT_ONCE, EVENTS_AT_ONCE = 20_000, 500_000
"""Copied by one commit: what one table's rows of so many lie together compresses them."""


class TargetHistory:
    """Beside the ledger below `folder`. `failpoint` is called with `history.hops` between the two tables' commits."""

    def __init__(
        self, folder: str, storage_options: Options | None = None, failpoint: Callable[[str], None] = passed
    ) -> None:
        self.epochs = RangedTable(f"{folder}/history/epochs", KEPT_EPOCHS, (KEPT, GAP), storage_options)
        self.hops = RangedTable(f"{folder}/history/hops", HOPS, (KEPT, GAP), storage_options)
        self._failpoint = failpoint

    def keep(self, ledger: DeltaLedger, before: int) -> None:
        """Copy what the ledger has of epochs below that number. Raises `Unavailable`."""
        rows = ledger.view()
        for first in range(max(rows.first, kept_upto(self.epochs) + 1), before, EPOCHS_AT_ONCE):
            numbers = range(first, min(first + EPOCHS_AT_ONCE, before))
            with closing(connection()) as engine:
                copy(self.hops, numbers, tables(hop_rows(engine, rows.objects, numbers)))
            self._failpoint("history.hops")
            filtered = rows.epochs.to_table(KEPT_EPOCHS.names, filter=within(rows.epochs.schema.names[0], numbers))
            copy(self.epochs, numbers, [filtered.sort_by("epoch").cast(KEPT_EPOCHS)])

    def expire(self, before: str) -> None:
        """Forget epochs that were published before that time (ISO 8601), with their hops: whole files of them."""
        files = forget_older(self.epochs, "published_at", before)
        if files:
            last = max(file.high for file in files)
            remove(self.hops, [file for file in self.hops.snapshot().files if file.high <= last])


class EventHistory:
    """At `location`, beside the source's journal."""

    def __init__(self, location: str, storage_options: Options | None = None) -> None:
        self.table = RangedTable(location, KEPT_EVENTS, (KEPT, GAP), storage_options)

    def keep(self, journal: Journal, rows: Callable[[Span], pa.Table], gap: int) -> None:
        """Copy what the journal has and was not copied yet, behind that gap in the log. `rows` reads the journal.
        Raises `Unavailable`."""
        oldest, last = journal.oldest(), journal.last()
        if oldest is None or last is None:
            return
        for first in range(self.begin(oldest, gap), last + 1, EVENTS_AT_ONCE):
            numbers = range(first, min(first + EVENTS_AT_ONCE, last + 1))
            copy(self.table, numbers, [kept_events(rows(Span(first - 1, numbers[-1])), gap)], gap)

    def begin(self, oldest: EventId, gap: int) -> EventId:
        """The first event that is not kept, of those behind that gap."""
        marks = self.table.snapshot().marks
        return max(oldest, marks.get(KEPT, 0) + 1) if marks.get(GAP, 0) == gap else oldest

    def expire(self, before: int) -> None:
        """Forget events from before that time (seconds since the epoch): whole files of them."""
        forget_older(self.table, "event_time", before)


def kept_upto(table: RangedTable) -> int:
    return table.snapshot().marks.get(KEPT, 0)


def kept_events(rows: pa.Table, gap: int) -> pa.Table:
    """Of rows of the journal, in order of table and event."""
    columns = {
        "event_id": rows["event_id"],
        "event_time": rows["event_time"],
        "event_type": rows["event_type"],
        "kind": rows["kind"],
        "database": rows["key_database"],
        "table": rows["key_table"],
        "other_database": rows["other_database"],
        "other_table": rows["other_table"],
        "partitions": pc.fill_null(pc.list_value_length(rows["partitions"]), 0),
        "facets_only": rows["facets_only"],
        "gap": pa.array([gap] * rows.num_rows, pa.int32()),
    }
    order = [("database", "ascending"), ("table", "ascending"), ("event_id", "ascending")]
    return pa.table(columns).cast(KEPT_EVENTS).sort_by(order)


def copy(table: RangedTable, numbers: range, rows: Iterable[pa.Table], gap: int = 0) -> None:
    """Add the rows of these numbers, behind that gap in the log, unless they were added before."""

    def is_there(snapshot: Snapshot) -> bool:
        return snapshot.marks.get(GAP, 0) == gap and snapshot.marks.get(KEPT, 0) >= numbers.start

    if is_there(table.snapshot()):
        return
    files = table.write(rows)
    is_added = False

    def decide(snapshot: Snapshot) -> Change | None:
        nonlocal is_added
        is_added = not is_there(snapshot)
        return Change(add=files, marks={KEPT: numbers[-1], GAP: gap}) if is_added else None

    table.commit(decide)
    if not is_added:
        table.discard(files)
    table.compact()


def tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    for batch in batches:
        yield pa.Table.from_batches([batch])


def within(key: str, numbers: range) -> pc.Expression:
    return (pc.field(key) >= numbers.start) & (pc.field(key) < numbers.stop)


def forget_older(table: RangedTable, column: str, before: str | int) -> tuple[DataFile, ...]:
    """Remove the first files all of whose rows are older, by that column. Which went."""
    files: list[DataFile] = []
    for file in table.snapshot().files:
        newest = pc.max(table.files.read([file], None, (table.key, column))[column]).as_py()
        if newest is None or newest >= before:
            break
        files.append(file)
    remove(table, files)
    return tuple(files)


def remove(table: RangedTable, files: Iterable[DataFile]) -> None:
    chosen = frozenset(files)

    def decide(snapshot: Snapshot) -> Change | None:
        left = tuple(file for file in snapshot.files if file in chosen)
        return Change(remove=left) if left else None

    if chosen:
        table.commit(decide)
        table.vacuum()
