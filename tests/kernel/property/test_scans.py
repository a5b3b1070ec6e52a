"""Histories in which files change without any event, through the whole engine, in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from calque.core.formats.layout import join
from calque.core.records.lifecycle import State
from calque.engine.source.scanner import Scanner, ScanSelection
from calque.model.hive import Table, is_partitioned, is_view, location_of
from calque.model.policy import Policy
from calque.plugins.dumps.adapters.held_scans import MemoryScans
from support.memory.metastore import HIVE_4
from support.runs.seeds import history_seeds
from support.worlds.worlds import World

SEEDS = history_seeds(25)
POLICIES = [
    Policy("dr", "hq", include=("d*.*",), rename={"d2": "d2_dr"}, warehouse="file:/target"),
    Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", appends="new_directory"),
    Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", consistency="database"),
]


class ScannedWorld(World):
    """A world whose source is scanned as well."""

    def __init__(self, seed: int, policy: Policy | None = None) -> None:
        self.scans = MemoryScans()
        super().__init__(seed, HIVE_4 if seed % 2 else None, policy or POLICIES[seed % len(POLICIES)], scans=self.scans)
        self.scanner = self.new_scanner()

    def new_scanner(self) -> Scanner:
        begun = self.clock.now
        chosen = ScanSelection(lambda name: 0.001 if self.side.admission.takes(name) else None, lambda _: True)
        return Scanner(
            self.source_side, self.scans, chosen, lambda: self.gatherer.locations(), self.begin, begun, lambda: None
        )

    def scan(self) -> None:
        with self.uninterrupted():
            self.clock.now += 1_000_000_000
            self.capture_all()
            self.scanner.run_once()

    def converge(self) -> None:
        self.settle()
        for _ in range(40):
            before = self.scans.last()
            self.scan()
            self.clock.now += 61_000_000_000
            self.settle()
            if self.scans.last() == before and not self.replica.scanned.news():
                return
        raise AssertionError("scans never end")

    # Writers that tell nobody

    def eventless(self) -> None:
        self.clock.now += 1_000_000_000
        with self.uninterrupted():
            self.rng.choice([self.put, self.put, self.overwrite, self.remove_all, self.in_place, self.many])()
            self.note()

    def place(self) -> str | None:
        def has_data(table: Table) -> bool:
            return not is_view(table) and (not is_partitioned(table) or bool(self.writer.partitions_of(table)))

        table = self.writer.any_table(has_data)
        if table is None:
            return None
        if is_partitioned(table):
            return location_of(self.rng.choice(self.writer.partitions_of(table)))
        return location_of(table)

    def put(self) -> None:
        if at := self.place():
            self.writer.put_file(at)
            self.writer.done.append(f"put {at}")

    def many(self) -> None:
        """Files that one scan finds: readers of the source see them one after the other, as those of a target may."""
        for _ in range(3):
            self.put()
            self.note()

    def overwrite(self) -> None:
        if at := self.place():
            self.storage.remove([join(at, file.path) for file in self.storage.list([at])[at].files])
            self.writer.put_file(at)
            self.writer.done.append(f"overwrite {at}")

    def remove_all(self) -> None:
        if at := self.place():
            self.storage.remove([join(at, file.path) for file in self.storage.list([at])[at].files])
            self.writer.done.append(f"remove all of {at}")

    def in_place(self) -> None:
        if (at := self.place()) and (files := self.storage.list([at])[at].files):
            self.storage.append(join(at, self.rng.choice(files).path), b"more")
            self.writer.done.append(f"in place {at}")


def begin(world: ScannedWorld) -> None:
    world.write(world.rng.randrange(30))
    world.history.states.clear()
    world.note()
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.scanner = world.new_scanner()
    world.open()


def check(world: ScannedWorld) -> None:
    world.deadliness = 0.0
    world.converge()
    shown = {name: state for name, state in world.target_states().items() if state is not None}
    quarantined = world.replica.tables.in_state(State.QUARANTINED)
    wanted = {name: state for name, state in world.source_states().items() if name not in quarantined}
    assert shown == wanted, "\n".join(world.writer.done)


@pytest.mark.parametrize("deadliness", [0.0, 0.03])
@pytest.mark.parametrize("seed", SEEDS)
def test_where_each_change_is_scanned_before_the_next_readers_see_only_states_of_the_source(
    seed: int, deadliness: float
) -> None:
    world = ScannedWorld(seed)
    world.storage.before = lambda _call, _about: world.perhaps_die()
    begin(world)
    world.deadliness = deadliness
    world.scan()
    for _ in range(world.rng.randrange(3, 9)):
        for _ in range(world.rng.randrange(6)):
            if world.rng.random() < 0.5:
                world.write()
                world.capture_all()
            else:
                world.eventless()
            world.scan()
            world.scan()
        if world.rng.random() < 0.8:
            world.work()
    check(world)
    assert not world.problems, "\n".join([*world.problems[:3], *world.writer.done])


@pytest.mark.parametrize("seed", SEEDS)
def test_whenever_files_change_without_events_the_target_has_them_in_the_end(seed: int) -> None:
    world = ScannedWorld(seed)
    world.storage.before = lambda _call, _about: world.perhaps_die()
    begin(world)
    world.deadliness = 0.01

    def meanwhile(_: str) -> None:
        if world.rng.random() < 0.03:
            world.rng.choice([world.writer.step, world.eventless, world.eventless])()

    world.between = meanwhile
    actions: list[Callable[[], None]] = [world.write, world.eventless, world.eventless, world.capture_all, world.scan]
    for _ in range(world.rng.randrange(10, 40)):
        world.rng.choice([*actions, world.work, world.window_alone])()
    world.between = lambda _: None
    check(world)


def test_a_scanner_that_starts_again_finds_what_changed_meanwhile() -> None:
    world = ScannedWorld(3)
    begin(world)
    world.converge()
    world.scanner.remember(always=True)
    began = world.scanner.begun_ns
    world.eventless()
    world.eventless()
    world.scanner = world.new_scanner()
    world.scanner.begun_ns = began
    check(world)
