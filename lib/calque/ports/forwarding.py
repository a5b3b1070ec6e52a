"""Ports that pass every call on through one interceptor. Wrappers of a port are made of them.

A wrapper that treats all methods alike is an interceptor. One that answers single methods itself inherits from the
port's forwarding class and overrides these. The forwarding classes are the only ones of calque that others inherit
from, beside errors and Protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import ParamSpec, Protocol, TypeVar

import pyarrow as pa

from calque.core.acid.commits import AcidCommit, TransactionMemory
from calque.model.facets import Constraint, ForeignKey, Statistics
from calque.model.files import Evidence, File, FilesOfEvent, Listing, RowLayout
from calque.model.gaps import Gap
from calque.model.hive import Database, Function, Partition, Table
from calque.model.journal import Entry, Event
from calque.model.lease import Generation
from calque.model.ledger import Epoch, ObjectRow, PlaceRow, StateKey, StateRow
from calque.model.names import EventId, Span, TableName
from calque.model.permissions import Permissions
from calque.model.policy import TargetCapabilities
from calque.model.records import Record, RecordKey
from calque.model.scan import Memory, Scan
from calque.model.transactions import CommitMark, TransactionId
from calque.ports import (
    Catalog,
    CatalogReader,
    CombinedRows,
    CombineTask,
    Commits,
    CopiedFile,
    CopyTask,
    EventFiles,
    EventLog,
    EvidenceStore,
    Gaps,
    Journal,
    Leases,
    Ledger,
    Pins,
    Scans,
    Storage,
    StorageEntry,
    TableCommit,
    TargetParts,
    parts_of,
)
from calque.ports.transactions import ReplicatedTransactions

P = ParamSpec("P")
R = TypeVar("R")


class Interceptor(Protocol):
    """A function through which all calls of a port go."""

    def __call__(self, method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
        """Call `call`, the port's method of the name `method`, with the arguments, and return its result; or raise."""


def direct(_method: str, call: Callable[P, R], /, *arguments: P.args, **named: P.kwargs) -> R:
    """Call `call` with the arguments: the interceptor that adds nothing."""
    return call(*arguments, **named)


class ForwardingEventLog:
    def __init__(self, log: EventLog, intercept: Interceptor = direct) -> None:
        self._log, self._intercept = log, intercept

    def current(self) -> EventId:
        return self._intercept("current", self._log.current)

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        return self._intercept("read", self._log.read, after, limit)


class ForwardingCatalogReader:
    def __init__(self, reader: CatalogReader, intercept: Interceptor = direct) -> None:
        self._reader, self._intercept = reader, intercept

    def identity(self) -> str:
        return self._intercept("identity", self._reader.identity)

    def databases(self) -> Sequence[str]:
        return self._intercept("databases", self._reader.databases)

    def tables(self, database: str) -> Sequence[str]:
        return self._intercept("tables", self._reader.tables, database)

    def functions(self, database: str) -> Sequence[str]:
        return self._intercept("functions", self._reader.functions, database)

    def database(self, name: str) -> Database | None:
        return self._intercept("database", self._reader.database, name)

    def table(self, name: TableName) -> Table | None:
        return self._intercept("table", self._reader.table, name)

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        return self._intercept("headers", self._reader.headers, database, names)

    def function(self, name: TableName) -> Function | None:
        return self._intercept("function", self._reader.function, name)

    def partition_names(self, name: TableName) -> Sequence[str]:
        return self._intercept("partition_names", self._reader.partition_names, name)

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        return self._intercept("few_partitions", self._reader.few_partitions, table, most)

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        return self._intercept("partitions", self._reader.partitions, name, names)

    def constraints(self, name: TableName) -> Sequence[Constraint]:
        return self._intercept("constraints", self._reader.constraints, name)

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]:
        return self._intercept("foreign_keys_to", self._reader.foreign_keys_to, name)

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        return self._intercept("table_statistics", self._reader.table_statistics, name, columns)

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        return self._intercept("partition_statistics", self._reader.partition_statistics, name, columns, partitions)


