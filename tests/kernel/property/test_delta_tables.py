"""Delta tables in a whole small world: what a reader at the target sees of their logs and definitions.

A commit raises no event, so definition and log have clocks of their own. A reader takes the definition from the
metastore and then reads the log: at the source it sees a definition with a version that is at least as new, and so it
is at the target.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from calque.core.formats.deltalog import commit_actions, commit_path, newest_commit, replayed
from calque.core.formats.layout import join
from calque.engine.sweep.sweep import SweepTerms, sweep_target
from calque.model.hive import Column, Database, SerDe, Storage, Table, location_of
from calque.model.names import TableName
from calque.model.plan import AlterTable, CreateTable, Publish
from support.worlds.worlds import ABSENT, State, World

NAMES = (TableName("d1", "t"), TableName("d1", "u"))
HISTORIES = {"check": 25, "prove": 20_000}
SOME = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 75), suppress_health_check=list(HealthCheck)
)


parsed = lru_cache(maxsize=10_000)(commit_actions)


class DeltaWorld(World):
    """A world whose readers know Delta; `content` of a table is its version's files, all of which must be there."""

    def __init__(self, seed: int) -> None:
        self.moments: list[dict[TableName, State]] = [{}]
        super().__init__(seed)
        self.files = 0
        self.storage.before = self.storage_called
        for database in ("d1", "d2"):
            self.writer.source.create_database(Database(database))
        self.begin = self.capture.after = self.source.current()
        self.gatherer.resume(self.begin, self.begin)

    def storage_called(self, call: str, _about: str) -> None:
        if call in ("copy", "publish", "make", "remove"):
            self.looked(call)
            self.perhaps_die()

    def content(self, location: str) -> State:
        newest = newest_commit(self.storage.children(join(location, "_delta_log")))
        if newest is None:
            return super().content(location)
        live = replayed([], [self.commit(location, version) for version in range(newest + 1)])
        found = {path: self.storage.read(join(location, path)) for file in live for path in file.paths}
        assert None not in found.values(), f"version {newest} of {location} can't be read"
        return tuple(sorted(found.items()))

    def commit(self, location: str, version: int) -> Any:
        content = self.storage.read(join(location, commit_path(version)))
        assert content is not None
        return parsed(content)

    def looked(self, method: str) -> None:
        super().looked(method)
        self.contents_at = -1

    # The source

    def table(self, name: TableName) -> Table | None:
        if name.table not in self.source.tables(name.database):
            return None
        found: Table = self.source.the_table(name).table
        return found

    def act(self) -> None:
        rng, name = self.rng, self.rng.choice(NAMES)
        table = self.table(name)
        with self.uninterrupted():
            if table is None:
                self.create(name)
            elif (act := rng.random()) < 0.55:
                self.write_version(table, overwrite=rng.random() < 0.4)
                if rng.random() < 0.5:
                    self.writer.source.insert(name, [join(location_of(table) or "", commit_path(0))])
            elif act < 0.75:
                self.writer.source.alter_table(name, replace(table, parameters={**table.parameters, "k": f"{act}"}))
            elif act < 0.82:
                self.vacuum(table)
            elif act < 0.92:
                other = next(other for other in NAMES if other != name)
                if self.table(other) is None:
                    self.writer.source.alter_table(name, replace(table, name=other.table))
            else:
                self.writer.source.drop_table(name)

    def create(self, name: TableName) -> None:
        location = f"file:/source/{name.database}.db/{name.table}"
        self.storage.remove([location])
        storage = Storage((Column("col", "array<string>"),), location, serde=SerDe(parameters={"path": location}))
        table = Table(
            name.table,
            name.database,
            storage=storage,
            parameters={"spark.sql.sources.provider": "DELTA"},
            type="MANAGED_TABLE",
        )
        self.write_version(table)
        self.writer.source.create_table(table)

    def write_version(self, table: Table, *, overwrite: bool = False) -> None:
        location = location_of(table) or ""
        newest = newest_commit(self.storage.children(join(location, "_delta_log")))
        version = 0 if newest is None else newest + 1
        live = replayed([], [self.commit(location, before) for before in range(version)])
        self.files += 1
        path = f"part-{self.files}"
        self.storage.write(join(location, path), f"row {self.files}".encode())
        actions: list[Any] = [{"remove": {"path": file.path}} for file in live if overwrite]
        lines = [json.dumps(action) for action in [*actions, {"add": {"path": path}}]]
        self.storage.write(join(location, commit_path(version)), "\n".join(lines).encode())
        self.note()

    def vacuum(self, table: Table) -> None:
        location = location_of(table) or ""
        newest = newest_commit(self.storage.children(join(location, "_delta_log"))) or 0
        live = replayed([], [self.commit(location, version) for version in range(newest + 1)])
        kept = {file.path for file in live}
        for file in self.storage.children(location):
            if not file.startswith("_") and file not in kept:
                self.storage.remove([join(location, file)])

    # The judge

    def note(self) -> None:
        self.moments.append(self.source_states())
        super().note()

    def check(self) -> None:
        """Each look shows a definition and a version of the source, the version at least as new, and neither goes
        back. A log that went on before its table was renamed is that of the later name."""
        for name in NAMES:
            at = (0, 0)
            for look in self.looks:
                if look.table == name and not look.bridged:
                    found = next(self.pairs(name, look.state, at), None)
                    assert found is not None, f"{name} shows no state after {at}: {look}"
                    at = found

    def pairs(self, name: TableName, seen: State, at: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """When the source had the definition, and when the content, from `at` on."""
        for i in range(at[0], len(self.moments)):
            state = self.moments[i].get(name, ABSENT)
            if seen is ABSENT and state is ABSENT:
                yield i, max(i, at[1])
            elif seen is not ABSENT and state is not ABSENT and state[0] == seen[0]:
                for j in range(max(i, at[1]), len(self.moments)):
                    if any(found is not ABSENT and found[1] == seen[1] for found in self.moments[j].values()):
                        yield i, j


def play(seed: int, deadliness: float = 0.0) -> DeltaWorld:
    world = DeltaWorld(seed)
    for _ in range(world.rng.randrange(6)):
        world.act()
    world.open()
    world.deadliness = deadliness
    for _ in range(40):
        match world.rng.randrange(4):
            case 0:
                world.capture_all()
            case 1:
                world.work()
            case _:
                world.act()
    world.deadliness = 0.0
    for name in NAMES:
        if (table := world.table(name)) is not None:
            world.writer.source.alter_table(name, replace(table, parameters={**table.parameters, "last": "1"}))
    world.settle()
    return world


@SOME
@given(st.integers(0, 2**32))
def test_readers_see_versions_and_definitions_of_the_source_in_order(seed: int) -> None:
    world = play(seed)
    world.check()
    assert world.target_states() == {**dict.fromkeys(world.history.states, ABSENT), **world.source_states()}


@SOME
@given(st.integers(0, 2**32))
@example(399465)  # One table is read at an event of another, which takes its name later.
def test_dying_anywhere_shows_no_other_version_and_loses_none_nor_does_a_sweep_afterwards(seed: int) -> None:
    world = play(seed, deadliness=0.05)
    world.check()
    before = world.target_states()
    assert before == {**dict.fromkeys(world.history.states, ABSENT), **world.source_states()}
    notes: Mapping[str, int] = {}
    for later in (1, 2, 3):
        now = time.time_ns() + later * 10**15
        notes = sweep_target(world.side, world.journal, now, SweepTerms(noted=notes)).noted
    assert world.target_states() == before
    tables = [world.target_store.the_table(name).table for name in NAMES if before.get(name) is not ABSENT]
    homes = {location_of(table) or "" for table in tables}
    assert homes == {path.split("/_delta_log/")[0] for path in world.storage.paths() if is_targets_log(path)}


def is_targets_log(path: str) -> bool:
    return path.startswith("file:/target/") and "/_delta_log/" in path


def test_a_table_without_a_log_is_shown_as_it_is_until_it_has_one() -> None:
    world = DeltaWorld(1)
    world.create(NAMES[0])
    table = world.table(NAMES[0])
    assert table is not None
    world.storage.remove([location_of(table) or ""])
    world.note()
    world.open()
    world.settle()
    assert world.target_states() == {**dict.fromkeys(world.history.states, ABSENT), **world.source_states()}
    world.write_version(table)
    world.writer.source.alter_table(NAMES[0], replace(table, owner="me"))
    world.settle()
    assert world.target_states()[NAMES[0]][1] == (("part-2", b"row 2"),)
    world.check()


def test_changed_definitions_and_versions_copy_no_file_twice() -> None:
    world = DeltaWorld(1)
    world.create(NAMES[0])
    world.open()
    world.settle()
    copied: list[str] = []
    world.storage.before = lambda call, about: copied.append(about) if call == "copy" else None
    for number in range(4):
        table = world.table(NAMES[0])
        assert table is not None
        world.write_version(table)
        changed = replace(table, parameters={**(table.parameters or {}), "k": str(number)})
        world.writer.source.alter_table(NAMES[0], changed)
        world.settle()
    assert len(copied) == len(set(copied)) == 8


def test_random_worlds_are_what_they_should_be_random_about() -> None:
    """Versions are written, tables dropped and renamed, and windows go through."""
    worlds = [play(seed) for seed in random.Random(7).sample(range(1000), 5)]
    assert sum(len(world.windows) for world in worlds) > 20
    methods = {look.method for world in worlds for look in world.looks}
    assert {"publish", "create_table", "alter_table", "drop_table"} <= methods
    hops = [hop for world in worlds for window in world.windows for plan in window.plans for hop in plan.hops]
    assert {Publish, AlterTable, CreateTable} <= {type(hop.operation) for hop in hops}
    assert not any(hop.bridge for hop in hops)
