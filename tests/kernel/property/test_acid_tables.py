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
from support.worlds.worlds import World

EXTERNAL = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", acid="external")


NATIVE = replace(EXTERNAL, acid="native")
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