class ForwardingCatalog:
    """A catalog that passes its calls on to another one, or to the parts of one (`TargetParts`)."""

    def __init__(self, catalog: Catalog | TargetParts, intercept: Interceptor = direct) -> None:
        self._parts = catalog if isinstance(catalog, TargetParts) else parts_of(catalog)
        self._intercept = intercept

    def identity(self) -> str:
        return self._intercept("identity", self._parts.identity)

    def databases(self) -> Sequence[str]:
        return self._intercept("databases", self._parts.databases.databases)

    def tables(self, database: str) -> Sequence[str]:
        return self._intercept("tables", self._parts.tables.tables, database)

    def functions(self, database: str) -> Sequence[str]:
        return self._intercept("functions", self._parts.functions.functions, database)

    def database(self, name: str) -> Database | None:
        return self._intercept("database", self._parts.databases.database, name)

    def table(self, name: TableName) -> Table | None:
        return self._intercept("table", self._parts.tables.table, name)

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        return self._intercept("headers", self._parts.tables.headers, database, names)

    def function(self, name: TableName) -> Function | None:
        return self._intercept("function", self._parts.functions.function, name)

    def partition_names(self, name: TableName) -> Sequence[str]:
        return self._intercept("partition_names", self._parts.partitions.partition_names, name)

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        return self._intercept("few_partitions", self._parts.partitions.few_partitions, table, most)

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        return self._intercept("partitions", self._parts.partitions.partitions, name, names)

    def constraints(self, name: TableName) -> Sequence[Constraint]:
        return self._intercept("constraints", self._parts.facets.constraints, name)

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]:
        return self._intercept("foreign_keys_to", self._parts.facets.foreign_keys_to, name)

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        return self._intercept("table_statistics", self._parts.facets.table_statistics, name, columns)

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        return self._intercept(
            "partition_statistics", self._parts.facets.partition_statistics, name, columns, partitions
        )

    def abilities(self) -> TargetCapabilities:
        return self._intercept("abilities", self._parts.abilities)

    def create_database(self, database: Database) -> None:
        self._intercept("create_database", self._parts.databases.create_database, database)

    def alter_database(self, name: str, database: Database) -> None:
        self._intercept("alter_database", self._parts.databases.alter_database, name, database)

    def drop_database(self, name: str) -> None:
        self._intercept("drop_database", self._parts.databases.drop_database, name)

    def create_table(self, table: Table) -> None:
        self._intercept("create_table", self._parts.tables.create_table, table)

    def alter_table(self, name: TableName, table: Table, *, cascade: bool = False, expected_event: str = "") -> None:
        alter = self._parts.tables.alter_table
        self._intercept("alter_table", alter, name, table, cascade=cascade, expected_event=expected_event)

    def drop_table(self, name: TableName) -> None:
        self._intercept("drop_table", self._parts.tables.drop_table, name)

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        self._intercept("add_partitions", self._parts.partitions.add_partitions, name, partitions)

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        self._intercept("alter_partitions", self._parts.partitions.alter_partitions, name, partitions)

    def rename_partition(self, name: TableName, values: Sequence[str], partition: Partition) -> None:
        self._intercept("rename_partition", self._parts.partitions.rename_partition, name, values, partition)

    def drop_partitions(self, name: TableName, names: Sequence[str]) -> None:
        self._intercept("drop_partitions", self._parts.partitions.drop_partitions, name, names)

    def commit_table(self, commit: TableCommit) -> None:
        self._intercept("commit_table", self._parts.tables.commit_table, commit)

    def contents(self, table: Table, partitions: Sequence[str]) -> Mapping[str, Listing] | None:
        return self._intercept("contents", self._parts.tables.contents, table, partitions)

    def settle(self, table: Table) -> None:
        self._intercept("settle", self._parts.tables.settle, table)

    def add_constraints(self, constraints: Sequence[Constraint]) -> None:
        self._intercept("add_constraints", self._parts.facets.add_constraints, constraints)

    def drop_constraint(self, name: TableName, constraint: str) -> None:
        self._intercept("drop_constraint", self._parts.facets.drop_constraint, name, constraint)

    def put_statistics(self, name: TableName, statistics: Mapping[str, Statistics]) -> None:
        self._intercept("put_statistics", self._parts.facets.put_statistics, name, statistics)

    def drop_statistics(self, name: TableName, partition: str, column: str) -> None:
        self._intercept("drop_statistics", self._parts.facets.drop_statistics, name, partition, column)

    def create_function(self, function: Function) -> None:
        self._intercept("create_function", self._parts.functions.create_function, function)

    def drop_function(self, name: TableName) -> None:
        self._intercept("drop_function", self._parts.functions.drop_function, name)


