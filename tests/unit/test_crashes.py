"""Dying at every failpoint of stage, publish, record and sweep, on real directories."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from calque.core.layout import COPYING, STAGE, join, place
from calque.engine.sweep import Swept, sweep_target
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, is_partitioned, location_of
from calque.model.names import TableName
from disks import Death, DiskWorld, files_below
from worlds import INPUT, OUTPUT, SERDE, Died

PASSED = {
    *("storage.copy", "storage.publish", "storage.make_directories"),
    *("catalog.create_table", "catalog.alter_table", "catalog.drop_table", "catalog.create_database"),
    *("catalog.add_partitions", "catalog.alter_partitions", "catalog.rename_partition", "catalog.drop_partitions"),
    *("journal.append", "evidence.append", "ledger.publish", "ledger.put_tables"),
}
EVERY = 1 if os.environ.get("CALQUE_HISTORIES") else 40
PLAIN, PARTED, RENAMED = TableName("d1", "plain"), TableName("d1", "parted"), TableName("d1", "renamed")
SIZE = 1000


class Play:
    """One history of a source, with every kind of change of files and definitions in it."""

    def __init__(self, world: DiskWorld) -> None:
        self.world, self.source = world, world.writer.source
        self.numbers = count(1)

    def steps(self) -> Iterator[Callable[[], None]]:
        yield lambda: self.source.create_database(Database("d1"))
        yield lambda: self.create(PLAIN)
        yield lambda: self.create(PARTED, partitions=("1", "2"))
        yield lambda: self.insert(PLAIN, 3)
        yield lambda: self.insert(PARTED, 2, "1")
        yield lambda: self.insert(PLAIN, 2)
        yield lambda: self.overwrite(PLAIN)
        yield lambda: self.overwrite(PARTED, "1")
        yield lambda: self.insert(PARTED, 2, "1")
        yield lambda: self.add(PARTED, ("3", "4"))
        yield lambda: self.source.rename_partition(PARTED, ("3",), replace(self.part(PARTED, "3"), values=("5",)))
        yield lambda: self.source.drop_partitions(PARTED, ["p=2"])
        yield lambda: self.rename(PARTED, RENAMED)
        yield lambda: self.insert(RENAMED, 2, "5")
        yield lambda: self.source.drop_table(PLAIN)
        yield lambda: self.create(PLAIN)
        yield lambda: self.insert(PLAIN, 1)
        yield lambda: self.create(PARTED, partitions=("1",))

    def run(self) -> None:
        for step in self.steps():
            with self.world.uninterrupted():
                self.world.clock.now += 1_000_000_000
                step()
            self.world.go_on()
            self.world.go_on()
        self.world.settle()

    def put(self, location: str) -> str:
        path = join(location, f"part-{next(self.numbers):03d}")
        self.world.disk.write(path, os.urandom(SIZE))
        self.world.note()
        return path

    def storage(self, location: str) -> Storage:
        return Storage((Column("x", "string"),), location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))

    def create(self, name: TableName, partitions: tuple[str, ...] = ()) -> None:
        location = self.world.place(f"{name.table}{next(self.numbers)}")
        keys = (Column("p", "string"),) if partitions else ()
        if not partitions:
            self.put(location)
        self.source.create_table(
            Table(
                name.table,
                name.database,
                storage=self.storage(location),
                partition_keys=keys,
                parameters={"EXTERNAL": "TRUE"},
                type="EXTERNAL_TABLE",
            )
        )
        if partitions:
            self.add(name, partitions)

    def add(self, name: TableName, values: tuple[str, ...]) -> None:
        rows = []
        for value in values:
            location = self.world.place(f"{name.table}{next(self.numbers)}")
            self.put(location)
            self.put(location)
            rows.append(Partition((value,), *name, storage=self.storage(location), parameters={}))
        self.source.add_partitions(name, rows)

    def part(self, name: TableName, value: str) -> Partition:
        found: Partition = self.source.the_table(name).partitions[(value,)]
        return found

    def where(self, name: TableName, value: str | None) -> str:
        return location_of(self.part(name, value) if value else self.source.the_table(name).table) or ""

    def insert(self, name: TableName, files: int, value: str | None = None) -> None:
        paths = [self.put(self.where(name, value)) for _ in range(files)]
        self.source.insert(name, paths, values=(value,) if value else None)

    def overwrite(self, name: TableName, value: str | None = None) -> None:
        location = self.where(name, value)
        old = [join(location, file.path) for file in self.world.disk.list([location])[location].files]
        self.world.disk.remove(old)
        self.source.insert(name, [self.put(location)], values=(value,) if value else None, replace=True)

    def rename(self, name: TableName, new: TableName) -> None:
        self.source.alter_table(name, replace(self.source.the_table(name).table, name=new.table))


def played(root: Path, at: int | None, **policy: object) -> tuple[DiskWorld, Death]:
    death = Death(at)
    world = DiskWorld(root, death, **policy)
    Play(world).run()
    return world, death


def swept(world: DiskWorld) -> None:
    """Two sweeps without grace, long after."""
    noted: dict[str, int] = {}
    for hours in (1, 2):
        done: Swept = sweep_target(world.side, world.journal, time.time_ns() + hours * 3600 * 10**9, noted)
        noted = dict(done.noted)
    assert noted == {}


def litter(world: DiskWorld) -> list[str]:
    """Files below the warehouse that belong to no table or partition there, and those that nobody has published."""
    leaves = []
    for database in world.target_store.databases():
        for name in world.target_store.tables(database):
            stored = world.target_store.the_table(TableName(database, name))
            things = [*stored.partitions.values()] if is_partitioned(stored.table) else [stored.table]
            leaves += [f"{place(location_of(thing) or '').path}/" for thing in things]
    files = files_below(f"{world.root}/target")
    return [path for path in files if COPYING in path or STAGE in path or not path.startswith(tuple(leaves))]


def check(world: DiskWorld) -> None:
    shown = {name: state for name, state in world.target_states().items() if state is not None}
    assert shown == world.source_states()
    assert world.problems == []
    swept(world)
    assert litter(world) == []
    assert {name: state for name, state in world.target_states().items() if state is not None} == shown


@pytest.mark.parametrize("appends", ["in_place", "new_directory"])
def test_whoever_dies_anywhere_goes_on_copies_nothing_twice_and_leaves_nothing(tmp_path: Path, appends: str) -> None:
    """Between two files of a copy or a publication, too. Each named failpoint, first and last time, and others."""
    world, death = played(tmp_path / "alive", None, appends=appends)
    hits = list(death.hits)
    check(world)
    assert {name.rpartition(".")[0] for name in hits} >= PASSED - (
        {"storage.publish"} if appends != "in_place" else set()
    )
    chosen = {hits.index(name) for name in hits} | {*range(len(hits) % EVERY, len(hits), EVERY)}
    if appends == "in_place":
        chosen |= {len(hits) - 1 - hits[::-1].index(name) for name in hits}
    for at in sorted(chosen):
        root = tmp_path / str(at)
        again, died = played(root, at, appends=appends)
        assert len(died.hits) > at
        assert again.disk.copied == world.disk.copied, f"died at {at}, {hits[at]}"
        check(again)
        shutil.rmtree(root)


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_sweep_that_dies_again_and_again_is_finished_in_the_end(tmp_path: Path, side: str) -> None:
    world, death = played(tmp_path, None)
    died = 0
    for skip in range(1, 6):
        death.name, death.left = f"storage.remove.{side}", skip
        try:
            swept(world)
        except Died:
            died += 1
    assert died > 1
    death.name = ""
    check(world)
