"""Renames cost no read of what the target has, and no bridge; what comes from elsewhere is read under its own name."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from calque.core.records.lifecycle import State
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, is_partitioned, location_of
from calque.model.names import TableName
from calque.model.policy import Policy
from support.worlds.histories import differences
from support.worlds.worlds import World

A, B, TMP, OTHER, LAST = (TableName("d1", name) for name in ("a", "b", "tmp", "other", "last"))
OUTSIDE = TableName("x", "a")
COLUMNS = Storage((Column("v", "int"),), serde=SerDe(parameters={}))


@pytest.fixture
def world() -> World:
    """A target of `d1`; `d1` and `x` are empty."""
    return world_of("table")


def world_of(consistency: Literal["table", "database"]) -> World:
    policy = Policy("dr", "hq", include=("d1.*",), warehouse="file:/target", consistency=consistency)
    world = World(1, policy=policy)
    for database in ("d1", "x"):
        world.source.create_database(Database(database))
    world.open()
    world.settle()
    return world


def create(world: World, name: TableName, *, partitioned: bool = False) -> None:
    """With one file, in partition `p=1` where it has partitions."""
    keys = (Column("p", "string"),) if partitioned else ()
    world.source.create_table(Table(name.table, name.database, storage=COLUMNS, partition_keys=keys, parameters={}))
    world.note()
    if partitioned:
        add_partition(world, name, "1")
    else:
        insert(world, name)


def table_of(world: World, name: TableName) -> Table:
    return world.source.the_table(name).table


def insert(world: World, name: TableName) -> None:
    world.source.insert(name, [world.writer.put_file(location_of(table_of(world, name)) or "")])
    world.note()


def rename(world: World, was: TableName, name: TableName, location: str | None = None) -> None:
    """To another name, and with `location` to another place."""
    table = table_of(world, was)
    storage = replace(table.storage or COLUMNS, location=location) if location else table.storage
    world.source.alter_table(was, replace(table, database=name.database, name=name.table, storage=storage))
    world.note()


def drop(world: World, name: TableName) -> None:
    world.source.drop_table(name)
    world.note()


def swap(world: World, one: TableName, other: TableName) -> None:
    rename(world, one, TMP)
    rename(world, other, one)
    rename(world, TMP, other)


def read_by(world: World) -> list[TableName]:
    """The tables that were read, in order, since the windows that were noted last."""
    return [name for window in world.windows if window.landed for plan in window.plans for name in plan.tables]


def check_nothing_was_crossed(world: World) -> None:
    assert world.problems == []
    assert differences(world) == []
    assert not any(hop.bridge for window in world.windows for plan in window.plans for hop in plan.hops)


def add_partition(world: World, name: TableName, value: str) -> None:
    """With one file."""
    place = f"{location_of(table_of(world, name))}/p={value}"
    world.writer.put_file(place)
    world.source.add_partitions(
        name, [Partition((value,), *name, storage=replace(COLUMNS, location=place), parameters={})]
    )
    world.note()


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_swap_costs_three_hops_and_no_file(world: World, partitioned: bool) -> None:
    for name in (A, B):
        create(world, name, partitioned=partitioned)
    world.settle()
    world.windows.clear()
    swap(world, A, B)
    world.settle()
    (window,) = [window for window in world.windows if window.epoch is not None]
    assert window.epoch is not None
    assert (window.epoch.hops, window.epoch.files, window.landed) == (3, 0, 0)
    assert world.reread == set()
    check_nothing_was_crossed(world)


def test_a_file_that_is_not_listed_before_its_table_is_renamed_is_found_under_the_new_name(world: World) -> None:
    create(world, A)
    world.settle()
    world.windows.clear()
    insert(world, A)
    rename(world, A, B)
    rename(world, B, TMP)
    world.settle()
    assert read_by(world) == []
    check_nothing_was_crossed(world)


def test_a_rename_to_another_place_brings_what_lies_there(world: World) -> None:
    create(world, A)
    world.settle()
    world.writer.put_file("file:/elsewhere")
    rename(world, A, B, "file:/elsewhere")
    world.settle()
    check_nothing_was_crossed(world)


def test_only_the_name_that_a_table_comes_to_from_outside_is_read(world: World) -> None:
    create(world, A)
    create(world, OUTSIDE)
    world.settle()
    world.windows.clear()
    rename(world, A, B)
    rename(world, OUTSIDE, A)
    world.capture_all()
    world.window_alone()
    assert world.replica.tables.state(B) is State.LIVE
    assert world.replica.tables.is_(A, {State.UNKNOWN, State.READING})
    world.settle()
    assert read_by(world) == [A]
    assert world.reread == set()
    check_nothing_was_crossed(world)


def test_a_swap_over_the_edge_of_the_policy_shows_that_there_was_none_in_between(world: World) -> None:
    create(world, A)
    create(world, OUTSIDE)
    world.settle()
    world.windows.clear()
    rename(world, A, TableName("x", "b"))
    rename(world, OUTSIDE, A)
    world.settle()
    assert read_by(world) == [A]
    check_nothing_was_crossed(world)


def test_a_live_table_stays_live_when_it_is_swapped_with_one_that_is_being_read(world: World) -> None:
    create(world, A)
    create(world, B)
    world.settle()
    world.windows.clear()
    world.replica.reads.need(A, "the test wants it", world.replica.cursor)
    rename(world, B, TMP)
    insert(world, TMP)
    world.capture_all()
    world.window_alone()
    assert world.replica.tables.state(TMP) is State.LIVE
    rename(world, A, B)
    world.capture_all()
    world.window_alone()
    assert world.replica.tables.state(TMP) is State.LIVE
    world.settle()
    assert sorted(read_by(world)) == [A, B]
    check_nothing_was_crossed(world)


def test_a_table_that_was_made_anew_while_it_waits_to_be_read_crosses_no_bridge(world: World) -> None:
    create(world, A)
    world.settle()
    world.windows.clear()
    world.replica.reads.need(A, "the test wants it", world.replica.cursor)
    drop(world, A)
    create(world, A, partitioned=True)
    world.settle()
    assert is_partitioned(table_of(world, A))
    check_nothing_was_crossed(world)


def test_a_table_of_the_same_second_that_comes_to_a_name_shares_no_directory_with_the_one_that_had_it() -> None:
    world = World(1, policy=Policy("dr", "hq", include=("d1.*",), warehouse="file:/target"))
    for database in ("d1", "x"):
        world.source.create_database(Database(database))
    for name in (A, OUTSIDE):
        create(world, name, partitioned=True)
    made = {table_of(world, name).create_time for name in (A, OUTSIDE)}
    assert len(made) == 1
    world.open()
    world.settle()
    rename(world, A, B)
    rename(world, OUTSIDE, A)
    world.settle()
    places = [location_of(world.target_store.the_table(name).table) for name in (A, B)]
    assert len({*places}) == 2, places
    check_nothing_was_crossed(world)


@pytest.mark.parametrize("comes", [False, True])
def test_a_table_takes_the_name_of_one_that_went_with_files_nobody_knows(world: World, comes: bool) -> None:
    """`comes`: the one that went was made since the target was looked at."""
    if not comes:
        create(world, A, partitioned=True)
    create(world, B)
    world.settle()
    world.windows.clear()
    if comes:
        create(world, A, partitioned=True)
    add_partition(world, A, "2")
    swap(world, A, B)
    drop(world, B)
    world.settle()
    assert read_by(world) == []
    check_nothing_was_crossed(world)
    (plan,) = (plan for window in world.windows for plan in window.plans if plan.hops)
    operations = [type(hop.operation).__name__ for hop in plan.hops]
    assert operations == (["AlterTable"] if comes else ["DropTable", "AlterTable"])


def test_the_tables_of_a_database_have_one_order_whatever_is_not_known() -> None:
    world = world_of("database")
    create(world, A, partitioned=True)
    create(world, B)
    world.settle()
    world.windows.clear()
    add_partition(world, A, "2")
    swap(world, A, B)
    drop(world, B)
    world.settle()
    assert A in read_by(world)
    assert world.problems == []
    assert differences(world) == []


def test_a_table_whose_files_nobody_knows_is_read_where_it_is_there_at_the_end(world: World) -> None:
    create(world, A, partitioned=True)
    create(world, B)
    world.settle()
    world.windows.clear()
    add_partition(world, A, "2")
    swap(world, A, B)
    world.source.drop_partitions(B, ["p=2"])
    world.note()
    world.settle()
    assert {A, B} <= {*read_by(world)}
    assert world.problems == []
    assert differences(world) == []


def test_a_table_that_is_left_out_takes_no_other_name(world: World) -> None:
    create(world, A, partitioned=True)
    for name in (B, OTHER):
        create(world, name)
    world.settle()
    world.windows.clear()
    add_partition(world, A, "2")
    rename(world, A, TMP)
    rename(world, TMP, LAST)
    rename(world, B, A)
    rename(world, OTHER, B)
    drop(world, LAST)
    world.settle()
    assert read_by(world) == []
    check_nothing_was_crossed(world)


def test_tables_that_came_to_other_names_before_a_death_are_dropped_there(world: World) -> None:
    for name in (A, B):
        create(world, name)
    world.settle()
    ledger = world.ledger.copy()
    rename(world, B, OTHER)
    rename(world, A, B)
    world.settle()
    world.restart_replica(ledger)
    insert(world, B)
    drop(world, OTHER)
    drop(world, B)
    world.settle()
    assert world.problems == []
    assert differences(world) == []
