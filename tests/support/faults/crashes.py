"""Small histories of a source, each of which has calque do some of all that it can do; together they pass every
failpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from calque.core.formats.layout import COPYING, STAGE, join, place
from calque.core.records.claims import claim_file
from calque.core.records.lifecycle import UNREAD
from calque.engine.failpoints import FailpointGuard
from calque.engine.sweep.retention import Limits, let_go
from calque.engine.sweep.sweep import SweepTerms, sweep_target
from calque.model.facets import ColumnStatistics, Longs, PrimaryKey, StatisticsCounts
from calque.model.hive import (
    Column,
    Database,
    Function,
    Partition,
    SerDe,
    Storage,
    Table,
    is_partitioned,
    is_view,
    location_of,
)
from calque.model.names import OURS, TableName
from calque.model.policy import SmallFilesRule
from calque.model.requests import Action
from calque.model.state_places import TargetPlaces
from calque.plugins.grants.model import ROLE, Grant
from calque.plugins.marks.core import Done
from calque.plugins.marks.engine.follow_tables import remember
from calque.plugins.marks.engine.judge import MarkJudge
from calque.plugins.marks.engine.make import make_mark
from calque.plugins.marks.engine.target_view import target_view
from calque.plugins.marks.engine.tell_metastore import DoneEventWriter
from calque.plugins.marks.ports import ForwardingPartitionEvents
from support.memory.metastore import DELTA_LIKE, HIVE_3, HIVE_4
from support.memory.privileges import MemoryPrivileges
from support.worlds.acid import AcidWriters
from support.worlds.disks import Death, DiskWorld, files_below
from support.worlds.handmade import copy_by_hand
from support.worlds.worlds import INPUT, OUTPUT, SERDE, InlineExecutor

Steps = Iterator[Callable[[], object]]
PLAIN, PARTED, RENAMED = TableName("d1", "plain"), TableName("d1", "parted"), TableName("d1", "renamed")
SIZE = 100
STEP = "step"
"""What those who watch failpoints are told behind each step."""
SECOND_NS = 10**9
HOUR_NS = 3600 * SECOND_NS


@dataclass(frozen=True, slots=True)
class History:
    """`steps` are what happens, one after the other, the `first` of them before calque is there. It goes on behind
    `every` so many of the others. `world` is how that is made."""

    steps: Callable[[Play], Steps]
    world: Mapping[str, Any] = field(default_factory=dict)
    first: int = 0
    every: int = 1


class Play:
    """A history that is being played."""

    def __init__(self, world: DiskWorld) -> None:
        self.world, self.source = world, world.writer.source
        self.numbers = count(1)
        self.noted: dict[str, int] = {}

    def run(self, history: History) -> None:
        for number, step in enumerate(history.steps(self)):
            if number == history.first:
                self.world.begin = self.source.current()
                self.world.start()
            with self.world.uninterrupted():
                self.world.clock.now += SECOND_NS
                step()
                self.world.death.watch(STEP)
            if number >= history.first and number % history.every == 0:
                self.go_on()
        self.world.settle()

    def go_on(self) -> None:
        """Twice without being disturbed, and until all is read again whose reads failed, so that whoever died is as
        far as if it had not."""
        undisturbed = 0
        while undisturbed < 2 or self.is_behind():
            assert undisturbed < 60, f"it is not read again: {self.world.replica.tables.rows}"
            before = self.world.death.happened
            undisturbed += self.world.go_on() and self.world.death.happened == before
            if undisturbed > 1:
                self.world.clock.now += SECOND_NS

    def is_behind(self) -> bool:
        """Whether a disturbance has left tables to be read."""
        return self.world.death.happened > 0 and bool(self.world.replica.tables.in_state(*UNREAD))

    # The source

    def put(self, location: str) -> str:
        path = join(location, f"part-{next(self.numbers):03d}")
        self.world.disk.write(path, os.urandom(SIZE))
        self.world.note()
        return path

    def protect(self, name: TableName, value: str | None = None, mode: int = 0o750) -> None:
        """The directory of a table or partition, and its files."""
        for at, _, names in os.walk(place(self.where(name, value)).path):
            for path in (at, *(os.path.join(at, name) for name in names)):
                Path(path).chmod(mode)

    def storage(self, location: str) -> Storage:
        return Storage((Column("x", "string"),), location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))

    def database(self, name: str = "d1") -> None:
        self.source.create_database(Database(name))

    def create(self, name: TableName, *values: str) -> None:
        """A table; with partitions where values are given, else with a file."""
        location = self.world.place(f"{name.table}{next(self.numbers)}")
        if not values:
            self.put(location)
        table = Table(name.table, name.database, storage=self.storage(location), type="EXTERNAL_TABLE")
        keys = (Column("p", "string"),) if values else ()
        self.source.create_table(replace(table, partition_keys=keys, parameters={"EXTERNAL": "TRUE"}))
        if values:
            self.add(name, *values)

    def add(self, name: TableName, *values: str) -> None:
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

    def describe(self, name: str, text: str) -> None:
        """With a parameter: Hive 4 logs no event of a description alone, and nobody looks at databases here."""
        before = self.source.the_database(name)
        parameters = {**(before.parameters or {}), "described": text}
        self.source.alter_database(name, replace(before, description=text, parameters=parameters))

    def write_version(self, name: TableName, value: int, *, checkpoint: bool = False) -> None:
        """Of a Delta table: a commit, and no event."""
        at = place(self.where(name, None)).path
        write_deltalake(at, pa.table({"x": pa.array([value], pa.int64())}), mode="append")
        if checkpoint:
            DeltaTable(at).create_checkpoint()
        self.world.disk.changes += 1
        self.world.note()

    def create_delta(self, name: TableName) -> None:
        location = self.world.place(name.table)
        write_deltalake(place(location).path, pa.table({"x": pa.array([0], pa.int64())}))
        storage = Storage((Column("col", "array<string>"),), location, serde=SerDe(parameters={"path": location}))
        parameters = {"EXTERNAL": "TRUE", "spark.sql.sources.provider": "DELTA"}
        self.source.create_table(
            Table(name.table, name.database, storage=storage, parameters=parameters, type="EXTERNAL_TABLE")
        )

    def touch(self, name: TableName, value: str) -> None:
        table = self.source.the_table(name).table
        self.source.alter_table(name, replace(table, parameters={**(table.parameters or {}), "k": value}))

    # The operator

    def sweep(self) -> None:
        """One without grace, long after."""

        def once() -> None:
            terms = SweepTerms(
                noted=self.noted, living_writer=self.world.side.claims.writer, pool=lambda *_: InlineExecutor()
            )
            found = sweep_target(self.world.side, self.world.journal, self.world.clock.now + 2 * HOUR_NS, terms)
            self.noted = dict(found.noted)

        self.world.clock.now += HOUR_NS
        self.world.finish(once)

    def let_go(self) -> None:
        """Of all that is older than an hour, and of what nobody needs any more."""
        self.world.clock.now += 2 * HOUR_NS
        limits = Limits(10**12, 10**12)
        source, marks = self.world.source_side, self.world.mark_store
        self.world.finish(
            lambda: let_go(source, [self.world.ledger], 3600.0, limits, before=lambda: remember(source, marks))
        )

    def mark(self, name: TableName, **values: str) -> None:
        """That a set is done, for four hours."""
        source, marks = self.world.source_side, self.world.mark_store
        self.world.finish(lambda: make_mark(source, marks, name, values, lambda _: 4 * 3600.0))

    def tell(self) -> None:
        """The target's metastore of marks that are done there."""
        world, guard = self.world, FailpointGuard(self.world.death)
        events = guard.wrapped("partition_events", world.partition_events, ForwardingPartitionEvents)
        event_writer = DoneEventWriter(
            self.judge(), world.catalog, events, world.side.admission, world.records, TargetPlaces("dr").marks_record
        )
        self.world.finish(event_writer.run_once)

    def judge(self) -> MarkJudge:
        world = self.world
        return MarkJudge(
            world.source_side, world.marks, lambda: target_view(world.ledger, world.gaps, world.side.admission)
        )

    def undone(self) -> list[str]:
        """Marks that are not done at the target."""
        with self.world.uninterrupted():
            verdicts = self.judge().of(self.world.marks.after(0))
        return [str(verdict) for verdict in verdicts if not isinstance(verdict, Done)]

    def policy(self, **changes: Any) -> None:
        self.world.follow(replace(self.world.policy, **changes))
        self.world.start()


