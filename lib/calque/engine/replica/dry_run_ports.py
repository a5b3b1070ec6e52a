"""The ports of a target that is only read: its catalog, ledger and storage answer as if the effects that they were
asked for had been made, as far as a window reads what it or what comes before it has written.

Before a window come rows of the ledger, and what a start or a change of policy makes of tables, their partitions, and
the times of files. Hops are explained, not made: `DryRunCatalog.assume` says what they leave.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from calque.core.formats.layout import join
from calque.core.small_files.combined_note import as_stored
from calque.model.facets import Constraint, ForeignKey, Statistics
from calque.model.files import Evidence, Listing
from calque.model.hive import Database, Function, Partition, Table
from calque.model.ledger import Epoch, ObjectRow, StateKey, StateRow, state_key
from calque.model.names import EventId, TableName, table_name
from calque.model.permissions import Permissions
from calque.model.plan import CatalogCall, DatabaseCall, FunctionCall, TableCall
from calque.model.policy import TargetCapabilities
from calque.model.records import Record, RecordKey, record_key
from calque.ports import (
    Catalog,
    CombinedRows,
    CombineTask,
    Conflict,
    CopiedFile,
    CopyTask,
    EvidenceStore,
    Ledger,
    Storage,
    TableCommit,
)
from calque.ports.forwarding import ForwardingLedger, ForwardingStorage

K = TypeVar("K")
V = TypeVar("V")
EVERY_EVENT = 2**62


class DryRunCatalog:
    """A `Catalog` that keeps what it is asked to write, and notes each such call in `calls`. A table that was renamed
    is read where it stands."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.calls: list[CatalogCall] = []
        self._lock = threading.Lock()
        self._databases: dict[str, Database | None] = {}
        self._functions: dict[TableName, Function | None] = {}
        self._tables: dict[TableName, Table | None] = {}
        self._stored_names: dict[TableName, TableName] = {}
        """The names under which the target has tables that were renamed."""
        self._partitions: dict[tuple[TableName, tuple[str, ...]], Partition] = {}
        """Altered partitions, by the name under which the target has the table, and their values."""
        self._after_hops: dict[TableName, bool] = {}

    def assume(self, present: Mapping[TableName, bool]) -> None:
        """Answer from now on as if the hops that were explained had left tables as `present` says: there, or gone."""
        with self._lock:
            self._after_hops |= present
            self._tables |= dict.fromkeys((name for name, is_there in present.items() if not is_there), None)

    # Reads

    def identity(self) -> str:
        return self._catalog.identity()

    def abilities(self) -> TargetCapabilities:
        return self._catalog.abilities()

    def contents(self, table: Table, partitions: Sequence[str]) -> Mapping[str, Listing] | None:
        return self._catalog.contents(table, partitions)

    def databases(self) -> Sequence[str]:
        changes = {name: database is not None for name, database in self._databases.items()}
        return changed(self._catalog.databases(), changes)

    def tables(self, database: str) -> Sequence[str]:
        changes = {name: table is not None for name, table in self._tables.items()} | self._after_hops
        return changed(self._catalog.tables(database), of_database(changes, database))

    def functions(self, database: str) -> Sequence[str]:
        changes = {name: function is not None for name, function in self._functions.items()}
        return changed(self._catalog.functions(database), of_database(changes, database))

    def database(self, name: str) -> Database | None:
        return self._databases[name] if name in self._databases else self._catalog.database(name)

    def table(self, name: TableName) -> Table | None:
        return self._tables[name] if name in self._tables else self._catalog.table(name)

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        tables = {name: self.table(TableName(database, name)) for name in names}
        return {name: table for name, table in tables.items() if table is not None}

    def function(self, name: TableName) -> Function | None:
        return self._functions[name] if name in self._functions else self._catalog.function(name)

    def partition_names(self, name: TableName) -> Sequence[str]:
        return self._catalog.partition_names(self._stored_names.get(name, name))

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        name = table_name(table.database, table.name)
        stored_name = self._stored_names.get(name, name)
        partitions = self._catalog.few_partitions(
            replace(table, database=stored_name.database, name=stored_name.table), most
        )
        return None if partitions is None else self._as_altered(name, partitions)

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        return self._as_altered(name, self._catalog.partitions(self._stored_names.get(name, name), names))

    def _as_altered(self, name: TableName, partitions: Mapping[str, Partition]) -> Mapping[str, Partition]:
        stored_name = self._stored_names.get(name, name)
        rows = {key: self._partitions.get((stored_name, part.values), part) for key, part in partitions.items()}
        return {key: replace(part, database=name.database, table=name.table) for key, part in rows.items()}

    def constraints(self, name: TableName) -> Sequence[Constraint]:
        return self._catalog.constraints(self._stored_names.get(name, name))

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]:
        return self._catalog.foreign_keys_to(self._stored_names.get(name, name))

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        return self._catalog.table_statistics(self._stored_names.get(name, name), columns)

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        return self._catalog.partition_statistics(self._stored_names.get(name, name), columns, partitions)

    # Databases and functions

    def create_database(self, database: Database) -> None:
        name = table_name(database.name).database
        self._note(DatabaseCall("create_database", name), self._databases, name, database)

    def alter_database(self, name: str, database: Database) -> None:
        self._note(DatabaseCall("alter_database", name), self._databases, name, database)

    def drop_database(self, name: str) -> None:
        if self.tables(name) or self.functions(name):
            raise Conflict(f"{name} is not empty")
        self._note(DatabaseCall("drop_database", name), self._databases, name, None)

    def create_function(self, function: Function) -> None:
        name = table_name(function.database, function.name)
        self._note(FunctionCall("create_function", name), self._functions, name, function)

    def drop_function(self, name: TableName) -> None:
        self._note(FunctionCall("drop_function", name), self._functions, name, None)

    # Tables

    def create_table(self, table: Table) -> None:
        name = table_name(table.database, table.name)
        self._note(TableCall("create_table", name), self._tables, name, table)

    def alter_table(
        self,
        name: TableName,
        table: Table,
        *,
        cascade: bool = False,  # noqa: ARG002
        expected_event: str = "",  # noqa: ARG002
    ) -> None:
        new_name, stored_name = table_name(table.database, table.name), self._stored_names.get(name, name)
        self._note(TableCall("alter_table", name), self._tables, name, None)
        with self._lock:
            self._tables[new_name], self._stored_names[new_name] = table, stored_name

    def drop_table(self, name: TableName) -> None:
        self._note(TableCall("drop_table", name), self._tables, name, None)

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        stored_name = self._stored_names.get(name, name)
        for partition in partitions:
            self._partitions[stored_name, tuple(partition.values)] = partition
        self._call(TableCall("alter_partitions", name))

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:  # noqa: ARG002
        self._call(TableCall("add_partitions", name))

    def rename_partition(self, name: TableName, values: Sequence[str], partition: Partition) -> None:  # noqa: ARG002
        self._call(TableCall("rename_partition", name))

    def drop_partitions(self, name: TableName, names: Sequence[str]) -> None:  # noqa: ARG002
        self._call(TableCall("drop_partitions", name))

    def commit_table(self, commit: TableCommit) -> None:
        name = table_name(commit.table.database, commit.table.name)
        self._call(TableCall("commit_table", name if commit.name is None else commit.name))

    def settle(self, table: Table) -> None:
        """Do nothing."""

    def add_constraints(self, constraints: Sequence[Constraint]) -> None:
        self._call(TableCall("add_constraints", table_name(constraints[0].database, constraints[0].table)))

    def drop_constraint(self, name: TableName, constraint: str) -> None:  # noqa: ARG002
        self._call(TableCall("drop_constraint", name))

    def put_statistics(self, name: TableName, statistics: Mapping[str, Statistics]) -> None:  # noqa: ARG002
        self._call(TableCall("put_statistics", name))

    def drop_statistics(self, name: TableName, partition: str, column: str) -> None:  # noqa: ARG002
        self._call(TableCall("drop_statistics", name))

    def _call(self, call: CatalogCall) -> None:
        with self._lock:
            self.calls.append(call)

    def _note(self, call: CatalogCall, changes: dict[K, V], key: K, value: V) -> None:
        with self._lock:
            self.calls.append(call)
            changes[key] = value