class ForwardingStorage:
    def __init__(self, storage: Storage, intercept: Interceptor = direct) -> None:
        self._storage, self._intercept = storage, intercept

    def list(self, locations: Sequence[str]) -> Mapping[str, Listing]:
        return self._intercept("list", self._storage.list, locations)

    def files(self, paths: Sequence[str]) -> Mapping[str, File]:
        return self._intercept("files", self._storage.files, paths)

    def copy(
        self, tasks: Sequence[CopyTask], progress: Callable[[CopiedFile], None] | None = None
    ) -> Sequence[CopiedFile]:
        return self._intercept("copy", self._storage.copy, tasks, progress)

    def combine(
        self, tasks: Sequence[CombineTask], progress: Callable[[CombinedRows], None] | None = None
    ) -> Sequence[CombinedRows]:
        return self._intercept("combine", self._storage.combine, tasks, progress)

    def row_digests(self, groups: Sequence[tuple[RowLayout, tuple[str, ...]]]) -> Sequence[str]:
        return self._intercept("row_digests", self._storage.row_digests, groups)

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        self._intercept("publish", self._storage.publish, renames)

    def make_directories(self, locations: Sequence[str]) -> None:
        self._intercept("make_directories", self._storage.make_directories, locations)

    def exists(self, location: str) -> bool:
        return self._intercept("exists", self._storage.exists, location)

    def checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        return self._intercept("checksums", self._storage.checksums, paths)

    def digests(self, paths: Sequence[str]) -> Mapping[str, str]:
        return self._intercept("digests", self._storage.digests, paths)

    def tails(self, paths: Sequence[str], size: int) -> Mapping[str, bytes]:
        return self._intercept("tails", self._storage.tails, paths, size)

    def system_checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        return self._intercept("system_checksums", self._storage.system_checksums, paths)

    def date(self, times: Mapping[str, int]) -> None:
        self._intercept("date", self._storage.date, times)

    def read(self, path: str) -> bytes | None:
        return self._intercept("read", self._storage.read, path)

    def write(self, path: str, content: bytes) -> None:
        self._intercept("write", self._storage.write, path, content)

    def create(self, contents: Mapping[str, bytes]) -> frozenset[str]:
        return self._intercept("create", self._storage.create, contents)

    def set_aside(self, location: str, aside: str) -> str:
        return self._intercept("set_aside", self._storage.set_aside, location, aside)

    def remove(self, locations: Sequence[str]) -> None:
        self._intercept("remove", self._storage.remove, locations)

    def children(self, location: str) -> Sequence[str]:
        return self._intercept("children", self._storage.children, location)

    def entries(self, location: str) -> Sequence[StorageEntry]:
        return self._intercept("entries", self._storage.entries, location)

    def modified(self, directories: Sequence[str]) -> Mapping[str, int]:
        return self._intercept("modified", self._storage.modified, directories)

    def permissions(self, locations: Sequence[str]) -> Mapping[str, Permissions]:
        return self._intercept("permissions", self._storage.permissions, locations)

    def set_permissions(self, permissions: Mapping[str, Permissions]) -> Mapping[str, str]:
        return self._intercept("set_permissions", self._storage.set_permissions, permissions)


