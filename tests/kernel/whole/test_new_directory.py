"""`appends = "new_directory"`: an INSERT makes a whole new directory, and one call switches to it."""

from __future__ import annotations

import time
from dataclasses import replace

from calque.core.formats.layout import join
from calque.engine.sweep.sweep import sweep_target
from calque.model.hive import Column, Database, Partition, Storage, Table, location_of
from calque.model.names import TableName
from calque.model.plan import AlterPartitions, Publish
from calque.model.policy import Policy
from support.worlds.worlds import World

NAME = TableName("d1", "t")
HOUR = 3600 * 10**9
POLICY = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", grace=3600)


def with_partition(policy: Policy) -> World:
    """A world whose target shows one partition with one file."""
    world = World(1, policy=policy)
    world.open()
    world.source.create_database(Database("d1"))
    table = Table(*reversed(NAME), storage=Storage((Column("x", "int"),)), partition_keys=(Column("p", "string"),))
    world.source.create_table(replace(table, type="MANAGED_TABLE"))
    location = join(location_of(world.source.the_table(NAME).table) or "", "p=1")
    world.storage.write(f"{location}/old", b"old")
    row = Partition(("1",), *NAME, storage=Storage((Column("x", "int"),), location), parameters={})
    world.source.add_partitions(NAME, [row])
    world.settle()
    return world


def insert(world: World) -> None:
    location = location_of(world.source.the_table(NAME).partitions[("1",)]) or ""
    world.storage.write(f"{location}/new", b"new")
    world.source.insert(NAME, [f"{location}/new"], values=("1",))
    world.settle()


def place_at_target(world: World) -> str:
    return location_of(world.target_store.the_table(NAME).partitions[("1",)]) or ""


def test_an_insert_switches_to_a_new_directory_in_one_call_and_the_old_one_goes_after_grace() -> None:
    world = with_partition(replace(POLICY, appends="new_directory"))
    old = place_at_target(world)
    insert(world)
    new = place_at_target(world)
    hops = [hop for window in world.windows for plan in window.plans for hop in plan.hops]
    assert isinstance(hops[-1].operation, AlterPartitions)
    assert new != old
    assert sorted(path for path, _ in world.storage.contents(new)) == ["new", "old"]
    assert [path for path, _ in world.storage.contents(old)] == ["old"]
    sweep_target(world.side, world.journal, time.time_ns() + HOUR * 9 // 10)
    assert world.storage.exists(f"{old}/old")
    sweep_target(world.side, world.journal, time.time_ns() + HOUR * 3)
    assert not world.storage.exists(old)
    assert world.storage.exists(f"{new}/old")


def test_in_place_an_insert_leaves_the_partition_where_it_is() -> None:
    world = with_partition(POLICY)
    old = place_at_target(world)
    insert(world)
    hops = [hop for window in world.windows for plan in window.plans for hop in plan.hops]
    assert isinstance(hops[-1].operation, Publish)
    assert place_at_target(world) == old
    assert world.source_states()[NAME] == world.target_states()[NAME]
