"""The rows of epochs, hops and events that are kept when the ledger and the journal forget them: without files,
definitions and messages.

A row is copied once, just before it is forgotten. The application transaction `kept` of each table has the last number
that was copied, and is written by the commit that adds the rows. So a copy that died is made again, and no row is there
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc

from calque.adapters.delta.columns import EPOCHS
from calque.adapters.delta.ledger import DeltaLedger, passed
from calque.adapters.delta.snapshot import DataFile, Snapshot, SnapshotChange
from calque.adapters.delta.table import RangedTable
from calque.model.names import EventId, Span
from calque.model.secrets import Options
from calque.plugins.audit.adapters.hop_rows import HOPS, connection, hop_rows
from calque.ports import Journal

KEPT, GAP = "kept", "gap"
"""The application transactions: the last number that was copied, and of events the gap in the log before them."""
LEFT_OUT = ("quarantined", "set_aside", "in_parts", "rebasing", "disarmed", "abandoned", "together", "previous_digest")
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
"""The numbers that one commit copies: rows of one table compress better the more of them lie together."""


class TargetHistory:
    """The kept epochs and hops of one target, in `history` below the ledger's `folder`. `failpoint` is called with
    `history.hops` between the commits of the two tables."""

    def __init__(
        self, folder: str, storage_options: Options | None = None, failpoint: Callable[[str], None] = passed
    ) -> None:
        self.epochs = RangedTable(f"{folder}/history/epochs", KEPT_EPOCHS, (KEPT, GAP), storage_options)
        self.hops = RangedTable(f"{folder}/history/hops", HOPS, (KEPT, GAP), storage_options)
        self._failpoint = failpoint

    def keep(self, ledger: DeltaLedger, before: int) -> None:
        """Copy those epochs below number `before`, with their hops, that the ledger has and the history lacks. Raises
        `Unavailable`."""
        rows = ledger.view()
        for first in range(max(rows.first, kept_upto(self.epochs) + 1), before, EPOCHS_AT_ONCE):
            numbers = range(first, min(first + EPOCHS_AT_ONCE, before))
            with closing(connection()) as engine:
                copy(self.hops, numbers, tables(hop_rows(engine, rows.objects, numbers)))
            self._failpoint("history.hops")
            filtered = rows.epochs.to_table(KEPT_EPOCHS.names, filter=within(rows.epochs.schema.names[0], numbers))
            copy(self.epochs, numbers, [filtered.sort_by("epoch").cast(KEPT_EPOCHS)])

    def expire(self, before: str) -> None:
        """Remove epochs that were published before the time `before` (ISO 8601), with their hops. Only whole files are
        removed, so that some older rows may stay."""
        files = forget_older(self.epochs, "published_at", before)
        if files:
            last = max(file.high for file in files)
            remove(self.hops, [file for file in self.hops.snapshot().files if file.high <= last])


class EventHistory:
    """The kept events of one source, in the table at `location`."""

    def __init__(self, location: str, storage_options: Options | None = None) -> None:
        self.table = RangedTable(location, KEPT_EVENTS, (KEPT, GAP), storage_options)

    def keep(self, journal: Journal, rows: Callable[[Span], pa.Table], gap: int) -> None:
        """Copy those events that the journal has and the history lacks. `gap` is the number of the newest gap in the
        log, behind which the journal's events lie. `rows` reads the journal. Raises `Unavailable`."""
        oldest, last = journal.oldest(), journal.last()
        if oldest is None or last is None:
            return
        for first in range(self.begin(oldest, gap), last + 1, EVENTS_AT_ONCE):
            numbers = range(first, min(first + EVENTS_AT_ONCE, last + 1))
            copy(self.table, numbers, [kept_events(rows(Span(first - 1, numbers[-1])), gap)], gap)

    def begin(self, oldest: EventId, gap: int) -> EventId:
        """Return the first event id from which events are to be copied, and change nothing: the one after the last that
        was kept, or `oldest`, the journal's first event, where that is later. `gap` is the number of the newest gap in
        the log; where the history was kept before that gap, its last event id belongs to another history of the log,
        and the result is `oldest`."""
        marks = self.table.snapshot().marks
        return max(oldest, marks.get(KEPT, 0) + 1) if marks.get(GAP, 0) == gap else oldest

    def expire(self, before: int) -> None:
        """Remove events from before the time `before` (seconds since the epoch). Only whole files are removed, so that
        some older rows may stay."""
        forget_older(self.table, "event_time", before)


def kept_upto(table: RangedTable) -> int:
    return table.snapshot().marks.get(KEPT, 0)


def kept_events(rows: pa.Table, gap: int) -> pa.Table:
    """Return the rows of the journal as rows of the history, ordered by table and event id."""
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
    """Add the rows with these numbers to the table in one commit, unless they were added before. `gap` is the number of
    the gap in the log that they lie behind."""

    def is_there(snapshot: Snapshot) -> bool:
        return snapshot.marks.get(GAP, 0) == gap and snapshot.marks.get(KEPT, 0) >= numbers.start

    if is_there(table.snapshot()):
        return
    files = table.write(rows)
    is_added = False

    def decide(snapshot: Snapshot) -> SnapshotChange | None:
        nonlocal is_added
        is_added = not is_there(snapshot)
        return SnapshotChange(add=files, marks={KEPT: numbers[-1], GAP: gap}) if is_added else None

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
    """Remove the first files whose rows are all older than `before`, by the column. Return the removed files."""
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

    def decide(snapshot: Snapshot) -> SnapshotChange | None:
        left = tuple(file for file in snapshot.files if file in chosen)
        return SnapshotChange(remove=left) if left else None

    if chosen:
        table.commit(decide)
        table.vacuum()
