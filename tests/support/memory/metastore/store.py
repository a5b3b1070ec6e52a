"""A metastore in dictionaries, with the log, the places and the quirks of a real one.

Its methods are what a writer at the source does (`sandbox.writer.HiveClient` has the same ones for a real server);
`MemoryCatalog` and `MemoryLog` are the ports on it. Statistics are not computed. Data are moved and removed through
`Directories`, where one is given.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn, Protocol

from calque.core.events import log_messages
from calque.core.events.log_messages import CATALOG, LogMessage, key_names
from calque.errors import AlterationRefused, CallFailed, Refused
from calque.model.facets import Check, ColumnStatistics, Constraint, DefaultValue, ForeignKey, PrimaryKey, UniqueKey
from calque.model.hive import (
    Column,
    Database,
    Function,
    Partition,
    Table,
    is_full_acid,
    is_partitioned,
    is_transactional,
    is_view,
    location_of,
)
from calque.model.journal import Event
from calque.model.names import EventId, TableName, named_values, partition_values, table_name
from calque.model.transactions import CommitMark
from calque.ports import Conflict
from support.memory.metastore import notices
from support.memory.metastore.habits import HIVE_4, ServerHabits
from support.memory.metastore.stored import (
    analyzed,
    dated,
    partition_place,
    placed,
    stored_database,
    stored_function,
    stored_partition,
    stored_table,
)
from support.memory.metastore.transactions import MemoryTransactions

if TYPE_CHECKING:
    from calque.plugins.grants.model import Grant

NAME = re.compile(r"\w+", re.ASCII)
NO_FILES = {"numFiles": "0", "totalSize": "0"}
"""What is counted here, where no directory is looked into."""


class Directories(Protocol):
    """Where the data lie that a metastore moves and deletes on its own, in directories that it makes."""

    def make(self, location: str) -> None: ...

    def move(self, source: str, target: str) -> None: ...

    def remove(self, location: str) -> None: ...

    def files(self, location: str) -> Sequence[str]:
        """The data files that lie directly in it, by their full paths."""


class NoDirectories:
    """Nobody cares about data."""

    def make(self, location: str) -> None: ...

    def move(self, source: str, target: str) -> None: ...

    def remove(self, location: str) -> None: ...

    def files(self, location: str) -> Sequence[str]:  # noqa: ARG002
        return ()


@dataclass(slots=True)
class StoredTable:
    """A table with its partitions, by the values in their names. `creation_number`: how many tables had been created by
    then. `statistics` by the partition's values (none: the table's own) and column."""

    table: Table
    creation_number: int
    partitions: dict[tuple[str, ...], Partition] = field(default_factory=dict)
    constraints: list[Constraint] = field(default_factory=list)
    statistics: dict[tuple[str, ...], dict[str, ColumnStatistics]] = field(default_factory=dict)
    grants: set[Grant] = field(default_factory=set)

    def drop(self, values: tuple[str, ...]) -> None:
        """A partition, and what is kept of it beside it."""
        self.partitions.pop(named_values(values), None)
        self.statistics.pop(values, None)
        self.grants.difference_update([grant for grant in self.grants if grant.partition == values])

    def rename(self, before: tuple[str, ...], after: Partition) -> None:
        """A partition, and what is kept of it beside it."""
        self.partitions.pop(named_values(before))
        self.partitions[named_values(after.values)] = after
        if before in self.statistics:
            self.statistics[after.values] = self.statistics.pop(before)
        moved = {grant for grant in self.grants if grant.partition == before}
        self.grants.difference_update(moved)
        self.grants.update(replace(grant, partition=after.values) for grant in moved)

    def named(self, names: Sequence[str]) -> list[Partition]:
        """All of the named partitions; raises `Conflict` when one is missing."""
        partitions = [self.partitions.get(partition_values(name)) for name in names]
        return [partition if partition else missing("partition", str(self.table.name)) for partition in partitions]


class MemoryMetastore:
    """A whole metastore; safe from several threads, each call is one transaction.

    `warehouse` is the place of managed tables; `external` that of new databases where it differs (Hive 4).
    `clock` gives seconds since the epoch, `identity` is its own id. Raises `Conflict` and `Refused` as
    `ports.Catalog` does.
    """

    def __init__(
        self,
        habits: ServerHabits = HIVE_4,
        warehouse: str = "file:/warehouse",
        external: str | None = None,
        clock: Callable[[], float] = time.time,
        directories: Directories | None = None,
        identity: str = "",
    ) -> None:
        self.habits, self.identity = habits, identity
        self.warehouse = warehouse
        self.external = external or warehouse
        self.directories = directories or NoDirectories()
        self._clock = clock
        self._lock = threading.RLock()
        self.transactions = MemoryTransactions(habits, self._lock, self._write)
        self._last_id: EventId = 0
        self._tables_made = 0
        self._log: list[Event] = []
        self._functions: dict[TableName, Function] = {}
        self._tables: dict[TableName, StoredTable] = {}
        self._database_grants: dict[str, set[Grant]] = {"default": set()}
        self._roles = ["admin", "public"]
        self._databases = {"default": stored_database(Database("default", "Default Hive database"), warehouse)}

    def grants(self, name: TableName) -> set[Grant]:
        """Of a database (a name without a table) or a table, to be changed by whoever holds the lock."""
        if not name.table:
            return self._database_grants[self.the_database(name.database).name]
        return self.the_table(name).grants

    def roles(self) -> Sequence[str]:
        return sorted(self._roles)

    def create_role(self, name: str) -> None:
        with self._lock:
            if name in self._roles:
                exists("role", name)
            self._roles.append(name)

    def create_database(self, database: Database) -> None:
        with self._lock:
            if not self.habits.any_names and not NAME.fullmatch(database.name):
                raise Refused(f"{database.name} is not a valid object name")
            if database.name.lower() in self._databases:
                exists("database", database.name)
            place = database.location or f"{self.external}/{database.name.lower()}.db"
            created = stored_database(database, place)
            self.directories.make(place)
            self._databases[created.name] = created
            self._database_grants[created.name] = set()
            self._write(log_messages.database_created(replace(created, name=database.name)))

    def alter_database(self, name: str, database: Database) -> None:
        with self._lock:
            before = self.the_database(name)
            after = replace(stored_database(database, database.location or str(before.location)), name=before.name)
            self._databases[before.name] = after
            if self.habits.described_databases or logged_of(before) != logged_of(after):
                self._write(log_messages.database_altered(before, after))

    def drop_database(self, name: str, *, cascade: bool = False, delete_data: bool = True) -> None:
        """With `cascade`, functions are dropped first, materialised views next, then tables as they were made."""
        with self._lock:
            database = self.the_database(name)
            tables = [key for key in self._tables if key.database == database.name]
            functions = [key for key in self._functions if key.database == database.name]
            if not cascade and (tables or functions):
                raise Conflict(f"Database {name} is not empty")
            for function in functions:
                self.drop_function(function)
            for table in sorted(tables, key=self._drop_order):
                self.drop_table(table, delete_data=delete_data)
            del self._databases[database.name]
            del self._database_grants[database.name]
            self.transactions.dropped_database(database.name)
            self._write(notices.database_dropped(database, self.habits))

    def create_table(self, table: Table) -> None:
        with self._lock:
            self.the_database(table.database)
            if not self.habits.any_names and not NAME.fullmatch(table.name):
                raise Refused(f"{table.name} is not a valid object name")
            name = table_name(table.database, table.name)
            if name in self._tables:
                exists("table", str(name))
            now = self._now()
            self._tables_made += 1
            table_id = self._tables_made if self.habits.table_ids else None
            created = replace(dated(stored_table(table), now), create_time=now, id=table_id)
            if not location_of(created) and not is_view(created):
                created = placed(created, self._managed_place(name))
            if not is_view(created):
                self.directories.make(str(location_of(created)))
            self._tables[name] = StoredTable(created, self._tables_made)
            logged = self._as_logged(created, table)
            self._write(log_messages.table_created(logged, self._listed(logged, location_of(created))))

    def alter_table(self, name: TableName, table: Table, *, cascade: bool = False) -> None:
        with self._lock:
            stored = self.the_table(name)
            before = stored.table
            if not is_view(before) and key_names(table) != key_names(before):
                raise AlterationRefused("Partition keys can not be changed")
            if self.habits.fixed_columns and not is_view(before) and are_incompatible(before, table):
                raise AlterationRefused("The columns have types incompatible with the existing columns")
            after = replace(dated(stored_table(table), self._now()), create_time=before.create_time, id=before.id)
            new_name = table_name(after.database, after.name)
            old_name = table_name(before.database, before.name)
            if new_name != old_name:
                self.the_database(new_name.database)
                if new_name in self._tables:
                    exists("new table", str(new_name))
                if is_transactional(after):
                    self.transactions.renamed(old_name, new_name)
            if is_full_acid(after) and not is_full_acid(before):
                self.transactions.converted(new_name)
            new_table = self._moved(before, after)
            partitions = [
                self._carried(partition, before, new_table, cascade) for partition in stored.partitions.values()
            ]
            if location_of(new_table) != location_of(after):
                self.directories.move(str(location_of(before)), str(location_of(new_table)))
            del self._tables[old_name]
            partitions_by_values = {named_values(partition.values): partition for partition in partitions}
            statistics = self._remaining(stored, before, new_table)
            self._tables[new_name] = StoredTable(
                new_table, stored.creation_number, partitions_by_values, stored.constraints, statistics, stored.grants
            )
            self._rename_in_constraints(old_name, new_name)
            as_given = as_spelled(replace(new_table, create_time=table.create_time or 0), table)
            self._write(log_messages.table_altered(before, as_given, self.habits.write_ids))

    def set_mark(self, mark: CommitMark) -> None:
        """Set a parameter that a table has, without an event. Raises `CallFailed` where it can't be set, and does
        nothing where servers know no marks."""
        with self._lock:
            if not self.habits.any_write_id:
                return
            for stored in self._tables.values():
                parameters = stored.table.parameters or {}
                if stored.table.id == mark.table_id and mark.key in parameters and mark.key.startswith("_meta"):
                    stored.table = replace(stored.table, parameters={**parameters, mark.key: mark.value})
                    return
            raise CallFailed("Internal error processing commit_txn")

    def truncate_table(self, name: TableName, partitions: Sequence[str] | None = None) -> None:
        """Empty the table, or the named partitions. Hive logs nothing for an empty list, except 4 for plain tables."""
        with self._lock:
            stored = self.the_table(name)
            if is_partitioned(stored.table):
                emptied_partitions = (
                    list(stored.partitions.values()) if partitions is None else stored.named(partitions)
                )
                for partition in emptied_partitions:
                    self.directories.remove(str(location_of(partition)))
                self._write_truncated(stored.table, emptied_partitions)
                return
            self.directories.remove(str(location_of(stored.table)))
            if partitions is None or self.habits.empty_truncate:
                self._write(
                    log_messages.table_altered(stored.table, stored.table, self.habits.write_ids, truncates=True)
                )
                if self.habits.truncate_pairs:
                    self._write(log_messages.table_altered(stored.table, stored.table, self.habits.write_ids))

    def truncate_acid_table(self, name: TableName, write_id: int, partitions: Sequence[str] | None = None) -> None:
        """Log that an ACID table is empty, or the named partitions, by base directories of that write id. Nobody makes
        them here."""
        with self._lock:
            stored = self.the_table(name)
            if partitions is None:
                message = log_messages.table_altered(stored.table, stored.table, write_ids=True, truncates=True)
            else:
                named = stored.named(partitions)
                message = log_messages.partitions_altered(stored.table, named, write_ids=True, truncates=True)
            self._write(replace(message, body={**message.body, "writeId": write_id}))

    def drop_table(self, name: TableName, *, delete_data: bool = True) -> None:
        with self._lock:
            stored = self.the_table(name)
            del self._tables[table_name(*name)]
            for other in self._tables.values():
                other.constraints = [row for row in other.constraints if parent_of(row) != table_name(*name)]
            if delete_data and stored.table.type == "MANAGED_TABLE":
                for partition in stored.partitions.values():
                    self.directories.remove(str(location_of(partition)))
                self.directories.remove(str(location_of(stored.table)))
            if is_transactional(stored.table):
                self.transactions.dropped(table_name(*name), delete_data=delete_data)
            self._write(log_messages.table_dropped(stored.table))

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        with self._lock:
            stored = self.the_table(name)
            now = self._now()
            added: dict[tuple[str, ...], Partition] = {}
            for new_partition in partitions:
                self._check_of(stored, new_partition)
                values = named_values(new_partition.values)
                if values in stored.partitions or values in added:
                    exists("partition", str(new_partition.values))
                partition = replace(dated(stored_partition(new_partition, stored.table), now), create_time=now)
                if not location_of(partition) and not is_view(stored.table):
                    partition = placed(partition, partition_place(stored.table, partition))
                added[values] = partition
            stored.partitions.update(added)
            for partition in added.values():
                if location := location_of(partition):
                    self.directories.make(location)
            self._write_added(stored.table, tuple(added.values()))

    def append_partition(self, name: TableName, values: Sequence[str]) -> Partition:
        with self._lock:
            table = self.the_table(name).table
            partition = Partition(tuple(values), storage=table.storage)
            self.add_partitions(name, [placed(partition, None)])
            return self.the_table(name).partitions[named_values(values)]

    def alter_partition(self, name: TableName, partition: Partition) -> None:
        with self._lock:
            stored = self.the_table(name)
            before, after = self._replace_partitions(stored, [partition])[0]
            self._write(log_messages.partition_altered(stored.table, before, after, self.habits.write_ids))

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        with self._lock:
            stored = self.the_table(name)
            changes = self._replace_partitions(stored, partitions)
            self._write_altered(stored.table, changes)

    def rename_partition(self, name: TableName, values: Sequence[str], partition: Partition) -> None:
        """A managed partition moves to its new natural place; an external one stays where it was."""
        with self._lock:
            stored = self.the_table(name)
            before = stored.partitions.get(named_values(values)) or missing("partition", str(values))
            self._check_of(stored, partition)
            if partition.values != before.values and named_values(partition.values) in stored.partitions:
                exists("partition", str(partition.values))
            after = dated(stored_partition(partition, stored.table), self._now())
            if self.habits.counts_renamed or counts_of(before) != counts_of(after):
                after = replace(after, parameters={**(after.parameters or {}), **NO_FILES})
            place = str(location_of(before))
            if stored.table.type == "MANAGED_TABLE":
                place = partition_place(stored.table, after)
                self.directories.move(str(location_of(before)), place)
            after = placed(after, place)
            stored.rename(before.values, after)
            self._write(log_messages.partition_altered(stored.table, before, after, self.habits.write_ids))

    def drop_partitions(self, name: TableName, names: Sequence[str], *, delete_data: bool = True) -> None:
        with self._lock:
            stored = self.the_table(name)
            dropped_partitions = stored.named(names)
            for partition in dropped_partitions:
                stored.drop(partition.values)
                if delete_data and stored.table.type == "MANAGED_TABLE":
                    self.directories.remove(str(location_of(partition)))
            for group in self._grouped(dropped_partitions):
                self._write(log_messages.partitions_dropped(stored.table, group))

    def exchange_partitions(
        self, specification: Mapping[str, str], source: TableName, target: TableName
    ) -> Sequence[Partition]:
        """Move matching partitions with their directories: ADD_PARTITION there, then DROP_PARTITION here."""
        with self._lock:
            origin, destination = self.the_table(source), self.the_table(target)
            keys = key_names(origin.table)
            matching = [
                partition
                for partition in origin.partitions.values()
                if specification.items() <= dict(zip(keys, partition.values, strict=True)).items()
            ]
            if not matching:
                missing("partition", str(specification))
            if any(named_values(partition.values) in destination.partitions for partition in matching):
                exists("partition", str(specification))
            moved_partitions = [stored_partition(partition, destination.table) for partition in matching]
            moved_partitions = [
                placed(partition, partition_place(destination.table, partition)) for partition in moved_partitions
            ]
            for before, after in zip(matching, moved_partitions, strict=True):
                self.directories.move(str(location_of(before)), str(location_of(after)))
                origin.drop(before.values)
                destination.partitions[named_values(after.values)] = after
            self._write_added(destination.table, moved_partitions)
            for partition in matching:
                self._write(log_messages.partitions_dropped(origin.table, [partition]))
            return tuple(moved_partitions)

    def insert(
        self, name: TableName, files: Sequence[str], *, values: Sequence[str] | None = None, replace: bool = False
    ) -> None:
        """Tell of files that were written: full paths, or already `path#checksum#root#subdirectory`."""
        with self._lock:
            stored = self.the_table(name)
            partition = None
            if values is not None:
                partition = stored.partitions.get(named_values(values)) or missing("partition", str(values))
            self._write(notices.inserted(stored.table, partition, log_messages.encoded_files(files), replace))

    def add_constraints(self, constraints: Sequence[Constraint]) -> None:
        """Rows of one kind and one table, each with a name."""
        with self._lock:
            name = table_name(constraints[0].database, constraints[0].table)
            stored = self.the_table(name)
            rows = [replace(row, database=name.database, table=name.table, catalog=CATALOG) for row in constraints]
            names = {row.name for row in rows}
            for existing in stored.constraints:
                if existing.name in names or (isinstance(existing, PrimaryKey) and isinstance(rows[0], PrimaryKey)):
                    exists("constraint", f"{existing.name} of {name}")
            for row in rows:
                if isinstance(row, ForeignKey):
                    self._check_parent(row)
            stored.constraints += rows
            if self.habits.facet_events or not isinstance(rows[0], DefaultValue | Check):
                self._write(notices.constraints_added(name, rows))

    def drop_constraint(self, name: TableName, constraint: str) -> None:
        with self._lock:
            stored = self.the_table(name)
            remaining = [row for row in stored.constraints if row.name != constraint]
            if remaining == stored.constraints:
                missing("constraint", constraint)
            stored.constraints = remaining
            self._write(notices.constraint_dropped(table_name(*name), constraint))

    def constraints(self, name: TableName) -> list[Constraint]:
        with self._lock:
            stored = self._tables.get(table_name(*name))
            return list(stored.constraints) if stored else []

    def foreign_keys_to(self, name: TableName) -> list[ForeignKey]:
        with self._lock:
            rows = (row for stored in self._tables.values() for row in stored.constraints)
            return [row for row in rows if isinstance(row, ForeignKey) and row.parent == table_name(*name)]

    def update_statistics(
        self, name: TableName, columns: Sequence[ColumnStatistics], values: Sequence[str] = ()
    ) -> None:
        """Of the table, or of the partition with `values`; other columns keep theirs."""
        with self._lock:
            stored = self.the_table(name)
            column_names = {column.name for column in columns_of(stored.table)}
            if unknown := [row.column for row in columns if row.column not in column_names]:
                missing("column", unknown[0])
            names = [row.column for row in columns]
            partition = None
            if values:
                partition = stored.partitions.get(named_values(values)) or missing("partition", str(values))
                partition = stored.partitions[named_values(values)] = analyzed(partition, names)
            else:
                stored.table = analyzed(stored.table, names)
            stored.statistics.setdefault(tuple(values), {}).update({row.column: row for row in columns})
            if self.habits.facet_events:
                self._write(notices.statistics_updated(stored.table, partition, columns))

    def delete_statistics(self, name: TableName, column: str, values: Sequence[str] = ()) -> None:
        with self._lock:
            stored = self.the_table(name)
            partition = None
            if values:
                partition = stored.partitions.get(named_values(values)) or missing("partition", str(values))
            if stored.statistics.get(tuple(values), {}).pop(column, None) is None and not self.habits.bulk_events:
                missing("statistics of column", column)
            if self.habits.facet_events:
                self._write(notices.statistics_deleted(stored.table, partition, column))

    def create_function(self, function: Function) -> None:
        with self._lock:
            self.the_database(function.database)
            name = table_name(function.database, function.name)
            if name in self._functions:
                exists("function", str(name))
            created = self._functions[name] = stored_function(function, self._now())
            spelled = replace(created, name=function.name, database=function.database)
            self._write(notices.function_created(spelled))

    def drop_function(self, name: TableName) -> None:
        with self._lock:
            function = self._functions.pop(table_name(*name), None) or missing("function", str(name))
            self._write(notices.function_dropped(function))

    def reload(self, name: TableName) -> None:
        """An engine says that it looked at the table's files anew."""
        with self._lock:
            table = self.the_table(name).table
            self._write(LogMessage("RELOAD", table.database, table.name, {}))

    def current(self) -> EventId:
        with self._lock:
            return self._last_id

    def events(self, after: EventId = 0) -> list[Event]:
        with self._lock:
            return [event for event in self._log if event.event_id > after]

    def purge(self, upto: EventId) -> None:
        """Forget events at or below `upto`, as the server's cleaner does."""
        with self._lock:
            self._log = [event for event in self._log if event.event_id > upto]

    def databases(self) -> list[str]:
        with self._lock:
            return sorted(self._databases)

    def tables(self, database: str) -> list[str]:
        with self._lock:
            return sorted(name.table for name in self._tables if name.database == database.lower())

    def functions(self, database: str) -> list[str]:
        with self._lock:
            return sorted(name.table for name in self._functions if name.database == database.lower())

    def function(self, name: TableName) -> Function | None:
        with self._lock:
            return self._functions.get(table_name(*name))

    def the_database(self, name: str) -> Database:
        """Raises `Conflict` when it is missing."""
        with self._lock:
            return self._databases.get(name.lower()) or missing("database", name)

    def the_table(self, name: TableName) -> StoredTable:
        """Raises `Conflict` when it is missing. The partitions are the live ones: read them under `locked`."""
        with self._lock:
            return self._tables.get(table_name(*name)) or missing("table", str(name))

    @contextmanager
    def locked(self) -> Iterator[None]:
        with self._lock:
            yield

    def _check_parent(self, row: ForeignKey) -> None:
        stored = self._tables.get(row.parent)
        keys = [one for one in stored.constraints if isinstance(one, PrimaryKey | UniqueKey)] if stored else []
        if all(one.column != row.parent_column for one in keys):
            raise Refused(f"{row.parent} has no key for {row.name}")

    def _rename_in_constraints(self, old: TableName, new: TableName) -> None:
        if old == new:
            return
        renamed_table = self._tables[new]
        renamed_table.constraints = [
            replace(row, database=new.database, table=new.table) for row in renamed_table.constraints
        ]
        for stored in self._tables.values():
            stored.constraints = [
                replace(row, parent_database=new.database, parent_table=new.table)
                if isinstance(row, ForeignKey) and row.parent == old
                else row
                for row in stored.constraints
            ]

    def _remaining(
        self, stored: StoredTable, before: Table, after: Table
    ) -> dict[tuple[str, ...], dict[str, ColumnStatistics]]:
        """Statistics after a change of the table: of columns that are still the same."""
        old, new = ({(column.name, column.type) for column in columns_of(table)} for table in (before, after))
        same = {name for name, _ in old & new}
        is_renamed = (before.database, before.name) != (after.database, after.name)
        return {
            values: {column: row for column, row in columns.items() if column in same}
            for values, columns in stored.statistics.items()
            if not values or not is_renamed or self.habits.statistics_follow
        }

    def _drop_order(self, name: TableName) -> tuple[bool, int]:
        stored = self._tables[name]
        return stored.table.type != "MATERIALIZED_VIEW", stored.creation_number

    def _as_logged(self, created: Table, requested: Table) -> Table:
        """CREATE_TABLE shows the type as the client gave it, and names of columns and keys as it spelled them."""
        spelled = as_spelled(replace(created, type=requested.type), requested)
        return spelled if self.habits.spelled_names else replace(spelled, name=created.name, database=created.database)

    def _managed_place(self, name: TableName) -> str:
        database = self.the_database(name.database)
        if not self.habits.own_managed_place:
            return f"{database.location}/{name.table}"
        place = self.warehouse if name.database == "default" else f"{self.warehouse}/{name.database}.db"
        return f"{database.managed_location or place}/{name.table}"

    def _moved(self, before: Table, after: Table) -> Table:
        """A managed table at its natural place moves when it is renamed, unless it is given another."""
        old, new = table_name(before.database, before.name), table_name(after.database, after.name)
        is_at_natural_place = before.type == "MANAGED_TABLE" and location_of(before) == self._managed_place(old)
        keeps_location = location_of(after) in (None, location_of(before))
        return (
            placed(after, self._managed_place(new)) if old != new and is_at_natural_place and keeps_location else after
        )

    def _carried(self, partition: Partition, before: Table, after: Table, cascade: bool) -> Partition:
        """A partition after a change of its table: names, the table's move, and columns when they cascade."""
        place, old, new = location_of(partition), str(location_of(before)), str(location_of(after))
        is_renamed = table_name(before.database, before.name) != table_name(after.database, after.name)
        if place and is_renamed and before.type == "MANAGED_TABLE" and place.startswith(old + "/"):
            place = new + place[len(old) :]
        carried_partition = replace(placed(partition, place), database=after.database, table=after.name)
        if cascade and carried_partition.storage and after.storage:
            carried_partition = replace(
                carried_partition, storage=replace(carried_partition.storage, columns=after.storage.columns)
            )
        return carried_partition

    def _replace_partitions(
        self, stored: StoredTable, partitions: Sequence[Partition]
    ) -> list[tuple[Partition, Partition]]:
        now = self._now()
        changes = []
        for new_partition in partitions:
            before = stored.partitions.get(named_values(new_partition.values)) or missing(
                "partition", str(new_partition.values)
            )
            after = dated(stored_partition(new_partition, stored.table), now)
            changes.append((before, after if location_of(after) else placed(after, location_of(before))))
        stored.partitions.update((named_values(after.values), after) for _, after in changes)
        return changes

    def _write_altered(self, table: Table, changes: Sequence[tuple[Partition, Partition]]) -> None:
        if self.habits.bulk_events:
            self._write(log_messages.partitions_altered(table, [after for _, after in changes], self.habits.write_ids))
            return
        for before, after in changes:
            self._write(log_messages.partition_altered(table, before, after, self.habits.write_ids))

    def _write_added(self, table: Table, partitions: Sequence[Partition]) -> None:
        files = None
        if self._lists(table):
            files = [self._listed(table, location_of(partition)) for partition in partitions]
        self._write(log_messages.partitions_added(table, partitions, files))

    def _listed(self, table: Table, location: str | None) -> Sequence[str]:
        """The files that an event lists of a new directory; 4 lists none of external tables."""
        listed = location and self._lists(table) and not is_view(table)
        return self.directories.files(str(location)) if listed else ()

    def _lists(self, table: Table) -> bool:
        return table.type == "MANAGED_TABLE" or self.habits.lists_external

    def _write_truncated(self, table: Table, partitions: Sequence[Partition]) -> None:
        if not self.habits.truncate_pairs:
            if partitions:
                self._write(log_messages.partitions_altered(table, partitions, self.habits.write_ids, truncates=True))
            return
        for partition in partitions:
            self._write(
                log_messages.partition_altered(table, partition, partition, self.habits.write_ids, truncates=True)
            )
            self._write(log_messages.partition_altered(table, partition, partition, self.habits.write_ids))

    def _grouped(self, partitions: Sequence[Partition]) -> Sequence[Sequence[Partition]]:
        return [partitions] if self.habits.bulk_events else [[partition] for partition in partitions]

    def _check_of(self, stored: StoredTable, partition: Partition) -> None:
        if len(partition.values) != len(stored.table.partition_keys or ()):
            raise Refused(f"{stored.table.name} has other partition keys than {partition.values}")

    def _write(self, message: LogMessage, catalog: str = CATALOG) -> None:
        self._last_id += 1
        self._log.append(replace(log_messages.logged(message, self._last_id, self._now()), catalog=catalog))

    def _now(self) -> int:
        return int(self._clock())


