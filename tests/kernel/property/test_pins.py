"""Pinned files through the whole engine, in memory: states are shown though the source has replaced their files."""

from __future__ import annotations

import pytest

from calque.core.formats.layout import join
from calque.core.records.lifecycle import State
from calque.engine.sweep.retention import Limits, release
from calque.errors import Unavailable
from calque.model.hive import is_partitioned, is_view, location_of
from calque.model.names import TableName
from calque.model.policy import Policy
from support.runs.seeds import history_seeds
from support.worlds.worlds import World

SEEDS = history_seeds(20)
POLICY = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target")
WIDE = Limits(10**12, 10**12)


def pinned_world(seed: int) -> World:
    world = World(seed, None, POLICY, pins=True)
    world.write(world.rng.randrange(20))
    world.history.states.clear()
    world.note()
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    return world


def plain_table(world: World) -> tuple[TableName, str]:
    while (found := world.writer.any_table(lambda t: not is_view(t) and not is_partitioned(t))) is None:
        world.write()
    return TableName(found.database, found.name), location_of(found) or ""


@pytest.mark.parametrize("kept", [True, False])
def test_a_target_that_was_down_shows_what_lay_there_at_the_event(kept: bool) -> None:
    world = pinned_world(1)
    name, at = plain_table(world)
    world.settle()
    world.source.insert(name, [world.writer.put_file(at)])
    world.note()
    world.capture_all()
    wanted = world.source_states()[name]
    world.storage.remove([join(at, file.path) for file in world.storage.list([at])[at].files])
    world.writer.put_file(at)
    if not kept:
        assert world.source_side.pins is not None
        world.source_side.pins.release(world.source_side.pins.events())
    world.work()
    assert (world.target_states()[name] == wanted) is kept
    assert world.replica.tables.rows[name].state == (State.LIVE if kept else State.WAITING)


@pytest.mark.parametrize("seed", SEEDS)
def test_with_pins_readers_see_only_states_of_the_source_and_nothing_is_left_pinned(seed: int) -> None:
    world = pinned_world(seed)
    world.storage.before = lambda _call, _about: world.perhaps_die()
    pins = world.source_side.pins
    assert pins is not None
    world.deadliness = 0.01
    for _ in range(world.rng.randrange(2, 8)):
        for _ in range(world.rng.randrange(12)):
            world.write()
            world.capture_all()
        if world.rng.random() < 0.2:
            release(pins, [world.ledger], Limits(3, 10**12), world.clock.now_ns())
        world.work()
        release(pins, [world.ledger], WIDE, world.clock.now_ns())
    world.deadliness = 0.0
    world.settle()
    assert not world.problems, "\n".join([*world.problems[:3], *world.writer.done])
    shown = {name: state for name, state in world.target_states().items() if state is not None}
    assert shown == world.source_states(), "\n".join(world.writer.done)
    release(pins, [world.ledger], WIDE, world.clock.now_ns())
    assert list(pins.events()) == []


def test_where_pins_can_not_be_written_evidence_comes_all_the_same() -> None:
    world = pinned_world(1)
    name, at = plain_table(world)
    world.settle()

    def full(call: str, about: str) -> None:
        if call == "copy" and about.startswith(at):
            raise Unavailable("No room to write below file:/pins", "it is full", "Free some")

    world.storage.before = full
    world.source.insert(name, [world.writer.put_file(at)])
    world.note()
    world.capture_all()
    world.storage.before = lambda _call, _about: None
    world.work()
    assert world.target_states()[name] == world.source_states()[name]
    assert world.source_side.pins is not None
    assert world.source_side.pins.events() == []
