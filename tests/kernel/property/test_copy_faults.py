"""Copies fail in every way that the port allows, at random: no reader sees it, and what comes later heals it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import example, given, note
from hypothesis import strategies as st

from calque.core.records.lifecycle import State
from calque.errors import Refused, Unavailable
from calque.ports import CopiedFile, CopyTask
from support.memory.storage import MemoryStorage
from support.worlds.worlds import World


@dataclass
class Faulty:
    """A storage some of whose copies fail: the whole call after a part of the files, or single files."""

    inner: MemoryStorage
    rng: random.Random
    likely: float
    calls: int = 0
    failed: int = 0
    kinds: set[str] = field(default_factory=set)

    def copy(
        self, tasks: Sequence[CopyTask], progress: Callable[[CopiedFile], None] | None = None
    ) -> Sequence[CopiedFile]:
        self.calls += 1
        if not tasks or self.rng.random() >= self.likely:
            return self.inner.copy(tasks, progress)
        self.failed += 1
        kind = self.rng.choice(("full", "no right", "unreadable", "half"))
        self.kinds.add(kind)
        some = tasks[: self.rng.randrange(len(tasks) + 1)]
        done = list(self.inner.copy(some, progress))
        match kind:
            case "full":
                raise Unavailable("No room to write", "OSError: No space left on device")
            case "no right":
                raise Refused("Not permitted to write", "PermissionError")
            case "unreadable":
                return [CopiedFile(task, problem=f"{task.source} can't be read.") for task in tasks]
            case _:
                return done + [
                    CopiedFile(task, problem=f"{task.target} isn't read back as it was written.")
                    for task in tasks[len(done) :]
                ]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def faulty_world(seed: int, likely: float) -> tuple[World, Faulty]:
    world = World(seed)
    storage = Faulty(world.storage, random.Random(seed), likely)
    world.side = replace(world.side, storage=storage)
    world.replica = world.new_replica()
    world.replica.open()
    return world, storage


@example(79085, 0.6)  # A table that is to be read takes the name of one that left it, in a window that fails.
@given(st.integers(0, 2**32), st.sampled_from([0.2, 0.6, 1.0]))
def test_a_copy_that_fails_shows_no_wrong_state_and_is_made_up_for(seed: int, likely: float) -> None:
    note(f"seed {seed}")
    world, storage = faulty_world(seed, likely)
    for _ in range(8):
        world.write(10)
        world.capture_all()
        world.work()
    storage.likely = 0.0
    world.clock.now += 3_600_000_000_000
    world.settle()
    assert world.problems == []
    # A missing right sets a table aside, for a person to look.
    aside = set(world.replica.tables.in_state(State.QUARANTINED))
    shown, wanted = world.target_states(), world.source_states()
    assert {name: shown.get(name) for name in wanted.keys() - aside} == {
        name: wanted[name] for name in wanted.keys() - aside
    }


def test_the_faults_do_happen() -> None:
    kinds: set[str] = set()
    for seed in range(20):
        world, storage = faulty_world(seed, 0.6)
        for _ in range(8):
            world.write(10)
            world.capture_all()
            world.work()
        kinds |= storage.kinds
    assert kinds == {"full", "no right", "unreadable", "half"}
