"""What may be removed: histories in which everything goes wrong that can go wrong with a sweep.

Two deployments write below one warehouse, each with a metastore of its own. Sweeps come between any two steps: of the
right catalog, of an empty one, of one that was restored from a backup, through another spelling of the warehouse, with
and without `--unknown`; they die before, inside and after each removal, and so does the replica. Another ledger takes a
target over, as a standby's does. Whatever happens, no file of a state that a target shows is gone, none of one that is
in grace, and no two objects share a directory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import settings

from calque.core.formats.layout import place
from calque.engine.sides.sides import TargetSide
from calque.engine.sweep.sweep import SweepTerms, sweep_target
from calque.errors import Unavailable
from calque.model.hive import Column, Database, Table, is_partitioned, is_view, location_of
from calque.model.hive import Storage as TableStorage
from calque.model.names import OURS, TableName
from calque.model.policy import Policy
from calque.ports import Catalog, Storage
from support.memory.ledger import MemoryLedger
from support.memory.metastore import HIVE_4, MemoryCatalog, MemoryMetastore
from support.memory.storage import MemoryStorage
from support.runs.seeds import history_seeds
from support.worlds.worlds import Backup, Died, InlineExecutor, World

SEEDS = history_seeds(60 if settings.get_current_profile_name() == "check" else 500, times=10)
HOUR = 3600.0
EARLY, LATE = 0.9, 1.1
"""Hours after everything was published: before the grace has passed, and after."""
WAREHOUSE, ALIAS = "file:/target", "file:/link"
STEPS = 10


class Linked:
    """A storage to which `ALIAS` leads to the warehouse, too."""

    def __init__(self, storage: MemoryStorage) -> None:
        self.storage = storage

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.storage, name)

        def called(*arguments: Any) -> Any:
            return renamed(call(*map(self.there, arguments)), WAREHOUSE, ALIAS)

        return called

    def there(self, argument: Any) -> Any:
        return renamed(argument, ALIAS, WAREHOUSE)


def renamed(value: Any, before: str, after: str) -> Any:
    match value:
        case str():
            return after + value[len(before) :] if value.startswith(before) else value
        case Mapping():
            return {renamed(key, before, after): renamed(each, before, after) for key, each in value.items()}
        case frozenset():
            return frozenset(renamed(each, before, after) for each in value)
        case list() | tuple():
            return type(value)(renamed(each, before, after) for each in value)
        case _:
            return value


class Deployment:
    """A world whose warehouse another one shares."""

    def __init__(self, seed: int, number: int, storage: MemoryStorage) -> None:
        policy = Policy("dr", f"hq{number}", include=("d*.*",), warehouse=WAREHOUSE, grace=HOUR)
        self.world = World(seed, policy=policy, storage=storage, root=f"file:/hq{number}")
        self.world.source_side = replace(self.world.source_side, name=f"hq{number}")
        self.name = f"hq{number} -> dr"
        self.backup = Backup(self.world.target_store)
        self.ledgers = [self.world.ledger]
        self.noted: Mapping[str, int] = {}
        self.take_up(self.world.ledger)

    def take_up(self, ledger: MemoryLedger) -> None:
        """A process with that ledger begins."""
        self.world.restart_replica(ledger)

    def step(self) -> None:
        world, rng = self.world, self.world.rng
        world.write(rng.randrange(8))
        if rng.random() < 0.8:
            world.capture_all()
        world.deadliness = rng.choice((0.0, 0.0, 0.02))
        if rng.random() < 0.5:
            world.read()
        world.window_alone()
        if rng.random() < 0.1:
            self.backup = Backup(world.target_store)

    def places(self) -> Iterator[tuple[str, str]]:
        """Where every object that the target shows lies, by its name."""
        store = self.world.target_store
        for database in (name for name in store.databases() if name != OURS):
            for name in store.tables(database):
                stored = store.the_table(TableName(database, name))
                label = f"{self.name} {database}.{name}"
                if is_view(stored.table):
                    continue
                if not is_partitioned(stored.table):
                    yield label, str(place(location_of(stored.table) or "file:/"))
                for partition in stored.partitions.values():
                    if (location := location_of(partition)) is not None:
                        yield f"{label} {partition.values}", str(place(location))

    def roots(self) -> Iterator[tuple[str, str]]:
        """Where tables with partitions lie."""
        store = self.world.target_store
        for database in (name for name in store.databases() if name != OURS):
            for name in store.tables(database):
                table = store.the_table(TableName(database, name)).table
                if not is_view(table) and is_partitioned(table):
                    yield f"{self.name} {database}.{name}", str(place(location_of(table) or "file:/"))

    def catalog(self) -> Catalog:
        """What answers a sweep: mostly the target's own metastore."""
        world = self.world
        kind = world.rng.choice(("own", "own", "empty", "restored"))
        if kind == "own":
            return world.side.catalog
        other = MemoryMetastore(HIVE_4, "file:/managed")
        if kind == "restored":
            self.backup.restore(other)
        return MemoryCatalog(other)

    def sweep(self, hours: float) -> None:
        world, rng = self.world, self.world.rng
        side: TargetSide = replace(world.side, catalog=self.catalog())
        aliases: tuple[str, ...] = ()
        if rng.random() < 0.2:
            side = replace(
                side,
                policy=replace(side.policy, warehouse=ALIAS),
                storage=cast(Storage, Linked(world.storage)),
            )
            aliases = (WAREHOUSE,) if rng.random() < 0.5 else ()
        terms = SweepTerms(
            noted=self.noted,
            living_writer=world.side.claims.writer,
            aliases=aliases,
            unknown=rng.random() < 0.3,
            confirmed=rng.random() < 0.5,
            pool=lambda *_: InlineExecutor(),
        )
        with suppress(Unavailable):
            now_ns = time.time_ns() + int(hours * HOUR * 1e9)
            self.noted = sweep_target(side, world.journal, now_ns, terms).noted


