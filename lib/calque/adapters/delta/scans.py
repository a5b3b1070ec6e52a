"""The changes that scans found, as a Delta table, and beside it the memory that scans compare with, as one Parquet file
(port `Scans`).

The table has a row for each directory. Its key is the number of the scan, which the application transaction `number`
counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from calque.adapters.delta.columns import FILES, TEXTS, file_record, files_of
from calque.adapters.delta.seal import read_table, write_table
from calque.adapters.delta.snapshot import Snapshot, SnapshotChange
from calque.adapters.delta.table import RangedTable
from calque.model.files import Listing
from calque.model.journal import Entry, EventKind, Keys, TableShape
from calque.model.names import TableName
from calque.model.scan import Memory, Scan, ScannedDirectory

NUMBER = "number"
SCHEMA = pa.schema(
    [
        pa.field(NUMBER, pa.int64(), nullable=False),
        pa.field("event_id", pa.int64()),
        pa.field("found_at", pa.int64()),
        pa.field("database", pa.string()),
        pa.field("table", pa.string()),
        pa.field("shape", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("location", pa.string()),
        pa.field("missing", pa.bool_()),
        pa.field("files", FILES),
    ]
)
ENTRY_COLUMNS = (NUMBER, "event_id", "found_at", "database", "table", "shape", "partition", "location")
MEMORY = pa.schema(
    [
        pa.field("database", pa.string()),
        pa.field("table", pa.string()),
        pa.field("partition", pa.string()),
        pa.field("location", pa.string()),
        pa.field("fingerprint", pa.string()),
        pa.field("directories", TEXTS),
        pa.field("times", pa.list_(pa.int64())),
    ]
)
SEEN, TAKEN_UP = b"calque.seen", b"calque.scan"


class DeltaScans:
    """The scans below `folder`, a path of this machine."""

    def __init__(self, folder: str) -> None:
        self._table = RangedTable(f"{folder}/found", SCHEMA, (NUMBER,))
        self._memory = Path(folder) / "memory.parquet"

    def last(self) -> int:
        return self._table.snapshot().marks.get(NUMBER, 0)

    def append(self, scans: Sequence[Scan]) -> int:
        if not scans:
            return self.last()

        def decide(snapshot: Snapshot) -> SnapshotChange:
            first = snapshot.marks.get(NUMBER, 0) + 1
            rows = [row for number, scan in enumerate(scans, first) for row in records(number, scan)]
            files = self._table.write([pa.Table.from_pylist(rows, schema=SCHEMA)])
            return SnapshotChange(add=files, marks={NUMBER: first + len(scans) - 1})

        after = self._table.commit(decide)
        self._table.compact()
        return after.marks[NUMBER]

    def entries(self, after: int) -> Sequence[Entry]:
        rows = self._table.read(range(after + 1, self.last() + 1), ENTRY_COLUMNS)
        ordered = rows.sort_by([(NUMBER, "ascending"), ("partition", "ascending")]).to_pylist()
        return [entry_of(number, list(of)) for number, of in groupby(ordered, key=lambda row: row[NUMBER])]

    def listings(self, numbers: Iterable[int]) -> Mapping[tuple[int, str], Listing]:
        return {
            (row[NUMBER], row["location"]): Listing(
                row["location"], files_of(row["files"]), row["missing"], scan=row[NUMBER]
            )
            for row in self._table.read(sorted(set(numbers))).to_pylist()
        }

    def forget(self, upto: int) -> int:
        """Remove the rows of scans up to `upto`, and return how many scans that were; a scan has one row or more."""
        count = len({entry.scans[0] for entry in self.entries(0) if entry.scans[0] <= upto})
        if count:
            self._table.forget(upto)
        return count

    def remembered(self) -> Memory:
        try:
            rows = read_table(self._memory)
            said = rows.schema.metadata or {}
            watched = {key_of(row): watched_of(row) for row in rows.to_pylist()}
            return Memory(int(said[SEEN]), watched, int(said.get(TAKEN_UP, 0)))
        except (OSError, KeyError, ValueError, pa.ArrowInvalid):
            return Memory()

    def remember(self, memory: Memory) -> None:
        rows = pa.Table.from_pylist([memory_record(key, item) for key, item in memory.watched.items()], schema=MEMORY)
        said = {SEEN: str(memory.event_id).encode(), TAKEN_UP: str(memory.scan).encode()}
        write_table(self._memory, rows.replace_schema_metadata(said))


def records(number: int, scan: Scan) -> Iterable[dict[str, Any]]:
    for partition, listing in scan.listings.items():
        yield {
            NUMBER: number,
            "event_id": scan.event_id,
            "found_at": scan.found_at,
            "database": scan.table.database,
            "table": scan.table.table,
            "shape": scan.shape.value,
            "partition": partition,
            "location": listing.location,
            "missing": listing.missing,
            "files": [file_record(file) for file in listing.files],
        }


def entry_of(number: int, rows: Sequence[Mapping[str, Any]]) -> Entry:
    first = rows[0]
    partitions = tuple(row["partition"] for row in rows)
    keys = Keys(
        EventKind.SCAN,
        TableName(first["database"], first["table"]),
        shape=TableShape(first["shape"]),
        partitions=partitions if partitions != ("",) else (),
        locations=tuple(row["location"] for row in rows),
    )
    return Entry(first["event_id"], first["found_at"], "SCAN", keys, (number,) * len(rows))


def memory_record(key: tuple[TableName, str], item: ScannedDirectory) -> dict[str, Any]:
    (database, table), partition = key
    return {
        "database": database,
        "table": table,
        "partition": partition,
        "location": item.location,
        "fingerprint": item.fingerprint,
        "directories": item.directories,
        "times": item.times,
    }


def key_of(row: Mapping[str, Any]) -> tuple[TableName, str]:
    return TableName(row["database"], row["table"]), row["partition"]


def watched_of(row: Mapping[str, Any]) -> ScannedDirectory:
    return ScannedDirectory(row["location"], row["fingerprint"], tuple(row["directories"]), tuple(row["times"]))
