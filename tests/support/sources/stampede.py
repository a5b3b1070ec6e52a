"""Writers of a source that are as fast as it takes them, each with tables of its own: every state of every table is
known before the call that makes it, so that nothing needs to be read back. And readers that judge a target by that.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.reader import HiveReader
from calque.core.events.keys import keys_of
from calque.engine.sides.log_reads import events_after
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.names import TableName, partition_name
from calque.sandbox.writer import HiveClient
from support.sources.writers import INPUT, OUTPUT, SERDE
from support.worlds.worlds import ABSENT, History, State

COLUMNS = (("x",), ("y", "z"))
VALUES = tuple("12345")


@dataclass
class Held:
    """A table as its writer knows it: the number of its definition, and those of its partitions' by value."""

    version: str
    columns: tuple[str, ...]
    location: str
    parts: dict[str, tuple[str, str]] = field(default_factory=dict)
    """A partition's number and place."""

    def state(self) -> State:
        return self.version, self.columns, tuple(sorted((p, w, self.columns) for p, (w, _) in self.parts.items()))


def state_of(table: Table, partitions: Sequence[Partition]) -> State:
    """What a reader sees, in the same terms."""
    parts = sorted((one.values[0], (one.parameters or {})["w"], columns_of(one)) for one in partitions)
    return (table.parameters or {})["v"], columns_of(table), tuple(parts)


def columns_of(thing: Table | Partition) -> tuple[str, ...]:
    storage = thing.storage or Storage()
    return tuple(column.name for column in storage.columns or ())


