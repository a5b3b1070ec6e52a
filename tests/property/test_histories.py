"""Generated histories through the whole engine, in memory: what a reader of the target sees, the source showed."""

from __future__ import annotations

import os

import pytest

from support.worlds.worlds import World

HISTORIES = int(os.environ.get("CALQUE_HISTORIES", "40"))
FIRST = int(os.environ.get("CALQUE_SEED", "0"))


def play(seed: int, deadliness: float = 0.0, *, holes: bool = True) -> World:
    """A history. Without `holes` capture looks at every event before the next one comes."""
    world = World(seed)
    world.storage.before = lambda _call, _about: world.perhaps_die()
    world.write(world.rng.randrange(30))
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.deadliness = deadliness
    world.open()
    for _ in range(world.rng.randrange(1, 8)):
        for _ in range(world.rng.randrange(12)):
            world.write()
            if not holes:
                world.capture_all()
        if world.rng.random() < 0.8:
            world.capture_all()
        world.work() if world.rng.random() < 0.5 else world.window_alone()
    world.deadliness = 0.0
    world.settle()
    return world


@pytest.mark.parametrize("seed", range(FIRST, FIRST + HISTORIES))
def test_a_reader_of_the_target_sees_only_states_of_the_source_and_they_advance(seed: int) -> None:
    world = play(seed)
    assert not world.problems, "\n".join([*world.problems[:3], *world.writer.done])
    shown = {name: state for name, state in world.target_states().items() if state is not None}
    assert shown == world.source_states(), "\n".join(world.writer.done)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + HISTORIES))
def test_dying_anywhere_and_starting_again_loses_nothing_and_shows_nothing_wrong(seed: int) -> None:
    world = play(seed, deadliness=0.03, holes=False)
    assert not world.problems, "\n".join([*world.problems[:3], *world.writer.done])
    shown = {name: state for name, state in world.target_states().items() if state is not None}
    assert shown == world.source_states(), "\n".join(world.writer.done)
