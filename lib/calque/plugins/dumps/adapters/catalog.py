"""The catalog of a dump: objects that were dumped whole, as they were at one event.

A bootstrap has all objects of its database. An increment has the tables that came into scope. A table that the
increment's policy does not take is missing in this catalog. An increment does not tell the definition of any other
table of the policy: asking for one of these raises `Refused`.
"""

from __future__ import annotations

import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from calque.core.events.decode import Undecodable, logged_file, parsed, thrift_object
from calque.core.formats.layout import join
from calque.errors import Refused
from calque.model.facets import ENGINE, AnalyzedColumns, Constraint, ForeignKey, Statistics
from calque.model.hive import Database, Function, Partition, Table, is_partitioned, is_view, location_of
from calque.model.names import TableName, table_name
from calque.plugins.dumps.adapters.directory import AGAIN, Dump, unreadable
from calque.plugins.dumps.adapters.find_files import FileLocator
from calque.plugins.dumps.core.constraints import read_constraints
from calque.plugins.dumps.core.layout import CONSTRAINTS, ObjectDirectories
from calque.plugins.dumps.core.log_events import logged_database, logged_partitions, logged_table, name_of
from calque.plugins.dumps.core.metadata import STATISTICS_FIELD, read_object, read_table

T = TypeVar("T")
HELD_TABLES = 16


@dataclass(slots=True)
class DumpedTable:
    """A table, the text of its definition, and the compressed texts of its partitions by partition name."""

    table: Table
    text: str
    partitions: dict[str, bytes] = field(default_factory=dict)


class DumpCatalog:
    """A dump as `ports.CatalogReader`. For each plain table and each partition that it reads, the catalog calls `found`
    with the object's location and with the directory of the dump that has its data."""

    def __init__(
        self, dump: Dump, objects: ObjectDirectories, locator: FileLocator, found: Callable[[str, str], None]
    ) -> None:
        self.dump, self.storage, self.objects, self.locator, self.found = dump, dump.storage, objects, locator, found
        self.takes = dump.takes()
        self.lock = threading.RLock()
        self.held: OrderedDict[TableName, DumpedTable] = OrderedDict()
        self.names: dict[str, frozenset[str]] = {}
        self.all_foreign_keys: list[ForeignKey] | None = None

    def identity(self) -> str:
        return ""

    def databases(self) -> Sequence[str]:
        return [self.dump.database]

    def tables(self, database: str) -> Sequence[str]:
        with self.lock:
            if database not in self.names:
                names = self.storage.children(self.objects.database(database)) if database == self.dump.database else ()
                self.names[database] = frozenset(name for name in names if not name.startswith(("_", ".")))
            return sorted(self.names[database])

    def functions(self, database: str) -> Sequence[str]:
        return self.storage.children(self.objects.functions(database)) if database == self.dump.database else ()

    def database(self, name: str) -> Database | None:
        path = self.objects.database_metadata(name)
        content = self.storage.read(path) if name == self.dump.database else None
        if content is None:
            return None
        return self.decoded(path, lambda: logged_database(read_object(content, "db")[1]))

    def table(self, name: TableName) -> Table | None:
        dumped = self.dumped(name)
        return dumped.table if dumped is not None else None

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        tables = {name: self.table(table_name(database, name)) for name in names}
        return {name: table for name, table in tables.items() if table is not None}

    def function(self, name: TableName) -> Function | None:
        path = self.objects.function_metadata(name)
        content = self.storage.read(path)
        if content is None:
            return None
        function = self.decoded(path, lambda: thrift_object(Function, read_object(content, "function")[1]))
        return with_resources(self.locator, function, self.objects.function_data(name))

    def partition_names(self, name: TableName) -> Sequence[str]:
        dumped = self.dumped(name)
        return sorted(dumped.partitions) if dumped is not None else ()

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        name = table_name(table.database, table.name)
        dumped = self.dumped(name)
        if dumped is None:
            return {}
        return None if len(dumped.partitions) > most else self.partitions(name, list(dumped.partitions))

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        dumped = self.dumped(name)
        if dumped is None:
            return {}
        partitions = {}
        for partition in names:
            if partition in dumped.partitions:
                (partitions[partition],) = logged_partitions([text_in(dumped.partitions[partition])])
                self.tell(name, partition, location_of(partitions[partition]))
        return partitions

    def constraints(self, name: TableName) -> Sequence[Constraint]:
        if self.dumped(name) is None:
            return ()
        paths = (self.objects.constraints(name), self.objects.foreign_keys(name))
        return [constraint for path in paths for constraint in self.constraints_in(path)]

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]:
        with self.lock:
            if self.all_foreign_keys is None:
                folder = join(self.objects.database(self.dump.database), CONSTRAINTS)
                paths = [join(folder, file) for file in self.storage.children(folder) if file.startswith("f_")]
                rows = [row for path in paths for row in self.constraints_in(path)]
                self.all_foreign_keys = [row for row in rows if isinstance(row, ForeignKey)]
            return [row for row in self.all_foreign_keys if table_name(row.parent_database, row.parent_table) == name]

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        dumped = self.dumped(name)
        return {} if dumped is None else statistics_in(dumped.text, Table, columns)

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        dumped = self.dumped(name)
        if dumped is None:
            return {}
        texts = {partition: dumped.partitions[partition] for partition in partitions if partition in dumped.partitions}
        statistics = {partition: statistics_in(text_in(text), Partition, columns) for partition, text in texts.items()}
        return {partition: rows for partition, rows in statistics.items() if rows}

    # How it is read

    def dumped(self, name: TableName) -> DumpedTable | None:
        """Return the table as the dump has it, or None where the dump has no such table. Raises `Refused` where an
        increment does not say whether there is one. The last `HELD_TABLES` tables stay in memory."""
        with self.lock:
            if name not in self.held:
                if name.table not in self.tables(name.database):
                    if not self.dump.metadata.is_bootstrap and self.takes(name):
                        raise untold(self.dump, name)
                    return None
                self.held[name] = self.read(name)
                while len(self.held) > HELD_TABLES:
                    self.held.popitem(last=False)
            self.held.move_to_end(name)
            dumped = self.held[name]
        if not is_view(dumped.table) and not is_partitioned(dumped.table):
            self.tell(name, "", location_of(dumped.table))
        return dumped

    def read(self, name: TableName) -> DumpedTable:
        path = self.objects.table_metadata(name)
        content = self.storage.read(path)
        if content is None:
            raise Refused(f"The dump has a directory for {name}, and no definition", f"{path} is not there", AGAIN)

        def decode() -> DumpedTable:
            metadata = read_table(pieces(content))
            table = logged_table(metadata.table)
            if table_name(table.database, table.name) != name:
                raise Undecodable(f"it is of {table.database}.{table.name}")
            dumped = DumpedTable(table, metadata.table)
            for text in metadata.partitions:
                (partition,) = logged_partitions([text])
                dumped.partitions[name_of(table, partition)] = zlib.compress(text.encode(), 1)
            return dumped

        return self.decoded(path, decode)

    def constraints_in(self, path: str) -> list[Constraint]:
        content = self.storage.read(path)
        return [] if content is None else self.decoded(path, lambda: list(read_constraints(content)))

    def decoded(self, path: str, decode: Callable[[], T]) -> T:
        try:
            return decode()
        except Undecodable as error:
            raise unreadable(path, error) from error

    def tell(self, name: TableName, partition: str, location: str | None) -> None:
        if location:
            self.found(location, self.objects.table_data(name, partition))


