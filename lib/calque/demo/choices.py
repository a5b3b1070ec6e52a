"""The random choices of the demo's writer: objects of the source, and names and values for new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from random import Random
from typing import TypeVar

from calque.demo.files import FORMATS
from calque.demo.source import Source
from calque.demo.warehouse import AWKWARD, COLUMNS
from calque.model.hive import Column
from calque.model.names import TableName

MOST_COLUMNS, MOST_AT_ONCE = 9, 5
OLD_NAME_CHANCE, AWKWARD_CHANCE = 0.3, 0.4

Name = TypeVar("Name", TableName, str)


class Choices:
    """A chooser among the objects of `source`. Candidates are sorted first, so that equal seeds choose alike. `left`
    are names that an object had and left."""

    def __init__(self, source: Source, random: Random) -> None:
        self.source, self.random = source, random
        self.numbers = count(1)
        self.left: list[TableName] = []

    def one(self, names: Iterable[Name]) -> Name | None:
        ordered = sorted(names)
        return self.random.choice(ordered) if ordered else None

    def new_name(self, prefix: str, database: str | None = None) -> TableName:
        """Return a name that no object has; now and then one that an object had before, so that names come back."""
        database = database or self.random.choice(self.source.databases)
        used_names = {*self.source.tables, *self.source.views}
        old_name = self.one({name for name in self.left if name.database == database} - used_names)
        if old_name is not None and prefix != "f" and self.random.random() < OLD_NAME_CHANCE:
            return old_name
        return TableName(database, f"{prefix}{next(self.numbers)}")

    def create(self, name: TableName, keys: Sequence[Column], rows: int) -> None:
        form, external = self.random.choice(FORMATS), self.random.random() < 0.5
        self.source.create_table(name, COLUMNS, keys, form=form, external=external, rows=rows)

    def widened(self, *, cascade: bool) -> TableName | None:
        tables = self.source.tables
        name = self.one(name for name, table in tables.items() if len(table.columns) < MOST_COLUMNS)
        if name is not None:
            column = Column(f"c{next(self.numbers)}", self.random.choice(("bigint", "string", "double")))
            self.source.add_column(name, column, cascade=cascade)
        return name

    def written(self, write: Callable[..., None], most_files: float) -> str | None:
        tables = {
            name: [partition for partition, files in table.files.items() if len(files) < most_files]
            for name, table in self.source.tables.items()
        }
        name = self.one(name for name, partitions in tables.items() if partitions)
        partition = self.one(tables[name]) if name else None
        if name is None or partition is None:
            return None
        write(name, partition, rows=self.random.randint(1, 20))
        return f"{name}/{partition}" if partition else str(name)

    def filled(self) -> list[TableName]:
        """Return the tables that have partitions now."""
        return [name for name, table in self.source.tables.items() if table.keys and table.files]

    def some_partitions(self, name: TableName) -> list[str]:
        partitions = sorted(self.source.tables[name].files)
        return self.random.sample(partitions, min(len(partitions), self.random.randint(1, MOST_AT_ONCE)))

    def values(self, keys: Sequence[Column]) -> tuple[str, ...]:
        return tuple(self.value(key) for key in keys)

    def value(self, key: Column) -> str:
        if key.type == "int":
            return str(self.random.randrange(24))
        if self.random.random() < AWKWARD_CHANCE:
            return self.random.choice(AWKWARD)
        return f"2024-02-{self.random.randint(1, 28):02}"

    def parameter(self) -> Mapping[str, str]:
        return {self.random.choice(("owner.team", "quality", "note")): f"Wert {next(self.numbers)}"}
