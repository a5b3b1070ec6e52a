"""Writers of a source: random operations, each of them one or more whole calls of its metastore.

    writer = Writer(metastore, storage, random.Random(1))
    writer.run("create_database")           # an operation by its name
    writer.step()                           # any one of `OPERATIONS`
    writer.done                             # ["1..1 create_database", …]: what it did, by the events

The same writer serves metastores in memory and real ones: what has the calls of `MemoryMetastore` is a source, what has
`write`, `remove`, `list` and `children` is a storage. Operations choose by `rng` what they are about, and do nothing
where the source has nothing for them. `OPERATIONS` are what `step` draws, as often as they are in it; `RARER` are what
only stories draw besides. A new operation is a method, and its name in one of the two.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from calque.core.formats.layout import join
from calque.model.facets import (
    Check,
    ColumnStatistics,
    DefaultValue,
    ForeignKey,
    Longs,
    NotNull,
    PrimaryKey,
    StatisticsCounts,
    UniqueKey,
)
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
from calque.model.names import TableName, partition_name, table_name
from support.memory.metastore import MemoryMetastore
from support.memory.storage import MemoryStorage

INPUT = "org.apache.hadoop.mapred.TextInputFormat"
OUTPUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
TEXT = Storage(None, None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
PARQUET = Storage(
    None,
    None,
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    serde=SerDe(class_name="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", parameters={}),
)
"""What tables say of their format; of Parquet, too, files hold any bytes."""


class Directories:
    """What a metastore does to the directories of its tables."""

    def __init__(self, storage: MemoryStorage) -> None:
        self.storage = storage

    def make(self, location: str) -> None:
        self.storage.make(location)

    def move(self, source: str, target: str) -> None:
        self.storage.move(source, target)

    def remove(self, location: str) -> None:
        self.storage.remove([location])

    def files(self, location: str) -> Sequence[str]:
        listed = self.storage.list([location])[location].files
        return [join(location, file.path) for file in listed if "/" not in file.path]


class Noting:
    """A metastore each of whose calls is followed by a look."""

    def __init__(self, source: MemoryMetastore, look: Callable[[], None]) -> None:
        self._source, self._look = source, look

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._source, method)

        def called(*args: Any, **named: Any) -> Any:
            before = self._source.current()
            result = found(*args, **named)
            if self._source.current() != before:
                self._look()
            return result

        return called


class Writer:
    """Random operations at the source, each of them one or more whole calls of its metastore."""

    def __init__(
        self,
        source: Any,
        storage: Any,
        rng: random.Random,
        databases: Sequence[str] = ("d1", "d2"),
        outside: str = "file:/outside",
        placed: Callable[[], None] = lambda: None,
        file_format: Storage = TEXT,
    ) -> None:
        self.source, self.storage, self.rng = source, storage, rng
        self.databases, self.outside, self.file_format = databases, outside, file_format
        self.placed = placed
        """Called after each file that becomes part of an append, before its event."""
        self.files = 0
        self.renamed_and_altered: dict[int, TableName] = {}
        """Events that tell of another name and other columns at once, and the name then."""
        self.values = 0
        self.done: list[str] = []

    def step(self) -> None:
        self.run(self.rng.choice(OPERATIONS))

    def run(self, name: str) -> None:
        """One operation by its name; nothing happens where the source has nothing for it."""
        before = self.source.current()
        getattr(self, name)()
        if self.source.current() != before:
            self.done.append(f"{before + 1}..{self.source.current()} {name}")

    def database(self) -> str:
        return self.rng.choice(self.databases)

    def any_table(self, want: Callable[[Table], bool] = lambda _: True) -> Table | None:
        tables = [
            self.source.the_table(TableName(database, table)).table
            for database in sorted({*self.databases} & {*self.source.databases()})
            for table in self.source.tables(database)
        ]
        found = sorted((table for table in tables if want(table)), key=lambda table: (table.database, table.name))
        return self.rng.choice(found) if found else None

    def partitions_of(self, table: Table) -> list[Partition]:
        return list(self.source.the_table(name_of(table)).partitions.values())

    def any_partition(self) -> tuple[Table, Partition] | None:
        table = self.any_table(lambda t: has_data_in_partitions(t) and bool(self.partitions_of(t)))
        return (table, self.rng.choice(self.partitions_of(table))) if table else None

    def free_names(self, database: str) -> list[str]:
        return [name for name in NAMES if self.is_free(database, name)]

    def names_to_take(self, database: str) -> list[str]:
        """Names that a table can be renamed to: a metastore refuses where a directory lies already."""
        found = self.source.the_database(database)
        place = found.managed_location or found.location or ""
        return [name for name in self.free_names(database) if not self.storage.children(join(place, name))]

    def is_free(self, database: str, name: str) -> bool:
        """Whether no table has the name, nor its natural directory: tables that share one change without events."""
        if name in self.source.tables(database):
            return False
        places = [
            location_of(self.source.the_table(TableName(other, table)).table) or ""
            for other in sorted({*self.databases} & {*self.source.databases()})
            for table in self.source.tables(other)
        ]
        return not any(place.endswith(f"/{database}.db/{name}") for place in places)

    def free_values(self, table: Table) -> list[str]:
        """Values of partitions that don't exist, and whose natural directories none uses."""
        there = {partition.values for partition in self.partitions_of(table)}
        used = {location_of(partition) for partition in self.partitions_of(table)}
        return [value for value in VALUES if (value,) not in there and natural(table, value) not in used]

    def is_empty(self, location: str) -> bool:
        """Whether a metastore would move a partition there: nothing may lie there already."""
        return bool(self.storage.list([location])[location].missing)

    def fresh(self) -> str:
        self.values += 1
        return str(self.values)

    def put_file(self, location: str) -> str:
        self.files += 1
        path = join(location, f"part-{self.files:05d}")
        self.storage.write(path, self.rng.randbytes(self.rng.randrange(4)))
        return path

    def create_database(self) -> None:
        name = self.database()
        if name not in self.source.databases():
            self.source.create_database(Database(name, parameters={"k": self.fresh()}))

    def alter_database(self) -> None:
        name = self.database()
        if name in self.source.databases():
            found = self.source.the_database(name)
            self.source.alter_database(name, replace(found, parameters={"k": self.fresh()}))

    def drop_database(self) -> None:
        name = self.database()
        if name in self.source.databases() and self.rng.random() < 0.1:
            self.source.drop_database(name, cascade=True)

    def create_table(self) -> None:
        database = self.database()
        if database not in self.source.databases():
            return
        free = self.free_names(database)
        if not free:
            return
        name = self.rng.choice(free)
        partitioned = self.rng.random() < 0.6
        external = self.rng.random() < 0.3
        location = f"{self.outside}/{self.fresh()}/{name}" if external else None
        columns = (Column("x", "int"),)
        self.source.create_table(
            Table(
                name,
                database,
                owner="me",
                storage=replace(self.file_format, columns=columns, location=location),
                partition_keys=(Column("p", "string"),) if partitioned else (),
                parameters={"v": self.fresh()} | ({"EXTERNAL": "TRUE"} if external else {}),
                type="EXTERNAL_TABLE" if external else "MANAGED_TABLE",
            )
        )

    def create_view(self) -> None:
        database = self.database()
        if database in self.source.databases() and "v" not in self.source.tables(database):
            text = f"SELECT x FROM {database}.a"
            view = Table("v", database, type="VIRTUAL_VIEW", view_original_text=text, view_expanded_text=text)
            self.source.create_table(
                replace(
                    view,
                    parameters={"v": self.fresh()},
                    storage=Storage(
                        (Column("x", "int"),), None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={})
                    ),
                )
            )

    def drop_table(self) -> None:
        if table := self.any_table():
            self.source.drop_table(name_of(table))

    def drop_and_create(self) -> None:
        """A new table of the other kind."""
        if table := self.any_table(lambda t: not is_view(t)):
            self.create_instead(table, () if table.partition_keys else (Column("p", "string"),))

    def create_instead(self, table: Table, keys: tuple[Column, ...] | None) -> None:
        self.source.drop_table(name_of(table))
        if self.is_free(table.database, table.name):
            storage = replace(table.storage or Storage(), location=None)
            parameters = {"v": self.fresh()}
            self.source.create_table(
                replace(table, partition_keys=keys, storage=storage, parameters=parameters, type="MANAGED_TABLE")
            )

    def alter_table(self) -> None:
        if table := self.any_table():
            parameters = {**(table.parameters or {}), "v": self.fresh()}
            self.source.alter_table(name_of(table), replace(table, parameters=parameters))

    def statistics(self) -> None:
        if table := self.any_table(lambda t: not is_view(t)):
            parameters = {**(table.parameters or {}), "numRows": self.fresh()}
            self.source.alter_table(name_of(table), replace(table, parameters=parameters))

    def add_column(self) -> None:
        if (table := self.any_table(lambda t: not is_view(t))) and table.storage:
            columns = (*(table.storage.columns or ()), Column(f"c{self.fresh()}", "string"))
            after = replace(table, storage=replace(table.storage, columns=columns))
            self.source.alter_table(name_of(table), after, cascade=self.rng.random() < 0.5)

    def rename_table(self) -> None:
        if (table := self.any_table()) and (to := self.under_another_name(table)):
            self.source.alter_table(name_of(table), to)

    def rename_and_alter(self) -> None:
        """In one call, so that no event tells of the one without the other."""
        if (table := self.any_table(lambda t: not is_view(t))) and (to := self.under_another_name(table)):
            columns = to.storage.columns if to.storage else None
            columns = (*(columns or ()), Column(f"c{self.fresh()}", "string"))
            parameters = {**(to.parameters or {}), "v": self.fresh()}
            to = replace(to, parameters=parameters, storage=replace(to.storage or Storage(), columns=columns))
            self.source.alter_table(name_of(table), to, cascade=self.rng.random() < 0.5)
            self.renamed_and_altered[self.source.current()] = name_of(to)

    def under_another_name(self, table: Table) -> Table | None:
        database = self.database() if self.rng.random() < 0.3 else table.database
        free = self.names_to_take(database) if database in self.source.databases() else ()
        return replace(table, database=database, name=self.rng.choice(free)) if free else None

    def swap(self) -> None:
        for database in sorted({*self.databases} & {*self.source.databases()}):
            if {"a", "b"} <= set(self.source.tables(database)):
                for old, new in (("a", "tmp"), ("b", "a"), ("tmp", "b")):
                    if new not in self.names_to_take(database):
                        return
                    table = self.source.the_table(TableName(database, old)).table
                    self.source.alter_table(TableName(database, old), replace(table, name=new))
                return

    def truncate(self) -> None:
        if table := self.any_table(lambda t: not is_view(t) and not is_partitioned(t)):
            self.storage.remove(
                [join(location_of(table) or "", f.path) for f in self.files_at(location_of(table) or "")]
            )
            self.source.alter_table(
                name_of(table), replace(table, parameters={**(table.parameters or {}), "v": self.fresh()})
            )

    def files_at(self, location: str) -> Any:
        return self.storage.list([location])[location].files

    def insert(self) -> None:
        if table := self.any_table(lambda t: not is_view(t) and not is_partitioned(t)):
            self.source.insert(name_of(table), [self.put_file(location_of(table) or "")])

    def overwrite(self) -> None:
        if table := self.any_table(lambda t: not is_view(t) and not is_partitioned(t)):
            location = location_of(table) or ""
            self.storage.remove([join(location, file.path) for file in self.files_at(location)])
            self.source.insert(name_of(table), [self.put_file(location)], replace=True)

    def add_partitions(self) -> None:
        if table := self.any_table(has_data_in_partitions):
            free = self.free_values(table)
            chosen = self.rng.sample(free, min(len(free), self.rng.randrange(1, 3)))
            rows = []
            for value in chosen:
                location = natural(table, value)
                self.storage.remove([location])
                for _ in range(self.rng.randrange(3)):
                    self.put_file(location)
                storage = replace(table.storage or Storage(), location=location)
                rows.append(
                    Partition((value,), table.database, table.name, storage=storage, parameters={"w": self.fresh()})
                )
            if rows:
                self.source.add_partitions(name_of(table), rows)

    def alter_partitions(self) -> None:
        if table := self.any_table(lambda t: has_data_in_partitions(t) and bool(self.partitions_of(t))):
            rows = self.partitions_of(table)
            chosen = self.rng.sample(rows, self.rng.randrange(1, len(rows) + 1))
            self.source.alter_partitions(
                name_of(table),
                [replace(row, parameters={**(row.parameters or {}), "w": self.fresh()}) for row in chosen],
            )

    def partition_statistics(self) -> None:
        if found := self.any_partition():
            table, row = found
            after = replace(row, parameters={**(row.parameters or {}), "numRows": self.fresh()})
            self.source.alter_partition(name_of(table), after)

    def insert_partition(self) -> None:
        if found := self.any_partition():
            table, row = found
            path = self.put_file(location_of(row) or "")
            self.source.insert(name_of(table), [path], values=row.values)

    def overwrite_partition(self) -> None:
        if found := self.any_partition():
            table, row = found
            location = location_of(row) or ""
            self.storage.remove([join(location, file.path) for file in self.files_at(location)])
            self.source.insert(name_of(table), [self.put_file(location)], values=row.values, replace=True)

    def rename_partition(self) -> None:
        if found := self.any_partition():
            table, row = found
            free = [value for value in self.free_values(table) if self.is_empty(natural(table, value))]
            if free:
                self.source.rename_partition(name_of(table), row.values, replace(row, values=(self.rng.choice(free),)))

    def drop_partitions(self) -> None:
        if table := self.any_table(lambda t: has_data_in_partitions(t) and bool(self.partitions_of(t))):
            rows = self.partitions_of(table)
            chosen = self.rng.sample(rows, self.rng.randrange(1, len(rows) + 1))
            self.source.drop_partitions(name_of(table), [partition_name(["p"], row.values) for row in chosen])

    # Rarer operations

    def rename_chain(self) -> None:
        """Through several names, perhaps back to the first."""
        if table := self.any_table():
            was = name_of(table)
            for _ in range(self.rng.randrange(2, 4)):
                if free := self.names_to_take(was.database):
                    now = TableName(was.database, self.rng.choice(free))
                    self.source.alter_table(was, replace(self.source.the_table(was).table, name=now.table))
                    was = now

    def rename_case(self) -> None:
        if table := self.any_table():
            self.source.alter_table(name_of(table), replace(table, name=table.name.upper()))

    def create_again(self) -> None:
        """A new table of the same kind."""
        if table := self.any_table(lambda t: not is_view(t)):
            self.create_instead(table, table.partition_keys)

    def create_partitioned_view(self) -> None:
        database = self.database()
        if database in self.source.databases() and "pv" not in self.source.tables(database):
            text = f"SELECT x, p FROM {database}.b"
            storage = Storage((Column("x", "int"),), None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
            self.source.create_table(
                Table(
                    "pv",
                    database,
                    storage=storage,
                    partition_keys=(Column("p", "string"),),
                    parameters={"v": self.fresh()},
                    view_original_text=text,
                    view_expanded_text=text,
                    type="VIRTUAL_VIEW",
                )
            )

    def change_view_partitions(self) -> None:
        if table := self.any_table(lambda t: is_view(t) and is_partitioned(t)):
            value = self.rng.choice(VALUES)
            if any(partition.values == (value,) for partition in self.partitions_of(table)):
                self.source.drop_partitions(name_of(table), [partition_name(["p"], [value])])
            else:
                row = Partition((value,), table.database, table.name, parameters={"w": self.fresh()})
                self.source.add_partitions(name_of(table), [replace(row, storage=table.storage)])

    def exchange_partition(self) -> None:
        if found := self.any_partition():
            table, row = found
            value = row.values[0]
            to = self.any_table(
                lambda t: has_data_in_partitions(t) and name_of(t) != name_of(table) and value in self.free_values(t)
            )
            if to is not None:
                self.storage.remove([natural(to, value)])
                self.source.exchange_partitions({"p": value}, name_of(table), name_of(to))

    def truncate_partitions(self) -> None:
        if table := self.any_table(lambda t: has_data_in_partitions(t) and bool(self.partitions_of(t))):
            rows = self.partitions_of(table)
            chosen = self.rng.sample(rows, self.rng.randrange(1, len(rows) + 1))
            self.source.truncate_table(name_of(table), [partition_name(["p"], row.values) for row in chosen])

    def truncate_table(self) -> None:
        if table := self.any_table(lambda t: not is_view(t)):
            self.source.truncate_table(name_of(table))

    def drop_database_cascade(self) -> None:
        name = self.database()
        if name in self.source.databases():
            self.source.drop_database(name, cascade=True)

    def make_external(self) -> None:
        self.change_type("TRUE")

    def make_managed(self) -> None:
        self.change_type("FALSE")

    def change_type(self, external: str) -> None:
        if table := self.any_table(lambda t: not is_view(t)):
            parameters = {**(table.parameters or {}), "EXTERNAL": external}
            self.source.alter_table(name_of(table), replace(table, parameters=parameters))

    def move_table(self) -> None:
        """To a place with other files."""
        if table := self.any_table(lambda t: not is_view(t) and not is_partitioned(t)):
            place = f"{self.outside}/{self.fresh()}/{table.name}"
            for _ in range(self.rng.randrange(3)):
                self.put_file(place)
            storage = replace(table.storage or Storage(), location=place)
            self.source.alter_table(name_of(table), replace(table, storage=storage))

    def move_partition(self) -> None:
        if found := self.any_partition():
            table, row = found
            place = f"{self.outside}/{self.fresh()}/part"
            for _ in range(self.rng.randrange(3)):
                self.put_file(place)
            storage = replace(row.storage or Storage(), location=place)
            self.source.alter_partition(name_of(table), replace(row, storage=storage))

    def insert_files(self) -> None:
        """One INSERT of several files."""
        if table := self.any_table(lambda t: not is_view(t) and not is_partitioned(t)):
            self.source.insert(name_of(table), self.put_files(location_of(table) or ""))

    def insert_partition_files(self) -> None:
        if found := self.any_partition():
            table, row = found
            self.source.insert(name_of(table), self.put_files(location_of(row) or ""), values=row.values)

    def put_files(self, location: str) -> list[str]:
        paths = []
        for _ in range(self.rng.randrange(1, 4)):
            paths.append(self.put_file(location))
            self.placed()
        return paths

    def add_primary_key(self) -> None:
        if table := self.any_table(lambda t: not is_view(t) and not self.has_key(t)):
            key = PrimaryKey(table.database, table.name, "x", 1, f"pk_{self.fresh()}", False, False, True)
            self.source.add_constraints([key])

    def has_key(self, table: Table) -> bool:
        return any(isinstance(row, PrimaryKey) for row in self.source.constraints(name_of(table)))

    def add_constraint(self) -> None:
        if table := self.any_table(lambda t: not is_view(t)):
            kind = self.rng.choice([UniqueKey, NotNull, DefaultValue, Check])
            row = kind(database=table.database, table=table.name, column="x", name=f"c_{self.fresh()}", relied=True)
            self.source.add_constraints([row])

    def add_foreign_key(self) -> None:
        parent, child = self.any_table(self.has_key), self.any_table(lambda t: not is_view(t))
        if parent and child:
            row = ForeignKey(
                parent.database, parent.name, "x", child.database, child.name, "x", 1, name=f"fk_{self.fresh()}"
            )
            self.source.add_constraints([row])

    def drop_constraint(self) -> None:
        if table := self.any_table(lambda t: bool(self.source.constraints(name_of(t)))):
            row = self.rng.choice(self.source.constraints(name_of(table)))
            self.source.drop_constraint(name_of(table), row.name)

    def analyze(self) -> None:
        if table := self.any_table(lambda t: not is_view(t) and not is_partitioned(t)):
            self.source.update_statistics(name_of(table), [self.counted(table)])

    def analyze_partition(self) -> None:
        if found := self.any_partition():
            table, row = found
            self.source.update_statistics(name_of(table), [self.counted(table)], row.values)

    def counted(self, table: Table) -> ColumnStatistics:
        column = self.rng.choice((table.storage or Storage()).columns or ())
        return ColumnStatistics(column.name, column.type, StatisticsCounts(longs=Longs(1, int(self.fresh()), 0, 5)))

    def forget_statistics(self) -> None:
        if table := self.any_table(lambda t: bool(self.source.the_table(name_of(t)).statistics)):
            found = self.source.the_table(name_of(table)).statistics
            values = self.rng.choice(sorted(found))
            if found[values]:
                self.source.delete_statistics(name_of(table), self.rng.choice(sorted(found[values])), values)

    def create_function(self) -> None:
        database = self.database()
        if database in self.source.databases():
            free = [name for name in ("f", "g") if name not in self.source.functions(database)]
            if free:
                name = self.rng.choice(free)
                self.source.create_function(Function(name, database, f"org.F{self.fresh()}", "me", 1, type=1))

    def drop_function(self) -> None:
        database = self.database()
        if database in self.source.databases() and (found := self.source.functions(database)):
            self.source.drop_function(TableName(database, self.rng.choice(found)))

    def make_acid(self) -> None:
        if table := self.any_table(lambda t: not is_view(t)):
            parameters = {**(table.parameters or {}), "transactional": "true"}
            self.source.alter_table(name_of(table), replace(table, parameters=parameters))


NAMES = ("a", "b", "c", "tmp")
VALUES = ("1", "2", "3", "a b%", "é=/")
OPERATIONS = (
    *["create_table"] * 4,
    *["add_partitions"] * 6,
    *["insert_partition"] * 4,
    *["insert"] * 3,
    "create_database",
    "create_database",
    "alter_database",
    "drop_database",
    "create_view",
    "drop_table",
    "drop_and_create",
    "alter_table",
    "statistics",
    "add_column",
    "rename_table",
    "swap",
    "truncate",
    "overwrite",
    "alter_partitions",
    "partition_statistics",
    "overwrite_partition",
    "rename_partition",
    "drop_partitions",
)

RARER = (
    "rename_table",
    "rename_table",
    "rename_and_alter",
    "swap",
    "rename_chain",
    "rename_case",
    "create_again",
    "create_partitioned_view",
    "change_view_partitions",
    "exchange_partition",
    "exchange_partition",
    "truncate_partitions",
    "truncate_table",
    "drop_database_cascade",
    "make_external",
    "make_managed",
    "move_table",
    "move_partition",
    "insert_files",
    "insert_partition_files",
    "add_primary_key",
    "add_constraint",
    "add_foreign_key",
    "drop_constraint",
    "analyze",
    "analyze_partition",
    "analyze_partition",
    "forget_statistics",
    "create_function",
    "drop_function",
    "make_acid",
)
"""What real servers are not asked to do by `step`, and more of what is hard."""


def has_data_in_partitions(table: Table) -> bool:
    return is_partitioned(table) and not is_view(table)


def natural(table: Table, value: str) -> str:
    return join(location_of(table) or "", partition_name(["p"], [value]))


def name_of(table: Table) -> TableName:
    return table_name(table.database, table.name)