class Past:
    """What the tables of all writers went through. Of tables that are not at the source yet, nothing."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.history = History()
        self.problems: list[str] = []
        self.seen = 0

    def note(self, name: TableName, state: State) -> None:
        with self.lock:
            self.history.states.setdefault(name, [(0, ABSENT)]).append((0, state))

    def names(self) -> list[TableName]:
        with self.lock:
            return list(self.history.states)

    def newest(self) -> dict[TableName, State]:
        with self.lock:
            return {name: rows[-1][1] for name, rows in self.history.states.items()}

    def judge(self, name: TableName, state: State) -> None:
        with self.lock:
            self.seen += 1
            if problem := self.history.judge(name, state):
                self.problems.append(problem)


class Stampeder:
    """One writer; its tables' names begin with `t<number>_`. Tables move between its databases; those of `dropped` are
    dropped with all that is in them, which must be its own, and come back."""

    def __init__(
        self, uri: str, number: int, databases: Sequence[str], root: Path, past: Past, dropped: str | None = None
    ) -> None:
        self.client, self.number, self.databases, self.dropped = HiveClient(uri), number, databases, dropped
        self.root, self.past, self.rng = root, past, random.Random(number)
        self.held: dict[TableName, Held] = {}
        self.numbers = count(1)
        self.calls = 0
        self.failed: Exception | None = None

    def fill(self, tables: int) -> None:
        for number in range(tables):
            self.create(TableName(self.databases[number % len(self.databases)], f"t{self.number}_{number}"))
        for name in list(self.held):
            self.add(name, VALUES[:3])

    def run(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                self.step()
        except Exception as error:  # noqa: BLE001 - a thread has no caller: the test looks at `failed`
            self.failed = error

    def step(self) -> None:
        if self.dropped is not None and self.rng.random() < 0.01:
            self.drop_database(self.dropped)
        name = self.rng.choice(sorted(self.held)) if self.held else None
        if name is None or self.rng.random() < 0.05:
            self.create(self.free_name())
        else:
            self.rng.choice(CHANGES)(self, name)

    # What is there

    def fresh(self) -> str:
        return f"{self.number}.{next(self.numbers)}"

    def place(self, content: str) -> str:
        folder = self.root / f"{self.number}" / f"{next(self.numbers)}"
        folder.mkdir(parents=True)
        (folder / "data").write_text(content)
        return f"file:{folder}"

    def free_name(self) -> TableName:
        while True:
            name = TableName(self.rng.choice(self.databases), f"t{self.number}_{self.rng.randrange(100)}")
            if name not in self.held:
                return name

    def some(self, held: Held) -> list[str]:
        there = sorted(held.parts)
        return self.rng.sample(there, self.rng.randrange(1, len(there) + 1)) if there else []

    def table(self, name: TableName, held: Held) -> Table:
        return Table(
            name.table,
            name.database,
            "me",
            storage=storage(held.columns, held.location),
            partition_keys=(Column("p", "string"),),
            parameters={"EXTERNAL": "TRUE", "v": held.version},
            type="EXTERNAL_TABLE",
        )

    def rows(self, name: TableName, held: Held, values: Sequence[str]) -> list[Partition]:
        return [
            Partition((value,), *name, storage=storage(held.columns, held.parts[value][1]), parameters={"w": w})
            for value in values
            for w in [held.parts[value][0]]
        ]

    @contextmanager
    def call(self, *names: TableName) -> Iterator[None]:
        """Inside, the call that brings these tables to what is held of them now."""
        for name in names:
            self.past.note(name, self.held[name].state() if name in self.held else ABSENT)
        yield
        self.calls += 1

    # Changes

    def create(self, name: TableName) -> None:
        held = self.held[name] = Held(self.fresh(), self.rng.choice(COLUMNS), f"file:{self.root}/none/{name}")
        with self.call(name):
            self.client.create_table(self.table(name, held))

    def drop(self, name: TableName) -> None:
        del self.held[name]
        with self.call(name):
            self.client.drop_table(name)

    def create_again(self, name: TableName) -> None:
        """With other columns and other partitions."""
        columns = self.held[name].columns
        self.drop(name)
        held = self.held[name] = Held(self.fresh(), COLUMNS[columns == COLUMNS[0]], f"file:{self.root}/none/{name}")
        with self.call(name):
            self.client.create_table(self.table(name, held))
        self.add(name, self.rng.sample(VALUES, 2))

    def alter(self, name: TableName) -> None:
        held = self.held[name]
        held.version = self.fresh()
        with self.call(name):
            self.client.alter_table(name, self.table(name, held))

    def rename(self, name: TableName) -> None:
        self.rename_to(name, self.free_name())

    def rename_to(self, name: TableName, to: TableName) -> None:
        held = self.held[to] = self.held.pop(name)
        with self.call(name, to):
            self.client.alter_table(name, self.table(to, held))

    def swap(self, name: TableName) -> None:
        other, free = self.rng.choice(sorted(self.held)), self.free_name()
        if other != name:
            self.rename_to(name, free)
            self.rename_to(other, name)
            self.rename_to(free, other)

    def add_some(self, name: TableName) -> None:
        self.add(name, [value for value in VALUES if self.rng.random() < 0.5])

    def add(self, name: TableName, values: Sequence[str]) -> None:
        held = self.held[name]
        if new := [value for value in values if value not in held.parts]:
            held.parts |= {value: (w := self.fresh(), self.place(w)) for value in new}
            with self.call(name):
                self.client.add_partitions(name, self.rows(name, held, new))

    def drop_some(self, name: TableName) -> None:
        held = self.held[name]
        if gone := self.some(held):
            for value in gone:
                del held.parts[value]
            with self.call(name):
                self.client.drop_partitions(name, [partition_name(["p"], [value]) for value in gone])

    def alter_one(self, name: TableName) -> None:
        held = self.held[name]
        for value in self.some(held)[:1]:
            held.parts[value] = self.fresh(), held.parts[value][1]
            with self.call(name):
                self.client.alter_partition(name, self.rows(name, held, [value])[0])

    def rename_one(self, name: TableName) -> None:
        held = self.held[name]
        for value in self.some(held)[:1]:
            for to in [free for free in VALUES if free not in held.parts][:1]:
                held.parts[to] = held.parts.pop(value)
                with self.call(name):
                    self.client.rename_partition(name, [value], self.rows(name, held, [to])[0])

    def drop_database(self, database: str) -> None:
        gone = [name for name in self.held if name.database == database]
        for name in gone:
            del self.held[name]
        with self.call(*gone):
            self.client.drop_database(database, cascade=True)
        self.client.create_database(Database(database, location=f"file:{self.root}/none/{database}"))


def storage(columns: Sequence[str], location: str) -> Storage:
    found = tuple(Column(name, "int") for name in columns)
    return Storage(found, location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))


CHANGES: tuple[Callable[[Stampeder, TableName], None], ...] = (
    Stampeder.alter,
    Stampeder.add_some,
    Stampeder.add_some,
    Stampeder.drop_some,
    Stampeder.alter_one,
    Stampeder.rename_one,
    Stampeder.create_again,
    Stampeder.rename,
    Stampeder.swap,
    Stampeder.drop,
)


class Onlooker:
    """A reader at the target: looks at tables in turn, and what it saw counts when no event of the target's log on that
    table came in between. The target has the source's names."""

    def __init__(self, uri: str, past: Past) -> None:
        client = Client(uri)
        self.log, self.catalog, self.past = HiveLog(client), HiveReader(client), past

    def run(self, stop: threading.Event) -> None:
        rng = random.Random(0)
        while not stop.is_set():
            names = self.past.names()
            rng.shuffle(names)
            for name in names:
                if stop.is_set():
                    return
                self.look(name)

    def look(self, name: TableName) -> None:
        before = self.log.current()
        state = self.state(name)
        between = events_after(self.log, before, self.log.current())
        if not any(name in (keys.table, keys.other) for event in between for keys in [keys_of(event)]):
            self.past.judge(name, state)

    def state(self, name: TableName) -> State:
        table = self.catalog.table(name)
        if table is None:
            return ABSENT
        return state_of(table, list(self.catalog.partitions(name, self.catalog.partition_names(name)).values()))