def as_spelled(stored: Table, requested: Table) -> Table:
    """What messages show of a table that a client made or altered: its names as the client spelled them."""
    storage = stored.storage
    if storage is not None and requested.storage is not None:
        storage = replace(storage, columns=requested.storage.columns or ())
    return replace(
        stored,
        name=requested.name,
        database=requested.database,
        partition_keys=requested.partition_keys or (),
        storage=storage,
    )


def logged_of(database: Database) -> object:
    """What Hive 4 logs changes of."""
    return database.parameters, database.owner, database.owner_type


def are_incompatible(before: Table, after: Table) -> bool:
    """Whether a column is left out, or has another type than the one at its place: more or less as Hive sees it."""
    old, new = columns_of(before), columns_of(after)
    return len(new) < len(old) or any(one.type != other.type for one, other in zip(old, new, strict=False))


def counts_of(partition: Partition) -> list[str | None]:
    return [(partition.parameters or {}).get(key) for key in NO_FILES]


def columns_of(table: Table) -> Sequence[Column]:
    return (table.storage.columns if table.storage else None) or ()


def parent_of(row: Constraint) -> TableName | None:
    return row.parent if isinstance(row, ForeignKey) else None


def missing(kind: str, name: str) -> NoReturn:
    raise Conflict(f"{kind} {name} does not exist")


def exists(kind: str, name: str) -> NoReturn:
    raise Conflict(f"{kind} {name} already exists")
