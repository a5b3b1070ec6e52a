"""Worlds for gaps: a small warehouse of which everything is live, and what may happen to it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TypeVar

from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.ledger import NotLiveReason
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.model.records import DropReview, GapRecovery, one_of
from support.worlds.worlds import INPUT, OUTPUT, SERDE, World

POLICY = Policy("dr", "hq", include=("d*.*",), rename={"d2": "d2_dr"}, warehouse="file:/target")
W = TypeVar("W", bound=World)


def world_of(tables: int = 4, partitions: int = 3, policy: Policy = POLICY, *, opened: bool = True) -> World:
    """`d1` with so many partitioned tables and one plain one, a file in each directory; everything live."""
    return filled(World(1, policy=policy), tables, partitions, opened=opened)


def filled(world: W, tables: int = 6, partitions: int = 3, *, opened: bool = True) -> W:
    """The same, in that world."""
    world.writer.source.create_database(Database("d1"))
    for number in range(tables):
        create(world, f"t{number}", ("p",))
        add(world, f"t{number}", *(f"{value}" for value in range(partitions)))
    create(world, "plain")
    world.writer.put_file("file:/source/d1.db/plain")
    world.history.states.clear()
    world.note()
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    if opened:
        world.open()
        world.settle()
    return world


def create(world: World, name: str, keys: tuple[str, ...] = (), database: str = "d1") -> None:
    storage = Storage((Column("x", "int"),), None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
    columns = tuple(Column(key, "string") for key in keys)
    world.writer.source.create_table(Table(name, database, storage=storage, partition_keys=columns, parameters={}))


def add(world: World, name: str, *values: str) -> None:
    table = world.source.the_table(TableName("d1", name)).table
    rows = []
    for value in values:
        location = f"file:/source/d1.db/{name}/p={value}"
        world.writer.put_file(location)
        assert table.storage is not None
        rows.append(Partition((value,), "d1", name, storage=replace(table.storage, location=location), parameters={}))
    world.writer.source.add_partitions(TableName("d1", name), rows)


def counted(world: World) -> Counter[str]:
    """Calls from now on, by method, of the storage's copies too."""
    calls: Counter[str] = Counter()

    def stored(method: str, _about: str) -> None:
        calls[method] += 1

    world.between = lambda method: calls.update([method])
    world.storage.before = stored
    return calls


def drops_of(world: World) -> DropReview:
    """What became of drops by difference, as the ledger has it."""
    recovery = one_of(world.ledger.records(), GapRecovery)
    assert recovery is not None
    return recovery.drops


def held(world: World) -> list[str]:
    return sorted(name.table for name, row in world.replica.tables.rows.items() if row.why is NotLiveReason.HELD)


def drop(world: World, *names: str) -> None:
    for name in names:
        world.writer.source.drop_table(TableName("d1", name))


def at_target(world: World) -> list[str]:
    return sorted(world.target_store.tables("d1"))
