"""ACID tables as Delta tables: what readers of their logs see the source really had, rows and row ids, whatever its
writers and its compactor do, and whenever calque dies."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from support.worlds.acid_delta import AcidDeltaWorld

TURNS = st.lists(st.sampled_from(["write", "write", "capture", "work", "die"]), max_size=25)


@given(st.integers(0, 2**32), TURNS)
def test_readers_of_the_log_see_states_of_the_source_in_their_order(seed: int, turns: list[str]) -> None:
    acid = AcidDeltaWorld(seed)
    world = acid.world
    world.open()
    for turn in turns:
        match turn:
            case "write":
                for _ in range(4):
                    acid.step()
            case "capture":
                world.capture_all()
            case "work":
                world.work()
            case "die":
                world.deadliness = 0.02
                world.work()
                world.deadliness = 0.0
    acid.finish()
    world.settle()
    assert acid.problems == []
    assert acid.differences() == []
    assert acid.quarantined() == {}