def files(play: Play) -> Steps:
    """Every kind of change of files and definitions."""
    yield play.database
    yield lambda: play.create(PLAIN)
    yield lambda: play.create(PARTED, "1", "2")
    yield lambda: play.insert(PLAIN, 3)
    yield lambda: play.insert(PARTED, 2, "1")
    yield lambda: play.insert(PLAIN, 2)
    yield lambda: play.overwrite(PLAIN)
    yield lambda: play.overwrite(PARTED, "1")
    yield lambda: play.insert(PARTED, 2, "1")
    yield lambda: play.add(PARTED, "3", "4")
    yield lambda: play.source.rename_partition(PARTED, ("3",), replace(play.part(PARTED, "3"), values=("5",)))
    yield lambda: play.source.drop_partitions(PARTED, ["p=2"])
    yield lambda: play.mark(PARTED, p="1")
    yield lambda: play.rename(PARTED, RENAMED)
    yield lambda: play.insert(RENAMED, 2, "5")
    yield lambda: play.source.drop_table(PLAIN)
    yield lambda: play.create(PLAIN)
    yield lambda: play.insert(PLAIN, 1)
    yield lambda: play.create(PARTED, "1")


def facets(play: Play) -> Steps:
    """Databases, functions, statistics and constraints."""
    counted = ColumnStatistics("x", "string", StatisticsCounts(longs=Longs(1, 2, 0, 5)))
    yield play.database
    yield lambda: play.create(PLAIN)
    yield lambda: play.create(PARTED, "1")
    yield lambda: play.source.add_constraints([PrimaryKey("d1", "plain", "x", 1, "pk", False, False, True)])
    yield lambda: play.source.update_statistics(PLAIN, [counted])
    yield lambda: play.source.update_statistics(PARTED, [counted], ("1",))
    yield lambda: play.source.create_function(Function("f", "d1", "org.F", "me", 1, type=1))
    yield lambda: play.describe("d1", "newest")
    yield lambda: play.source.delete_statistics(PLAIN, "x", ())
    yield lambda: play.source.drop_constraint(PLAIN, "pk")
    yield lambda: play.source.drop_function(TableName("d1", "f"))
    yield lambda: play.database("d2")
    yield lambda: play.source.create_function(Function("g", "d2", "org.G", "me", 1, type=1))
    yield lambda: play.source.drop_database("d2", cascade=True)


