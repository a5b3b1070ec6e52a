"""A target's ledger as four Delta tables below one folder: `epochs`, `objects`, `tables`, and `internal` for records of
calque's own (port `Ledger`).

Epoch numbers rise one by one, so rows of `objects` count exactly when their number is at most the last epoch's.
Rows above it were left by a crash; the next `publish` removes them in the commit that writes its own. So that this
never hits rows that are about to count, a handle takes the ledger over at its first `publish`: in `epochs`, then in
`objects`, each in one commit, after which older handles can add to neither.

`forget` keeps the epoch rows that the newest rows of unchanged objects belong to, so that these still count for every
reader; `epochs` and `objects` show them no more.

A ledger of format 1, which had its records in `tables`, is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from calque.adapters.delta.columns import (
    EPOCHS,
    INTERNAL,
    OBJECTS,
    PLACE_COLUMNS,
    TABLES,
    epoch_of,
    epoch_record,
    key_of_state_row,
    object_of,
    object_record,
    place_of,
    removed_state_row,
    state_of,
    state_row,
)
from calque.adapters.delta.keyed import KeyedTable, Layout
from calque.adapters.delta.latest import LatestEpochs, ObjectKey, RecentRows, key_of
from calque.adapters.delta.record_codec import key_of_record_row, record_of_row, record_row, removed_record_row
from calque.adapters.delta.snapshot import NOT_THERE, DataFile, Snapshot, SnapshotChange
from calque.adapters.delta.table import RangedTable
from calque.core.records.contents import ENDINGS, LedgerLine, needed
from calque.core.records.continuity import carries_files, next_epoch
from calque.core.records.digest import in_order
from calque.core.records.state_formats import LEDGER_FORMAT
from calque.errors import Broken
from calque.model.ledger import Epoch, ObjectRow, PlaceRow, StateKey, StateRow
from calque.model.names import TableName
from calque.model.records import Record, RecordKey
from calque.model.secrets import Options

if TYPE_CHECKING:
    import pyarrow.dataset as ds


EPOCH = "epoch"
FORGOTTEN = "forgotten"
"""The application transaction that carries the first number of the epochs that are shown."""
WRITER = "writer"
"""The application transaction that carries the number of the handle that may publish."""
KEY_COLUMNS = (EPOCH, "database", "table", "partition", "carries_files")
LINE_COLUMNS = (
    EPOCH,
    "database",
    "table",
    "partition",
    "incarnation",
    "event_id",
    "change",
    "carries_files",
    "definition",
    "step",
)
CHANGE_COLUMNS = (
    EPOCH,
    "step",
    "database",
    "table",
    "partition",
    "incarnation",
    "event_id",
    "change",
    "location",
    "delta_version",
)


STATES: Layout[StateKey, StateRow] = Layout(
    TABLES, LEDGER_FORMAT, key_of_state_row, state_of, state_row, removed_state_row
)
RECORDS: Layout[RecordKey, Record] = Layout(
    INTERNAL, LEDGER_FORMAT, key_of_record_row, record_of_row, record_row, removed_record_row
)


@dataclass(frozen=True, slots=True)
class RowRetention:
    """The rows of one file of `objects` that `forget` keeps: `mask` has True for each. Where `sparse` is true, these
    are less than half of the file's rows, and the file is written anew with them alone; any other file stays whole.
    `epochs` are the numbers of the forgotten epochs from which kept rows come: their rows in `epochs` are kept, too."""

    mask: pa.Array
    sparse: bool
    epochs: frozenset[int]


@dataclass(frozen=True, slots=True)
class LedgerView:
    """The ledger's tables as datasets. Rows of both count from epoch `first` to epoch `last`; the datasets may have
    others."""

    first: int
    last: int
    epochs: ds.Dataset
    objects: ds.Dataset


def passed(failpoint: str) -> None:
    """Do nothing at the failpoint: the default of a ledger outside of tests."""


class DeltaLedger:
    """The ledger below `folder`, a path or URI. `storage_options` are delta-rs's. `failpoint` is called with
    `ledger.objects`, `ledger.tables` and `ledger.epoch` after each of these writes."""

    def __init__(
        self,
        folder: str,
        storage_options: Options | None = None,
        failpoint: Callable[[str], None] = passed,
    ) -> None:
        self._folder = folder.rstrip("/")
        self._failpoint = failpoint
        self._epochs = RangedTable(
            f"{self._folder}/epochs", EPOCHS, (EPOCH, FORGOTTEN, WRITER), storage_options, LEDGER_FORMAT
        )
        self._objects = RangedTable(f"{self._folder}/objects", OBJECTS, (WRITER,), storage_options, LEDGER_FORMAT)
        self._states = KeyedTable(f"{self._folder}/tables", STATES, storage_options)
        self._records = KeyedTable(f"{self._folder}/internal", RECORDS, storage_options)
        self._start()

    def __getstate__(self) -> dict[str, object]:
        attributes = ("_folder", "_failpoint", "_epochs", "_objects", "_states", "_records")
        return {name: getattr(self, name) for name in attributes}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._start()

    def _start(self) -> None:
        self._lock = threading.RLock()
        self._last: Epoch | None = None
        self._writer = 0
        self._latest = LatestEpochs()
        self._indexed = 0
        self._recent = RecentRows()

    def last_epoch(self) -> Epoch | None:
        number = self._epochs.snapshot().marks.get(EPOCH)
        if number is None:
            return None
        with self._lock:
            if self._last is None or self._last.epoch != number:
                self._last = self._read_epochs(range(number, number + 1))[-1]
            return self._last

    def epochs(self, after: int = 0) -> Sequence[Epoch]:
        marks = self._epochs.snapshot().marks
        return self._read_epochs(range(max(marks.get(FORGOTTEN, 0), after + 1), marks.get(EPOCH, -1) + 1))

    def objects(self, epoch: int) -> Sequence[ObjectRow]:
        marks = self._epochs.snapshot().marks
        if not marks.get(FORGOTTEN, 0) <= epoch <= marks.get(EPOCH, -1):
            return ()
        return in_order([object_of(row) for row in self._objects.read(range(epoch, epoch + 1)).to_pylist()])

    def is_there(self) -> bool:
        """Return whether the folder has a ledger, also one without an epoch."""
        tables = (self._epochs, self._states, self._records)
        return any(table.snapshot().version > NOT_THERE.version for table in tables)

    def numbers(self) -> range:
        """Return the numbers of the epochs that are not forgotten. It takes two look-ups of a name when nothing
        changed."""
        marks = self._epochs.snapshot().marks
        return range(max(marks.get(FORGOTTEN, 0), 1), marks.get(EPOCH, 0) + 1)

    def changes(self, numbers: range) -> tuple[Sequence[Epoch], pa.Table]:
        """Return the epochs of these numbers that are not forgotten, and the rows of `objects` that have these numbers,
        as `CHANGE_COLUMNS`, in the order of epoch and step."""
        shown = self.numbers()
        epochs = self._read_epochs(range(max(numbers.start, shown.start), min(numbers.stop, shown.stop)))
        rows = self._objects.read(numbers, CHANGE_COLUMNS)
        return epochs, rows.sort_by([(EPOCH, "ascending"), ("step", "ascending")])

    def view(self) -> LedgerView:
        """Return the ledger's newest state as datasets, for a query engine to read."""
        epochs = self._epochs.snapshot()
        objects = self._objects.snapshot()
        return LedgerView(
            epochs.marks.get(FORGOTTEN, 1),
            epochs.marks.get(EPOCH, 0),
            self._epochs.dataset(epochs),
            self._objects.dataset(objects),
        )

    def publish(self, epoch: Epoch, objects: Sequence[ObjectRow], tables: Sequence[StateRow]) -> None:
        with self._lock:
            sealed = next_epoch(self.last_epoch(), epoch, objects)
            if sealed is not None and not self._writer:
                self._take_over()
                sealed = next_epoch(self.last_epoch(), epoch, objects)
            if sealed is None:
                return
            rows = in_order(objects)
            self._index_up_to(sealed.epoch - 1)
            self._write_objects(sealed.epoch, rows)
            self._failpoint("ledger.objects")
            self._states.put(tables)
            self._failpoint("ledger.tables")
            self._write_epoch(sealed)
            self._failpoint("ledger.epoch")
            self._last = sealed
            self._remember(sealed.epoch, rows)
        self._objects.compact(below=sealed.epoch)
        self._epochs.compact()

    def tables(self) -> Mapping[StateKey, StateRow]:
        return self._states.read()

    def put_tables(self, rows: Sequence[StateRow]) -> None:
        self._states.put(rows)

    def remove_tables(self, keys: Sequence[StateKey]) -> None:
        self._states.remove(keys)

    def records(self) -> Sequence[Record]:
        return tuple(self._records.read().values())

    def put_records(self, records: Sequence[Record]) -> None:
        self._records.put(records)

    def remove_records(self, keys: Sequence[RecordKey]) -> None:
        self._records.remove(keys)

    def require_known_format(self) -> None:
        """Raise `Refused` where a newer calque has written the ledger, or a calque that wrote format 1."""
        for table in (self._epochs, self._objects, self._states, self._records):
            table.snapshot()

    def latest_objects(self, keys: Iterable[ObjectKey]) -> Mapping[ObjectKey, ObjectRow]:
        with self._lock:
            self._index_up_to(self._epochs.snapshot().marks.get(EPOCH, 0))
            epochs = {key: epoch for key in keys if (epoch := self._latest.find(key)) is not None}
            rows = {key: row for key, epoch in epochs.items() if (row := self._recent.find(key, epoch)) is not None}
        missing = {key: epoch for key, epoch in epochs.items() if key not in rows}
        if missing:
            missing_rows = self._objects.consistently(lambda snapshot: self._fetch(snapshot, missing))
            with self._lock:
                for key, row in missing_rows.items():
                    self._recent.put(missing[key], row)
            rows.update(missing_rows)
        return rows

    def headers(self, upto: int) -> Sequence[ObjectRow]:
        return self._rows(upto, ("partition",), lambda rows: pc.equal(rows["partition"], ""))

    def rows_of(self, names: Collection[TableName], upto: int) -> Sequence[ObjectRow]:
        tables = pa.array(sorted({name.table for name in names}), pa.string())
        candidates = self._rows(upto, ("table",), lambda rows: pc.is_in(rows["table"], tables))
        return [row for row in candidates if TableName(row.database, row.table) in names]

    def _rows(
        self, upto: int, columns: Sequence[str], match: Callable[[pa.Table], pa.ChunkedArray]
    ) -> Sequence[ObjectRow]:
        epochs, columns = range(upto + 1), (EPOCH, *columns)
        matches = self._objects.consistently(
            lambda snapshot: self._objects.files.matching(snapshot.holding(epochs), epochs, columns, match)
        )
        return [object_of(row) for row in matches.sort_by([(EPOCH, "ascending"), ("step", "ascending")]).to_pylist()]

    def places(self) -> Iterator[PlaceRow]:
        last = self._epochs.snapshot().marks.get(EPOCH, 0)
        rows = self._objects.read(range(last + 1), (*PLACE_COLUMNS, "step"))
        for batch in rows.sort_by([(EPOCH, "ascending"), ("step", "ascending")]).select(PLACE_COLUMNS).to_batches():
            yield from map(place_of, batch.to_pylist())

    def forget(self, before_epoch: int) -> int:
        last = self.last_epoch()
        if last is None:
            return 0
        before = min(before_epoch, last.epoch)
        count = sum(epoch.epoch < before for epoch in self.epochs())
        with self._lock:
            retentions = self._objects.consistently(lambda snapshot: self._worth_keeping(snapshot, before))
        owners = pa.array(
            sorted({epoch for retention in retentions.values() for epoch in retention.epochs}), pa.int64()
        )
        sparse = {file: retention for file, retention in retentions.items() if retention.sparse}
        self._epochs.rewrite(
            lambda snapshot: [file for file in snapshot.files if file.low < before],
            lambda file: retained(self._epochs.files.read([file]), before, owners),
            {FORGOTTEN: before},
        )
        self._objects.rewrite(
            lambda snapshot: [file for file in snapshot.files if file in sparse],
            lambda file: self._objects.files.read([file]).filter(sparse[file].mask),
        )
        self._states.vacuum()
        self._records.vacuum()
        return count

    def _read_epochs(self, numbers: range) -> Sequence[Epoch]:
        return tuple(epoch_of(row) for row in self._epochs.read(numbers).sort_by(EPOCH).to_pylist())

    def _take_over(self) -> None:
        self._epochs.widen()
        self._objects.widen()
        number = 0

        def decide(snapshot: Snapshot) -> SnapshotChange:
            nonlocal number
            number = snapshot.marks.get(WRITER, 0) + 1
            return SnapshotChange(marks={WRITER: number})

        self._epochs.commit(decide)
        self._writer = number

    def _write_objects(self, epoch: int, rows: Sequence[ObjectRow]) -> None:
        files = self._objects.write([pa.Table.from_pylist([object_record(row, epoch) for row in rows], schema=OBJECTS)])

        def decide(snapshot: Snapshot) -> SnapshotChange | None:
            self._demand_writer(snapshot)
            left_by_a_crash = tuple(file for file in snapshot.files if file.high >= epoch)
            first = snapshot.marks.get(WRITER, 0) < self._writer
            change = SnapshotChange(add=files, remove=left_by_a_crash, marks={WRITER: self._writer})
            return change if files or left_by_a_crash or first else None

        self._objects.commit(decide)

    def _write_epoch(self, epoch: Epoch) -> None:
        files = self._epochs.write([pa.Table.from_pylist([epoch_record(epoch)], schema=EPOCHS)])

        def decide(snapshot: Snapshot) -> SnapshotChange:
            self._demand_writer(snapshot)
            return SnapshotChange(add=files, marks={EPOCH: epoch.epoch})

        self._epochs.commit(decide)

    def _demand_writer(self, snapshot: Snapshot) -> None:
        if snapshot.marks.get(WRITER, 0) > self._writer:
            raise Broken(
                f"The ledger {self._folder} can't be written any more",
                "Another process has begun to publish to it",
                "Make sure that one calque only replicates to this target, then start it again",
            )

    def _remember(self, epoch: int, rows: Sequence[ObjectRow]) -> None:
        carrying = [row for row in rows if carries_files(row)]
        self._latest.add(map(key_of, carrying), epoch)
        for row in carrying:
            self._recent.put(epoch, row)
        self._indexed = epoch

    def _index_up_to(self, last: int) -> None:
        """Take the keys of epochs up to `last` that other handles published into the index."""
        if self._indexed >= last:
            return
        rows = self._objects.read(range(self._indexed + 1, last + 1), KEY_COLUMNS)
        rows = rows.filter(rows["carries_files"]).sort_by(EPOCH)
        epochs, keys = rows[EPOCH].to_pylist(), keys_of(rows)
        for epoch, key in zip(epochs, keys, strict=True):
            self._latest.add((key,), epoch)
        self._indexed = last

    def _fetch(self, snapshot: Snapshot, epoch_of: Mapping[ObjectKey, int]) -> dict[ObjectKey, ObjectRow]:
        epochs = sorted(set(epoch_of.values()))
        names, partitions = pa.array({key[1] for key in epoch_of}), pa.array({key[2] for key in epoch_of})

        def match(rows: pa.Table) -> pa.ChunkedArray:
            named = pc.and_(pc.is_in(rows["table"], names), pc.is_in(rows["partition"], partitions))
            return pc.and_(named, rows["carries_files"])

        rows = self._objects.files.matching(snapshot.holding(epochs), epochs, KEY_COLUMNS, match)
        objects = {}
        for row in rows.sort_by(EPOCH).to_pylist():
            key = (row["database"], row["table"], row["partition"])
            if epoch_of.get(key) == row[EPOCH]:
                objects[key] = object_of(row)
        return objects

    def _worth_keeping(self, snapshot: Snapshot, before: int) -> dict[DataFile, RowRetention]:
        """Return for each file with rows of epochs below `before` the rows that stay: those of `before` and later
        epochs, and older ones that are still needed."""
        files = [file for file in snapshot.files if file.low < before]
        rows = [self._objects.files.read([file], None, LINE_COLUMNS) for file in files]
        if not files:
            return {}
        all_rows = pa.concat_tables(rows)
        epochs, changes = all_rows[EPOCH].to_pylist(), all_rows["change"].to_pylist()
        numbered = all_rows.append_column("index", pa.array(range(all_rows.num_rows), pa.int64()))
        old = numbered.filter(pc.less(numbered[EPOCH], before))
        keep = needed(lines_of(old.sort_by([(EPOCH, "ascending"), ("step", "ascending")])))
        ends = list(accumulate(file.num_rows for file in rows))
        spans = dict(zip(files, map(range, [0, *ends], ends), strict=False))
        sparse = {
            file
            for file, span in spans.items()
            if sum(epochs[row] >= before or row in keep for row in span) < len(span) / 2
        }
        remaining = [epochs[row] for file in spans.keys() - sparse for row in spans[file] if row not in keep]
        ended = min(remaining, default=before)
        retentions = {}
        for file, span in spans.items():
            # A row that ended an object stays while older rows of ended objects may be left in other files.
            mask = [
                epochs[row] >= before or row in keep or (epochs[row] >= ended and changes[row] in ENDINGS)
                for row in span
            ]
            owners = frozenset(
                epochs[row] for row, is_kept in zip(span, mask, strict=True) if is_kept and epochs[row] < before
            )
            retentions[file] = RowRetention(pa.array(mask, pa.bool_()), file in sparse, owners)
        return retentions


def retained(rows: pa.Table, before: int, owners: pa.Array) -> pa.Table:
    """Return the rows of epochs from `before` on, and of the older epochs in `owners`, to which kept object rows
    belong."""
    return rows.filter(pc.or_(pc.greater_equal(rows[EPOCH], before), pc.is_in(rows[EPOCH], owners)))


def lines_of(rows: pa.Table) -> Iterator[LedgerLine]:
    columns = [rows[name].to_pylist() for name in ("index", *LINE_COLUMNS[1:])]
    for index, database, table, partition, incarnation, event_id, change, files, defines, _ in zip(
        *columns, strict=True
    ):
        name = TableName(database, table)
        yield LedgerLine(index, name, partition, incarnation, event_id, change, bool(files), bool(defines))


def keys_of(rows: pa.Table) -> list[ObjectKey]:
    columns = (rows[name].to_pylist() for name in ("database", "table", "partition"))
    return list(zip(*columns, strict=True))
