"""The source warehouse of the demo: a metastore, the files below one folder, and what each table should hold.

Each verb puts files where they belong first and tells the metastore last, as Hive does: when it returns, or is
interrupted before its call, no directory is half-changed with the event still to come. Files of dropped external
objects stay where they are; later objects of the same name get a directory of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from random import Random

from calque.demo.files import some_rows, storage, write_file
from calque.errors import Broken
from calque.model.hive import Column, Database, Function, Partition, SerDe, Storage, Table
from calque.model.names import TableName, partition_name, partition_values
from calque.sandbox.writer import HiveClient

OWNER = "demo"
ITSELF = ""
"""The key of an unpartitioned table's own directory, among the names of partitions."""

Held = dict[str, dict[str, int]]
"""Sizes in bytes by partition's name and file's name."""


@dataclass(slots=True)
class ExpectedTable:
    """A table as the metastore and the directories should have it."""

    form: str
    columns: tuple[Column, ...]
    keys: tuple[Column, ...] = ()
    external: bool = False
    files: Held = field(default_factory=dict)


class Source:
    """The source, with all changes that the demo and the tests make there. It is not safe from several threads.

    `tables`, `views`, `functions` and `databases` are what is there now; a view's value is the table that it was made
    over. `seed` decides rows, never names.
    """

    def __init__(self, client: HiveClient, root: Path, seed: int = 0) -> None:
        self.client = client
        self.root = root.resolve()
        self.tables: dict[TableName, ExpectedTable] = {}
        self.views: dict[TableName, TableName] = {}
        self.functions: list[TableName] = []
        self.databases: list[str] = []
        self._random = Random(seed)
        self._numbers = count(1)

    # Databases

    def create_database(self, name: str, comment: str | None = None) -> None:
        """Create a database. Its `location` is where Hive 3.1 puts managed tables; 4.x puts them below
        `managed_location`."""
        database = Database(
            name,
            comment,
            location_at(self.root / "databases" / f"{name}.db"),
            {"creator": OWNER},
            OWNER,
            managed_location=location_at(self.root / "managed" / f"{name}.db"),
        )
        self.client.create_database(database)
        self.databases.append(name)

    def alter_database(self, name: str, parameters: Mapping[str, str]) -> None:
        database = self._database(name)
        self.client.alter_database(name, replace(database, parameters={**(database.parameters or {}), **parameters}))

    def drop_database(self, name: str) -> None:
        """Drop the database with everything in it."""
        self.client.drop_database(name, cascade=True)
        self.databases.remove(name)
        self.tables = {table: held for table, held in self.tables.items() if table.database != name}
        self.views = {view: base for view, base in self.views.items() if view.database != name}
        self.functions = [function for function in self.functions if function.database != name]

    # Tables and views

    def create_table(
        self,
        name: TableName,
        columns: Sequence[Column],
        keys: Sequence[Column] = (),
        *,
        form: str = "parquet",
        external: bool = False,
        rows: int = 0,
    ) -> None:
        """Create a table. With `rows` the files of an unpartitioned table are there when it appears, as for CREATE
        TABLE AS SELECT."""
        expected = ExpectedTable(form, tuple(columns), tuple(keys), external, {} if keys else {ITSELF: {}})
        place = self._free(self.root / "external" / f"{name.database}.db" / name.table) if external else None
        if rows:
            place = place or self._managed_place(name)
            self._put(place, expected, ITSELF, rows)
        elif place:
            place.mkdir(parents=True)
        table = Table(
            name.table,
            name.database,
            OWNER,
            storage=storage(form, columns, location_at(place) if place else None),
            partition_keys=expected.keys,
            parameters={"EXTERNAL": "TRUE"} if external else {},
            type="EXTERNAL_TABLE" if external else "MANAGED_TABLE",
        )
        self.client.create_table(table)
        self.tables[name] = expected

    def alter_table(self, name: TableName, parameters: Mapping[str, str]) -> None:
        """Add parameters to a table or a view."""
        table = self.table(name)
        self.client.alter_table(name, replace(table, parameters={**(table.parameters or {}), **parameters}))

    def add_column(self, name: TableName, column: Column, *, cascade: bool = False) -> None:
        """Add a column to the table. Files that were written before lack it, as in Hive. With `cascade` existing
        partitions get it, too."""
        table = self.table(name)
        columns = (*self.tables[name].columns, column)
        self.client.alter_table(name, replace(table, storage=replace(_stored(table), columns=columns)), cascade=cascade)
        self.tables[name].columns = columns

    def rename_table(self, name: TableName, new: TableName) -> None:
        """Rename a table or a view, also into another database. The metastore moves the directories of managed
        tables."""
        table = self.table(name)
        self.client.alter_table(name, replace(table, database=new.database, name=new.table))
        if name in self.views:
            self.views[new] = self.views.pop(name)
        else:
            self.tables[new] = self.tables.pop(name)

    def swap_tables(self, one: TableName, other: TableName) -> None:
        """Exchange two tables' names, with a third name between."""
        between = TableName(one.database, f"tmp_{one.table}_{next(self._numbers)}")
        self.rename_table(one, between)
        self.rename_table(other, one)
        self.rename_table(between, other)

    def drop_table(self, name: TableName) -> None:
        """Drop a table or a view. The metastore removes the files of managed tables."""
        self.client.drop_table(name)
        if self.views.pop(name, None) is None:
            del self.tables[name]

    def create_view(self, name: TableName, base: TableName, columns: Sequence[Column]) -> None:
        original, expanded = view_texts(base, columns)
        view = Table(
            name.table,
            name.database,
            OWNER,
            storage=Storage(tuple(columns), serde=SerDe()),
            parameters={"creator": OWNER},
            view_original_text=original,
            view_expanded_text=expanded,
            type="VIRTUAL_VIEW",
        )
        self.client.create_table(view)
        self.views[name] = base

    def alter_view(self, name: TableName, base: TableName, columns: Sequence[Column]) -> None:
        """Give the view another text."""
        original, expanded = view_texts(base, columns)
        view = self.table(name)
        stored = replace(_stored(view), columns=tuple(columns))
        changed_view = replace(view, storage=stored, view_original_text=original, view_expanded_text=expanded)
        self.client.alter_table(name, changed_view)
        self.views[name] = base

    # Data of tables and partitions

    def insert(self, name: TableName, partition: str = ITSELF, rows: int = 10) -> None:
        """Append one file to the partition, or to the unpartitioned table."""
        place = self.place(name, partition)
        file = self._put(place, self.tables[name], partition, rows)
        self._tell(name, partition, [location_at(place / file)], replaced=False)

    def overwrite(self, name: TableName, partition: str = ITSELF, rows: int = 10) -> None:
        """Write one new file, then delete the old ones, then tell the metastore."""
        place = self.place(name, partition)
        files = self.tables[name].files[partition]
        old = list(files)
        file = self._put(place, self.tables[name], partition, rows)
        for name_of_file in old:
            (place / name_of_file).unlink()
            del files[name_of_file]
        self._tell(name, partition, [location_at(place / file)], replaced=True)

    def truncate(self, name: TableName, partitions: Sequence[str] = ()) -> None:
        """Empty the table, or the named partitions of a partitioned one. (The form without names writes no event
        for a partitioned table.)"""
        self.client.truncate_table(name, partitions or None)
        for partition in partitions or (ITSELF,):
            self.tables[name].files[partition].clear()

    # Partitions

    def add_partitions(self, name: TableName, values: Sequence[Sequence[str]], rows: int = 10) -> None:
        """Add the partitions in one call, each with a file, or without one when `rows` is 0."""
        table, expected = self.table(name), self.tables[name]
        added = []
        for one in values:
            partition = partition_name([key.name for key in expected.keys], one)
            place = self._free(path_of(_stored(table)) / partition)
            expected.files[partition] = {}
            if rows:
                self._put(place, expected, partition, rows)
            else:
                place.mkdir(parents=True)
            stored = storage(expected.form, expected.columns, location_at(place))
            added.append(Partition(tuple(one), *name, storage=stored, parameters={"creator": OWNER}))
        self.client.add_partitions(name, added)

    def alter_partitions(self, name: TableName, partitions: Sequence[str], parameters: Mapping[str, str]) -> None:
        """Add parameters to the partitions in one call."""
        existing = self.client.catalog.partitions(name, partitions)
        altered = [replace(one, parameters={**(one.parameters or {}), **parameters}) for one in existing.values()]
        self.client.alter_partitions(name, altered)

    def rename_partition(self, name: TableName, partition: str, values: Sequence[str]) -> None:
        """Rename the partition to other values. The metastore moves the directories of managed tables."""
        expected = self.tables[name]
        (existing,) = self.client.catalog.partitions(name, [partition]).values()
        self.client.rename_partition(name, partition_values(partition), replace(existing, values=tuple(values)))
        expected.files[partition_name([key.name for key in expected.keys], values)] = expected.files.pop(partition)

    def drop_partitions(self, name: TableName, partitions: Sequence[str]) -> None:
        """Drop the partitions in one call. The metastore removes the files of managed tables."""
        self.client.drop_partitions(name, partitions)
        for partition in partitions:
            del self.tables[name].files[partition]

    # Functions

    def create_function(self, name: TableName, class_name: str) -> None:
        self.client.create_function(Function(name.table, name.database, class_name, OWNER, 1, type=1))
        self.functions.append(name)

    def drop_function(self, name: TableName) -> None:
        self.client.drop_function(name)
        self.functions.remove(name)

    # What is there

    def table(self, name: TableName) -> Table:
        """Return the definition in the metastore. Raises `Broken` when it is missing."""
        table = self.client.catalog.table(name)
        if table is None:
            raise Broken(f"The source has no {name}", "Somebody else changed it", "Let only one writer write")
        return table

    def place(self, name: TableName, partition: str = ITSELF) -> Path:
        """Return the directory of the partition, or of the unpartitioned table, as the metastore has it."""
        if not partition:
            return path_of(_stored(self.table(name)))
        (stored_partition,) = self.client.catalog.partitions(name, [partition]).values()
        return path_of(_stored(stored_partition))

    def expected_files(self) -> dict[TableName, Held]:
        """Return the sizes in bytes of the files that each table must have by now at an equal target, by partition's
        name and file's name."""
        return {name: table.files for name, table in self.tables.items()}

    def actual_files(self) -> dict[TableName, Held]:
        """Return what each table holds, by the metastore and the directories."""
        tables: dict[TableName, Held] = {}
        for database in self.databases:
            for name in (TableName(database, table) for table in self.client.catalog.tables(database)):
                if name in self.views:
                    continue
                table = self.table(name)
                names = self.client.catalog.partition_names(name)
                if table.partition_keys:
                    places = {key: _stored(one) for key, one in self.client.catalog.partitions(name, names).items()}
                else:
                    places = {ITSELF: _stored(table)}
                tables[name] = {key: files_below(path_of(stored)) for key, stored in places.items()}
        return tables

    def _database(self, name: str) -> Database:
        database = self.client.catalog.database(name)
        if database is None:
            raise Broken(f"The source has no database {name}", "Somebody else changed it", "Let only one writer write")
        return database

    def _managed_place(self, name: TableName) -> Path:
        database = self._database(name.database)
        return plain_path(database.managed_location or database.location or "") / name.table

    def _free(self, place: Path) -> Path:
        """Return the place, or one beside it where there is a file or folder already."""
        return place if not place.exists() else place.with_name(f"{place.name}-{next(self._numbers)}")

    def _put(self, place: Path, expected: ExpectedTable, partition: str, rows: int) -> str:
        name = f"part-{next(self._numbers):05}.{'parquet' if expected.form == 'parquet' else 'txt'}"
        cells = some_rows(self._random, expected.columns, rows)
        expected.files[partition][name] = write_file(place / name, expected.form, expected.columns, cells)
        return name

    def _tell(self, name: TableName, partition: str, files: Sequence[str], *, replaced: bool) -> None:
        self.client.insert(name, files, values=partition_values(partition) if partition else None, replace=replaced)


def view_texts(base: TableName, columns: Sequence[Column]) -> tuple[str, str]:
    """Return a view's text as it was written, and with every name in full."""
    plain = ", ".join(column.name for column in columns)
    quoted = ", ".join(f"`{base.table}`.`{column.name}`" for column in columns)
    return f"SELECT {plain} FROM {base}", f"SELECT {quoted} FROM `{base.database}`.`{base.table}`"


def location_at(path: Path) -> str:
    """Return the path as a location in Hive's form, which is not percent-encoded."""
    return f"file:{path}"


def plain_path(location: str) -> Path:
    return Path("/" + location.removeprefix("file:").lstrip("/"))


def path_of(stored: Storage) -> Path:
    return plain_path(stored.location or "")


def files_below(place: Path) -> dict[str, int]:
    """Return the sizes in bytes of all files below the directory, hidden ones too, by their paths there."""
    return {str(path.relative_to(place)): path.stat().st_size for path in place.rglob("*") if path.is_file()}


def _stored(entity: Table | Partition) -> Storage:
    return entity.storage or Storage()
