"""What readers are told of survives deaths, and is told by an epoch."""

from __future__ import annotations

from dataclasses import replace

from calque.core.formats.layout import join
from calque.core.records.lifecycle import State
from calque.engine.sides.announced_exceptions import AnnouncedExceptions, bridges, in_parts, parts
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.ledger import Bridge, Parts
from calque.model.names import TableName
from calque.model.records import AnnouncedBridge, AnnouncedParts
from support.memory.ledger import MemoryLedger
from support.memory.metastore import HIVE_4
from support.worlds.worlds import World

ORDERS, PAST = TableName("d1", "orders"), TableName("d1", "past")
PLACE = "file:/source/d1.db/orders"


def test_what_waits_to_be_told_survives_a_restart_and_is_told_once() -> None:
    ledger = MemoryLedger()
    announced = AnnouncedExceptions()
    announced.load((), 5)
    announced.add(ledger, AnnouncedBridge, [ORDERS], 9)
    announced.add(ledger, AnnouncedBridge, [ORDERS], 7)
    announced.add(ledger, AnnouncedParts, [PAST], 8)
    after = AnnouncedExceptions()
    after.load(ledger.records(), 6)
    waiting = after.waiting()
    assert (bridges(waiting), in_parts(waiting)) == ((Bridge("d1.orders", 5, 9),), ("d1.past",))
    assert parts(waiting) == (Parts("d1.past", 5, 8),)
    after.mark_published(ledger, waiting, 9)
    assert (after.waiting(), ledger.records()) == ((), ())


def test_what_grows_while_an_epoch_is_written_is_told_by_the_next_one() -> None:
    ledger = MemoryLedger()
    announced = AnnouncedExceptions()
    announced.add(ledger, AnnouncedBridge, [ORDERS], 9)
    waiting = announced.waiting()
    announced.add(ledger, AnnouncedBridge, [ORDERS], 12)
    announced.mark_published(ledger, waiting, 9)
    grown = (AnnouncedBridge(ORDERS, 0, 12),)
    assert (announced.waiting(), ledger.records()) == (grown, grown)


def test_a_bridge_that_a_death_cut_short_is_told_of_by_an_epoch() -> None:
    finished_by_others = 0
    for moment in range(200):
        world = with_a_hole()
        countdown = iter([*[False] * moment, True])
        world.fate = lambda countdown=countdown: next(countdown, False)  # type: ignore[misc]
        world.read()
        world.settle()
        told = {bridge.table for epoch in world.ledger.epochs() for bridge in epoch.bridges}
        planned = any(hop.bridge for window in world.windows for plan in window.plans for hop in plan.hops)
        shown = world.judged(world.looks)
        assert told == {"d1.orders"} if shown else told <= {"d1.orders"}
        assert {bridge.table for bridge in bridges(world.ledger.records())} <= told
        finished_by_others += bool(shown) and not planned
        if not world.deaths:
            assert finished_by_others > 0
            return
    raise AssertionError("it never came to an end")


def test_a_bridge_of_which_an_epoch_told_before_it_was_made_is_told_of_by_the_next_one_too() -> None:
    world = with_a_hole()
    published: list[int] = []

    def publish(method: str) -> None:
        if method == "alter_partitions" and not published:
            published.append(len(world.ledger.epochs()))
            world.writer.source.create_database(Database("d9"))
            world.capture_all()
            world.window()

    world.between = publish
    world.settle()
    epochs = world.ledger.epochs()[published[0] :]
    assert [[bridge.table for bridge in epoch.bridges] for epoch in epochs] == [["d1.orders"], ["d1.orders"]]
    assert bridges(world.ledger.records()) == ()


def with_a_hole() -> World:
    """A world whose table lost a partition and got another while nobody followed it: it is to be read again."""
    world = World(0, HIVE_4)
    source = world.writer.source
    source.create_database(Database("d1"))
    storage = Storage((Column("x", "int"),), PLACE, "in", "out", serde=SerDe(class_name="text", parameters={}))
    keys = (Column("p", "string"),)
    source.create_table(Table("orders", "d1", storage=storage, partition_keys=keys, parameters={}))
    source.add_partitions(ORDERS, [partition(world, storage, "1"), partition(world, storage, "2")])
    world.open()
    world.settle()
    world.windows.clear()
    world.replica.reads.reread(lambda _: True, "the test wants it", {State.LIVE})
    source.drop_partitions(ORDERS, ["p=2"])
    source.add_partitions(ORDERS, [partition(world, storage, "3")])
    world.capture_all()
    return world


def partition(world: World, storage: Storage, value: str) -> Partition:
    location = join(PLACE, f"p={value}")
    world.storage.write(join(location, "part-0"), value.encode())
    return Partition((value,), *ORDERS, storage=replace(storage, location=location), parameters={})
