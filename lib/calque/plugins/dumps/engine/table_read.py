"""The exact read of one table for a dump, into the spool.

A table that was read before is read again only as far as events touched it since. A large table is read by pages of its
partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from calque.core.plan.limits import batches
from calque.core.states.facets import columns_of, of_columns
from calque.engine.sides.sides import SourceSide
from calque.engine.source.exact_read import (
    AllPartitionsChanged,
    ExactTable,
    TableIsLarge,
    TableIsTooBusy,
    listed,
    read_exact,
    read_some,
)
from calque.engine.source.stable_listings import UnsureDirectories
from calque.model.facets import ENGINE, AnalyzedColumns, AnalyzedObject, Constraint, Statistics
from calque.model.files import Listing
from calque.model.hive import Partition, Table, is_partitioned, is_view, location_of
from calque.model.names import EventId, TableName
from calque.plugins.dumps.core.event_contents import reason_against
from calque.plugins.dumps.core.metadata import dumped_partition, dumped_table
from calque.plugins.dumps.engine.spool import Spool, SpooledContent

PAGE = 1000
"""Partitions of a large table that are held at a time."""
ATTEMPTS = 5
COLUMN_STATISTICS = "COLUMN_STATS"
"""The text in the parameter COLUMN_STATS_ACCURATE of an object whose columns have statistics."""


@dataclass(slots=True)
class ReadTable:
    """A table as it was at event `exact_at`; `table` is None where there was none. `began_at` and `ended_at` are the
    newest events before and after its facets (and with `is_header_only` its header) were read: the read may or may not
    have the changes of events between them. `definition` is the table's text in the dump; its partitions and files are
    in the spool. `reason` says why the table is no part of the dump, and is empty where it is one. `only_again`: the
    next read of the table may be of what events touched since; else all of it is read."""

    name: TableName
    exact_at: EventId
    began_at: EventId
    ended_at: EventId
    table: Table | None = None
    definition: str = ""
    constraints: tuple[Constraint, ...] = ()
    reason: str = ""
    only_again: bool = True
    is_header_only: bool = False


def is_external(table: Table) -> bool:
    return table.type == "EXTERNAL_TABLE"


@dataclass(frozen=True, slots=True)
class TableReader:
    """The reader of tables of one dump into its spool. `with_files`: the dump has the data of managed tables.
    `with_partitions`: the dump has partitions; one of metadata alone has none, as Hive's. `with_external`: the dump has
    external tables."""

    source: SourceSide
    spool: Spool
    with_files: bool
    with_partitions: bool
    with_external: bool

    def read(self, name: TableName, before: ReadTable | None = None) -> ReadTable:
        """Read the table exactly, its partitions and files into the spool. `before` is the read before this one, if
        there was one: then only what events touched since is read again, where that is enough. A table that can't be
        dumped has the reason in the result. Raises as `read_exact` does."""
        began_at = self.source.log.current()
        header = self.source.catalog.table(name)
        reason = self.why_not(header)
        constraints = tuple(self.source.catalog.constraints(name))
        if header is None or reason or is_view(header) or not self.with_partitions:
            self.spool.clear(name)
            ended_at = self.source.log.current()
            definition = dumped_table(header, ended_at) if header is not None else ""
            texts = (definition, constraints, reason)
            return ReadTable(name, ended_at, began_at, ended_at, header, *texts, is_header_only=True)
        statistics = self.statistics_of(name, header)
        ended_at = self.source.log.current()
        with_files = self.with_files and not is_external(header)
        exact = self.read_again(name, before, with_files) or self.read_whole(name, with_files)
        if exact.table is None or (reason := self.why_not(exact.table)) or is_view(exact.table):
            self.spool.clear(name)
        else:
            self.put(exact)
        definition = dumped_table(exact.table, exact.exact_at, statistics) if exact.table is not None else ""
        return ReadTable(name, exact.exact_at, began_at, ended_at, exact.table, definition, constraints, reason)

    def why_not(self, table: Table | None) -> str:
        if table is None:
            return ""
        if is_external(table) and not self.with_external:
            return "external"
        return reason_against(table)

    def read_again(self, name: TableName, before: ReadTable | None, with_files: bool) -> ExactTable | None:
        """Return what events touched of the table since the read `before`; None where all of it has to be read."""
        if before is None or before.table is None or before.reason or not before.only_again:
            return None
        try:
            return read_some(self.source, name, (), before.exact_at, with_files)
        except AllPartitionsChanged:
            return None

    def read_whole(self, name: TableName, with_files: bool) -> ExactTable:
        self.spool.clear(name)
        try:
            return read_exact(self.source, name, with_files, most=PAGE)
        except TableIsLarge:
            return self.read_by_pages(name, with_files)

    def read_by_pages(self, name: TableName, with_files: bool) -> ExactTable:
        """Read all partitions into the spool, page by page. Return the table with those partitions that events touched
        meanwhile, exact at one event. Raises `TableIsTooBusy`, `Unavailable`."""
        for _ in range(ATTEMPTS):
            low, unsure, unsettled = self.source.log.current(), UnsureDirectories(), set[str]()
            self.spool.clear(name)
            for names in batches(self.source.catalog.partition_names(name), PAGE):
                started_ns = self.source.clock.now_ns()
                partitions = self.source.catalog.partitions(name, names)
                places = {each: place for each, one in partitions.items() if (place := location_of(one)) is not None}
                listings: Mapping[str, Listing] = {}
                if with_files:
                    listings, unsettled_here = listed(self.source, places, started_ns, unsure)
                    unsettled |= unsettled_here
                self.put_partitions(name, partitions, listings, low)
            try:
                return read_some(self.source, name, unsettled, low, with_files)
            except AllPartitionsChanged:
                continue
        raise TableIsTooBusy(f"{name} is changed as a whole while its partitions are read")

    # Into the spool

    def put(self, exact: ExactTable) -> None:
        table = exact.table
        assert table is not None
        if not is_partitioned(table):
            if exact.only is None:
                self.spool.clear(exact.name)
            if (listing := exact.listings.get("")) is not None:
                self.spool.put(exact.name, [SpooledContent("", "", listing.location, listing.files, {})])
            return
        if exact.only is not None:
            self.spool.remove(exact.name, exact.only - exact.partitions.keys())
        for names in batches(sorted(exact.partitions), PAGE):
            partitions = {name: exact.partitions[name] for name in names}
            self.put_partitions(exact.name, partitions, exact.listings, exact.exact_at)

    def put_partitions(
        self, name: TableName, partitions: Mapping[str, Partition], listings: Mapping[str, Listing], event_id: EventId
    ) -> None:
        self.spool.put(name, self.contents(name, partitions, listings, event_id))

    def contents(
        self, name: TableName, partitions: Mapping[str, Partition], listings: Mapping[str, Listing], event_id: EventId
    ) -> Iterator[SpooledContent]:
        statistics = self.statistics_of_partitions(name, partitions)
        for partition, definition in partitions.items():
            text = dumped_partition(definition, event_id, statistics.get(partition))
            files = listings[partition].files if partition in listings else ()
            yield SpooledContent(partition, text, location_of(definition) or "", files, {})

    # Column statistics

    def statistics_of(self, name: TableName, table: Table) -> AnalyzedColumns | None:
        if not has_statistics(table):
            return None
        found = self.source.catalog.table_statistics(name, [column.name for column in columns_of(table)])
        return analyzed(AnalyzedObject(True, *name), of_columns(found, table))

    def statistics_of_partitions(
        self, name: TableName, partitions: Mapping[str, Partition]
    ) -> Mapping[str, AnalyzedColumns]:
        names: Sequence[str] = [each for each, partition in partitions.items() if has_statistics(partition)]
        if not names:
            return {}
        columns = [column.name for column in columns_of(partitions[names[0]])]
        found = self.source.catalog.partition_statistics(name, columns, names)
        pairs = (
            (each, analyzed(AnalyzedObject(False, *name, each), of_columns(found[each], partitions[each])))
            for each in found
            if each in partitions
        )
        return {each: statistics for each, statistics in pairs if statistics is not None}


def has_statistics(thing: Table | Partition) -> bool:
    return COLUMN_STATISTICS in (thing.parameters or {}).get("COLUMN_STATS_ACCURATE", "")


def analyzed(of: AnalyzedObject, statistics: Statistics) -> AnalyzedColumns | None:
    return AnalyzedColumns(of, tuple(statistics.values()), ENGINE) if statistics else None
