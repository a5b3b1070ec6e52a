"""The writer of ACID tables that other tests rely on: readers see in its files what it says, in memory and on real
metastores, and its files are those that Hive wrote in the recorded history."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.files.storage import FileStorage
from calque.adapters.metastore.reader import HiveReader
from calque.adapters.metastore.transactions import HiveTransactionReader
from calque.core.acid.directories import HistoryGone
from calque.core.acid.transactions import Compacted, transaction_event
from calque.core.acid.write_ids import ValidWriteIds, WriteIdFold
from calque.engine.sides.log_reads import events_after
from calque.model.hive import Database
from calque.model.names import TableName
from calque.ports import CatalogReader, EventLog, Storage
from calque.ports.transactions import TransactionReader
from calque.sandbox.writer import HiveClient
from support.judges.acid_rows import rows_read
from support.judges.recorded_acid import states
from support.memory.metastore import (
    HIVE_3,
    HIVE_4,
    MemoryLog,
    MemoryMetastore,
    MemoryReader,
    MemoryTransactionReader,
    ServerHabits,
)
from support.memory.storage import MemoryStorage
from support.runs.seeds import seed
from support.sources.acid_files import Row
from support.sources.acid_writer import AcidTransaction, AcidWriter, Rows, Values
from support.sources.plain_transactions import HiveTransactions
from support.sources.writers import Directories
from support.worlds.disks import Disk
from support.worlds.metastore_worlds import NUMBERS

WORLDS = ("memory-3", "memory-4", "disk-3", "disk-4", "hive-3.1.3", "hive-4.2.0")
DAYS = ("1", "2", "3")
STEPS, FEWER_STEPS = 80, 25


@dataclass
class Written:
    """A writer at a metastore, and what reads there. Its database is `database`."""

    writer: AcidWriter
    reader: CatalogReader
    transactions: TransactionReader
    log: EventLog
    storage: Storage
    database: str
    position: int
    takes_full_acid: bool = True
    fold: WriteIdFold = field(default_factory=WriteIdFold)

    def valid(self, name: TableName) -> ValidWriteIds:
        return self.transactions.valid_write_ids([name])[name]

    def read(self, name: TableName, valid: ValidWriteIds) -> Rows:
        """What a reader with these write ids sees of the table, by its partitions."""
        known = self.writer.tables[name]
        is_committed = self.transactions.open_transactions().is_committed
        parts = self.reader.partition_names(name) if known.keys else [""]
        return {
            part: rows_read(
                self.storage,
                self.writer.location(name, values_of(part)),
                valid,
                known.layout,
                is_full=known.is_full,
                is_committed=is_committed,
            )
            for part in parts
        }

    def compare(self) -> None:
        """Readers see what the writer says, and the log tells of the write ids."""
        for event in events_after(self.log, self.position, self.log.current()):
            self.fold.take_event(event)
            self.position = event.event_id
        for name in self.writer.tables:
            assert self.fold.valid(name) == self.writer.valid(name)
            assert shown(self.read(name, self.valid(name))) == shown(self.writer.rows(name)), name


def shown(rows: Rows) -> Rows:
    """Without partitions that have no rows."""
    return {part: some for part, some in rows.items() if some}


def is_numbered(number: int, row: Row) -> bool:
    return bool(row[0] == number)


def values_of(part: str) -> Values:
    return (part.partition("=")[2],) if part else ()


def in_memory(habits: ServerHabits, storage: Any, root: str) -> Written:
    store = MemoryMetastore(habits, f"{root}/warehouse", directories=Directories(storage))
    store.create_database(Database("sales"))
    reader = MemoryReader(store)
    writer = AcidWriter(store, reader, store.transactions, storage, is_hive_4=habits is HIVE_4)
    log = MemoryLog(store)
    return Written(writer, reader, MemoryTransactionReader(store), log, storage, "sales", store.current())


@pytest.fixture(params=WORLDS)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Written]:
    kind, _, version = request.param.partition("-")
    habits = HIVE_3 if version.startswith("3") else HIVE_4
    if kind != "hive":
        yield in_memory(habits, MemoryStorage() if kind == "memory" else Disk(), f"file:{tmp_path}")
        return
    client = HiveClient(request.getfixturevalue("metastore_of")(request.param).uri)
    database = f"acid_{next(NUMBERS)}"
    client.create_database(Database(database))
    reader, storage = HiveReader(client.client), FileStorage()
    transactions = HiveTransactions(client.client)
    writer = AcidWriter(client, reader, transactions, storage, is_hive_4=habits is HIVE_4)
    takes_full_acid = habits is HIVE_4
    transaction_reader = HiveTransactionReader(client.client)
    yield Written(writer, reader, transaction_reader, client.log, storage, database, client.current(), takes_full_acid)
    client.close()


@pytest.mark.parametrize("keys", [(), ("day",)], ids=["plain", "partitioned"])
@pytest.mark.parametrize("form", ["full", "parquet", "text"])
def test_each_statement_shows_its_rows_by_its_commit(written: Written, form: str, keys: tuple[str, ...]) -> None:
    writer, is_full = written.writer, form == "full"
    if is_full and not written.takes_full_acid:
        pytest.skip("the server takes no full ACID tables")
    name = writer.create_table(
        written.database, "orders", keys, is_full=is_full, file_format="orc" if is_full else form
    )
    here: Values = ("1",) if keys else ()
    part = "day=1" if keys else ""

    def values() -> set[tuple[object, ...]]:
        written.compare()
        return {row[1:] for row in written.read(name, written.valid(name))[part]}

    with writer.transaction() as transaction:
        transaction.insert(name, {here: [(1, "a"), (2, "b"), (3, None)]})
        assert written.read(name, written.valid(name)) in ({part: []}, {})
    assert values() == {(1, "a"), (2, "b"), (3, None)}
    with writer.transaction() as transaction:
        transaction.insert(name, {here: [(4, "d")]})
        if is_full:
            transaction.update(name, lambda row: row[0] in (2, 4), lambda row: (row[0], "new"), here)
            transaction.delete(name, lambda row: row[0] == 1, here)
    changed = {(2, "new"), (3, None), (4, "new")} if is_full else {(1, "a"), (2, "b"), (3, None), (4, "d")}
    assert values() == changed
    aborted = writer.begin()
    aborted.insert(name, {here: [(9, "never")]})
    aborted.abort()
    assert values() == changed
    writer.clean(writer.compact(name, here, is_major=False))
    assert values() == changed
    writer.clean(writer.compact(name, here, is_major=True))
    assert values() == changed
    with writer.transaction() as transaction:
        transaction.overwrite(name, {here: [(7, "only")]})
        assert values() == changed
    assert values() == {(7, "only")}
    if writer.is_hive_4:
        with writer.transaction() as transaction:
            transaction.truncate(name, here)
        assert values() == set()
    assert [state.rows[name].get(part, ()) == [] for state in writer.commits] == [False] * 3 + [True] * writer.is_hive_4


def test_a_transaction_over_several_tables_and_partitions_is_one_commit(written: Written) -> None:
    writer = written.writer
    names = [
        writer.create_table(written.database, "items", ("day",), is_full=False, file_format="parquet"),
        writer.create_table(written.database, "orders", is_full=False, file_format="text"),
    ]
    with writer.transaction() as transaction:
        transaction.insert(names[0], {("1",): [(1, "a")]})
    before = written.log.current()
    with writer.transaction() as transaction:
        transaction.insert(names[0], {("1",): [(2, "b")], ("2",): [(3, "c")], ("3",): [(4, "d")]})
        transaction.insert(names[1], {(): [(5, "e")]})
    events = list(events_after(written.log, before, written.log.current()))
    altered = "ALTER_PARTITIONS" if writer.is_hive_4 else "ALTER_PARTITION"
    assert [event.event_type for event in events] == [
        "OPEN_TXN",
        "ALLOC_WRITE_ID_EVENT",
        "ADD_PARTITION",
        altered,
        "ALLOC_WRITE_ID_EVENT",
        "ALTER_TABLE",
        "COMMIT_TXN",
    ]
    written.compare()
    assert sorted(written.read(names[0], written.valid(names[0]))) == ["day=1", "day=2", "day=3"]
    assert writer.commits[-1].event_id == events[-1].event_id


def test_states_before_a_compaction_are_read_from_deltas_and_gone_in_a_base(written: Written) -> None:
    if not written.takes_full_acid:
        pytest.skip("the server takes no full ACID tables")
    writer = written.writer
    name = writer.create_table(written.database, "orders")
    past: list[tuple[ValidWriteIds, Rows]] = []
    aborted = writer.begin()
    for number in range(1, 6):
        with writer.transaction() as transaction:
            transaction.insert(name, {(): [(number, "a"), (-number, "b")]})
            transaction.delete(name, partial(is_numbered, number - 1))
        if number == 2:
            aborted.insert(name, {(): [(9, "never")]})
        past.append((written.valid(name), writer.rows(name)))
    aborted.abort()
    writer.clean(writer.compact(name, is_major=False))
    written.compare()
    assert len(written.storage.children(writer.location(name))) == 2
    for valid, rows in past:
        assert written.read(name, valid) == rows
    assert len({str(rows) for _, rows in past}) == 5
    with writer.transaction() as transaction:
        transaction.insert(name, {(): [(7, "c")]})
    writer.clean(writer.compact(name, is_major=True))
    written.compare()
    for valid, _ in past:
        with pytest.raises(HistoryGone):
            written.read(name, valid)


def test_a_compaction_is_a_transaction_without_write_ids_and_the_cleaner_leaves_no_event(written: Written) -> None:
    """A real server writes COMMIT_COMPACTION_EVENT of compactions in its own queue alone."""
    writer = written.writer
    name = writer.create_table(written.database, "items", ("day",), is_full=False, file_format="text")
    for number in (1, 2):
        with writer.transaction() as transaction:
            transaction.insert(name, {("1",): [(number, "a")]})
    before = written.log.current()
    writer.clean(writer.compact(name, ("1",), is_major=True))
    events = list(events_after(written.log, before, written.log.current()))
    is_told = writer.is_hive_4 and isinstance(written.reader, MemoryReader)
    altered = "ALTER_PARTITIONS" if writer.is_hive_4 else "ALTER_PARTITION"
    compacted = ["COMMIT_COMPACTION_EVENT"] if is_told else []
    kinds = ["OPEN_TXN", "COMMIT_TXN", *compacted, "OPEN_TXN", altered, "COMMIT_TXN"]
    assert [event.event_type for event in events] == kinds
    told = [one for one in map(transaction_event, events) if isinstance(one, Compacted)]
    assert [(one.table, one.partition, one.is_major) for one in told] == [(name, "day=1", True)] * is_told
    assert writer.compact(name, ("1",), is_major=True) is None


def test_a_compaction_stops_at_the_first_open_write_id(written: Written) -> None:
    writer = written.writer
    name = writer.create_table(written.database, "orders", is_full=written.takes_full_acid)
    for number in (1, 2):
        with writer.transaction() as transaction:
            transaction.insert(name, {(): [(number, "a")]})
    still_open = writer.begin()
    still_open.insert(name, {(): [(3, "b")]})
    with writer.transaction() as transaction:
        transaction.insert(name, {(): [(4, "c")]})
    writer.clean(writer.compact(name, is_major=True))
    written.compare()
    still_open.commit()
    written.compare()
    assert {row[1] for row in written.read(name, written.valid(name))[""]} == {1, 2, 3, 4}


def test_rows_go_to_buckets_in_turn(written: Written) -> None:
    written.writer.buckets = 2
    name = written.writer.create_table(written.database, "orders", is_full=written.takes_full_acid, file_format="orc")
    with written.writer.transaction() as transaction:
        transaction.insert(name, {(): [(number, "x") for number in range(5)]})
    written.compare()
    location = written.writer.location(name)
    files = [name for name in written.storage.children(f"{location}/delta_0000001_0000001_0000") if name[0] not in "_."]
    assert len(files) == 2


def test_write_ids_and_files_follow_a_rename_and_end_with_a_table(written: Written) -> None:
    writer = written.writer
    name = writer.create_table(written.database, "orders", ("day",), is_full=False, file_format="text")
    with writer.transaction() as transaction:
        transaction.insert(name, {("1",): [(1, "a")], ("2",): [(2, "b")]})
    renamed = TableName(written.database, "archive")
    writer.rename(name, renamed)
    written.compare()
    with writer.transaction() as transaction:
        transaction.insert(renamed, {("2",): [(3, "c")]})
    written.compare()
    writer.drop_partition(renamed, ("1",))
    written.compare()
    writer.drop(renamed)
    again = writer.create_table(written.database, "archive", is_full=False, file_format="text")
    with writer.transaction() as transaction:
        transaction.insert(again, {(): [(4, "d")]})
    written.compare()


def test_readers_see_what_the_writer_says_after_each_step_of_a_random_history(written: Written) -> None:
    story = Story(written, random.Random(f"{written.database} {seed()}"))
    for _ in range(STEPS if isinstance(written.reader, MemoryReader) else FEWER_STEPS):
        story.step()
        written.compare()
        story.look_back()


@dataclass
class Story:
    """Transactions that overlap, aborts, compactions and the cleaner."""

    written: Written
    rng: random.Random
    open: list[tuple[AcidTransaction, set[TableName]]] = field(default_factory=list)
    compactions: list[Any] = field(default_factory=list)
    past: list[tuple[TableName, ValidWriteIds, Rows]] = field(default_factory=list)
    """Of full ACID tables: a compaction hides no state of theirs but those before a base."""
    numbers: int = 0

    def __post_init__(self) -> None:
        writer, database = self.written.writer, self.written.database
        writer.buckets = 2
        for name, keys in (("plain", ()), ("parts", ("day",))):
            if self.written.takes_full_acid:
                writer.create_table(database, f"full_{name}", keys)
            for file_format in ("text", "parquet"):
                writer.create_table(database, f"{file_format}_{name}", keys, is_full=False, file_format=file_format)

    def step(self) -> None:
        if self.rng.random() < 0.2:
            self.compact()
        elif len(self.open) < 3 and self.rng.random() < 0.6:
            self.open.append((self.written.writer.begin(), set()))
        elif self.open:
            transaction, tables = self.rng.choice(self.open)
            free = sorted(self.written.writer.tables.keys() - tables)
            if len(tables) < 3 and free and self.rng.random() < 0.7:
                name = self.rng.choice(free)
                tables.add(name)
                self.write(transaction, name)
            else:
                (transaction.abort if self.rng.random() < 0.25 else transaction.commit)()
                self.open.remove((transaction, tables))

    def look_back(self) -> None:
        """A state that was is read as it was, as long as its files are there."""
        for name, known in self.written.writer.tables.items():
            if known.is_full:
                self.past.append((name, self.written.valid(name), self.written.writer.rows(name)))
        if self.past:
            name, valid, rows = self.rng.choice(self.past)
            with suppress(HistoryGone):
                assert shown(self.written.read(name, valid)) == shown(rows)

    def write(self, transaction: AcidTransaction, name: TableName) -> None:
        known = self.written.writer.tables[name]
        parts: Sequence[Values] = [(day,) for day in DAYS] if known.keys else [()]
        some = self.rng.sample(parts, self.rng.randint(1, len(parts)))
        dice = self.rng.random()
        if dice < 0.15:
            transaction.overwrite(name, self.rows(some))
        elif dice < 0.25 and self.written.writer.is_hive_4 and known.changes:
            transaction.truncate(name, self.rng.choice(sorted(known.changes)))
        elif dice < 0.6 and known.is_full and known.changes:
            values, chance = self.rng.choice(sorted(known.changes)), self.rng.randint(2, 4)
            if self.rng.random() < 0.5:
                transaction.delete(name, lambda row: row[0] % chance == 0, values)
            else:
                transaction.update(name, lambda row: row[0] % chance == 0, lambda row: (row[0], "new"), values)
        else:
            transaction.insert(name, self.rows(some))

    def rows(self, parts: Sequence[Values]) -> Mapping[Values, Sequence[tuple[int, str]]]:
        self.numbers += 1
        return {
            values: [(10 * self.numbers + one, f"v{one}") for one in range(self.rng.randint(0, 4))] for values in parts
        }

    def compact(self) -> None:
        if self.compactions and self.rng.random() < 0.5:
            self.written.writer.clean(self.compactions.pop())
            return
        name = self.rng.choice(sorted(self.written.writer.tables))
        known = self.written.writer.tables[name]
        if known.changes:
            values = self.rng.choice(sorted(known.changes))
            self.compactions = [self.written.writer.compact(name, values, is_major=self.rng.random() < 0.5)]


# As Hive wrote


def test_files_rows_and_row_ids_are_those_of_the_recorded_history() -> None:
    """Of its table `f`, statement by statement."""
    storage = MemoryStorage()
    written = in_memory(HIVE_4, storage, "file:/w")
    writer = written.writer
    name = writer.create_table("sales", "f")
    recorded = {state.after: state for state in states() if state.table == TableName("w", "f")}

    def is_as_recorded(after: int) -> None:
        written.compare()
        state = recorded[after]
        assert files_below(storage, writer.location(name)) == sorted(map(unnumbered, state.files)), after
        if state.rows is not None:
            assert sorted(map(printed, written.read(name, written.valid(name))[""])) == sorted(state.rows), after

    with writer.transaction() as transaction:
        transaction.insert(name, {(): [(1, "a"), (2, "b"), (3, "c")]})
    is_as_recorded(13)
    with writer.transaction() as transaction:
        transaction.update(name, lambda row: row[0] == 2, lambda _: (2, "B"))
    is_as_recorded(20)
    with writer.transaction() as transaction:
        transaction.delete(name, lambda row: row[0] == 1)
    is_as_recorded(26)
    with writer.transaction() as transaction:  # MERGE
        transaction.delete(name, lambda row: row[0] == 2)
        transaction.update(name, lambda row: row[0] == 3, lambda _: (3, "cc"))
        transaction.insert(name, {(): [(11, "a"), (12, "b")]})
    is_as_recorded(109)
    aborted = writer.begin()
    aborted.write_id(name)  # of a failed statement, which has no directory
    aborted.abort()
    is_as_recorded(114)
    with writer.transaction() as transaction:
        transaction.insert(name, {(): [(20, "t")]})
    is_as_recorded(118)
    minor = writer.compact(name, is_major=False)
    is_as_recorded(126)
    writer.clean(minor)
    is_as_recorded(134)
    with writer.transaction() as transaction:
        transaction.delete(name, lambda row: row[0] == 3)
    is_as_recorded(138)
    writer.clean(writer.compact(name, is_major=True))
    is_as_recorded(154)
    with writer.transaction() as transaction:
        transaction.overwrite(name, {(): [(11, "a"), (12, "b"), (20, "t")]})
    is_as_recorded(178)


def files_below(storage: MemoryStorage, location: str) -> list[str]:
    return sorted(
        unnumbered(f"{directory}/{file}")
        for directory in storage.children(location)
        for file in storage.children(f"{location}/{directory}")
    )


def unnumbered(path: str) -> str:
    """Without the number of a compaction's transaction."""
    return re.sub(r"_v\d+", "_v", path)


def printed(row: tuple[Any, ...]) -> str:
    (write_id, bucket, number), *values = row
    return "\t".join([f'{{"writeid":{write_id},"bucketid":{bucket},"rowid":{number}}}', *map(str, values)])