def pieces(content: bytes, size: int = 1 << 20) -> Iterator[bytes]:
    return (content[place : place + size] for place in range(0, len(content), size))


def text_in(compressed: bytes) -> str:
    return zlib.decompress(compressed).decode()


def statistics_in(text: str, kind: type, columns: Sequence[str]) -> Statistics:
    """Return the statistics of these columns, by lower-case column name, that Hive 4 dumps inside the definition
    `text`. Statistics that can't be read are left out, because they are no part of an object's state."""
    wanted = {column.lower() for column in columns}
    try:
        found = parsed(text, "an object").get(str(STATISTICS_FIELD[kind]))
        analyzed = thrift_object(AnalyzedColumns, found["rec"]) if type(found) is dict and "rec" in found else None
    except Undecodable:
        return {}
    if analyzed is None or (analyzed.engine or ENGINE) != ENGINE:
        return {}
    return {row.column.lower(): row for row in analyzed.columns if row.column.lower() in wanted}


def with_resources(locator: FileLocator, function: Function, data: str) -> Function:
    """Return the function with the path of each resource as it can be read now: the copy in the directory `data` of the
    dump, else its place at the source, else the file that Hive's change manager keeps."""
    resources = []
    for resource in function.resources or ():
        file = logged_file(resource.uri or "")
        inside = join(data, file.uri.rpartition("/")[2])
        uri = inside if locator.storage.files([inside]) else file.uri
        if uri == file.uri and file.checksum and (found := locator.located([file])):
            uri = found[file].path
        resources.append(replace(resource, uri=uri))
    return replace(function, resources=tuple(resources) if function.resources is not None else None)


def untold(dump: Dump, name: TableName) -> Refused:
    return Refused(
        f"The increment in {dump.location} does not tell how {name} is",
        "It has the table's changes, and they do not lead on from what the target shows",
        "Make a bootstrap dump, and load that",
    )
