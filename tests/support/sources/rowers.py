"""Rows instead of definitions: a writer that knows every set of rows its tables ever had. Every row has a number of its
own, so a set of rows tells when it was.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from calque.core.formats.layout import place
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, is_partitioned, location_of
from calque.model.names import TableName, partition_name
from calque.sandbox.writer import HiveClient
from support.judges.proof import Found
from support.sources.writers import INPUT, OUTPUT, SERDE
from support.worlds.worlds import State

NAMES = ("a", "b", "c", "d", "e", "f")
VALUES = ("1", "2", "a b", "x:y", "50%")
MOST_FILES = 6
KEYS = (Column("p", "string"),)
ITSELF = ""
Rows = tuple[tuple[str, int], ...] | None
"""Sorted pairs of a partition's name (`""` in a plain table) and a row, as often as it is there; None: no table."""


@dataclass
class Held:
    """A table as its writer knows it: the rows of each file, by directory (`""`, or the partition's name)."""

    keys: tuple[Column, ...]
    managed: bool
    files: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def rows(self) -> Rows:
        return tuple(
            sorted((part, row) for part, files in self.files.items() for rows in files.values() for row in rows)
        )


class RowWriter:
    """Random changes at a source. `note` is told of every set of rows before an event may make it known, and of those
    between the writer's own steps in a directory: a reader of the source sees them too."""

    def __init__(
        self, uri: str, database: str, root: Path, seed: int, note: Callable[[int, Mapping[TableName, Rows]], None]
    ) -> None:
        self.client, self.database, self.root = HiveClient(uri), database, root
        self.rng = random.Random(seed)
        self.told = note
        self.tables: dict[str, Held] = {}
        self.numbers, self.values = count(1), count(1)
        self.done: list[str] = []
        self.client.create_database(Database(database, location=f"file:{root}/managed"))

    def name(self, table: str) -> TableName:
        return TableName(self.database, table)

    def note(self) -> None:
        self.told(self.client.current(), {self.name(table): held.rows() for table, held in self.tables.items()})

    def step(self) -> None:
        change = self.rng.choice(CHANGES)
        before = self.client.current()
        getattr(self, change)()
        if self.client.current() != before:
            self.done.append(f"{before + 1}..{self.client.current()} {change}: {self.rows()}")

    def rows(self) -> Mapping[str, Rows]:
        return {table: held.rows() for table, held in self.tables.items()}

    # What is there

    def some_table(self, wanted: Callable[[Held], object] = lambda _: True) -> str | None:
        found = sorted(table for table, held in self.tables.items() if wanted(held))
        return self.rng.choice(found) if found else None

    def some_place(
        self, wanted: Callable[[Mapping[str, list[int]]], object] = lambda _: True
    ) -> tuple[str, str] | None:
        found = [(t, p) for t, held in sorted(self.tables.items()) for p in sorted(held.files) if wanted(held.files[p])]
        return self.rng.choice(found) if found else None

    def definition(self, table: str) -> Table:
        found = self.client.catalog.table(self.name(table))
        assert found is not None
        return found

    def row(self, table: str, partition: str) -> Partition:
        return self.client.catalog.partitions(self.name(table), [partition])[partition]

    def location(self, table: str, partition: str) -> str:
        return location_of(self.row(table, partition) if partition else self.definition(table)) or ""

    def new_directory(self) -> Path:
        path = self.root / "placed" / str(next(self.numbers))
        path.mkdir(parents=True)
        return path

    def storage(self, location: str | None) -> Storage:
        return Storage((Column("x", "int"),), location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))

    # Files

    def new_file(self) -> str:
        return f"part-{next(self.numbers):06d}"

    def written(self, directory: Path, name: str, rows: Sequence[int]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        draft = directory / f".{name}"
        draft.write_text("".join(f"{row}\n" for row in rows))
        draft.rename(directory / name)

    def put(self, directory: Path, rows: Sequence[int]) -> str:
        name = self.new_file()
        self.written(directory, name, rows)
        return name

    def new_rows(self) -> list[int]:
        return [next(self.values) for _ in range(self.rng.randrange(1, 4))]

    def fill(self, directory: Path, most: int = 3) -> dict[str, list[int]]:
        return {self.put(directory, rows): rows for rows in (self.new_rows() for _ in range(self.rng.randrange(most)))}

    # Changes

    def insert(self) -> None:
        """Files, one after the other, then their event."""
        if found := self.some_place(lambda files: len(files) < MOST_FILES):
            table, partition = found
            location = self.location(table, partition)
            paths = []
            for _ in range(self.rng.randrange(1, 4)):
                rows = self.new_rows()
                name = self.new_file()
                self.tables[table].files[partition][name] = rows
                self.note()
                self.written(Path(place(location).path), name, rows)
                paths.append(f"{location}/{name}")
            self.fire(table, partition, paths, replaced=False)

    def fire(self, table: str, partition: str, paths: Sequence[str], *, replaced: bool) -> None:
        values = self.row(table, partition).values if partition else None
        self.client.insert(self.name(table), paths, values=values, replace=replaced)

    def overwrite(self) -> None:
        self.rewrite(self.new_rows())

    def compact(self) -> None:
        """The same rows in one file."""
        self.rewrite(None)

    def rewrite(self, rows: list[int] | None) -> None:
        """The old files go, a new one comes, then the event."""
        if found := self.some_place(lambda files: len(files) > 1):
            table, partition = found
            location = self.location(table, partition)
            directory, files = Path(place(location).path), self.tables[table].files[partition]
            kept = [row for held in files.values() for row in held] if rows is None else rows
            for name in list(files):
                del files[name]
                self.note()
                (directory / name).unlink()
            name = self.new_file()
            files[name] = kept
            self.note()
            self.written(directory, name, kept)
            self.fire(table, partition, [f"{location}/{name}"], replaced=True)

    def overwrite_elsewhere(self) -> None:
        self.move_to_new_directory(compacted=False)

    def compact_elsewhere(self) -> None:
        self.move_to_new_directory(compacted=True)

    def move_to_new_directory(self, *, compacted: bool) -> None:
        """New files in a new directory, then the location switches."""
        if found := self.some_place():
            table, partition = found
            held, directory = self.tables[table], self.new_directory()
            rows = [row for rows in held.files[partition].values() for row in rows]
            if compacted:
                held.files[partition] = {self.put(directory, rows): rows} if rows else {}
            else:
                held.files[partition] = self.fill(directory, 4)
            self.note()
            there = self.row(table, partition) if partition else self.definition(table)
            moved = replace(there, storage=replace(there.storage or Storage(), location=f"file:{directory}"))
            if isinstance(moved, Partition):
                self.client.alter_partition(self.name(table), moved)
            else:
                self.client.alter_table(self.name(table), moved)
            shutil.rmtree(place(location_of(there) or "").path)

    def overwrite_partitions(self) -> None:
        """Two in one call, for which 3.1 writes two events."""
        if table := self.some_table(lambda held: held.keys and len(held.files) > 1):
            held, rows = self.tables[table], []
            for partition in self.rng.sample(sorted(held.files), 2):
                directory, there = self.new_directory(), self.row(table, partition)
                held.files[partition] = self.fill(directory, 3)
                rows.append(replace(there, storage=replace(there.storage or Storage(), location=f"file:{directory}")))
            self.note()
            self.client.alter_partitions(self.name(table), rows)

    def create(self) -> None:
        if free := [name for name in NAMES if name not in self.tables]:
            table, managed = self.rng.choice(free), self.rng.random() < 0.5
            held = Held(self.rng.choice([(), KEYS]), managed, {})
            location = None if managed else self.new_directory()
            if not held.keys:
                held.files[ITSELF] = self.fill(location) if location else {}
            self.tables[table] = held
            self.note()
            self.client.create_table(
                Table(
                    table,
                    self.database,
                    "me",
                    storage=self.storage(f"file:{location}" if location else None),
                    partition_keys=held.keys,
                    parameters={} if managed else {"EXTERNAL": "TRUE"},
                    type="MANAGED_TABLE" if managed else "EXTERNAL_TABLE",
                )
            )

    def drop(self) -> None:
        if len(self.tables) > 2 and (table := self.some_table()):
            del self.tables[table]
            self.note()
            self.client.drop_table(self.name(table))

    def create_again(self) -> None:
        self.drop()
        self.create()

    def rename(self) -> None:
        free = [name for name in NAMES if name not in self.tables]
        if free and (table := self.some_table()):
            there, new = self.definition(table), self.rng.choice(free)
            self.tables[new] = self.tables.pop(table)
            self.note()
            self.client.alter_table(self.name(table), replace(there, name=new))

    def add_partitions(self) -> None:
        if table := self.some_table(lambda held: held.keys):
            held = self.tables[table]
            free = [value for value in VALUES if partition_name(["p"], [value]) not in held.files]
            rows = []
            for value in self.rng.sample(free, min(len(free), self.rng.randrange(1, 3))):
                directory = self.new_directory()
                held.files[partition_name(["p"], [value])] = self.fill(directory)
                storage = self.storage(f"file:{directory}")
                rows.append(Partition((value,), self.database, table, storage=storage, parameters={}))
            if rows:
                self.note()
                self.client.add_partitions(self.name(table), rows)

    def drop_partitions(self) -> None:
        if table := self.some_table(lambda held: held.keys and held.files):
            held = self.tables[table]
            gone = self.rng.sample(sorted(held.files), self.rng.randrange(1, len(held.files) + 1))
            for partition in gone:
                del held.files[partition]
            self.note()
            self.client.drop_partitions(self.name(table), gone)

    def rename_partition(self) -> None:
        """To a name under which nothing lies in the table's directory, where an overwrite elsewhere leaves files."""
        if table := self.some_table(lambda held: held.keys and held.files):
            held, stored = self.tables[table], self.client.catalog.table(self.name(table))
            assert stored is not None
            top, names = Path(place(location_of(stored) or "").path), {v: partition_name(["p"], [v]) for v in VALUES}
            free = [value for value, name in names.items() if name not in held.files and not (top / name).exists()]
            if free:
                was, value = self.rng.choice(sorted(held.files)), self.rng.choice(free)
                there = self.row(table, was)
                held.files[partition_name(["p"], [value])] = held.files.pop(was)
                self.note()
                self.client.rename_partition(self.name(table), there.values, replace(there, values=(value,)))


CHANGES = (
    *("insert",) * 10,
    *("overwrite", "compact", "overwrite_elsewhere", "compact_elsewhere") * 2,
    *("add_partitions",) * 3,
    *("create",) * 2,
    "drop",
    "create_again",
    "rename",
    "drop_partitions",
    "rename_partition",
    "overwrite_partitions",
)


def rows_of(found: Found, contents: Mapping[str, State]) -> Rows:
    """The rows of a table as it was read, with its files as they were."""
    parts = {ITSELF: location_of(found.table)}
    if is_partitioned(found.table):
        keys = [key.name for key in found.table.partition_keys or ()]
        parts = {partition_name(keys, part.values): location_of(part) for part in found.partitions}
    return tuple(
        sorted(
            (partition, int(row))
            for partition, at in parts.items()
            for _, content in contents[at or ""]
            for row in content.split()
        )
    )
