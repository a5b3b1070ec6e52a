"""A writer of ACID tables, which lays out its transactions as Hive does, and knows the rows that each commit shows.

    writer = AcidWriter(metastore, reader, transactions, storage)
    name = writer.create_table("sales", "orders", keys=("day",))
    with writer.transaction() as transaction:
        transaction.insert(name, {("1",): [(1, "a")], ("2",): [(2, "b")]})
        transaction.update(name, lambda row: row[0] == 2, lambda row: (2, "B"), ("2",))
    writer.rows(name)                   # by partition: row ids and values
    writer.clean(writer.compact(name, ("2",), is_major=True))

Metastores in memory and real ones have the calls that it makes, and so have all storages. Files lie in their final
directories before the metastore is told of them. Partitions are added, and statistics altered, before the commit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from calque.core.acid.directories import AcidDirectory, DirectoryKind, readable
from calque.core.acid.rows import EVENT_COLUMN, RowId, bucket_of
from calque.core.acid.write_ids import ValidWriteIds, WriteId
from calque.core.formats.layout import is_data, join
from calque.model.hive import Column, Partition, Table, location_of
from calque.model.names import EventId, TableName, partition_name, table_name
from calque.ports import CatalogReader, Storage
from support.judges.acid_rows import TableRow, directories
from support.sources.acid_files import (
    FORMATS,
    NOTE,
    ORC_VERSION,
    Row,
    RowEvent,
    base_name,
    content_of,
    delta_name,
    events_file,
    note,
    rows_file,
)
from support.sources.plain_transactions import PlainTransactions

COLUMNS = (Column("id", "int"), Column("v", "string"))
Values = tuple[str, ...]
"""Of a partition; empty for a table without partitions."""
Place = tuple[TableName, Values]
Rows = Mapping[str, Sequence[TableRow]]
"""By the name of a partition, `""` in a table without any: what `judges.acid_rows.rows_read` gives."""


class AcidMetastore(Protocol):
    """`HiveClient` and `MemoryMetastore` have these calls."""

    def create_table(self, table: Table) -> None: ...

    def alter_table(self, name: TableName, table: Table) -> None: ...

    def drop_table(self, name: TableName) -> None: ...

    def truncate_acid_table(self, name: TableName, write_id: int, partitions: Sequence[str] | None) -> None: ...

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None: ...

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None: ...

    def drop_partitions(self, name: TableName, names: Sequence[str]) -> None: ...

    def current(self) -> EventId: ...


@dataclass(frozen=True, slots=True)
class Change:
    """What one statement did to a table without partitions, or to a partition. The rows of an insert-only table have
    ids here, too, which no file has. With `replaces` rows of the write ids below are gone."""

    write_id: WriteId
    inserted: Mapping[RowId, Row] = field(default_factory=dict)
    deleted: frozenset[RowId] = frozenset()
    replaces: bool = False


@dataclass(slots=True)
class KnownTable:
    """A table as its writer knows it. `changes` has what was committed, `owners` the open transactions with their write
    ids of it."""

    columns: tuple[Column, ...]
    keys: tuple[str, ...]
    is_full: bool
    file_format: str
    changes: dict[Values, list[Change]] = field(default_factory=lambda: defaultdict(list))
    high: WriteId = 0
    owners: dict[int, WriteId] = field(default_factory=dict)
    aborted: set[WriteId] = field(default_factory=set)

    @property
    def layout(self) -> tuple[Sequence[Column], str]:
        return self.columns, self.file_format

    def committed(self, values: Values) -> dict[RowId, Row]:
        """The rows that readers see."""
        changes = self.changes.get(values, [])
        base = max((change.write_id for change in changes if change.replaces), default=0)
        shown = [one for one in changes if one.write_id > base or (one.replaces and one.write_id == base)]
        inserted = {row_id: row for change in shown for row_id, row in change.inserted.items()}
        deleted = frozenset[RowId]().union(*(change.deleted for change in shown))
        return {row_id: row for row_id, row in inserted.items() if row_id not in deleted}

    def compacted_upto(self) -> ValidWriteIds:
        """What a compaction reads: nothing from the first open write id on."""
        high = min(self.owners.values(), default=self.high + 1) - 1
        return ValidWriteIds(high, aborted=frozenset(one for one in self.aborted if one <= high))


@dataclass(frozen=True, slots=True)
class Compaction:
    """`obsolete` are the directories whose rows those have that the transaction wrote."""

    transaction: int
    obsolete: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommittedState:
    """The rows of all tables after the event of a commit."""

    event_id: EventId
    rows: Mapping[TableName, Rows]


class AcidWriter:
    """`is_hive_4`: names and notes are those of Hive 4, whose compactions have a suffix; else of Hive 3.1. Rows of a
    statement go to `buckets` files in turn."""

    def __init__(
        self,
        metastore: AcidMetastore,
        reader: CatalogReader,
        transactions: PlainTransactions,
        storage: Storage,
        *,
        is_hive_4: bool = True,
        buckets: int = 1,
    ) -> None:
        self.metastore, self.reader, self.transactions, self.storage = metastore, reader, transactions, storage
        self.is_hive_4, self.buckets = is_hive_4, buckets
        self.tables: dict[TableName, KnownTable] = {}
        self.commits: list[CommittedState] = []

    def create_table(
        self,
        database: str,
        name: str,
        keys: Sequence[str] = (),
        *,
        columns: tuple[Column, ...] = COLUMNS,
        is_full: bool = True,
        file_format: str = "orc",
    ) -> TableName:
        """Its place is chosen by the metastore."""
        properties = "default" if is_full else "insert_only"
        table = Table(
            name,
            database,
            "owner",
            storage=replace(FORMATS[file_format], columns=columns),
            partition_keys=tuple(Column(key, "string") for key in keys),
            parameters={"transactional": "true", "transactional_properties": properties},
            type="MANAGED_TABLE",
        )
        self.metastore.create_table(table)
        created = table_name(database, name)
        self.tables[created] = KnownTable(columns, tuple(keys), is_full, file_format)
        return created

    def rename(self, name: TableName, to: TableName) -> None:
        """Its directory moves, as it is at its natural place."""
        self.metastore.alter_table(name, replace(self.definition(name), database=to.database, name=to.table))
        self.tables[to] = self.tables.pop(name)

    def drop(self, name: TableName) -> None:
        """With its data."""
        self.metastore.drop_table(name)
        del self.tables[name]

    def drop_partition(self, name: TableName, values: Values) -> None:
        self.metastore.drop_partitions(name, [partition_name(self.tables[name].keys, values)])
        self.tables[name].changes.pop(values, None)

    @contextmanager
    def transaction(self) -> Iterator[AcidTransaction]:
        """A transaction that is committed at the end; aborted where the block raises."""
        transaction = self.begin()
        try:
            yield transaction
        except BaseException:
            transaction.abort()
            raise
        transaction.commit()

    def begin(self) -> AcidTransaction:
        [number] = self.transactions.open()
        return AcidTransaction(self, number)

    def rows(self, name: TableName) -> Rows:
        """What readers see of the table."""
        known = self.tables[name]
        return {
            partition_name(known.keys, values): sorted(
                ((row_id if known.is_full else (), *row) for row_id, row in known.committed(values).items()), key=repr
            )
            for values in known.changes
        }

    def valid(self, name: TableName) -> ValidWriteIds:
        """What a fold of the log has."""
        known = self.tables[name]
        return ValidWriteIds(known.high, frozenset(known.owners.values()), frozenset(known.aborted))

    def compact(self, name: TableName, values: Values = (), *, is_major: bool) -> Compaction | None:
        """Write the rows of a table without partitions, or of a partition, into one directory: a base, or beside what
        the base has, a delta of the inserts and one of the deletes. Nothing is removed. None where that changes
        nothing, as Hive sees it."""
        known, location = self.tables[name], self.location(name, values)
        valid = known.compacted_upto()
        found = directories(self.storage, location)
        read = readable(found, valid)
        chosen = read.all() if is_major else read.deltas
        if len({(one.low, one.high, one.statement) for one in chosen}) < 2:
            return None
        [transaction] = self.transactions.open()
        if is_major:
            low, high = 0, valid.high
            made = self.made_base(known, location, high, transaction, chosen)
        else:
            low, high = min(one.low for one in chosen), max(one.high for one in chosen)
            made = self.made_deltas(known, location, (low, high), transaction, chosen)
        part = partition_name(known.keys, values)
        self.transactions.commit_compaction(transaction, name, part, is_major=is_major)
        with self.only_statistics():
            self.tell_statistics(name, values)
        covered = [one for one in found if low <= one.low and one.high <= high and one.name not in made]
        return Compaction(transaction, tuple(join(location, one.name) for one in covered))

    def clean(self, compaction: Compaction | None) -> None:
        """As the cleaner does, which leaves no event."""
        if compaction is not None:
            self.storage.remove(compaction.obsolete)

    # What transactions are made of

    def definition(self, name: TableName) -> Table:
        table = self.reader.table(name)
        assert table is not None
        return table

    def location(self, name: TableName, values: Values = ()) -> str:
        location = location_of(self.definition(name))
        assert location is not None
        if not values:
            return location
        part = partition_name(self.tables[name].keys, values)
        found = self.reader.partitions(name, [part]).get(part)
        return (location_of(found) if found is not None else None) or join(location, part)

    def write(self, location: str, directory: str, files: Mapping[str, bytes], *, is_full: bool) -> None:
        place = join(location, directory)
        self.storage.make_directories([place])
        notes = {ORC_VERSION: b"2"} if is_full else {}
        for file, content in {**notes, **files}.items():
            self.storage.write(join(place, file), content)

    def event_files(self, known: KnownTable, events: Iterable[RowEvent], *, compacted: bool) -> dict[str, bytes]:
        """A file for each bucket, with its events in the order of their row ids."""
        by_bucket: dict[int, list[RowEvent]] = defaultdict(list)
        for event in events:
            by_bucket[event.row_id[1] >> 16 & 0xFFF].append(event)
        end = "_0" if self.is_hive_4 and not compacted else ""
        return {
            f"bucket_{bucket:05d}{end}": events_file(
                sorted(some, key=lambda event: (event.row_id, -event.write_id)), known.columns
            )
            for bucket, some in by_bucket.items()
        }

    def tell_statistics(self, name: TableName, values: Values) -> None:
        """Have the metastore know of the files of an existing partition, or of a table without partitions."""
        location = self.location(name, values)
        files = self.storage.list([location])[location].files
        counts = {"numFiles": str(len(files)), "totalSize": str(sum(file.size for file in files))}
        if not values:
            table = self.definition(name)
            self.metastore.alter_table(name, replace(table, parameters={**(table.parameters or {}), **counts}))
            return
        part = partition_name(self.tables[name].keys, values)
        partition = self.reader.partitions(name, [part])[part]
        changed = replace(partition, parameters={**(partition.parameters or {}), **counts})
        self.metastore.alter_partitions(name, [changed])

    def tell(self, name: TableName, written: Sequence[Values]) -> None:
        """Have the metastore know of partitions that were written, or of the table: new ones are added together."""
        known = self.tables[name]
        names = {values: partition_name(known.keys, values) for values in written if values}
        present = self.reader.partitions(name, list(names.values()))
        table = self.definition(name)
        storage = table.storage
        assert storage is not None
        new = [
            Partition(values, *name, storage=replace(storage, location=self.location(name, values)), parameters={})
            for values, part in names.items()
            if part not in present
        ]
        if new:
            self.metastore.add_partitions(name, new)
        for values in written:
            if not values or names[values] in present:
                self.tell_statistics(name, values)

    @contextmanager
    def only_statistics(self) -> Iterator[None]:
        """A transaction without write ids."""
        [transaction] = self.transactions.open()
        yield
        self.transactions.commit(transaction)

    def made_base(
        self, known: KnownTable, location: str, high: WriteId, transaction: int, chosen: Sequence[AcidDirectory]
    ) -> list[str]:
        directory = base_name(high) + self.suffix(transaction)
        events = self.events_of(known, location, chosen)
        deleted = {event.row_id for event in events if event.row is None}
        rows = [event for event in events if event.row is not None and event.row_id not in deleted]
        files = self.event_files(known, rows, compacted=True) if known.is_full else self.copies(location, chosen)
        notes = {} if self.is_hive_4 else {NOTE: note("compacted")}
        self.write(location, directory, {**files, **notes}, is_full=known.is_full)
        return [directory]

    def made_deltas(
        self,
        known: KnownTable,
        location: str,
        span: tuple[WriteId, WriteId],
        transaction: int,
        chosen: Sequence[AcidDirectory],
    ) -> list[str]:
        delta, deletes = (
            delta_name(kind, *span) + self.suffix(transaction)
            for kind in (DirectoryKind.DELTA, DirectoryKind.DELETE_DELTA)
        )
        if not known.is_full:
            self.write(location, delta, self.copies(location, chosen), is_full=False)
            return [delta]
        events = self.events_of(known, location, chosen)
        made = []
        for directory, is_delete in ((delta, False), (deletes, True)):
            some = [event for event in events if (event.row is None) == is_delete]
            if some:
                self.write(location, directory, self.event_files(known, some, compacted=True), is_full=True)
                made.append(directory)
        return made

    def events_of(self, known: KnownTable, location: str, chosen: Sequence[AcidDirectory]) -> list[RowEvent]:
        if not known.is_full:
            return []
        valid, names = known.compacted_upto(), [column.name for column in known.columns]
        events = []
        for content in self.contents(location, chosen):
            table = content_of(content, *known.layout)
            assert EVENT_COLUMN in table.column_names
            for row in table.to_pylist():
                values = None if row["row"] is None else tuple(row["row"][name] for name in names)
                row_id = (row["originalTransaction"], row["bucket"], row["rowId"])
                if valid.holds(row["currentTransaction"]):
                    events.append(RowEvent(row_id, row["currentTransaction"], values))
        return events

    def copies(self, location: str, chosen: Sequence[AcidDirectory]) -> dict[str, bytes]:
        """The files of an insert-only table, with names that no two of them have."""
        return {f"{number:06d}_0": content for number, content in enumerate(self.contents(location, chosen))}

    def contents(self, location: str, chosen: Sequence[AcidDirectory]) -> Iterator[bytes]:
        for one in chosen:
            place = join(location, one.name)
            for file in sorted(filter(is_data, self.storage.children(place))):
                yield self.storage.read(join(place, file)) or b""

    def suffix(self, transaction: int) -> str:
        return f"_v{transaction:07d}" if self.is_hive_4 else ""


class AcidTransaction:
    """A transaction of the writer. It reads what is committed, and what it wrote itself. An overwrite or a truncation
    is the only change of its partition by its transaction."""

    def __init__(self, writer: AcidWriter, number: int) -> None:
        self.writer, self.number = writer, number
        self._changes: dict[Place, list[Change]] = defaultdict(list)
        self._statements = 0

    def insert(self, name: TableName, rows: Mapping[Values, Sequence[Row]]) -> None:
        """One statement; of a table without partitions the values are `()`."""
        statement, write_id = self._next_statement(), self.write_id(name)
        for values, some in rows.items():
            self._insert(name, values, some, write_id, statement)
        self.writer.tell(name, list(rows))

    def delete(self, name: TableName, where: Callable[[Row], bool], values: Values = ()) -> None:
        statement, write_id = self._next_statement(), self.write_id(name)
        self._delete(name, values, self._matching(name, where, values), write_id, statement)
        self.writer.tell(name, [values])

    def update(
        self, name: TableName, where: Callable[[Row], bool], change: Callable[[Row], Row], values: Values = ()
    ) -> None:
        """Two directories, and the metastore is told of each."""
        write_id, matching = self.write_id(name), self._matching(name, where, values)
        self._delete(name, values, matching, write_id, self._next_statement())
        self.writer.tell(name, [values])
        changed = [change(row) for _, row in sorted(matching.items())]
        self._insert(name, values, changed, write_id, self._next_statement())
        self.writer.tell(name, [values])

    def overwrite(self, name: TableName, rows: Mapping[Values, Sequence[Row]]) -> None:
        statement, write_id = self._next_statement(), self.write_id(name)
        for values, some in rows.items():
            inserted = self._numbered(write_id, statement, some)
            self._write(name, values, base_name(write_id), inserted, write_id)
            self._changes[name, values].append(Change(write_id, inserted, replaces=True))
        self.writer.tell(name, list(rows))

    def truncate(self, name: TableName, values: Values = ()) -> None:
        """Hive 4 alone has it without removing files."""
        writer, write_id = self.writer, self.write_id(name)
        partitions = [partition_name(writer.tables[name].keys, values)] if values else None
        location = writer.location(name, values)
        writer.metastore.truncate_acid_table(name, write_id, partitions)
        writer.storage.create({join(location, f"{base_name(write_id)}/{NOTE}"): note("truncated")})
        self._changes[name, values].append(Change(write_id, replaces=True))

    def commit(self) -> None:
        writer = self.writer
        writer.transactions.commit(self.number)
        for (name, values), changes in self._changes.items():
            writer.tables[name].changes[values] += changes
        for known in writer.tables.values():
            known.owners.pop(self.number, None)
        rows = {name: writer.rows(name) for name in writer.tables}
        writer.commits.append(CommittedState(writer.metastore.current(), rows))

    def abort(self) -> None:
        """Files stay, and so do partitions that were added."""
        self.writer.transactions.abort(self.number)
        for known in self.writer.tables.values():
            if self.number in known.owners:
                known.aborted.add(known.owners.pop(self.number))

    def write_id(self, name: TableName) -> WriteId:
        """The transaction's write id of the table: every statement takes it, and some leave no directory."""
        known = self.writer.tables[name]
        if self.number not in known.owners:
            known.owners[self.number] = self.writer.transactions.allocate(name, [self.number])[self.number]
            known.high = max(known.high, known.owners[self.number])
        return known.owners[self.number]

    def _next_statement(self) -> int:
        self._statements += 1
        return self._statements - 1

    def _numbered(self, write_id: WriteId, statement: int, rows: Sequence[Row]) -> dict[RowId, Row]:
        buckets = self.writer.buckets
        return {
            (write_id, bucket_of(str(number % buckets), statement), number // buckets): row
            for number, row in enumerate(rows)
        }

    def _matching(self, name: TableName, where: Callable[[Row], bool], values: Values) -> dict[RowId, Row]:
        known = self.writer.tables[name]
        assert known.is_full
        own = self._changes[name, values]
        rows = known.committed(values) | {row_id: row for change in own for row_id, row in change.inserted.items()}
        gone = frozenset[RowId]().union(*(change.deleted for change in own))
        return {row_id: row for row_id, row in rows.items() if row_id not in gone and where(row)}

    def _insert(self, name: TableName, values: Values, rows: Sequence[Row], write_id: WriteId, statement: int) -> None:
        inserted = self._numbered(write_id, statement, rows)
        self._write(name, values, delta_name(DirectoryKind.DELTA, write_id, write_id, statement), inserted, write_id)
        self._changes[name, values].append(Change(write_id, inserted))

    def _delete(
        self, name: TableName, values: Values, rows: Mapping[RowId, Row], write_id: WriteId, statement: int
    ) -> None:
        known = self.writer.tables[name]
        events = [RowEvent(row_id, write_id, None) for row_id in rows]
        files = self.writer.event_files(known, events, compacted=False)
        directory = delta_name(DirectoryKind.DELETE_DELTA, write_id, write_id, statement)
        self.writer.write(self.writer.location(name, values), directory, files, is_full=True)
        self._changes[name, values].append(Change(write_id, deleted=frozenset(rows)))

    def _write(
        self, name: TableName, values: Values, directory: str, rows: Mapping[RowId, Row], write_id: WriteId
    ) -> None:
        known, writer = self.writer.tables[name], self.writer
        if known.is_full:
            events = [RowEvent(row_id, write_id, row) for row_id, row in rows.items()]
            files = writer.event_files(known, events, compacted=False)
        else:
            by_bucket: dict[int, list[Row]] = defaultdict(list)
            for (_, bucket, _), row in rows.items():
                by_bucket[bucket >> 16 & 0xFFF].append(row)
            files = {f"{bucket:06d}_0": rows_file(some, *known.layout) for bucket, some in sorted(by_bucket.items())}
        writer.write(writer.location(name, values), directory, files, is_full=known.is_full)
