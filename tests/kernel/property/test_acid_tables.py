"""Insert-only ACID tables, replicated as external ones and as what they are: what readers see at the target the source
really had."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.model.policy import Policy
from support.worlds.acid import AcidWriters
from support.worlds.histories import differences
from support.worlds.joint import Joint
from support.worlds.worlds import World

EXTERNAL = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", acid="external")


NATIVE = replace(EXTERNAL, acid="native")
OF_DATABASES = replace(NATIVE, consistency="database")
TURNS = st.lists(st.sampled_from(["write", "write", "capture", "work", "die"]), max_size=25)


@pytest.mark.parametrize("policy", [EXTERNAL, NATIVE], ids=lambda policy: policy.acid)
@given(st.integers(0, 2**32), TURNS)
def test_readers_of_replicas_see_states_of_the_source_in_their_order(
    policy: Policy, seed: int, turns: list[str]
) -> None:
    world = World(seed, policy=policy)
    writers = AcidWriters.of(world, seed)
    world.open()
    for turn in turns:
        match turn:
            case "write":
                with world.uninterrupted():
                    for _ in range(5):
                        writers.step()
            case "capture":
                world.capture_all()
            case "work":
                world.work()
            case "die":
                world.deadliness = 0.02
                world.work()
                world.deadliness = 0.0
    with world.uninterrupted():
        writers.finish()
    world.settle()
    assert world.problems == []
    assert differences(world) == []


@pytest.mark.parametrize("policy", [NATIVE, OF_DATABASES], ids=lambda policy: policy.consistency)
@given(st.integers(0, 2**32), st.integers(1, 25))
def test_readers_see_no_part_of_a_transaction(policy: Policy, seed: int, at_once: int) -> None:
    world = joint(policy, seed, at_once)
    assert world.parts == []
    assert world.problems == []
    assert differences(world) == []


def test_apart_they_see_parts() -> None:
    assert joint(replace(NATIVE, transactions="apart"), 3, 5).parts != []


def joint(policy: Policy, seed: int, at_once: int) -> Joint:
    """What a reader sees of a random history of inserts, some into two tables, of which windows take parts."""
    world = Joint(seed, policy)
    world.open()
    for _ in range(3):
        world.writers.create()
        world.note()
    world.settle()
    for _ in range(8):
        with world.uninterrupted():
            for _ in range(at_once):
                world.writers.step()
                world.capture_all()
        world.work()
    with world.uninterrupted():
        world.writers.finish()
    world.settle()
    return world
