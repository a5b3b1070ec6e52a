"""`repl.last.id` of databases at a target, which Hive's own tools read."""

from __future__ import annotations

from dataclasses import replace

from calque.engine.apply.hive_positions import LOOK_NS
from calque.model.hive import HIVE_POSITION, Column, Database, SerDe, Storage, Table
from calque.model.names import TableName
from support.memory.metastore import HIVE_4
from support.worlds.histories import PLAIN, differences
from support.worlds.worlds import World

NAME = TableName("d1", "t")


def marked_world() -> World:
    """A replica whose database carries Hive's mark."""
    world = World(0, HIVE_4, PLAIN)
    world.source.create_database(Database("d1", parameters={}))
    storage = Storage((Column("x", "int"),), location="file:/source/t", serde=SerDe(parameters={}))
    world.source.create_table(Table("t", "d1", storage=storage, type="MANAGED_TABLE", parameters={}))
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    carry(world, "7")
    return world


def carry(world: World, position: str) -> None:
    database = world.target_store.the_database("d1")
    parameters = {**(database.parameters or {}), HIVE_POSITION: position}
    world.target_store.alter_database("d1", replace(database, parameters=parameters))


def lose(world: World) -> None:
    """The database loses the mark, by somebody else."""
    database = world.target_store.the_database("d1")
    kept = {key: value for key, value in (database.parameters or {}).items() if key != HIVE_POSITION}
    world.target_store.alter_database("d1", replace(database, parameters=kept))


def position(world: World) -> str | None:
    return (world.target_store.the_database("d1").parameters or {}).get(HIVE_POSITION)


def change_table(world: World, owner: str) -> None:
    world.source.alter_table(NAME, replace(world.source.the_table(NAME).table, owner=owner))
    world.settle()


def test_a_database_that_carries_hives_mark_says_the_event_of_each_epoch() -> None:
    world = marked_world()
    world.restart_replica(world.ledger.copy())
    for owner in ("me", "you"):
        change_table(world, owner)
        last_epoch = world.ledger.last_epoch()
        assert last_epoch is not None
        assert position(world) == str(last_epoch.event_id)
    assert differences(world) == []


def test_a_change_of_the_database_leaves_the_mark_there() -> None:
    world = marked_world()
    world.restart_replica(world.ledger.copy())
    change_table(world, "me")
    world.source.alter_database("d1", Database("d1", "other", parameters={"k": "v"}))
    world.settle()
    database = world.target_store.the_database("d1")
    assert database.description == "other"
    assert position(world) == str(world.source.current())
    assert differences(world) == []


def test_a_database_that_lost_the_mark_gets_it_back_from_nobody() -> None:
    world = marked_world()
    world.restart_replica(world.ledger.copy())
    change_table(world, "me")
    lose(world)
    change_table(world, "you")
    assert position(world) is None


def test_a_database_that_carries_the_mark_of_late_says_the_last_event_though_no_epoch_follows() -> None:
    world = marked_world()
    world.restart_replica(world.ledger.copy())
    change_table(world, "me")
    lose(world)
    change_table(world, "you")
    carry(world, "7")
    change_table(world, "him")
    assert position(world) == "7"
    assert not world.replica.positions.is_due()
    world.clock.now += LOOK_NS
    assert world.replica.positions.is_due()
    world.settle()
    assert position(world) == str(world.source.current())
    assert not world.replica.positions.is_due()
