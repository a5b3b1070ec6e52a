"""How much a window holds: a bounded number of events, more of them behind a backlog, and every call of the source
that it begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from calque.control.window_size import EVENT_BYTES, MOST_EVENTS, WindowSize
from calque.model.hive import Column, Database, Function, Partition, SerDe, Storage, Table
from calque.model.names import Span, TableName
from support.worlds.parts import create_tables, open_world, part_of, wiring_of
from support.worlds.worlds import World

TABLE = TableName("d1", "t")


@pytest.fixture
def world() -> World:
    return open_world()


def create_partitions(world: World, count: int) -> list[Partition]:
    world.source.create_database(Database("d1"))
    storage = Storage((Column("x", "int"),), serde=SerDe(parameters={}))
    keys = (Column("p", "string"),)
    world.source.create_table(Table("t", "d1", storage=storage, partition_keys=keys, parameters={}))
    rows = [
        Partition((str(number),), "d1", "t", storage=replace(storage, location=f"file:/t/{number}"), parameters={})
        for number in range(count)
    ]
    world.source.add_partitions(TABLE, rows)
    world.capture_all()
    world.settle()
    return rows


def spans(world: World) -> list[Span]:
    """Of the published windows."""
    return [Span(epoch.from_event_id, epoch.event_id) for epoch in world.ledger.epochs()[1:]]


def test_a_batch_that_ends_far_ahead_is_taken_in_windows_of_at_most_max_events(world: World, tmp_path: Path) -> None:
    create_tables(world, 10)
    part_of(world, tmp_path, 4).windows.apply_until(world.replica, 11)
    assert spans(world) == [Span(0, 4), Span(4, 8), Span(8, 11)]


def test_a_stop_ends_between_two_windows_and_the_next_start_takes_the_rest(world: World, tmp_path: Path) -> None:
    create_tables(world, 10)
    part = part_of(world, tmp_path, 4)
    part.run.stopping.set()
    part.windows.apply_until(world.replica, 11)
    assert spans(world) == [Span(0, 4)]
    part.run.stopping.clear()
    part.windows.apply_until(world.replica, 11)
    assert spans(world) == [Span(0, 4), Span(4, 8), Span(8, 11)]


def test_behind_a_backlog_each_window_holds_twice_as_many_events_up_to_the_bound(world: World, tmp_path: Path) -> None:
    create_tables(world, 60)
    part = part_of(world, tmp_path, 4)
    part.windows.window_size.most = 20
    part.windows.apply_until(world.replica, 61)
    assert [len(span) for span in spans(world)] == [4, 8, 16, 20, 13]
    assert part.windows.window_size.due() == 4


def test_who_goes_on_behind_a_window_that_may_have_died_takes_one_of_that_size(tmp_path: Path) -> None:
    wiring = wiring_of(tmp_path, "")
    first = WindowSize.of(wiring, "dr")
    first.begin()
    first.end(is_behind=True)
    assert first.begin() == 200_000
    assert WindowSize.of(wiring, "dr").due() == 200_000


@pytest.mark.parametrize(
    ("more", "most"),
    [
        ("", MOST_EVENTS),
        ("[window]\nmax_delay = 0", MOST_EVENTS),
        ("[window]\nmax_events = 7", 7),
        ("[window]\nmax_events = 1_000_000", 1_000_000),
        ('consistency = "database"', 100_000),
    ],
)
def test_windows_grow_where_the_configuration_leaves_their_size_to_calque(tmp_path: Path, more: str, most: int) -> None:
    assert WindowSize.of(wiring_of(tmp_path, more), "dr").most == most
    assert MOST_EVENTS * EVENT_BYTES == 512 * 2**20


def test_a_window_ends_with_the_call_that_it_begins_however_many_events_that_wrote(
    world: World, tmp_path: Path
) -> None:
    rows = create_partitions(world, 1500)
    before = world.source.current()
    world.source.alter_partitions(TABLE, [replace(row, parameters={"w": "1"}) for row in rows])
    world.source.alter_table(TABLE, replace(world.source.the_table(TABLE).table, parameters={"v": "1"}))
    world.capture_all()
    assert world.source.current() == before + 1501
    part_of(world, tmp_path, 100).windows.apply_window(world.replica, before + 100)
    assert spans(world)[-1] == Span(before, before + 1500)


@pytest.mark.parametrize("parted", [False, True])
@pytest.mark.parametrize(("at_target", "stays"), [("org.example.F", False), ("org.example.Other", True)])
def test_a_function_that_is_made_and_dropped_ends_alike_in_one_window_and_in_two(
    world: World, at_target: str, parted: bool, stays: bool
) -> None:
    name = TableName("d1", "f")
    world.source.create_database(Database("d1"))
    world.settle()
    world.target_store.create_function(Function("f", "d1", at_target))
    world.source.create_function(Function("f", "d1", "org.example.F"))
    if parted:
        world.settle()
    world.source.drop_function(name)
    world.settle()
    assert (world.target_store.function(name) is not None) == stays
