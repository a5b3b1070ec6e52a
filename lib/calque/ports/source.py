"""The reads of a source: of its notification log and of its catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from calque.model.facets import Constraint, ForeignKey, Statistics
from calque.model.hive import Database, Function, Partition, Table
from calque.model.journal import Event
from calque.model.names import EventId, TableName


class EventLog(Protocol):
    """The notification log of the source."""

    def current(self) -> EventId:
        """Return the newest event id; 0 for an empty log."""

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        """Return at most `limit` events with ids above `after`, ascending, unfiltered.

        There are fewer where that many would weigh too much, but at least one where there is one: only an empty answer
        is the log's end. An answer of fewer than `limit` events has all events of the last one's id. The caller checks
        that ids follow without holes.
        """


class ClosableLog(EventLog, Protocol):
    """A log that holds a connection of its own."""

    def close(self) -> None: ...


class CatalogReader(Protocol):
    """The reads of a metastore. None of them is a snapshot: bracket them with event ids (measured: one in twenty was
    torn)."""

    def identity(self) -> str:
        """Return the id that the metastore keeps of itself, the same at all its addresses; empty where it has none."""

    def databases(self) -> Sequence[str]: ...

    def tables(self, database: str) -> Sequence[str]:
        """Return the names of tables and views; empty when the database is missing."""

    def functions(self, database: str) -> Sequence[str]: ...

    def database(self, name: str) -> Database | None: ...

    def table(self, name: TableName) -> Table | None: ...

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        """Return those of the database's named tables that exist, by name, as `table` gives each; read in batches."""

    def function(self, name: TableName) -> Function | None: ...

    def partition_names(self, name: TableName) -> Sequence[str]:
        """Return the names of all partitions (Hive's escaped form); empty when the table is missing."""

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        """Return all partitions of `table`, which says its name and keys, by name, in one call. None where there are
        more than `most`, or more than the server gives at once; empty when the table is missing. Partitions that do not
        fit the keys are left out, because they belong to another table of the name."""

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        """Return the named partitions that exist, by name, read in batches; empty when the table is missing."""

    def constraints(self, name: TableName) -> Sequence[Constraint]:
        """Return the table's own constraints, among them foreign keys whose child it is; empty when the table is
        missing."""

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]:
        """Return the foreign keys whose parent the table is."""

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        """Return the statistics of those of the table's columns that have some, by column."""

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        """Return the column statistics of the named partitions, by partition, read in batches. Partitions without any
        are left out."""
