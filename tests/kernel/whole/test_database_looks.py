"""What a source of Hive 4 changes of a database without an event reaches the target, and nothing older ever does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.errors import CallFailed
from calque.model.hive import Database
from support.memory.metastore import HIVE_4
from support.worlds.histories import PLAIN, differences
from support.worlds.worlds import World


@pytest.fixture
def world() -> World:
    """A replica of one database."""
    made = World(0, HIVE_4, PLAIN)
    made.source.create_database(Database("d1", "before", parameters={"a": "b"}))
    made.begin = made.capture.after = made.source.current()
    made.gatherer.resume(made.begin, made.begin)
    made.open()
    made.settle()
    return made


def describe(world: World, description: str | None, **others: object) -> None:
    database = world.source.the_database("d1")
    world.source.alter_database("d1", replace(database, description=description, **others))  # type: ignore[arg-type]


def look(world: World) -> int:
    return world.replica.looks.run_once(world.replica.databases, world.replica.cursor)


def described(world: World) -> str | None:
    return world.target_store.the_database("d1").description


def test_a_description_without_an_event_is_found_and_applied(world: World) -> None:
    head = world.source.current()
    describe(world, "after")
    assert world.source.current() == head
    assert look(world) == 1
    world.settle()
    assert described(world) == "after"
    assert look(world) == 0
    describe(world, None)
    assert look(world) == 1
    world.settle()
    assert not described(world)
    assert differences(world) == []


def test_what_an_event_named_since_the_target_s_position_is_left_to_the_event(world: World) -> None:
    describe(world, "after")
    describe(world, "after", parameters={"a": "c"})
    world.capture_all()
    assert look(world) == 0
    world.settle()
    assert described(world) == "after"


def test_what_an_event_changed_since_the_look_is_not_changed_back(world: World) -> None:
    describe(world, "after")
    assert look(world) == 1
    found = dict(world.replica.looks.found)
    describe(world, "newest", parameters={"a": "c"})
    world.settle()
    world.replica.looks.found |= found
    world.settle()
    assert described(world) == "newest"


def test_a_target_that_keeps_its_description_is_asked_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As servers of 2.3 do."""
    monkeypatch.setattr(world.target_store, "alter_database", lambda *_: None)
    describe(world, "after")
    assert look(world) == 1
    world.settle()
    assert look(world) == 0


def test_what_could_not_be_applied_is_found_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    describe(world, "after")
    assert look(world) == 1
    with monkeypatch.context() as patch:

        def fails(*_: object) -> None:
            raise CallFailed("The metastore did not complete alter_database", "broken", "Again")

        patch.setattr(world.target_store, "alter_database", fails)
        with pytest.raises(CallFailed):
            world.replica.looks.apply(world.replica.databases, world.replica.cursor)
    assert look(world) == 1
    world.settle()
    assert described(world) == "after"


def test_databases_that_are_not_ours_are_left_alone(world: World) -> None:
    database = world.target_store.the_database("d1")
    world.target_store.alter_database("d1", replace(database, parameters={}))
    describe(world, "after")
    assert look(world) == 0
