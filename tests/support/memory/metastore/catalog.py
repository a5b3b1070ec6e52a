"""The metastore's ports on a `MemoryMetastore`, and the kinds of catalog that it can be.

A call may be watched: `before` runs ahead of each with the method's name, `after` behind it. What they raise ends the
call there; what they do at the metastore happens between two calls, never inside one. A list that is not atomic is one
call for each of its objects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from calque.core.events.log_messages import key_names
from calque.core.plan.limits import ListOperation, check_commit, check_list, lowered
from calque.errors import Refused
from calque.model.facets import Constraint, ForeignKey, Statistics
from calque.model.hive import Database, Function, Partition, Table
from calque.model.journal import Event
from calque.model.names import EventId, TableName, named_values, partition_name, partition_values, table_name
from calque.model.policy import Limits, TargetCapabilities
from calque.ports import Conflict, TableCommit, TooLarge
from support.memory.metastore.store import MemoryMetastore

EVENT_PARAMETER = "calque.event"
GLUE_LIKE = TargetCapabilities(Limits(add_partitions=100, alter_partitions=100, drop_partitions=25), atomic_lists=False)
"""Small batches that are written object by object."""
DELTA_LIKE = TargetCapabilities(compare_and_swap=True, any_difference=True)
"""Any difference of one table is one commit."""

Watch = Callable[[str], None]
T = TypeVar("T")


def unwatched(_: str) -> None:
    """Let every call pass."""


class MemoryLog:
    """`ports.EventLog`."""

    def __init__(self, metastore: MemoryMetastore, before: Watch = unwatched, after: Watch = unwatched) -> None:
        self.metastore = metastore
        self._watched = watching(before, after)

    def current(self) -> EventId:
        with self._watched("current"):
            return self.metastore.current()

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        with self._watched("read"):
            return tuple(self.metastore.events(after)[: max(limit, 0)])


class MemoryReader:
    """`ports.CatalogReader`."""

    def __init__(self, metastore: MemoryMetastore, before: Watch = unwatched, after: Watch = unwatched) -> None:
        self.metastore = metastore
        self._watched = watching(before, after)

    def identity(self) -> str:
        with self._watched("identity"):
            return self.metastore.identity

    def databases(self) -> Sequence[str]:
        with self._watched("databases"):
            return tuple(self.metastore.databases())

    def tables(self, database: str) -> Sequence[str]:
        with self._watched("tables"):
            return tuple(self.metastore.tables(database))

    def functions(self, database: str) -> Sequence[str]:
        with self._watched("functions"):
            return tuple(self.metastore.functions(database))

    def database(self, name: str) -> Database | None:
        with self._watched("database"):
            try:
                return self.metastore.the_database(name)
            except Conflict:
                return None

    def table(self, name: TableName) -> Table | None:
        with self._watched("table"):
            try:
                return self.metastore.the_table(name).table
            except Conflict:
                return None

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        with self._watched("headers"), self.metastore.locked():
            existing_names = {*self.metastore.tables(database)}
            return {
                name: self.metastore.the_table(TableName(database, name)).table
                for name in names
                if name in existing_names
            }

    def function(self, name: TableName) -> Function | None:
        with self._watched("function"):
            return self.metastore.function(name)

    def partition_names(self, name: TableName) -> Sequence[str]:
        with self._watched("partition_names"), self.metastore.locked():
            try:
                stored = self.metastore.the_table(name)
            except Conflict:
                return ()
            keys = key_names(stored.table)
            return tuple(sorted(partition_name(keys, values) for values in stored.partitions))

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        with self._watched("few_partitions"), self.metastore.locked():
            try:
                stored = self.metastore.the_table(TableName(table.database, table.name))
            except Conflict:
                return {}
            keys = key_names(table)
            partitions = {
                values: partition for values, partition in stored.partitions.items() if len(values) == len(keys)
            }
            if len(stored.partitions) > most:
                return None
            return {partition_name(keys, values): partitions[values] for values in sorted(partitions)}

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        with self._watched("partitions"), self.metastore.locked():
            try:
                stored = self.metastore.the_table(name)
            except Conflict:
                return {}
            partitions = {one: stored.partitions.get(partition_values(one)) for one in names}
            return {one: partition for one, partition in partitions.items() if partition}

    def constraints(self, name: TableName) -> Sequence[Constraint]:
        with self._watched("constraints"):
            return self.metastore.constraints(name)

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]:
        with self._watched("foreign_keys_to"):
            return self.metastore.foreign_keys_to(name)

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        with self._watched("table_statistics"), self.metastore.locked():
            return self._statistics(name, columns, ())

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        with self._watched("partition_statistics"), self.metastore.locked():
            statistics_by_partition = {
                one: self._statistics(name, columns, partition_values(one)) for one in partitions
            }
            return {one: statistics for one, statistics in statistics_by_partition.items() if statistics}

    def _statistics(self, name: TableName, columns: Sequence[str], values: tuple[str, ...]) -> Statistics:
        try:
            rows = self.metastore.the_table(name).statistics.get(values, {})
        except Conflict:
            return {}
        return {column: row for column, row in rows.items() if column in columns}


class MemoryCatalog(MemoryReader):
    """`ports.Catalog`."""

    def __init__(
        self,
        metastore: MemoryMetastore,
        abilities: TargetCapabilities | None = None,
        before: Watch = unwatched,
        after: Watch = unwatched,
        message_bytes: int = sys.maxsize,
    ) -> None:
        """message_bytes: what a list may weigh, about."""
        super().__init__(metastore, before, after)
        self._message_bytes = message_bytes
        self._abilities = abilities or TargetCapabilities(compare_and_swap=metastore.habits.compare_and_swap)

    def abilities(self) -> TargetCapabilities:
        return self._abilities

    def create_database(self, database: Database) -> None:
        with self._watched("create_database"):
            self.metastore.create_database(database)

    def alter_database(self, name: str, database: Database) -> None:
        with self._watched("alter_database"):
            self.metastore.alter_database(name, database)

    def drop_database(self, name: str) -> None:
        with self._watched("drop_database"):
            self.metastore.drop_database(name, delete_data=False)

    def create_table(self, table: Table) -> None:
        with self._watched("create_table"):
            self.metastore.create_table(table)

    def alter_table(self, name: TableName, table: Table, *, cascade: bool = False, expected_event: str = "") -> None:
        with self._watched("alter_table"), self.metastore.locked():
            self._check_event(name, expected_event)
            self.metastore.alter_table(name, table, cascade=cascade)

    def drop_table(self, name: TableName) -> None:
        with self._watched("drop_table"):
            self.metastore.drop_table(name, delete_data=False)

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        self._check_list("add_partitions", partitions)
        for group in self._atoms(partitions):
            with self._watched("add_partitions"):
                self.metastore.add_partitions(name, group)

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        self._check_list("alter_partitions", partitions)
        for group in self._atoms(partitions):
            with self._watched("alter_partitions"):
                self.metastore.alter_partitions(name, group)

    def rename_partition(self, name: TableName, values: Sequence[str], partition: Partition) -> None:
        with self._watched("rename_partition"):
            self.metastore.rename_partition(name, values, partition)

    def drop_partitions(self, name: TableName, names: Sequence[str]) -> None:
        self._check_list("drop_partitions", names)
        for group in self._atoms(names):
            with self._watched("drop_partitions"):
                self.metastore.drop_partitions(name, group, delete_data=False)

    def commit_table(self, commit: TableCommit) -> None:
        check_commit(self._abilities.any_difference)
        with self._watched("commit_table"), self.metastore.locked():
            if commit.name is not None:
                self._check_event(commit.name, commit.expected_event)
            self._commit(commit)

    def contents(self, table: Table, partitions: Sequence[str]) -> None:
        """What lies in the directories."""

    def settle(self, table: Table) -> None:
        """Each change is one call."""

    def add_constraints(self, constraints: Sequence[Constraint]) -> None:
        with self._watched("add_constraints"):
            self.metastore.add_constraints(constraints)

    def drop_constraint(self, name: TableName, constraint: str) -> None:
        with self._watched("drop_constraint"):
            self.metastore.drop_constraint(name, constraint)

    def put_statistics(self, name: TableName, statistics: Mapping[str, Statistics]) -> None:
        with self._watched("put_statistics"), self.metastore.locked():
            for partition, columns in statistics.items():
                values = partition_values(partition) if partition else ()
                self.metastore.update_statistics(name, list(columns.values()), values)

    def drop_statistics(self, name: TableName, partition: str, column: str) -> None:
        with self._watched("drop_statistics"):
            self.metastore.delete_statistics(name, column, partition_values(partition) if partition else ())

    def create_function(self, function: Function) -> None:
        with self._watched("create_function"):
            self.metastore.create_function(function)

    def drop_function(self, name: TableName) -> None:
        with self._watched("drop_function"):
            self.metastore.drop_function(name)

    def _commit(self, commit: TableCommit) -> None:
        """Under the metastore's lock, so that nobody sees the calls apart; those that can fail come first."""
        name, table, put, drop = commit.name, commit.table, commit.put, commit.drop
        stored_partitions = {} if name is None else self.metastore.the_table(name).partitions
        if missing_names := [one for one in drop if partition_values(one) not in stored_partitions]:
            raise Conflict(f"partition {missing_names[0]} does not exist")
        if unfitting := [one for one in put if len(one.values) != len(key_names(table))]:
            raise Refused(f"{table.name} has other partition keys than {unfitting[0].values}")
        values_before = set(stored_partitions)
        if name is None:
            name = table_name(table.database, table.name)
            self.metastore.create_table(table)
        elif name != table_name(table.database, table.name):
            raise Refused(f"{name} can't be renamed in a commit")
        else:
            self.metastore.alter_table(name, table, cascade=commit.cascade)
        if drop:
            self.metastore.drop_partitions(name, drop, delete_data=False)
        if changed := [one for one in put if named_values(one.values) in values_before]:
            self.metastore.alter_partitions(name, changed)
        if added := [one for one in put if named_values(one.values) not in values_before]:
            self.metastore.add_partitions(name, added)

    def _check_list(self, operation: ListOperation, objects: Sequence[object]) -> None:
        check_list(operation, len(objects), getattr(self._abilities.limits, operation))
        if len(objects) > 1 and sum(len(repr(one)) for one in objects) > self._message_bytes:
            self._abilities = lowered(self._abilities, operation, len(objects))
            raise TooLarge(f"{operation} of {len(objects)} objects is too large")

    def _atoms(self, objects: Sequence[T]) -> Sequence[Sequence[T]]:
        """The parts of a list that a reader may see apart."""
        return [objects] if self._abilities.atomic_lists else [[one] for one in objects]

    def _check_event(self, name: TableName, expected: str) -> None:
        if not expected or not self._abilities.compare_and_swap:
            return
        parameters = self.metastore.the_table(name).table.parameters or {}
        if EVENT_PARAMETER in parameters and parameters[EVENT_PARAMETER] != expected:
            raise Conflict(f"{name} has been modified: {EVENT_PARAMETER} is {parameters[EVENT_PARAMETER]}")


def watching(before: Watch, after: Watch) -> Callable[[str], AbstractContextManager[None]]:
    """A context for each remote call, with the two watches around it."""

    @contextmanager
    def watched(method: str) -> Iterator[None]:
        before(method)
        yield
        after(method)

    return watched