class ForwardingJournal:
    def __init__(self, journal: Journal, intercept: Interceptor = direct) -> None:
        self._journal, self._intercept = journal, intercept

    def last(self) -> EventId | None:
        return self._intercept("last", self._journal.last)

    def oldest(self) -> EventId | None:
        return self._intercept("oldest", self._journal.oldest)

    def append(self, rows: pa.Table) -> None:
        self._intercept("append", self._journal.append, rows)

    def entries(self, span: Span) -> Sequence[Entry]:
        return self._intercept("entries", self._journal.entries, span)

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        return self._intercept("events", self._journal.events, ids, most)

    def forget(self, upto: EventId) -> int:
        return self._intercept("forget", self._journal.forget, upto)

    def restart(self, event_id: EventId) -> None:
        self._intercept("restart", self._journal.restart, event_id)


class ForwardingGaps:
    def __init__(self, gaps: Gaps, intercept: Interceptor = direct) -> None:
        self._gaps, self._intercept = gaps, intercept

    def recorded(self) -> Sequence[Gap]:
        return self._intercept("recorded", self._gaps.recorded)

    def add(self, gap: Gap) -> None:
        self._intercept("add", self._gaps.add, gap)

    def settled(self) -> int:
        return self._intercept("settled", self._gaps.settled)

    def settle(self, number: int) -> None:
        self._intercept("settle", self._gaps.settle, number)


class ForwardingEvidenceStore:
    def __init__(self, store: EvidenceStore, intercept: Interceptor = direct) -> None:
        self._store, self._intercept = store, intercept

    def considered(self) -> EventId:
        return self._intercept("considered", self._store.considered)

    def append(self, evidence: Sequence[Evidence], considered: EventId) -> None:
        self._intercept("append", self._store.append, evidence, considered)

    def evidence(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], Listing]:
        return self._intercept("evidence", self._store.evidence, ids)

    def forget(self, upto: EventId) -> int:
        return self._intercept("forget", self._store.forget, upto)

    def restart(self, event_id: EventId) -> None:
        self._intercept("restart", self._store.restart, event_id)


class ForwardingEventFiles:
    def __init__(self, event_files: EventFiles, intercept: Interceptor = direct) -> None:
        self._event_files, self._intercept = event_files, intercept

    def files(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], FilesOfEvent]:
        return self._intercept("files", self._event_files.files, ids)


class ForwardingPins:
    def __init__(self, pins: Pins, intercept: Interceptor = direct) -> None:
        self._pins, self._intercept = pins, intercept

    def keep(self, event_id: EventId, location: str, listing: Listing) -> bool:
        return self._intercept("keep", self._pins.keep, event_id, location, listing)

    def at(self, event_id: EventId, location: str) -> str:
        return self._intercept("at", self._pins.at, event_id, location)

    def events(self) -> Sequence[EventId]:
        return self._intercept("events", self._pins.events)

    def usage(self, event_id: EventId) -> tuple[int, int]:
        return self._intercept("usage", self._pins.usage, event_id)

    def release(self, events: Sequence[EventId]) -> None:
        self._intercept("release", self._pins.release, events)


class ForwardingScans:
    def __init__(self, scans: Scans, intercept: Interceptor = direct) -> None:
        self._scans, self._intercept = scans, intercept

    def last(self) -> int:
        return self._intercept("last", self._scans.last)

    def append(self, scans: Sequence[Scan]) -> int:
        return self._intercept("append", self._scans.append, scans)

    def entries(self, after: int) -> Sequence[Entry]:
        return self._intercept("entries", self._scans.entries, after)

    def listings(self, numbers: Iterable[int]) -> Mapping[tuple[int, str], Listing]:
        return self._intercept("listings", self._scans.listings, numbers)

    def forget(self, upto: int) -> int:
        return self._intercept("forget", self._scans.forget, upto)

    def remembered(self) -> Memory:
        return self._intercept("remembered", self._scans.remembered)

    def remember(self, memory: Memory) -> None:
        self._intercept("remember", self._scans.remember, memory)


