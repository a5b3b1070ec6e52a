"""Somebody sets the clock of calque's machine: what is waited for is waited for no longer, and all comes through."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.core.records.lifecycle import State
from calque.engine.sides.clocks import BelievedClock
from calque.engine.sides.journal_reads import wait_for_journal
from calque.engine.sides.sides import SourceSide
from calque.engine.sweep.retention import DeletedRows, Limits, let_go
from calque.engine.window.awaited_evidence import WAIT_SECONDS
from calque.errors import Unavailable
from calque.ports.steady_clock import SteadyClock
from support.worlds.histories import differences
from support.worlds.worlds import World

DAY_NS = 86_400 * 10**9
JUMPS = [DAY_NS, -DAY_NS]


def world_at_work(seed: int) -> World:
    world = World(seed)
    world.write(30)
    world.open()
    world.settle()
    return world


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("jump", JUMPS)
def test_a_target_comes_through_equal_whenever_the_clock_is_set(jump: int, seed: int) -> None:
    world = world_at_work(seed)
    for set_by in (jump, 0):
        world.write(10)
        world.clock.set_by = set_by
        world.write(10)
        world.settle()
    assert differences(world) == []
    assert world.problems == []
    assert world.replica.tables.in_state(State.QUARANTINED) == []


@pytest.mark.parametrize("jump", JUMPS)
def test_a_wait_that_the_clock_jumps_in_is_as_long_as_it_was_to_be(jump: int) -> None:
    world = World(0)
    began = world.clock.now

    def jump_once() -> None:
        world.clock.set_by = jump
        assert world.clock.now - began < 2 * 60e9

    world.clock.asleep = jump_once
    with pytest.raises(Unavailable, match="The journal does not reach event 7"):
        wait_for_journal(world.source_side, 7, 60.0)
    assert world.clock.now - began > 60e9
    world.clock.set_by, began = 0, world.clock.now
    world.replica.player.evidence.wait(7)
    assert WAIT_SECONDS * 1e9 <= world.clock.now - began < 2 * WAIT_SECONDS * 1e9


@pytest.mark.parametrize("metastore_answers", [True, False])
def test_a_clock_nine_days_ahead_makes_no_event_go_and_a_pause_of_nine_days_does(metastore_answers: bool) -> None:
    world = world_at_work(1)
    limits = Limits(10**12, 10**12)

    def of_storage() -> int:
        return world.clock.elapsed_ns()

    def of_metastore() -> int | None:
        return world.clock.elapsed_ns() if metastore_answers else None

    def believing() -> SourceSide:
        """As a process has it that begins now."""
        clock, steady = world.clock, SteadyClock(world.clock.now_ns, world.clock.elapsed_ns)
        return replace(world.source_side, clock=BelievedClock(clock, [of_storage, of_metastore], steady))

    world.clock.set_by = 9 * DAY_NS
    assert let_go(believing(), [world.ledger], 7 * 86_400.0, limits) == DeletedRows()
    assert world.journal.oldest() is not None
    world.clock.set_by = 0
    world.clock.now += 9 * DAY_NS
    assert let_go(believing(), [world.ledger], 7 * 86_400.0, limits).events > 0
