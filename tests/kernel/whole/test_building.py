"""Tables with more partitions than are held at a time: built hidden, or compared, in batches, while the source goes on
changing."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from calque.core.images.image import EVENT, INCARNATION
from calque.core.records.lifecycle import State
from calque.engine.exact_reads.pool import LandingRecorder, ReadOutcome
from calque.engine.sides.sides import SystemClock
from calque.engine.source.stable_listings import MOVING_NS
from calque.model.gaps import Gap, GapCause
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.ledger import TableRow
from calque.model.names import OURS, TableName
from calque.model.policy import Policy
from support.memory.ledger import MemoryLedger
from support.memory.metastore import HIVE_4
from support.memory.metastore.catalog import MemoryReader
from support.memory.metastore.store import StoredTable
from support.memory.metastore.stored import placed
from support.sources.endless import compare, read
from support.worlds.worlds import INPUT, OUTPUT, SERDE, Died, World

ORDERS = TableName("d1", "orders")
AT = TableName("d1_dr", "orders")
POLICY = Policy("dr", "hq", include=("d1.*",), rename={"d1": "d1_dr"}, warehouse="file:/target")
COLUMNS = (Column("x", "int"), Column("y", "string"))
STORAGE = Storage(COLUMNS, None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
PARTITIONS = 20
BATCH = 3


class Counting(MemoryReader):
    """The source, and how many partitions were read of it."""

    def __init__(self, world: World) -> None:
        super().__init__(world.source, before=world.called)
        self.read: list[int] = []

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        found = super().partitions(name, names)
        self.read.append(len(found))
        return found


@dataclass
class Gaps:
    """Gaps that a test says were found."""

    rows: list[Gap]

    def recorded(self) -> Sequence[Gap]:
        return self.rows

    def add(self, gap: Gap) -> None:
        self.rows.append(gap)


def begun(partitions: int = PARTITIONS, **more: Any) -> tuple[World, Counting]:
    """A bootstrap of one table, which no reader has begun."""
    world = World(1, HIVE_4, replace(POLICY, **more), batch=BATCH)
    counting = Counting(world)
    world.source_side = replace(world.source_side, catalog=counting, gaps=Gaps([]))
    world.replica = world.new_replica()
    world.writer.source.create_database(Database("d1"))
    create(world, partitions)
    world.clock.now += MOVING_NS
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    return world, counting


def create(world: World, partitions: int) -> None:
    keys, kind = (Column("p", "string"),), "MANAGED_TABLE"
    table = Table(ORDERS.table, ORDERS.database, "me", storage=STORAGE, partition_keys=keys, parameters={}, type=kind)
    world.writer.source.create_table(table)
    added = [Partition((f"{value:03}",), *ORDERS, storage=STORAGE, parameters={}) for value in range(partitions)]
    world.writer.source.add_partitions(ORDERS, added)


def at_call(world: World, method: str, count: int, action: Any) -> None:
    """Do something ahead of the call of that number, once."""
    left = count

    def between(called: str) -> None:
        nonlocal left
        left -= called == method
        if called == method and left == 0:
            action()

    world.between = between


def die() -> None:
    raise Died


def finished(world: World) -> None:
    world.between = lambda _: None
    world.settle()
    assert not world.problems
    mended(world)


def mended(world: World) -> None:
    world.settle()
    assert world.target_states()[ORDERS] == world.source_states()[ORDERS]
    if world.policy.data == "none" and world.source_states()[ORDERS]:
        assert places(world.target_store.the_table(AT)) == places(world.source.the_table(ORDERS))
    assert not [table for table in world.target_store.tables(OURS) if ORDERS.table in table]
    assert not world.replica.tables.in_state(State.QUARANTINED)
    rows = {row.partition for epoch in world.ledger.epochs() for row in world.ledger.objects(epoch.epoch)}
    assert rows >= {"", *world.source_side.catalog.partition_names(ORDERS)}


def places(stored: StoredTable) -> dict[tuple[str, ...], str | None]:
    return {values: location_of(thing) for values, thing in {(): stored.table, **stored.partitions}.items()}


@pytest.mark.parametrize("data", ["copy", "none"])
def test_no_more_than_a_batch_is_read_at_a_time_and_nothing_twice(data: str) -> None:
    world, counting = begun(data=data)
    finished(world)
    assert max(counting.read) <= BATCH
    assert sum(counting.read) == PARTITIONS


@pytest.mark.parametrize("method", ["add_partitions", "alter_table"])
def test_a_build_that_a_death_left_goes_on_and_reads_only_what_was_not_built(method: str) -> None:
    world, counting = begun()
    at_call(world, method, 4 if method == "add_partitions" else 1, die)
    world.survive(world.background.run)
    built = len(world.source_side.catalog.partition_names(ORDERS)) if method == "alter_table" else 3 * BATCH
    counting.read.clear()
    finished(world)
    assert sum(counting.read) == PARTITIONS - built


def test_partitions_that_a_death_left_in_the_empty_directory_are_built_again() -> None:
    world, counting = begun(data="none")
    at_call(world, "alter_partitions", 4, die)
    world.survive(world.background.run)
    counting.read.clear()
    finished(world)
    assert sum(counting.read) == PARTITIONS - 3 * BATCH


def test_a_partition_that_is_moved_while_it_is_built_lies_where_it_was_moved_to() -> None:
    world, _ = begun(data="none")
    moved = placed(world.source.the_table(ORDERS).partitions["001",], "file:/elsewhere/001")
    at_call(world, "partitions", 7, lambda: world.writer.source.alter_partitions(ORDERS, [moved]))
    world.survive(world.background.run)
    finished(world)


def test_what_changed_while_nobody_built_is_read_again_and_nothing_else() -> None:
    world, counting = begun()
    at_call(world, "add_partitions", 4, die)
    world.survive(world.background.run)
    source = world.writer.source
    stored = world.source.the_table(ORDERS)
    changed = replace(stored.partitions["001",], parameters={"changed": "yes"})
    source.alter_partitions(ORDERS, [changed])
    source.drop_partitions(ORDERS, ["p=002"])
    source.add_partitions(ORDERS, [Partition(("new",), *ORDERS, storage=STORAGE, parameters={})])
    world.clock.now += MOVING_NS
    counting.read.clear()
    finished(world)
    assert sum(counting.read) == (PARTITIONS - 3 * BATCH + 1) + 2


CHANGES = [
    "cascade",
    "drop",
    "drop and create",
    "rename",
    "partition anew",
    "header",
    "files",
    "content",
    "add and drop",
]


def change_table(world: World, change: str) -> None:
    """What somebody does to the table meanwhile."""
    source = world.writer.source
    stored = world.source.the_table(ORDERS)
    table = stored.table
    match change:
        case "cascade":
            wider = replace(table, storage=replace(table.storage, columns=(*COLUMNS, Column("z", "int"))))
            source.alter_table(ORDERS, wider, cascade=True)
        case "drop":
            source.drop_table(ORDERS)
        case "drop and create":
            source.drop_table(ORDERS)
            world.clock.now += 2_000_000_000
            create(world, PARTITIONS + 1)
        case "rename":
            source.alter_table(ORDERS, replace(table, name="others"))
            create(world, 2)
        case "partition anew":
            partition = stored.partitions["001",]
            source.drop_partitions(ORDERS, ["p=001"])
            place = replace(partition.storage, location=f"{partition.storage.location}.2")
            source.add_partitions(ORDERS, [replace(partition, storage=place)])
        case "header":
            source.alter_table(ORDERS, replace(table, owner="you"))
        case "content":
            partition = stored.partitions["000",]
            world.storage.write(f"{partition.storage.location}/more", b"rows")
            source.alter_partitions(ORDERS, [partition])
        case "files":
            partition = stored.partitions["000",]
            world.storage.write(f"{partition.storage.location}/more", b"rows")
            source.alter_partitions(ORDERS, [replace(partition, parameters={"rows": "more"})])
        case _:
            source.add_partitions(ORDERS, [Partition(("a",), *ORDERS, storage=STORAGE, parameters={})])
            source.drop_partitions(ORDERS, ["p=004", "p=019"])


def shown_as_is(world: World) -> None:
    world.between = lambda _: None
    world.settle()
    assert not world.problems
    shown = {name: state for name, state in world.target_states().items() if state is not None}
    assert shown == world.source_states()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("moment", [1, 3, 7])
@pytest.mark.parametrize("dies", [False, True])
def test_a_table_that_changes_while_it_is_built_is_shown_as_it_was_at_one_event(
    change: str, moment: int, dies: bool
) -> None:
    world, _ = begun()

    def happen() -> None:
        change_table(world, change)
        if dies:
            die()

    at_call(world, "partitions", moment, happen)
    world.survive(world.background.run)
    shown_as_is(world)
    if change == "drop and create":
        created = next(
            event.event_id for event in reversed(world.source.events(0)) if event.event_type == "CREATE_TABLE"
        )
        incarnation = (world.target_store.the_table(AT).table.parameters or {})[INCARNATION]
        assert int(incarnation.removeprefix("r")) >= created


def test_what_went_without_an_event_while_nobody_built_is_not_shown() -> None:
    world, _ = begun()
    at_call(world, "add_partitions", 4, die)
    world.survive(world.background.run)
    del world.source.the_table(ORDERS).partitions["001",]
    world.note()
    finished(world)


def test_marks_say_events_at_which_the_partitions_were_so() -> None:
    world, _ = begun()
    stored = world.source.the_table(ORDERS)
    changed = replace(stored.partitions["001",], parameters={"changed": "yes"})
    at_call(world, "partitions", 3, lambda: world.writer.source.alter_partitions(ORDERS, [changed]))
    finished(world)
    there = world.target_store.the_table(AT)
    marks = {values: int((one.parameters or {})[EVENT]) for values, one in there.partitions.items()}
    assert marks.pop(("001",)) == world.source.current()
    assert set(marks.values()) == {world.begin}
    assert {(one.parameters or {})[INCARNATION] for one in there.partitions.values()} == {f"r{world.begin}"}


def test_a_build_from_before_a_gap_is_not_gone_on_with() -> None:
    world, counting = begun()
    at_call(world, "add_partitions", 4, die)
    world.survive(world.background.run)
    assert world.source_side.gaps is not None
    world.source_side.gaps.add(Gap(1, world.begin, world.begin, GapCause.PURGED, ""))
    counting.read.clear()
    world.between = lambda _: None
    world.window_alone()
    world.settle()
    assert sum(counting.read) == PARTITIONS


def test_a_build_is_begun_anew_where_the_journal_does_not_reach_back_to_it() -> None:
    world, counting = begun()
    at_call(world, "add_partitions", 4, die)
    world.survive(world.background.run)
    world.between = lambda _: None
    for owner in ("you", "they", "me"):
        stored = world.source.the_table(ORDERS)
        world.writer.source.alter_table(ORDERS, replace(stored.table, owner=owner))
    world.capture_all()
    world.journal.forget(world.source.current() - 1)
    world.begin = world.source.current() - 1
    counting.read.clear()
    world.restart_replica(world.ledger)
    world.settle()
    assert sum(counting.read) == PARTITIONS
    assert world.target_states()[ORDERS] == world.source_states()[ORDERS]


@pytest.mark.parametrize("read", [read, compare], ids=["built", "compared"])
def test_memory_does_not_grow_with_definitions(read: Callable[[int, int], ReadOutcome]) -> None:
    def peak(batch: int) -> int:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        assert read(1500, batch).advanced is not None
        return tracemalloc.get_traced_memory()[1] - before

    tracemalloc.start()
    try:
        whole, batched = peak(1500), peak(50)
    finally:
        tracemalloc.stop()
    assert batched < whole / 3


def test_tables_that_land_at_a_time_are_recorded_together_and_told_of_when_they_are() -> None:
    commits: list[list[str]] = []
    told: list[str] = []

    class Recording(MemoryLedger):
        def put_tables(self, rows: Sequence[TableRow]) -> None:
            assert not {row.table for row in rows} & {*told}
            super().put_tables(rows)
            commits.append([row.table for row in rows])

    landed = LandingRecorder(
        Recording(),
        lambda read: told.append(read.table.table),
        lambda _: None,
        threading.Event(),
        60.0,
        SystemClock(),
    )
    landed.written_ns = landed.clock.now_ns()
    names = [f"t{number}" for number in range(5)]
    for name in names:
        landed.record(ReadOutcome(TableName("d1", name), 7))
    assert not told
    landed.stopping.set()
    landed.close()
    assert commits == [names] == [told]


def test_tables_that_landed_before_a_death_are_not_read_again() -> None:
    world, counting = begun()
    others = [TableName("d1", name) for name in ("a", "b")]
    for name in others:
        world.writer.source.create_table(Table(name.table, "d1", "me", storage=STORAGE, parameters={}))
    world.begin = world.capture.after = world.source.current()
    world.ledger = type(world.ledger)()
    world.restart_replica(world.ledger)
    world.background.run()
    world.writer.source.alter_partitions(ORDERS, [world.source.the_table(ORDERS).partitions["001",]])
    world.capture_all()
    world.restart()
    assert set(world.replica.tables.in_state(State.STAGING)) == {ORDERS, *others}
    counting.read.clear()
    world.settle()
    assert not world.problems
    assert world.target_states() == world.source_states()
    assert counting.read == []


def test_no_epoch_ends_before_what_a_table_shows_that_landed_before_a_death() -> None:
    world, _ = begun()
    for owner in ("you", "they"):
        stored = world.source.the_table(ORDERS)
        world.writer.source.alter_table(ORDERS, replace(stored.table, owner=owner))
    world.capture_all()
    world.background.run()
    shown = world.source.current()
    world.restart()
    world.background.run()
    world.window(shown - 1)
    assert world.replica.epochs.position() is None
    world.window(shown)
    assert world.replica.epochs.position() == shown


# Tables that the target has


def read_again(world: World, reason: str = "the test wants it") -> None:
    world.replica.reads.reread(lambda _: True, reason, {State.LIVE})


def there(**more: Any) -> tuple[World, Counting]:
    """The table is at the target, with all its partitions."""
    world, counting = begun(**more)
    finished(world)
    counting.read.clear()
    return world, counting


@pytest.mark.parametrize("data", ["copy", "none"])
def test_of_a_large_table_that_is_there_no_more_than_a_batch_is_read_at_a_time_and_what_differs_once_more(
    data: str,
) -> None:
    world, counting = there(data=data)
    stored = world.target_store.the_table(AT)
    other = replace(stored.partitions["007",], parameters={**(stored.partitions["007",].parameters or {}), "k": "v"})
    world.target_store.alter_partitions(AT, [other])
    world.target_store.drop_partitions(AT, ["p=003"])
    before = world.target_store.current()
    read_again(world)
    mended(world)
    assert max(counting.read) <= BATCH
    assert sum(counting.read) == PARTITIONS - 1 + 2
    written = [event.event_type for event in world.target_store.events(before)]
    assert sorted(written) == ["ADD_PARTITION", "ALTER_PARTITIONS"]


def test_a_large_table_that_is_as_it_was_is_not_written() -> None:
    world, counting = there()
    before = world.target_store.current()
    read_again(world)
    finished(world)
    assert sum(counting.read) == PARTITIONS
    assert world.target_store.current() == before


def test_files_that_differ_in_a_large_table_that_is_there_are_copied() -> None:
    world, _ = there()
    partition = world.target_store.the_table(AT).partitions["005",]
    assert partition.storage is not None
    world.storage.write(f"{partition.storage.location}/strange", b"rows")
    read_again(world)
    mended(world)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("moment", [1, 2, 9, 20])
def test_a_large_table_that_changes_while_it_is_compared_is_shown_as_it_was_at_one_event(
    change: str, moment: int
) -> None:
    world, _ = there()
    stored = world.target_store.the_table(AT)
    world.target_store.alter_partitions(AT, [replace(stored.partitions["007",], parameters={})])
    read_again(world)
    at_call(world, "partitions", moment, lambda: change_table(world, change))
    world.survive(world.background.run)
    shown_as_is(world)


def test_what_was_dropped_without_an_event_goes_from_a_large_table() -> None:
    world, _ = there()
    del world.source.the_table(ORDERS).partitions["001",]
    world.note()
    read_again(world)
    finished(world)
    assert ("001",) not in world.target_store.the_table(AT).partitions