def commits(play: Play) -> Steps:
    """At a target that takes any difference of a table at once."""
    yield play.database
    yield lambda: play.create(PARTED, "1", "2")
    yield lambda: play.insert(PARTED, 1, "1")
    yield lambda: play.overwrite(PARTED, "2")
    yield lambda: play.source.drop_partitions(PARTED, ["p=1"])
    yield lambda: play.source.drop_table(PARTED)


def versions(play: Play) -> Steps:
    """A Delta table."""
    yield play.database
    yield lambda: play.create_delta(PLAIN)
    yield lambda: (play.write_version(PLAIN, 1), play.touch(PLAIN, "1"))
    yield lambda: (play.write_version(PLAIN, 2, checkpoint=True), play.touch(PLAIN, "2"))
    yield lambda: play.rename(PLAIN, RENAMED)
    yield lambda: (play.write_version(RENAMED, 3), play.touch(RENAMED, "3"))


def kept(play: Play) -> Steps:
    """What is kept for a while, and let go of: pinned files, scans, the journal, epochs, replaced files."""
    yield play.database
    yield lambda: play.create(PLAIN)
    yield lambda: play.create(PARTED, "1")
    yield lambda: play.insert(PLAIN, 1)
    yield lambda: play.put(play.where(PLAIN, None))
    yield lambda: (play.mark(PARTED, p="1"), play.world.finish(lambda: play.world.lease.renew()))
    yield lambda: setattr(play.world.clock, "now", play.world.clock.now + HOUR_NS)
    yield lambda: play.overwrite(PLAIN)
    yield lambda: (play.tell(), play.world.finish(lambda: play.world.lease.renew()))
    yield play.let_go
    yield play.sweep
    yield lambda: play.insert(PARTED, 1, "1")
    yield lambda: play.world.start()
    yield play.sweep
    yield play.let_go


def protected(play: Play) -> Steps:
    """Directories and files that are not everybody's."""
    yield play.database
    yield lambda: (play.create(PLAIN), play.protect(PLAIN))
    yield lambda: (play.create(PARTED, "1", "2"), play.protect(PARTED, "1"))
    yield lambda: (play.overwrite(PLAIN), play.protect(PLAIN, mode=0o700))
    yield lambda: play.protect(PARTED, "1", 0o700)
    yield lambda: play.world.ask(Action.BOOTSTRAP)
    yield lambda: (play.insert(PARTED, 1, "2"), play.protect(PARTED, "2"))


def granted(play: Play) -> Steps:
    """Privileges, of a role that the target lacks."""
    source = MemoryPrivileges(play.source)
    readers = Grant("readers", ROLE, "SELECT")
    yield play.database
    yield lambda: play.create(PLAIN)
    yield lambda: (source.create_role("readers"), source.grant(PLAIN, [readers]))
    yield lambda: (source.revoke(PLAIN, [readers]), source.grant(PLAIN, [replace(readers, grant_option=True)]))


