"""A deployment whose journal moves now and then behaves like one whose journal stays."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calque.adapters.held_evidence import MemoryEvidence
from calque.engine.capture.journal_copy import JournalOwner, JournalStore, move
from calque.engine.sweep.retention import shown_by_all
from support.memory.journal import MemoryJournal
from support.worlds.histories import differences
from support.worlds.worlds import World

ROUNDS = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.sampled_from(["window", "capture", "nothing"]),
        st.sampled_from(["move", "forget and move", "stay"]),
    ),
    min_size=2,
    max_size=8,
)


def needed(world: World) -> int:
    """The event above which the target needs events."""
    return shown_by_all(world.ledger)


def move_journal(world: World, to: JournalStore) -> None:
    """Between two runs: everything else stays as it is."""
    move(JournalStore("old", world.journal, world.evidence), to, JournalOwner.US, needed(world))
    assert isinstance(to.journal, MemoryJournal)
    assert isinstance(to.evidence, MemoryEvidence)
    world.journal, world.evidence = to.journal, to.evidence
    world.source_side = replace(world.source_side, journal=to.journal, evidence=to.evidence)
    world.restart()


@settings(suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10_000), ROUNDS)
def test_targets_go_on_where_they_were_however_often_the_journal_moves(
    seed: int, rounds: list[tuple[int, str, str]]
) -> None:
    world = World(seed)
    world.write(5)
    world.settle()
    first = world.ledger.last_epoch()
    assert first is not None
    here = JournalStore("one", world.journal, world.evidence)
    other = JournalStore("other", MemoryJournal(), MemoryEvidence())
    for steps, work, ending in rounds:
        world.write(steps)
        if work != "nothing":
            world.capture_all()
        if work == "window":
            world.work()
        if ending == "forget and move":
            world.journal.forget(needed(world))
            world.evidence.forget(needed(world))
        if ending != "stay":
            move_journal(world, other)
            here, other = other, here
    world.settle()
    assert world.problems == []
    assert differences(world) == []
    assert {epoch.kind for epoch in world.ledger.epochs() if epoch.epoch > first.epoch} <= {"window"}
