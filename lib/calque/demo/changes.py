"""The changes that the demo's writer picks from, each made to a random object of the source.

The warehouse stays small: no object is made where there are enough, and directories that hold many files are
overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType

from calque.demo.choices import MOST_AT_ONCE, Choices
from calque.demo.source import Source
from calque.demo.warehouse import AMOUNT, COLUMNS, DATABASES, DAY, HOUR, ID, NAME, REGION
from calque.model.hive import Column
from calque.model.names import TableName, partition_name

KEYS: tuple[tuple[Column, ...], ...] = ((), (), (DAY,), (REGION,), (DAY, REGION), (DAY, HOUR))
VIEWED = ((ID,), (ID, NAME), (ID, AMOUNT), COLUMNS)
MOST_DATABASES, MOST_TABLES, FEWEST_TABLES, MOST_VIEWS, MOST_FUNCTIONS = 5, 24, 8, 6, 5
MOST_PARTITIONS, MOST_FILES = 24, 10


class Changes:
    """The changes of a writer to `source`. Each public method makes one change and returns the name of the object that
    it changed (after a rename the new one), or None where there was nothing to change. Equal seeds at sources that
    began alike make equal changes."""

    def __init__(self, source: Source, random: Random) -> None:
        self.source, self._choose = source, Choices(source, random)

    # Databases and functions

    def create_database(self) -> str | None:
        if len(self.source.databases) >= MOST_DATABASES:
            return None
        name = f"lab_{next(self._choose.numbers)}"
        self.source.create_database(name, "for a while")
        return name

    def alter_database(self) -> str | None:
        name = self._choose.one(self.source.databases)
        if name is not None:
            self.source.alter_database(name, self._choose.parameter())
        return name

    def drop_database(self) -> str | None:
        added_databases = [name for name in self.source.databases if name not in DATABASES]
        name = self._choose.one(added_databases)
        if name is not None:
            self.source.drop_database(name)
            self._choose.left = [old for old in self._choose.left if old.database != name]
        return name

    def create_function(self) -> TableName | None:
        if len(self.source.functions) >= MOST_FUNCTIONS:
            return None
        name = self._choose.new_name("f")
        self.source.create_function(name, f"org.example.F{name.table}")
        return name

    def drop_function(self) -> TableName | None:
        name = self._choose.one(self.source.functions)
        if name is not None:
            self.source.drop_function(name)
        return name

    # Tables and views

    def create_table(self) -> TableName | None:
        if len(self.source.tables) >= MOST_TABLES:
            return None
        name = self._choose.new_name("t")
        keys = self._choose.random.choice(KEYS)
        rows = 0 if keys else self._choose.random.choice((0, 6))
        self._choose.create(name, keys, rows)
        return name

    def drop_table(self) -> TableName | None:
        name = self._choose.one(self.source.tables) if len(self.source.tables) > FEWEST_TABLES else None
        if name is not None:
            self.source.drop_table(name)
            self._choose.left.append(name)
        return name

    def recreate_table(self) -> TableName | None:
        """Drop a table and make another of its name, with other keys. Returns None where there is no table."""
        name = self._choose.one(self.source.tables)
        if name is not None:
            old = self.source.tables[name].keys
            self.source.drop_table(name)
            self._choose.create(name, self._choose.random.choice([keys for keys in KEYS if keys != old]), rows=0)
        return name

    def alter_table(self) -> TableName | None:
        name = self._choose.one([*self.source.tables, *self.source.views])
        if name is not None:
            self.source.alter_table(name, self._choose.parameter())
        return name

    def add_column(self) -> TableName | None:
        return self._choose.widened(cascade=False)

    def add_column_cascade(self) -> TableName | None:
        return self._choose.widened(cascade=True)

    def rename_table(self) -> TableName | None:
        name = self._choose.one([*self.source.tables, *self.source.views])
        if name is None:
            return None
        new = self._choose.new_name("r", name.database)
        self.source.rename_table(name, new)
        self._choose.left.append(name)
        return new

    def move_table(self) -> TableName | None:
        """Rename a table into another database. Returns its new name, and None where there is no table or only one
        database."""
        name = self._choose.one(self.source.tables)
        other_databases = [database for database in self.source.databases if name and database != name.database]
        if name is None or not other_databases:
            return None
        new = self._choose.new_name("m", self._choose.random.choice(other_databases))
        self.source.rename_table(name, new)
        self._choose.left.append(name)
        return new

    def swap_tables(self) -> TableName | None:
        if len(self.source.tables) < 2:
            return None
        one, other = self._choose.random.sample(sorted(self.source.tables), 2)
        self.source.swap_tables(one, other)
        return one

    def create_view(self) -> TableName | None:
        base = self._choose.one(self.source.tables)
        if base is None or len(self.source.views) >= MOST_VIEWS:
            return None
        name = self._choose.new_name("v")
        self.source.create_view(name, base, self._choose.random.choice(VIEWED))
        return name

    def alter_view(self) -> TableName | None:
        name, base = self._choose.one(self.source.views), self._choose.one(self.source.tables)
        if name is None or base is None:
            return None
        self.source.alter_view(name, base, self._choose.random.choice(VIEWED))
        return name

    def drop_view(self) -> TableName | None:
        name = self._choose.one(self.source.views)
        if name is not None:
            self.source.drop_table(name)
            self._choose.left.append(name)
        return name

    # Data and partitions

    def insert(self) -> str | None:
        return self._choose.written(self.source.insert, MOST_FILES)

    def overwrite(self) -> str | None:
        return self._choose.written(self.source.overwrite, float("inf"))

    def truncate(self) -> TableName | None:
        plain = [name for name, table in self.source.tables.items() if not table.keys]
        name = self._choose.one([*plain, *self._choose.filled()])
        if name is not None:
            self.source.truncate(name, () if name in plain else self._choose.some_partitions(name))
        return name

    def add_partitions(self) -> TableName | None:
        tables = self.source.tables
        name = self._choose.one(
            name for name, table in tables.items() if table.keys and len(table.files) < MOST_PARTITIONS
        )
        if name is None:
            return None
        table = tables[name]
        keys = [key.name for key in table.keys]
        candidates = {self._choose.values(table.keys) for _ in range(self._choose.random.randint(1, MOST_AT_ONCE))}
        new = sorted(values for values in candidates if partition_name(keys, values) not in table.files)
        if new:
            self.source.add_partitions(name, new, rows=self._choose.random.choice((0, 4, 8)))
        return name if new else None

    def alter_partitions(self) -> TableName | None:
        name = self._choose.one(self._choose.filled())
        if name is None:
            return None
        partitions = self._choose.some_partitions(name)
        self.source.alter_partitions(name, partitions, self._choose.parameter())
        return name

    def rename_partition(self) -> TableName | None:
        name = self._choose.one(self._choose.filled())
        partition = self._choose.one(self.source.tables[name].files) if name else None
        if name is None or partition is None:
            return None
        table = self.source.tables[name]
        values = self._choose.values(table.keys)
        if partition_name([key.name for key in table.keys], values) in table.files:
            return None
        self.source.rename_partition(name, partition, values)
        return name

    def drop_partitions(self) -> TableName | None:
        name = self._choose.one(self._choose.filled())
        if name is None:
            return None
        partitions = self._choose.some_partitions(name)
        self.source.drop_partitions(name, partitions)
        return name


CHANGES: Mapping[str, tuple[int, Callable[[Changes], str | TableName | None]]] = MappingProxyType(
    {
        "insert": (20, Changes.insert),
        "overwrite": (8, Changes.overwrite),
        "truncate": (2, Changes.truncate),
        "add_partitions": (12, Changes.add_partitions),
        "alter_partitions": (4, Changes.alter_partitions),
        "rename_partition": (3, Changes.rename_partition),
        "drop_partitions": (4, Changes.drop_partitions),
        "create_table": (7, Changes.create_table),
        "alter_table": (5, Changes.alter_table),
        "add_column": (2, Changes.add_column),
        "add_column_cascade": (2, Changes.add_column_cascade),
        "rename_table": (4, Changes.rename_table),
        "move_table": (2, Changes.move_table),
        "swap_tables": (2, Changes.swap_tables),
        "drop_table": (3, Changes.drop_table),
        "recreate_table": (2, Changes.recreate_table),
        "create_view": (3, Changes.create_view),
        "alter_view": (2, Changes.alter_view),
        "drop_view": (2, Changes.drop_view),
        "create_function": (2, Changes.create_function),
        "drop_function": (1, Changes.drop_function),
        "create_database": (1, Changes.create_database),
        "alter_database": (1, Changes.alter_database),
        "drop_database": (1, Changes.drop_database),
    }
)
"""The changes by name: a weight that says how often each is tried in comparison with the others, and the method that
makes it."""
