"""A Delta table of values by key, of which the newest counts: the ledger's `tables` and `internal`.

Values are appended with a rising sequence number and held in memory; now and then the files are written anew with the
newest rows only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from calque.adapters.delta.columns import Row
from calque.adapters.delta.snapshot import DataFile, Snapshot, SnapshotChange
from calque.adapters.delta.table import RangedTable
from calque.model.secrets import Options

SEQUENCE = "sequence"
MANY = 50
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Layout(Generic[K, V]):
    """The mapping between values and rows of `schema`, whose first column is the sequence number. `row` and
    `removed_row` get that number as their second argument. `format` is the number of the rows' format; a table of an
    older or a newer format is refused with `Refused`."""

    schema: pa.Schema
    format: int
    key_of: Callable[[Row], K]
    value_of: Callable[[Row], V]
    row: Callable[[V, int], Row]
    removed_row: Callable[[K, int], Row]


class KeyedTable(Generic[K, V]):
    def __init__(self, location: str, layout: Layout[K, V], storage_options: Options | None) -> None:
        self._layout = layout
        self._table = RangedTable(location, layout.schema, (SEQUENCE,), storage_options, layout.format, layout.format)
        self._start()

    def __getstate__(self) -> tuple[Layout[K, V], RangedTable]:
        return self._layout, self._table

    def __setstate__(self, state: tuple[Layout[K, V], RangedTable]) -> None:
        self._layout, self._table = state
        self._start()

    def _start(self) -> None:
        self._lock = threading.RLock()
        self._rows: dict[K, tuple[int, V]] = {}
        self._known_paths: frozenset[str] = frozenset()
        self._applied = 0
        self._widened = False

    def snapshot(self) -> Snapshot:
        return self._table.snapshot()

    def read(self) -> Mapping[K, V]:
        """Return the newest value of each key that is not removed."""
        with self._lock:
            self._table.consistently(self._apply)
            return {key: value for key, (_, value) in self._rows.items()}

    def put(self, values: Sequence[V]) -> None:
        self._append(values, self._layout.row)

    def remove(self, keys: Sequence[K]) -> None:
        self._append(keys, self._layout.removed_row)

    def vacuum(self) -> None:
        """Delete data files that nothing has needed for more than an hour."""
        self._table.vacuum()

    def _widen(self) -> None:
        if not self._widened:
            self._table.widen()
            self._widened = True

    def _append(self, items: Sequence[T], row: Callable[[T, int], Row]) -> None:
        if not items:
            return
        self._widen()

        def decide(snapshot: Snapshot) -> SnapshotChange:
            files, marks = self._written(items, row, snapshot)
            return SnapshotChange(add=files, marks=marks)

        after = self._table.commit(decide)
        if len(after.files) > MANY:
            self._tidy()

    def _written(
        self, items: Collection[T], row: Callable[[T, int], Row], on: Snapshot
    ) -> tuple[tuple[DataFile, ...], Mapping[str, int]]:
        """Write one file with a row for each item, with the sequence numbers after those of the version `on`; return it
        and the new mark."""
        last = on.marks.get(SEQUENCE, 0)
        rows = [row(item, number) for number, item in enumerate(items, last + 1)]
        files = self._table.write([pa.Table.from_pylist(rows, schema=self._layout.schema)])
        return files, {SEQUENCE: last + len(rows)}

    def _apply(self, snapshot: Snapshot) -> Snapshot:
        """Take the new rows of `snapshot` into memory. Where known files are gone, read all rows: another process
        tidied, and the rows that it dropped may have been removals."""
        paths = frozenset(file.path for file in snapshot.files)
        if not self._known_paths <= paths:
            self._rows, self._applied = {}, 0
        last = snapshot.marks.get(SEQUENCE, 0)
        sequences = range(self._applied + 1, last + 1)
        for row in self._table.files.read(snapshot.holding(sequences), sequences).sort_by(SEQUENCE).to_pylist():
            key = self._layout.key_of(row)
            if row["removed"]:
                self._rows.pop(key, None)
            else:
                self._rows[key] = (row[SEQUENCE], self._layout.value_of(row))
        self._known_paths, self._applied = paths, last
        return snapshot

    def _tidy(self) -> None:
        with self._lock:
            self._table.consistently(self._apply)
            files = [file for file in self._table.snapshot().files if file.path in self._known_paths]
            newest = pa.array([number for number, _ in self._rows.values()], pa.int64())
        self._table.merge(files, lambda rows: rows.filter(pc.is_in(rows[SEQUENCE], newest)))
