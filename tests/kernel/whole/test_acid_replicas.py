"""ACID tables that are ACID tables at the target, too."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from calque.engine.sides.committed_journal import with_commits
from calque.engine.sides.sides import TargetSide
from calque.engine.source.acid_read import read_state
from calque.engine.source.commits import CommitFinder
from calque.engine.verify.verify import verify
from calque.errors import Unavailable
from calque.model.hive import Column, Partition, SerDe, Storage, Table, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.model.policy import Policy
from support.memory.commits import MemoryCommits
from support.memory.metastore import HIVE_3, MemoryTransactionReader
from support.worlds.acid import COLUMNS, INSERT_ONLY, AcidWriters
from support.worlds.histories import differences
from support.worlds.worlds import INPUT, OUTPUT, SERDE, World

NATIVE = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", acid="native")


def settled(seed: int) -> tuple[World, AcidWriters, TableName]:
    """A table with some rows, which the target has."""
    world = World(seed, policy=NATIVE)
    writers = AcidWriters.of(world, seed)
    world.open()
    writers.create()
    writers.inserted()
    world.settle()
    (name,) = writers.tables()
    return world, writers, name


def writers_at_target(world: World) -> AcidWriters:
    target = world.target_store
    reader = MemoryTransactionReader(target)
    return AcidWriters(target, world.storage, target.transactions, reader, lambda: None, random.Random(1))


def quarantined(world: World) -> dict[str, str]:
    """Why, by table."""
    rows = world.ledger.tables().values()
    return {str(row.name): row.reason for row in rows if row.state == TableState.QUARANTINED}


def taken_up(world: World, acid: str) -> None:
    """Another process takes the target up, with another word for ACID tables."""
    world.policy = replace(world.policy, acid=acid)
    transactions = world.target_transactions() if acid == "native" else None
    world.side = TargetSide.of(
        world.policy, world.target_catalog(), world.ledger, world.storage, transactions=transactions
    )
    world.looker = replace(world.looker, imaging=world.side.imaging)
    world.background.waiting.clear()
    world.replica = world.new_replica()
    world.open()
    world.settle()


def verified(world: World) -> list[str]:
    source = with_commits(world.source_side, world.side.admission)
    return [str(one) for one in verify(source, world.side, data="checksum").differences]


def test_another_word_for_acid_tables_builds_the_other_kind_of_table() -> None:
    world, writers, name = settled(1)
    for acid, kind in (("external", "EXTERNAL_TABLE"), ("native", "MANAGED_TABLE"), ("external", "EXTERNAL_TABLE")):
        taken_up(world, acid)
        writers.inserted()
        world.settle()
        assert world.target_store.the_table(name).table.type == kind
        assert quarantined(world) == {}
        assert verified(world) == []


def test_verify_finds_rows_that_somebody_writes_at_the_target_before_the_next_event() -> None:
    world, _, _ = settled(1)
    assert verified(world) == []
    writers_at_target(world).inserted()
    assert verified(world) != []


def test_rows_that_somebody_writes_at_the_target_set_the_table_aside_until_they_are_gone() -> None:
    world, writers, name = settled(1)
    foreign = writers_at_target(world)
    foreign.inserted()
    rows = {place: list(world.storage.children(place)) for place in foreign.places(name)}
    writers.inserted()
    world.settle()
    assert "has rows that calque did not write" in quarantined(world)[str(name)]
    assert {place: list(world.storage.children(place)) for place in foreign.places(name)} == rows
    world.target_store.drop_table(name)
    world.storage.remove(list(rows))
    world.replica.requests.release.tables({name}.__contains__, {str(name)}.__contains__, "the test wants it")
    world.settle()
    assert differences(world) == []


def test_a_write_id_that_was_given_at_the_target_for_no_rows_is_given_again() -> None:
    """Whether its transaction is open, aborted or committed."""
    for seed, end in enumerate(("", "abort", "commit")):
        world, writers, name = settled(seed + 2)
        plain = world.target_store.transactions
        (transaction,) = plain.open()
        plain.allocate(name, [transaction])
        if end:
            getattr(plain, end)(transaction)
        writers.inserted()
        world.settle()
        assert quarantined(world) == {}
        assert differences(world) == [], end


@pytest.mark.parametrize("rows", [1, 3])
def test_a_metastore_of_hive_3_gets_no_rows_of_acid_tables(rows: int) -> None:
    world = World(5, policy=NATIVE)
    target = world.target_store
    target.habits = target.transactions._habits = HIVE_3
    writers = AcidWriters.of(world, 5)
    world.open()
    writers.create()
    for _ in range(rows):
        writers.inserted()
    world.settle()
    (name,) = writers.tables()
    assert "can't have" in quarantined(world)[str(name)]
    assert target.tables(name.database) == []


@pytest.mark.parametrize("acid", ["external", "native"])
def test_a_partition_in_the_place_of_one_that_went_is_not_taken_for_it(acid: str) -> None:
    """Capture looks when both had rows."""
    world = World(7, policy=replace(NATIVE, acid=acid))
    writers, name = AcidWriters.of(world, 7), TableName("d1", "t")
    world.open()
    with world.uninterrupted():
        storage = Storage(columns=COLUMNS, input_format=INPUT, output_format=OUTPUT, serde=SerDe(None, SERDE, {}))
        keys = (Column("p", "string"),)
        world.source.create_table(
            Table(name.table, name.database, "o", 0, 0, 0, storage, keys, dict(INSERT_ONLY), type="MANAGED_TABLE")
        )
        write_rows(world, writers, name)
        partition = world.source.the_table(name).partitions["1",]
        world.source.rename_partition(name, ("1",), replace(partition, values=("2",)))
        world.note()
        write_rows(world, writers, name)
    world.settle()
    assert quarantined(world) == {}
    assert (world.problems, differences(world)) == ([], [])
    assert verified(world) == []


def write_rows(world: World, writers: AcidWriters, name: TableName) -> None:
    """A new partition with rows, at the place that is the same each time."""
    table = world.source.the_table(name).table
    place = f"{location_of(table)}/p=1"
    (transaction,) = writers.transactions.open()
    write_id = writers.transactions.allocate(name, [transaction])[transaction]
    storage = replace(table.storage or Storage(), location=place)
    world.source.add_partitions(name, [Partition(("1",), *name, storage=storage)])
    world.note()
    writers.put(place, write_id, overwrites=False)
    writers.transactions.commit(transaction)
    world.note()


class Absent(MemoryTransactionReader):
    """Unavailable until it is `back`."""

    def __init__(self, world: World) -> None:
        self.back = threading.Event()
        super().__init__(world.source, before=self.answer)

    def answer(self, call: str) -> None:
        if not self.back.is_set():
            raise Unavailable(f"{call} is not answered", "the test wants it")


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_why_commits_can_not_be_found_out_is_said_until_they_can() -> None:
    world, _, _ = settled(6)
    reader, stopping = Absent(world), threading.Event()
    finder = CommitFinder(world.source_side, MemoryCommits(), reader, lambda _: True)
    thread = threading.Thread(target=finder.run, args=(stopping,), daemon=True)
    thread.start()
    until(lambda: "is not answered" in (finder.problem or ""))
    reader.back.set()
    until(lambda: finder.problem is None)
    stopping.set()
    thread.join()


def test_the_database_of_a_native_table_without_rows_takes_managed_tables_below_the_warehouse() -> None:
    """Where it does not, a Hive 4 refuses the table."""
    for seed in range(4):
        world = World(seed, policy=NATIVE)
        writers = AcidWriters.of(world, seed)
        world.open()
        writers.create()
        world.settle()
        assert world.target_store.the_database("d1").managed_location == NATIVE.warehouse


def compact_and_clean(writers: AcidWriters, name: TableName, *, is_major: bool) -> None:
    writers.compact_one(name, major=is_major)
    writers.compacted()
    writers.clean()


@pytest.mark.parametrize("is_major", [False, True])
def test_a_compaction_that_ends_before_the_finder_of_commits_looks_takes_no_rows_away(is_major: bool) -> None:
    """Of the events that the finder has, none is about the compaction; what it replaced is gone."""
    for seed in range(6):
        world, writers, name = settled(seed)
        for _ in range(3):
            writers.inserted()
        world.append_log()
        compact_and_clean(writers, name, is_major=is_major)
        assert world.finder is not None
        world.gathering = True
        world.finder.run_once()
        world.gathering = False
        world.settle()
        assert differences(world) == []


@pytest.mark.parametrize("is_major", [False, True])
def test_a_compaction_during_a_read_of_a_table_leaves_its_files_unknown(is_major: bool) -> None:
    world, writers, name = settled(0)
    for _ in range(3):
        writers.inserted()
    places = dict(zip(writers.partition_names(name) or [""], writers.places(name), strict=True))
    between = [lambda: compact_and_clean(writers, name, is_major=is_major)]

    def come_between(method: str) -> None:
        if method == "valid_write_ids" and between:
            between.pop()()

    world.between = come_between
    source, table = world.source_side, world.source.the_table(name).table
    assert source.transactions is not None
    assert read_state(source, source.transactions, table, places).listings is None
    listings = read_state(source, source.transactions, table, places).listings
    assert listings is not None
    assert listings.keys() == places.keys()
