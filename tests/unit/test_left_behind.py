"""A target whose next event the journal no longer has starts again by itself; no other target notices."""

from __future__ import annotations

from gapped import add, counted, create, drop, world_of
from histories import differences
from worlds import World


def fell_behind(world: World, keep: int = 0) -> tuple[int, int]:
    """The journal lets go of what the target has not taken; the first and the last event of that."""
    world.capture_all()
    first = world.replica.cursor + 1
    world.forget(keep)
    return first, world.capture.last() - keep


def test_a_target_that_fell_behind_the_journal_reads_only_what_changed() -> None:
    world = world_of(tables=12)
    add(world, "t3", "new")
    create(world, "late")
    drop(world, "t1")
    lost = fell_behind(world)
    epochs, calls = len(world.ledger.epochs()), counted(world)
    world.settle()
    assert differences(world) == []
    assert world.problems == []
    assert (calls["add_partitions"], calls["drop_table"]) == (1, 1)
    assert calls["copy"] <= 2
    assert calls["table"] < 20
    first = world.ledger.epochs()[epochs]
    assert (first.kind, first.gap) == ("repair", lost)
    assert [epoch.gap for epoch in world.ledger.epochs()].count(lost) == 1
    assert world.gaps.found() == []
