"""A defect in one object's work leaves the rest of what an operator asked for, or of a changed policy, to be done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.defects import ATTEMPTS, DEFECT
from calque.core.images.image import SOURCE
from calque.errors import Refused, Unavailable
from calque.model.hive import Database, Function
from calque.model.names import TableName
from calque.model.requests import Action, Request
from kernel.whole.test_adopt import PARTED, PLAIN_TABLE, HandWorld, at
from kernel.whole.test_defects import (
    ERRORS,
    Place,
    aside,
    journal,
    source_catalog,
    source_storage,
    target_catalog,
    target_storage,
    with_defect,
)
from kernel.whole.test_policies import PLAIN, A
from kernel.whole.test_policies import world_of as policy_world
from support.faults.defects import Defect
from support.worlds.gapped import add
from support.worlds.gapped import world_of as gapped_world
from support.worlds.handmade import copy_by_hand
from support.worlds.histories import differences
from support.worlds.worlds import World


def asked(world: World, request: Request) -> None:
    """The request is tried again as the target's stream does, and done with; then nothing is left to do."""
    for _ in range(20):
        world.open()
        try:
            if world.replica.take_request(request) is not None:
                break
        except Unavailable:
            continue
    else:
        raise AssertionError("the request does not end")
    for _ in range(40):
        world.capture_all()
        world.background.run()
        world.window()
        world.clock.now += 2_000_000_000


# Adoption


def handmade(*functions: str) -> HandWorld:
    """Two tables, a database and functions stand at the target and are not ours; all is settled."""
    world = HandWorld()
    for name in functions:
        world.source.create_function(Function(name, "d1", "org.example.F"))
    copy_by_hand(world, PLAIN_TABLE, root=at(PLAIN_TABLE))
    copy_by_hand(world, PARTED, root=at(PARTED))
    for name in functions:
        world.target_store.create_function(Function(name, "d1", "org.example.Other"))
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    return world


ADOPT = Request("1", Action.ADOPT, ("d1.*",))


