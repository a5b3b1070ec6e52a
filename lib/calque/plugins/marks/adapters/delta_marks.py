"""The marks as a Delta table (port `MarkStore`).

Each mark is a row; its key is the mark's number, which the application transaction `number` counts. Two writers of one
number make one commit on top of another, and the second is refused. The transactions `followed` and `followed_to` say
up to which mark the marks' tables were followed, and to which event. A row says what came of that only where its
table's names changed (`names`, JSON of triples: since which event, database, table) or the table ended (`ended_by`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from calque.adapters.delta.columns import Row
from calque.adapters.delta.snapshot import DataFile, Snapshot, SnapshotChange
from calque.adapters.delta.table import RangedTable
from calque.model.names import EventId, TableName, partition_values, unescape_path
from calque.model.secrets import Options
from calque.plugins.marks.core import says_more
from calque.plugins.marks.model import Mark, Trail

NUMBER, FOLLOWED, FOLLOWED_TO = "number", "followed", "followed_to"
TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        pa.field(NUMBER, pa.int64(), nullable=False),
        pa.field("database", pa.string()),
        pa.field("table", pa.string()),
        pa.field("incarnation", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("event_id", pa.int64()),
        pa.field("marked_at", TIME),
        pa.field("expires_at", TIME),
        pa.field("after_gap", pa.int64()),
        pa.field("names", pa.string()),
        pa.field("ended_by", pa.int64()),
    ]
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DeltaMarks:
    """The marks in the table at `location`, a path or URI. `storage_options` are those of delta-rs."""

    def __init__(self, location: str, storage_options: Options | None = None) -> None:
        self._table = RangedTable(location, SCHEMA, (NUMBER, FOLLOWED, FOLLOWED_TO), storage_options)

    def last(self) -> int:
        return self._table.snapshot().marks.get(NUMBER, 0)

    def add(self, mark: Mark) -> bool:
        files = self._table.write([pa.Table.from_pylist([row_of(mark)], schema=SCHEMA)])
        is_next = False

        def decide(snapshot: Snapshot) -> SnapshotChange | None:
            nonlocal is_next
            is_next = mark.number == snapshot.marks.get(NUMBER, 0) + 1
            return SnapshotChange(add=files, marks={NUMBER: mark.number}) if is_next else None

        self._table.commit(decide)
        if is_next:
            self._table.compact()
        else:
            self._table.discard(files)
        return is_next

    def after(self, number: int) -> Sequence[Mark]:
        def read(snapshot: Snapshot) -> list[Mark]:
            numbers = range(number + 1, snapshot.marks.get(NUMBER, 0) + 1)
            rows = self._table.files.read(snapshot.holding(numbers), numbers).sort_by(NUMBER)
            return [mark_of(row, snapshot.marks) for row in rows.to_pylist()]

        return self._table.consistently(read)

    def follow(self, trails: Mapping[int, Trail], number: int, upto: EventId) -> None:
        before = self._table.snapshot().marks
        if self.last() == 0 or (before.get(FOLLOWED, 0), before.get(FOLLOWED_TO, 0)) > (number, upto):
            return

        def followed(file: DataFile) -> Iterator[pa.Table]:
            marks = [mark_of(row, before) for row in self._table.files.read([file]).to_pylist()]
            rows = [row_of(with_trail(mark, trails.get(mark.number))) for mark in marks]
            yield pa.Table.from_pylist(rows, schema=SCHEMA)

        numbers = sorted(trails)
        self._table.rewrite(lambda snapshot: snapshot.holding(numbers), followed, {FOLLOWED: number, FOLLOWED_TO: upto})

    def forget(self, numbers: Collection[int]) -> int:
        forgotten_numbers = sorted(mark.number for mark in self._among(numbers))
        if not forgotten_numbers:
            return 0
        gone = pa.array(forgotten_numbers, pa.int64())

        def kept(file: DataFile) -> pa.Table:
            rows = self._table.files.read([file])
            return rows.filter(pc.invert(pc.is_in(rows[NUMBER], gone)))

        return self._table.rewrite(lambda snapshot: snapshot.holding(forgotten_numbers), kept)

    def _among(self, numbers: Collection[int]) -> list[Mark]:
        """Return the marks with these numbers that are there."""
        return [mark for mark in self.after(min(numbers, default=1) - 1) if mark.number in numbers]


def with_trail(mark: Mark, trail: Trail | None) -> Mark:
    return replace(mark, followed=trail) if trail is not None and says_more(trail, mark.trail) else mark


def row_of(mark: Mark) -> Row:
    trail = mark.trail
    return {
        NUMBER: mark.number,
        "database": mark.table.database,
        "table": mark.table.table,
        "incarnation": mark.incarnation,
        "partition": mark.condition,
        "event_id": mark.event_id,
        "marked_at": time_of(mark.marked_at_ns),
        "expires_at": time_of(mark.expires_at_ns),
        "after_gap": mark.after_gap,
        "names": json.dumps([[since, *name] for since, name in trail.names]) if len(trail.names) > 1 else None,
        "ended_by": trail.ended_by,
    }


def mark_of(row: Row, marks: Mapping[str, int]) -> Mark:
    """Return the mark of the row. `marks` are the table's application transactions, which say how far the mark was
    followed."""
    table = TableName(row["database"], row["table"])
    mark = Mark(
        row[NUMBER],
        table,
        row["incarnation"],
        partition_of(row["partition"]),
        row["event_id"],
        nanoseconds_of(row["marked_at"]),
        nanoseconds_of(row["expires_at"]),
        row["after_gap"],
    )
    if mark.number > marks.get(FOLLOWED, 0):
        return mark
    names = [(int(since), TableName(*name)) for since, *name in json.loads(row["names"] or "[]")]
    upto = max(marks.get(FOLLOWED_TO, 0), mark.event_id)
    return replace(mark, followed=Trail(tuple(names) or mark.trail.names, upto, row["ended_by"]))


def partition_of(condition: str) -> dict[str, str]:
    keys = [unescape_path(part.split("=", 1)[0]) for part in condition.split("/")]
    return dict(zip(keys, partition_values(condition), strict=True))


def time_of(nanoseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)


def nanoseconds_of(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1) * 1000
