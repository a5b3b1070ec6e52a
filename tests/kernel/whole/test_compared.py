"""Tables that a target is asked to compare, as capture asks after an engine's REFRESH."""

from __future__ import annotations

from calque.core.records.lifecycle import UNREAD, State
from calque.model.names import TableName
from calque.model.requests import Action, Request
from support.worlds.gapped import add, world_of
from support.worlds.histories import differences
from support.worlds.worlds import World

T, COMPARE = TableName("d1", "t0"), Request("", Action.COMPARE, ("d1.t0",))


def put_file(world: World, name: str) -> None:
    """Below the table at the source, without an event."""
    partition = next(iter(world.source.the_table(T).partitions.values()))
    assert partition.storage is not None
    world.storage.write(f"{partition.storage.location}/{name}", b"1")


def settled(world: World) -> bool:
    world.settle()
    return differences(world) == [] and world.side.read_requests.reasons() == {}


def test_files_that_came_without_an_event_come_along() -> None:
    world = world_of()
    add(world, "t0", "one")
    world.settle()
    put_file(world, "more")
    assert differences(world)
    assert world.replica.take_request(COMPARE) == [T]
    assert settled(world)


def test_one_that_is_being_read_is_read_once_more() -> None:
    world = world_of()
    add(world, "t0", "one")
    world.settle()
    world.replica.reads.reread(lambda name: name == T, "the test wants it", {State.LIVE})
    world.read()
    put_file(world, "more")
    assert world.replica.tables.is_(T, UNREAD)
    assert world.replica.take_request(COMPARE) == [T]
    assert settled(world)


def test_one_that_is_quarantined_stays_so() -> None:
    world = world_of()
    world.settle()
    world.replica.reads.quarantine(T, "the test wants it", world.replica.cursor)
    assert world.replica.take_request(COMPARE) == []
    world.settle()
    assert world.replica.tables.rows[T].state == State.QUARANTINED