def changed(names: Sequence[str], changes: Mapping[str, bool]) -> Sequence[str]:
    """Return `names` as they would be after `changes`, which has True for a name that came and False for one that went.
    Names that came are last, sorted."""
    came = {name for name, is_there in changes.items() if is_there}
    return [*(name for name in names if changes.get(name, True)), *sorted(came - {*names})]


def of_database(changes: Mapping[TableName, bool], database: str) -> Mapping[str, bool]:
    return {name.table: is_there for name, is_there in changes.items() if name.database == database}


class DryRunLedger(ForwardingLedger):
    """A `Ledger` whose states and records are read as they would have been written. Nothing is published."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._rows = dict(ledger.tables())
        self._records = {record_key(record): record for record in ledger.records()}

    def tables(self) -> Mapping[StateKey, StateRow]:
        return dict(self._rows)

    def put_tables(self, rows: Sequence[StateRow]) -> None:
        self._rows |= {state_key(row): row for row in rows}

    def remove_tables(self, keys: Sequence[StateKey]) -> None:
        for key in keys:
            self._rows.pop(key, None)

    def records(self) -> Sequence[Record]:
        return tuple(self._records.values())

    def put_records(self, records: Sequence[Record]) -> None:
        self._records |= {record_key(record): record for record in records}

    def remove_records(self, keys: Sequence[RecordKey]) -> None:
        for key in keys:
            self._records.pop(key, None)

    def publish(self, epoch: Epoch, objects: Sequence[ObjectRow], tables: Sequence[StateRow]) -> None:
        pass

    def forget(self, before_epoch: int) -> int:  # noqa: ARG002
        return 0


class DryRunStorage(ForwardingStorage):
    """A `Storage` whose files have the times that they would have been given. No other effect can be read."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._times: dict[str, int] = {}
        self._sources: dict[str, str] = {}
        """The sources of files that would have been copied, by where they would lie."""

    def list(self, locations: Sequence[str]) -> Mapping[str, Listing]:
        listings = self._storage.list(locations)
        return {location: self._dated(listing) for location, listing in listings.items()} if self._times else listings

    def _dated(self, listing: Listing) -> Listing:
        if any(join(listing.location, file.path) in self._times for file in listing.stored):
            listing = as_stored(listing)
        times = {file.path: self._times.get(join(listing.location, file.path)) for file in listing.files}
        files = (replace(file, modified_ns=times[file.path] or file.modified_ns) for file in listing.files)
        return replace(listing, files=tuple(files))

    def date(self, times: Mapping[str, int]) -> None:
        self._times |= times

    def copy(
        self,
        tasks: Sequence[CopyTask],
        progress: Callable[[CopiedFile], None] | None = None,  # noqa: ARG002
    ) -> Sequence[CopiedFile]:
        """Return each file with the checksum that its copy would have; copy nothing."""
        checksums = self._storage.checksums([task.source for task in tasks])
        self._sources |= {task.target: task.source for task in tasks}
        return [CopiedFile(task, checksums.get(task.source, "")) for task in tasks]

    def digests(self, paths: Sequence[str]) -> Mapping[str, str]:
        sources = {path: self._sources.get(path, path) for path in paths}
        digests = self._storage.digests(list(sources.values()))
        return {path: digests[source] for path, source in sources.items() if source in digests}

    def combine(
        self,
        tasks: Sequence[CombineTask],
        progress: Callable[[CombinedRows], None] | None = None,  # noqa: ARG002
    ) -> Sequence[CombinedRows]:
        """Return that no files can be combined: the plan then counts as many files to read as there are copies to
        make."""
        return [CombinedRows(task, unfit="nothing is written") for task in tasks]

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        pass

    def make_directories(self, locations: Sequence[str]) -> None:
        pass

    def write(self, path: str, content: bytes) -> None:
        pass

    def create(self, contents: Mapping[str, bytes]) -> frozenset[str]:
        return frozenset(contents)

    def set_aside(self, location: str, aside: str) -> str:  # noqa: ARG002
        return location

    def remove(self, locations: Sequence[str]) -> None:
        pass

    def set_permissions(self, permissions: Mapping[str, Permissions]) -> Mapping[str, str]:  # noqa: ARG002
        return {}


class DryRunEvidence:
    """An `EvidenceStore` that is not waited for: files that are not known yet are planned as not known."""

    def __init__(self, evidence: EvidenceStore) -> None:
        self._evidence = evidence

    def considered(self) -> EventId:
        return EVERY_EVENT

    def evidence(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], Listing]:
        return self._evidence.evidence(ids)

    def append(self, evidence: Sequence[Evidence], considered: EventId) -> None:
        pass

    def forget(self, upto: EventId) -> int:  # noqa: ARG002
        return 0

    def restart(self, event_id: EventId) -> None:
        pass