class Shared:
    """Two deployments below one warehouse, and what was ever shown there."""

    def __init__(self, seed: int) -> None:
        self.storage = MemoryStorage()
        self.deployments = [Deployment(seed * 2 + number, number, self.storage) for number in range(2)]
        self.rng = self.deployments[0].world.rng
        self.shown: dict[str, bytes] = {}
        """Every file that was shown and that no sweep may have taken, with its content."""

    def living(self) -> dict[str, bytes]:
        files = self.storage.paths()
        roots = tuple({f"{at}/" for deployment in self.deployments for _, at in deployment.places()})
        return {path: self.storage.read(path) or b"" for path in files if path.startswith(roots)}

    def check_sharing(self) -> None:
        owners: dict[str, str] = {}
        for deployment in self.deployments:
            for name, at in (*deployment.places(), *deployment.roots()):
                if at.startswith(f"{WAREHOUSE}/{OURS}.db"):
                    continue
                assert at not in owners, f"{name} and {owners[at]} share {at}"
                owners[at] = name

    def sweep(self, deployment: Deployment) -> None:
        hours = self.rng.choice((EARLY, LATE))
        left = self.rng.randrange(1, 30) if self.rng.random() < 0.4 else 0

        def die(call: str, _: str) -> None:
            nonlocal left
            if call in ("create", "set aside", "remove") and left:
                left -= 1
                if left == 0:
                    raise Died

        living = self.living()
        self.shown |= living
        self.storage.before = die
        try:
            with suppress(Died):
                deployment.sweep(hours)
        finally:
            self.storage.before = lambda _call, _about: None
        now = {path: self.storage.read(path) for path in self.shown}
        kept: Mapping[str, bytes] = self.shown if hours == EARLY else living
        gone = [path for path, content in kept.items() if now[path] != content]
        assert gone == [], f"a sweep of {deployment.name}, {hours} hours later, took {gone[:5]}"
        self.shown = {path: content for path, content in self.shown.items() if now[path] == content}

    def step(self) -> None:
        deployment = self.rng.choice(self.deployments)
        if self.rng.random() < 0.07:
            ledger = self.rng.choice([*deployment.ledgers, MemoryLedger()])
            if ledger not in deployment.ledgers:
                deployment.ledgers.append(ledger)
            deployment.take_up(ledger)
        deployment.step()
        self.check_sharing()
        self.shown |= self.living()
        for each in self.deployments:
            if self.rng.random() < 0.5:
                self.sweep(each)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_file_that_is_shown_or_in_grace_is_ever_gone_and_no_two_objects_share_a_directory(seed: int) -> None:
    shared = Shared(seed)
    for _ in range(STEPS):
        shared.step()
    for deployment in shared.deployments:
        deployment.world.deadliness = 0.0
        deployment.world.settle()
        assert not deployment.world.problems, "\n".join(deployment.world.problems[:3])
        assert differences(deployment.world) == []
        shared.check_sharing()
        shared.sweep(deployment)


def differences(world: World) -> Sequence[object]:
    shown = {name: state for name, state in world.target_states().items() if state is not None}
    return [name for name, state in world.source_states().items() if shown.get(name) != state]


@pytest.mark.parametrize("seed", history_seeds(30))
def test_tables_of_one_second_that_change_names_while_they_are_read_share_no_directory(seed: int) -> None:
    """The sample of the demo ended so: a table was read and created, renamed away before the first epoch, and the one
    that came to its name, made in the same second, was read and given the same directory."""
    shared = Shared(seed)
    [deployment, _] = shared.deployments
    world, names = deployment.world, [TableName("d1", f"t{number}") for number in range(4)]
    world.write(0)
    world.source.create_database(Database("d1"))
    for number, name in enumerate(names):
        keys = (Column("p", "string"),) if number % 2 else ()
        storage = TableStorage((Column("x", "int"),))
        world.source.create_table(
            Table(name.table, "d1", storage=storage, partition_keys=keys, type="MANAGED_TABLE", create_time=1)
        )
    world.restart_replica(MemoryLedger())
    for _ in range(30):
        if world.rng.random() < 0.5:
            swap(world, world.rng.choice(names), world.rng.choice(names))
        world.capture_all()
        world.deadliness = world.rng.choice((0.0, 0.0, 0.05))
        world.read(limit=1)
        if world.rng.random() < 0.5:
            world.window_alone()
        shared.check_sharing()
    world.deadliness = 0.0
    world.settle()
    shared.check_sharing()
    assert differences(world) == []


def swap(world: World, one: TableName, other: TableName) -> None:
    """The two tables have each other's names."""
    if one != other:
        with world.uninterrupted():
            for was, name in ((one, "spare"), (other, one.table), (TableName("d1", "spare"), other.table)):
                table = world.source.the_table(was).table
                world.source.alter_table(was, replace(table, name=name))
                world.note()
