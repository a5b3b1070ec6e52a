"""A reader at the target, as Spark reads: the definition, then the files at its `path`. Meanwhile the source moves the
path, the location alone and both, replaces the files and adds some: each read is a state that the source had, and none
is older than the one before.

Appended files come with a new directory (`appends`): in one directory no reader sees several files at once.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calque.model.hive import Database, Storage
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.sandbox import Metastore
from support.judges.engines import files_behind, read
from support.runs.seeds import seed
from support.services.deployments import NUMBERS, Deployment, Target
from support.services.servers import SETTINGS, Shared, shared_servers
from support.sources.shapes import Ground, of_spark, placeholder, spark_plain
from support.worlds.worlds import ABSENT, State

CHANGES = int(os.environ.get("CALQUE_SHAPE_CHANGES", "300"))
PAUSE_SECONDS = 2.0
"""For which a change waits for the reader at most."""
LEAST_CHANGES = 20
"""Of what the reader sees."""


class Read(Deployment):
    """A table of Spark's in each form, and a reader of all of them."""

    def __init__(
        self, root: Path, number: int, version: int, source: Metastore, targets: Mapping[str, Metastore]
    ) -> None:
        super().__init__(root, number, source, targets, seed())
        self.ground = Ground(self.source.client, *self.databases, root / "data", version)
        self.tables = {form: f"read_{form}" for form in ("json", "csv", "text")}
        self.numbers = iter(range(10, 10**6))
        self.reads = 0

    def policy(self, name: str, _: int) -> Policy:
        first = self.databases[0]
        warehouse = f"file://{self.root}/wh_{name}"
        return Policy(name, "hq", include=(f"{first}.*",), rename={first: f"{first}_read"}, warehouse=warehouse)

    def text(self, source: Metastore) -> str:
        return f'{super().text(source)}\nappends = "new_directory"'

    # The source

    def begin(self) -> None:
        self.source.create_database(Database(self.databases[0]))
        for form, table in self.tables.items():
            spark_plain(self.ground, table, form)
        self.note_rows()

    def note_rows(self) -> None:
        """What the source's readers read now."""
        states = {
            self.ground.name(table): state_of(self.source, self.ground.name(table)) for table in self.tables.values()
        }
        self.targets[0].proof.note(self.source.current(), states)

    def step(self) -> None:
        form = self.rng.choice([*self.tables])
        change = self.rng.choice([self.add, self.replace, self.move, self.move_location])
        change(form, self.tables[form])
        self.note_rows()

    def row(self) -> tuple[str, str]:
        return (str(next(self.numbers)), "new")

    def add(self, form: str, table: str) -> None:
        file = self.ground.write(self.ground.location(table), self.row(), form=form)
        self.source.insert(self.ground.name(table), [file])

    def replace(self, form: str, table: str) -> None:
        """As Spark may: others see the new file beside the old ones."""
        old = files_behind(self.ground.location(table))
        file = self.ground.write(self.ground.location(table), self.row(), self.row(), form=form)
        self.note_rows()
        for path in old:
            path.unlink()
            self.note_rows()
        self.source.insert(self.ground.name(table), [file], replace=True)

    def move(self, form: str, table: str) -> None:
        """Path and rows are others; the location is a placeholder as ever."""
        place = self.ground.place(f"{table}_{next(self.numbers)}")
        self.ground.write(place, self.row(), form=form)
        self.ground.alter(table, storage=of_spark(form, place, placeholder(self.ground, table))["storage"])

    def move_location(self, form: str, table: str) -> None:
        """As Hive does, which knows no path: Spark's rows stay."""
        place = self.ground.place(f"{table}_{next(self.numbers)}")
        self.ground.write(place, ("0", "nobody's"), form=form)
        storage = self.ground.table(table).storage or Storage()
        self.ground.alter(table, storage=replace(storage, location=place))

    def pause(self) -> None:
        """A moment, in which the reader mostly comes round."""
        seen, until = self.reads, time.monotonic() + PAUSE_SECONDS
        while self.reads == seen and time.monotonic() < until:
            time.sleep(0.01)

    # The reader

    def watch(self) -> list[threading.Thread]:
        threads = [threading.Thread(target=self.look, args=(target,), daemon=True) for target in self.targets]
        for thread in threads:
            thread.start()
        return threads

    def look(self, target: Target) -> None:
        while not self.watching.wait(0.01):
            before = target.log.current()
            found = {}
            for table in self.tables.values():
                name = self.ground.name(table)
                found[name] = state_of(target, target.admission.name_at_target(name))
            if target.log.current() == before:
                target.proof.see(before, time.time(), found)
                self.reads += 1


def state_of(side: Any, name: TableName) -> State:
    """The rows that Spark reads, or that there is no table."""
    try:
        return read(side.catalog, name).rows
    except LookupError:
        return ABSENT


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with shared_servers(tmp_path_factory.mktemp) as servers:
        yield servers


@pytest.mark.timeout(0)
@pytest.mark.parametrize(("source", "target"), [("source-3", "target-4"), ("source-4", "target-3")])
def test_a_reader_of_spark_s_tables_sees_only_states_of_the_source_while_their_places_change(
    source: str, target: str, shared: Shared, tmp_path: Path
) -> None:
    servers = shared(source, target)
    world = Read(tmp_path, next(NUMBERS), int(SETTINGS[source].version[0]), servers[source], {"dr": servers[target]})
    try:
        world.begin()
        world.start()
        world.settle()
        [reader] = world.watch()
        for _ in range(CHANGES):
            world.step()
            world.pause()
        world.settle()
        seen, deadline = world.reads, time.monotonic() + 60
        while world.reads < seen + 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        world.watching.set()
        reader.join(60)
        proof = world.targets[0].proof
        print(f"{world.reads} reads, {proof.changes} changes")
        assert not (problems := world.problems()), "\n".join([*problems[:5], world.tail()])
        assert proof.changes >= LEAST_CHANGES
        assert proof.last == {name: states[-1][1] for name, states in proof.history.states.items()}
        verified = world.calque("verify", "--data", "checksum")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert world.end(signal.SIGTERM) == 0
    finally:
        world.close()
