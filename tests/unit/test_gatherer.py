"""`engine.capture.Gatherer`: what becomes evidence when not everything can be listed."""

from __future__ import annotations

from calque.model.hive import Column, Database, Storage, Table, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from worlds import World

GOOD, BAD = TableName("d1", "good"), TableName("d1", "bad")


def with_tables() -> World:
    """A world with two live tables."""
    world = World(1)
    world.open()
    world.source.create_database(Database("d1"))
    for name in (GOOD, BAD):
        world.source.create_table(
            Table(name.table, name.database, storage=Storage((Column("x", "int"),)), type="MANAGED_TABLE")
        )
    world.settle()
    return world


def place_of(world: World, name: TableName) -> str:
    return location_of(world.source.the_table(name).table) or ""


def test_a_file_in_place_of_a_directory_costs_no_other_table_its_evidence() -> None:
    world = with_tables()
    world.storage.remove([place_of(world, BAD)])
    world.storage.write(place_of(world, BAD), b"no directory")
    world.source.insert(BAD, [place_of(world, BAD)])
    world.storage.write(f"{place_of(world, GOOD)}/f", b"1")
    world.source.insert(GOOD, [f"{place_of(world, GOOD)}/f"])
    world.capture_all()
    world.work()
    assert world.target_states()[GOOD] == world.source_states()[GOOD]
    assert world.replica.tables.in_state(TableState.WAITING) == [BAD]


def test_what_can_not_be_listed_is_quarantined_with_the_reason_in_the_end() -> None:
    world = with_tables()
    world.storage.remove([place_of(world, BAD)])
    world.storage.write(place_of(world, BAD), b"no directory")
    world.source.insert(BAD, [place_of(world, BAD)])
    world.capture_all()
    world.work()
    world.clock.now += 40_000_000_000
    world.work()
    world.work()
    row = world.replica.tables.rows[BAD]
    assert (row.state, place_of(world, BAD) in row.reason) == (TableState.QUARANTINED, True)
