"""States that were over before anybody listed their files, and follow from what is known: no read, no bridge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.records.lifecycle import State
from calque.engine.files.copies import ContentLost, copied
from calque.model.hive import Column, Database, Partition, Storage, Table, location_of
from calque.model.names import TableName
from calque.ports import CopyTask
from support.memory.metastore import HIVE_3, HIVE_4, ServerHabits
from support.worlds.histories import differences
from support.worlds.worlds import World

DAYS = TableName("d1", "days")
COLUMNS = (Column("x", "int"),)


def with_days(habits: ServerHabits = HIVE_3, *, pins: bool = False) -> World:
    """A live table with two partitions."""
    world = World(1, habits, pins=pins)
    world.open()
    world.source.create_database(Database("d1"))
    key = (Column("day", "string"),)
    world.source.create_table(Table("days", "d1", storage=Storage(COLUMNS), partition_keys=key, type="MANAGED_TABLE"))
    world.note()
    world.source.add_partitions(DAYS, [Partition((day,), *DAYS, storage=Storage(COLUMNS)) for day in ("1", "2")])
    world.note()
    world.settle()
    return world


def insert(world: World, name: str, day: str = "1", content: bytes = b"rows") -> None:
    world.clock.now += 10_000_000
    path = f"{location_of(world.source.the_table(DAYS).partitions[day,])}/{name}"
    world.storage.write(path, content)
    world.source.insert(DAYS, [path], values=[day])
    world.note()


def drop(world: World, day: str) -> None:
    world.source.drop_partitions(DAYS, [f"day={day}"])
    world.note()


def alter(world: World, day: str = "1") -> None:
    partition = world.source.the_table(DAYS).partitions[day,]
    world.source.alter_partition(DAYS, replace(partition, parameters={**(partition.parameters or {}), "k": "v"}))
    world.note()


def shown_by_one_window(world: World) -> tuple[int, bool]:
    """How many hops a window over all that was written takes, and whether one of them is a bridge."""
    known = len(world.windows)
    world.capture_all()
    world.work()
    assert world.problems == []
    assert differences(world) == []
    assert world.reread == set()
    hops = [hop for window in world.windows[known:] for plan in window.plans for hop in plan.hops]
    return len(hops), any(hop.bridge for hop in hops)


@pytest.mark.parametrize("habits", [HIVE_3, HIVE_4])
def test_a_drop_between_two_inserts_takes_three_hops_though_only_the_last_state_was_listed(
    habits: ServerHabits,
) -> None:
    world = with_days(habits)
    insert(world, "000000_0")
    drop(world, "2")
    insert(world, "000000_0_copy_1")
    assert shown_by_one_window(world) == (3, False)


def test_an_alteration_after_an_insert_does_not_copy_what_was_there_before() -> None:
    world = with_days()
    insert(world, "large", content=bytes(20 << 20))
    world.settle()
    insert(world, "small")
    alter(world)
    copied: list[str] = []
    world.storage.before = lambda call, about: copied.append(about.rpartition("/")[2]) if call == "copy" else None
    assert shown_by_one_window(world) == (2, False)
    assert copied == ["small"]


def test_a_name_that_is_used_again_leaves_the_state_between_unknown() -> None:
    world = with_days()
    insert(world, "000000_0")
    drop(world, "2")
    insert(world, "000000_0")
    assert shown_by_one_window(world) == (1, True)


def test_files_of_a_state_between_come_from_the_pin_of_the_one_that_was_listed() -> None:
    world = with_days(pins=True)
    insert(world, "000000_0")
    drop(world, "2")
    insert(world, "000000_0_copy_1")
    wanted = [world.source_states()[DAYS]]
    world.capture_all()
    place = location_of(world.source.the_table(DAYS).partitions["1",]) or ""
    world.storage.remove([place])
    known = len(world.windows)
    world.work()
    assert world.problems == []
    assert [world.target_states()[DAYS]] == wanted
    assert [hop.bridge for window in world.windows[known:] for plan in window.plans for hop in plan.hops] == [False] * 3


def test_a_table_waits_however_many_of_its_states_have_lost_files() -> None:
    """The target met none of them before they were lost; what comes then is known again."""
    world = with_days()
    place = location_of(world.source.the_table(DAYS).partitions["1",])
    for number in range(9):
        insert(world, f"late-{number}")
        world.capture_all()
        world.storage.remove([f"{place}/late-{number}"])
    world.window()
    assert world.replica.tables.state(DAYS) is State.WAITING
    drop(world, "1")
    assert shown_by_one_window(world) == (1, False)


def test_a_copy_tells_of_all_files_that_it_lacks() -> None:
    world = with_days()
    lacking = CopyTask("file:/nowhere/a", "file:/target/a", 1, 1), CopyTask("file:/nowhere/b", "file:/target/b", 2, 2)
    with pytest.raises(ContentLost) as lost:
        copied(world.side, lacking)
    assert lost.value.files == {("file:/nowhere/a", 1, 1), ("file:/nowhere/b", 2, 2)}