def lost(play: Play) -> Steps:
    """The log is purged before it was read."""

    def purge() -> None:
        play.insert(PLAIN, 1)
        play.create(PARTED, "1")
        play.world.source.purge(play.world.source.current())

    yield play.database
    yield lambda: play.create(PLAIN)
    yield lambda: play.insert(PLAIN, 1)
    yield purge
    yield lambda: play.insert(PARTED, 1, "1")


def operated(play: Play) -> Steps:
    """What operators ask for."""
    yield lambda: (play.database(), play.database("d2"))
    yield lambda: copied_by_hand(play)
    yield lambda: play.world.ask(Action.ADOPT, str(PLAIN))
    yield lambda: play.create(PARTED, "1")
    yield lambda: play.source.create_function(Function("g", "d2", "org.G", "me", 1, type=1))
    yield lambda: play.insert(PARTED, 1, "1")
    yield lambda: play.world.ask(Action.REPLAY, after=play.world.source.current() - 1)
    yield lambda: play.world.ask(Action.BOOTSTRAP)
    yield lambda: play.policy(rename={"d1": "e1", "d2": "e2"})
    yield lambda: play.insert(PARTED, 1, "1")
    yield lambda: play.policy(rename={"d1": "e1"}, include=("d1.*",))


def built(play: Play) -> Steps:
    """Tables that are there before calque is, built hidden in batches; one of them is renamed meanwhile."""
    yield lambda: (play.database(), play.create(PARTED, "1", "2", "3"), play.create(PLAIN))
    yield lambda: play.rename(PARTED, RENAMED)
    yield lambda: play.insert(RENAMED, 1, "1")


def transactions(play: Play) -> Steps:
    """Writers, a compactor and a cleaner of ACID tables."""
    writers = AcidWriters.of(play.world, seed=4)
    for _ in range(24):
        yield writers.step
    yield writers.finish
    yield play.let_go
    yield lambda: (writers.inserted(), play.world.note())


def copied_by_hand(play: Play) -> None:
    """Files that are written one right after the other may have the same time; copies by hand have another one."""
    play.create(PLAIN)
    root = f"{play.world.root}/handmade/plain"
    copy_by_hand(play.world, PLAIN, root=root)
    for path in files_below(root):
        os.utime(path, (0, 0))


HISTORIES: Mapping[str, History] = {
    "files": History(files),
    "new directories": History(files, {"appends": "new_directory"}),
    "small files": History(files, {"appends": "new_directory", "compact": {"*.*": SmallFilesRule(2, 10**6)}}),
    "rows": History(files, {"atomicity": "rows"}, every=3),
    "database": History(files, {"consistency": "database"}, every=4),
    "built": History(built, {"batch": 1}, first=1),
    "windows": History(files, every=6),
    "facets": History(facets, {"habits": HIVE_4}),
    "commits": History(commits, {"habits": HIVE_4, "abilities": DELTA_LIKE}),
    "versions": History(versions),
    "kept": History(kept, {"pinned": True, "scanned": True}),
    "protected": History(protected, {"permissions": "keep"}),
    "granted": History(granted, {"grants": "follow"}),
    "lost": History(lost, {"pinned": True}),
    "transactions": History(transactions, {"acid": "external"}, first=4, every=3),
    "native": History(transactions, {"acid": "native"}, every=3),
    "operated": History(operated, {"habits": HIVE_3}),
}


def played(name: str, root: Path, death: Death) -> Play:
    play = Play(DiskWorld(root, death, **HISTORIES[name].world))
    play.run(HISTORIES[name])
    return play


def litter(world: DiskWorld) -> list[str]:
    """Files below the warehouse that belong to no table or partition there, and those that nobody has published. Claims
    on roots of partitioned tables belong to these."""
    leaves, claims = [], set[str]()
    for database in world.target_store.databases():
        for name in world.target_store.tables(database):
            stored = world.target_store.the_table(TableName(database, name))
            things = [*stored.partitions.values()] if is_partitioned(stored.table) else [stored.table]
            root = place(location_of(stored.table) or "/").path
            claims |= {claim_file(root, generation) for generation in range(1, 10)}
            leaves += [f"{place(location_of(thing) or '').path}/" for thing in things if not is_view(stored.table)]
    found = files_below(f"{world.root}/target")
    return [
        path
        for path in found
        if path not in claims and (COPYING in path or STAGE in path or not path.startswith(tuple(leaves)))
    ]


def hidden(world: DiskWorld) -> list[str]:
    """What is left in the hidden database but the lease."""
    if OURS not in world.target_store.databases():
        return []
    tables = [world.target_store.the_table(TableName(OURS, name)).table for name in world.target_store.tables(OURS)]
    return [table.name for table in tables if not is_view(table)]