@ERRORS
@pytest.mark.parametrize(
    ("place", "method"),
    [
        (target_catalog, "table"),
        (target_catalog, "alter_table"),
        (target_storage, "list"),
        (source_catalog, "table"),
        (source_storage, "list"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_table_that_can_not_be_taken_over_leaves_the_others(place: Place, method: str, error: Exception) -> None:
    world = handmade()
    defect = Defect(method, error, about=lambda one: "plain" in repr(one) and "parted" not in repr(one))
    with_defect(world, place, defect).on = True
    asked(world, ADOPT)
    assert (world.at_target(PARTED).parameters or {})[SOURCE] == f"hq:{PARTED}"
    assert defect.met == ATTEMPTS
    assert [*aside(world)] == [str(PLAIN_TABLE)]
    assert DEFECT in aside(world)[str(PLAIN_TABLE)]


@pytest.mark.parametrize("method", ["function", "create_function"])
def test_functions_that_can_not_be_taken_over_leave_the_others(method: str) -> None:
    world = handmade("f1", "f2", "f3")
    defect = Defect(method, KeyError("x"), about=lambda one: "'f1'" in repr(one) or "'f2'" in repr(one))
    with_defect(world, target_catalog, defect).on = True
    asked(world, ADOPT)
    assert {*aside(world)} == {"d1.f1", "d1.f2"}
    assert all(DEFECT in reason for reason in aside(world).values())
    third = world.target_store.function(TableName("d1", "f3"))
    assert third is not None
    assert third.class_name == "org.example.F"


@pytest.mark.parametrize("error", [KeyError("x"), Refused("It is too much")], ids=["defect", "refusal"])
def test_a_database_that_can_not_be_taken_over_leaves_its_tables(error: Exception) -> None:
    world = handmade()
    with_defect(world, target_catalog, Defect("alter_database", error)).on = True
    asked(world, ADOPT)
    assert [*aside(world)] == ["d1."]
    for name in (PLAIN_TABLE, PARTED):
        assert (world.at_target(name).parameters or {})[SOURCE] == f"hq:{name}"


@pytest.mark.parametrize("failures", [1, 2])
def test_a_released_function_that_fails_again_stays_set_aside_until_it_is_made(failures: int) -> None:
    world = gapped_world()
    defect = with_defect(world, target_catalog, Defect("create_function", KeyError("x"), on=True))
    world.writer.source.create_function(Function("f1", "d1", "x.Y"))
    for _ in range(20):
        world.capture_all()
        world.window()
    assert [*aside(world)] == ["d1.f1"]
    defect.met = 0
    defect.about = lambda _: defect.met < failures
    asked(world, Request("1", Action.RELEASE, ("d1.*",)))
    is_made = world.target_store.functions("d1") == ["f1"]
    assert is_made is (aside(world) == {})


# Replay


@pytest.mark.parametrize(
    ("place", "method"),
    [(target_catalog, "database"), (target_catalog, "create_database"), (journal, "events")],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_databases_that_can_not_be_made_again_leave_the_others_of_a_replay(place: Place, method: str) -> None:
    world = gapped_world()
    since = world.source.current()
    events = {}
    for name in ("d7", "d8", "d9"):
        world.writer.source.create_database(Database(name, parameters={"k": "1"}))
        events[name] = world.source.current()
    world.settle()
    for name in events:
        world.target_store.drop_database(name)
    texts = ["d7", "d8", f"[{events['d7']}]", f"[{events['d8']}]"]
    defect = Defect(method, KeyError("x"), about=lambda one: any(text in repr(one) for text in texts))
    with_defect(world, place, defect).on = True
    asked(world, Request("1", Action.REPLAY, (), since))
    assert "d9" in world.target_store.databases()
    assert [*aside(world)] == ["d7.", "d8."]
    assert defect.met <= 3 * ATTEMPTS


@pytest.mark.parametrize(
    ("place", "method"),
    [(target_catalog, "function"), (target_catalog, "create_function"), (journal, "events")],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_functions_that_can_not_be_made_again_leave_the_others_of_a_replay(place: Place, method: str) -> None:
    world = gapped_world()
    since = world.source.current()
    events = {}
    for name in ("f1", "f2", "f3"):
        world.writer.source.create_function(Function(name, "d1", "x.Y"))
        events[name] = world.source.current()
    world.settle()
    for name in events:
        world.target_store.drop_function(TableName("d1", name))
    texts = [f"[{events['f1']}]", f"[{events['f2']}]", "'f1'", "'f2'"]
    defect = Defect(method, KeyError("x"), about=lambda one: any(text in repr(one) for text in texts))
    with_defect(world, place, defect).on = True
    asked(world, Request("1", Action.REPLAY, (), since))
    assert world.target_store.functions("d1") == ["f3"]
    assert [*aside(world)] == ["d1.f1", "d1.f2"]
    assert defect.met <= 5 * ATTEMPTS


@ERRORS
@pytest.mark.parametrize(
    ("place", "method"),
    [
        (source_catalog, "table"),
        (source_storage, "list"),
        (target_catalog, "table"),
        (target_storage, "list"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_table_that_can_not_be_read_again_leaves_the_others_of_a_replay(
    place: Place, method: str, error: Exception
) -> None:
    world = gapped_world(2, 1)
    since = world.source.current()
    for name in ("t0", "t1"):
        add(world, name, "9")
    world.settle()
    defect = Defect(method, error, about=lambda one: "t0" in repr(one) and "t1" not in repr(one))
    with_defect(world, place, defect).on = True
    asked(world, Request("1", Action.REPLAY, (), since))
    assert {*aside(world)} <= {"d1.t0"}
    assert world.replica.tables.state(TableName("d1", "t1")).value == "live"


# A changed policy


def test_a_table_that_can_not_be_looked_at_leaves_the_others_of_a_changed_policy() -> None:
    world = policy_world(PLAIN, replace(PLAIN, rename={"d1": "e1"}))
    defect = Defect("table", KeyError("x"), on=True, about=lambda one: "d1" in repr(one) and "'a'" in repr(one))
    target_catalog(world, defect)
    world.change(1)
    assert (defect.met, [*world.target_store.tables("e1")]) == (ATTEMPTS, ["b"])
    defect.on = False
    world.settle()
    assert {*world.target_store.tables("e1")} == {"a", "b"}
    assert differences(world) == []
    assert A not in aside(world)


def test_a_database_that_can_not_be_dropped_leaves_the_others_of_a_changed_policy() -> None:
    world = policy_world(PLAIN, replace(PLAIN, rename={"d1": "e1", "d2": "e2"}))
    defect = Defect("drop_database", KeyError("x"), on=True, about=lambda one: "d1" in repr(one))
    target_catalog(world, defect)
    world.change(1)
    world.settle()
    assert (defect.met, "d1" in world.target_store.databases()) == (ATTEMPTS, True)
    assert "d2" not in world.target_store.databases()
    assert differences(world) == []