class ForwardingCommits:
    def __init__(self, commits: Commits, intercept: Interceptor = direct) -> None:
        self._commits, self._intercept = commits, intercept

    def upto(self) -> EventId:
        return self._intercept("upto", self._commits.upto)

    def append(self, commits: Sequence[AcidCommit], upto: EventId) -> None:
        self._intercept("append", self._commits.append, commits, upto)

    def commits(self, span: Span) -> Sequence[AcidCommit]:
        return self._intercept("commits", self._commits.commits, span)

    def forget(self, upto: EventId) -> int:
        return self._intercept("forget", self._commits.forget, upto)

    def restart(self, event_id: EventId) -> None:
        self._intercept("restart", self._commits.restart, event_id)

    def remembered(self) -> TransactionMemory | None:
        return self._intercept("remembered", self._commits.remembered)

    def remember(self, memory: TransactionMemory) -> None:
        self._intercept("remember", self._commits.remember, memory)


class ForwardingReplicatedTransactions:
    def __init__(self, transactions: ReplicatedTransactions, intercept: Interceptor = direct) -> None:
        self._transactions, self._intercept = transactions, intercept

    def open(self, number: int) -> TransactionId:
        return self._intercept("open", self._transactions.open, number)

    def allocate(self, number: int, table: TableName, write_id: int) -> None:
        self._intercept("allocate", self._transactions.allocate, number, table, write_id)

    def commit(self, number: int, mark: CommitMark | None = None) -> None:
        self._intercept("commit", self._transactions.commit, number, mark)

    def roll_back(self, number: int) -> None:
        self._intercept("roll_back", self._transactions.roll_back, number)


class ForwardingLedger:
    def __init__(self, ledger: Ledger, intercept: Interceptor = direct) -> None:
        self._ledger, self._intercept = ledger, intercept

    def last_epoch(self) -> Epoch | None:
        return self._intercept("last_epoch", self._ledger.last_epoch)

    def epochs(self, after: int = 0) -> Sequence[Epoch]:
        return self._intercept("epochs", self._ledger.epochs, after)

    def objects(self, epoch: int) -> Sequence[ObjectRow]:
        return self._intercept("objects", self._ledger.objects, epoch)

    def publish(self, epoch: Epoch, objects: Sequence[ObjectRow], tables: Sequence[StateRow]) -> None:
        self._intercept("publish", self._ledger.publish, epoch, objects, tables)

    def tables(self) -> Mapping[StateKey, StateRow]:
        return self._intercept("tables", self._ledger.tables)

    def put_tables(self, rows: Sequence[StateRow]) -> None:
        self._intercept("put_tables", self._ledger.put_tables, rows)

    def remove_tables(self, keys: Sequence[StateKey]) -> None:
        self._intercept("remove_tables", self._ledger.remove_tables, keys)

    def records(self) -> Sequence[Record]:
        return self._intercept("records", self._ledger.records)

    def put_records(self, records: Sequence[Record]) -> None:
        self._intercept("put_records", self._ledger.put_records, records)

    def remove_records(self, keys: Sequence[RecordKey]) -> None:
        self._intercept("remove_records", self._ledger.remove_records, keys)

    def latest_objects(self, keys: Iterable[tuple[str, str, str]]) -> Mapping[tuple[str, str, str], ObjectRow]:
        return self._intercept("latest_objects", self._ledger.latest_objects, keys)

    def headers(self, upto: int) -> Sequence[ObjectRow]:
        return self._intercept("headers", self._ledger.headers, upto)

    def rows_of(self, names: Collection[TableName], upto: int) -> Sequence[ObjectRow]:
        return self._intercept("rows_of", self._ledger.rows_of, names, upto)

    def places(self) -> Iterator[PlaceRow]:
        return self._intercept("places", self._ledger.places)

    def forget(self, before_epoch: int) -> int:
        return self._intercept("forget", self._ledger.forget, before_epoch)


class ForwardingLeases:
    def __init__(self, leases: Leases, intercept: Interceptor = direct) -> None:
        self._leases, self._intercept = leases, intercept

    def newest(self) -> Generation | None:
        return self._intercept("newest", self._leases.newest)

    def take(self, generation: Generation) -> None:
        self._intercept("take", self._leases.take, generation)

    def renew(self, generation: Generation) -> None:
        self._intercept("renew", self._leases.renew, generation)

    def forget(self, below: int) -> None:
        self._intercept("forget", self._leases.forget, below)
