"""The ledger's `tables`: states of tables, the newest row of each wins.

States are appended with a rising sequence number and held in memory; now and then the file is written anew with the
newest rows only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from calque.adapters.delta.columns import TABLES, Row, removed_record, table_of, table_record
from calque.adapters.delta.snapshot import Change, Snapshot
from calque.adapters.delta.table import RangedTable
from calque.model.ledger import TableRow

SEQUENCE = "sequence"
MANY = 50
StateKey = tuple[str, str, str]
T = TypeVar("T")


class DeltaStates:
    def __init__(self, location: str, storage_options: Mapping[str, str] | None) -> None:
        self._table = RangedTable(location, TABLES, (SEQUENCE,), storage_options)
        self._start()

    def __getstate__(self) -> RangedTable:
        return self._table

    def __setstate__(self, table: RangedTable) -> None:
        self._table = table
        self._start()

    def _start(self) -> None:
        self._lock = threading.RLock()
        self._rows: dict[StateKey, tuple[int, TableRow]] = {}
        self._seen: frozenset[str] = frozenset()
        self._applied = 0
        self._widened = False

    def read(self) -> Mapping[StateKey, TableRow]:
        with self._lock:
            self._table.consistently(self._apply)
            return {key: row for key, (_, row) in self._rows.items()}

    def put(self, rows: Sequence[TableRow]) -> None:
        self._append(rows, table_record)

    def remove(self, keys: Sequence[StateKey]) -> None:
        self._append(keys, removed_record)

    def _append(self, things: Sequence[T], record: Callable[[T, int], Row]) -> None:
        if not things:
            return
        if not self._widened:
            self._table.widen()
            self._widened = True

        def decide(snapshot: Snapshot) -> Change:
            first = snapshot.marks.get(SEQUENCE, 0) + 1
            rows = [record(thing, number) for number, thing in enumerate(things, first)]
            files = self._table.write([pa.Table.from_pylist(rows, schema=TABLES)])
            return Change(add=files, marks={SEQUENCE: first + len(rows) - 1})

        after = self._table.commit(decide)
        if len(after.files) > MANY:
            self._tidy()

    def _apply(self, snapshot: Snapshot) -> None:
        """Take over what is new. Rows that another process tidied away may have been removals: then read it all."""
        paths = frozenset(file.path for file in snapshot.files)
        if not self._seen <= paths:
            self._rows, self._applied = {}, 0
        last = snapshot.marks.get(SEQUENCE, 0)
        wanted = range(self._applied + 1, last + 1)
        for row in self._table.read_files(snapshot.holding(wanted), wanted).sort_by(SEQUENCE).to_pylist():
            key = (row["kind"], row["database"], row["table"])
            if row["removed"]:
                self._rows.pop(key, None)
            else:
                self._rows[key] = (row[SEQUENCE], table_of(row))
        self._seen, self._applied = paths, last

    def _tidy(self) -> None:
        with self._lock:
            self._table.consistently(self._apply)
            files = [file for file in self._table.snapshot().files if file.path in self._seen]
            newest = pa.array([number for number, _ in self._rows.values()], pa.int64())
        self._table.merge(files, lambda rows: rows.filter(pc.is_in(rows[SEQUENCE], newest)))
