"""A target's ledger in memory (port `Ledger`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from calque.core.records.contents import line_of, needed
from calque.core.records.continuity import carries_files, next_epoch
from calque.core.records.digest import in_order
from calque.model.ledger import Epoch, ObjectRow, PlaceRow, StateKey, StateRow, state_key
from calque.model.names import TableName
from calque.model.records import Record, RecordKey, record_key

Key = tuple[str, str, str]


def passed(failpoint: str) -> None:
    """Nothing stands at the failpoint."""


class MemoryLedger:
    """`failpoint` is called with `ledger.objects`, `ledger.tables` and `ledger.epoch` after each of these writes."""

    def __init__(self, failpoint: Callable[[str], None] = passed) -> None:
        self._lock = threading.RLock()
        self._failpoint = failpoint
        self._epochs: dict[int, Epoch] = {}
        self._objects: dict[int, tuple[ObjectRow, ...]] = {}
        self._tables: dict[StateKey, StateRow] = {}
        self._records: dict[RecordKey, Record] = {}
        self._latest: dict[Key, ObjectRow] = {}
        self._kept_rows: list[tuple[int, ObjectRow]] = []
        """Rows of epochs that are forgotten, with their numbers."""

    def copy(self) -> MemoryLedger:
        """Another ledger with the same content."""
        other = MemoryLedger(self._failpoint)
        with self._lock:
            other._epochs, other._objects = dict(self._epochs), dict(self._objects)
            other._tables, other._latest = dict(self._tables), dict(self._latest)
            other._records, other._kept_rows = dict(self._records), list(self._kept_rows)
        return other

    def last_epoch(self) -> Epoch | None:
        with self._lock:
            return self._epochs[max(self._epochs)] if self._epochs else None

    def epochs(self, after: int = 0) -> Sequence[Epoch]:
        with self._lock:
            return tuple(self._epochs[number] for number in sorted(self._epochs) if number > after)

    def objects(self, epoch: int) -> Sequence[ObjectRow]:
        with self._lock:
            return self._objects.get(epoch, ()) if epoch in self._epochs else ()

    def publish(self, epoch: Epoch, objects: Sequence[ObjectRow], tables: Sequence[StateRow]) -> None:
        with self._lock:
            sealed = next_epoch(self.last_epoch(), epoch, objects)
            if sealed is None:
                return
            self._objects[sealed.epoch] = in_order(objects)
            self._failpoint("ledger.objects")
            self.put_tables(tables)
            self._failpoint("ledger.tables")
            self._epochs[sealed.epoch] = sealed
            self._latest.update({key_of(row): row for row in in_order(objects) if carries_files(row)})
            self._failpoint("ledger.epoch")

    def tables(self) -> Mapping[StateKey, StateRow]:
        with self._lock:
            return dict(self._tables)

    def put_tables(self, rows: Sequence[StateRow]) -> None:
        with self._lock:
            self._tables.update({state_key(row): row for row in rows})

    def remove_tables(self, keys: Sequence[StateKey]) -> None:
        with self._lock:
            for key in keys:
                self._tables.pop(key, None)

    def records(self) -> Sequence[Record]:
        with self._lock:
            return tuple(self._records.values())

    def put_records(self, records: Sequence[Record]) -> None:
        with self._lock:
            self._records.update({record_key(record): record for record in records})

    def remove_records(self, keys: Sequence[RecordKey]) -> None:
        with self._lock:
            for key in keys:
                self._records.pop(key, None)

    def latest_objects(self, keys: Iterable[Key]) -> Mapping[Key, ObjectRow]:
        with self._lock:
            return {key: self._latest[key] for key in keys if key in self._latest}

    def headers(self, upto: int) -> Sequence[ObjectRow]:
        return [row for row in self._rows(upto) if not row.partition]

    def rows_of(self, names: Collection[TableName], upto: int) -> Sequence[ObjectRow]:
        return [row for row in self._rows(upto) if TableName(row.database, row.table) in names]

    def places(self) -> Iterator[PlaceRow]:
        with self._lock:
            numbered = self._numbered_rows(max(self._epochs, default=0))
        for number, row in numbered:
            key = (row.database, row.table, row.partition, row.incarnation, row.event_id, row.change)
            yield PlaceRow(number, *key, row.location, row.claim)

    def _rows(self, upto: int) -> list[ObjectRow]:
        return [row for _, row in self._numbered_rows(upto)]

    def _numbered_rows(self, upto: int) -> list[tuple[int, ObjectRow]]:
        with self._lock:
            return [
                *self._kept_rows,
                *(
                    (number, row)
                    for number in sorted(self._epochs)
                    if number <= upto
                    for row in sorted(self._objects[number], key=lambda row: row.step)
                ),
            ]

    def forget(self, before_epoch: int) -> int:
        with self._lock:
            forgotten_epochs = [number for number in sorted(self._epochs)[:-1] if number < before_epoch]
            rows = self._numbered_rows(forgotten_epochs[-1]) if forgotten_epochs else []
            keep = needed(line_of(index, row) for index, (_, row) in enumerate(rows))
            if forgotten_epochs:
                self._kept_rows = [row for index, row in enumerate(rows) if index in keep]
            for number in forgotten_epochs:
                del self._epochs[number]
                del self._objects[number]
            return len(forgotten_epochs)


def key_of(row: ObjectRow) -> Key:
    return row.database, row.table, row.partition
