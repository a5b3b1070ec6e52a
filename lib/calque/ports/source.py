"""What is read of a source: its notification log and its catalog."""

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
        """The newest event id; 0 for an empty log."""

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        """At most `limit` events with ids above `after`, ascending, unfiltered: fewer where many would weigh too much,
        but one where there is one, so that only an empty answer is the log's end. Where there are fewer than `limit`,
        all events of the last one's id are among them. Contiguity is the caller's to check."""


class ClosableLog(EventLog, Protocol):
    """One that holds a connection of its own."""

    def close(self) -> None: ...


class CatalogReader(Protocol):
    """Reads of a metastore. None of them is a snapshot: bracket them with event ids (measured: one in twenty was
    torn)."""

    def identity(self) -> str:
        """The id that the metastore keeps of itself, the same whatever its address; empty where it has none."""

    def databases(self) -> Sequence[str]: ...

    def tables(self, database: str) -> Sequence[str]:
        """Names of tables and views; empty when the database is missing."""

    def functions(self, database: str) -> Sequence[str]: ...

    def database(self, name: str) -> Database | None: ...

    def table(self, name: TableName) -> Table | None: ...

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        """Those of the database's named tables that exist, by name, as `table` gives each; read in batches."""

    def function(self, name: TableName) -> Function | None: ...

    def partition_names(self, name: TableName) -> Sequence[str]:
        """Names of all partitions (Hive's escaped form); empty when the table is missing."""

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        """All partitions of the table, which says its name and keys, by name, in one call. None where there are more
        than `most`, or than the server gives at once; empty when the table is missing. Partitions that do not fit the
        keys are left out: they are another table's of the name."""

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        """The named partitions that exist, by name, read in batches; empty when the table is missing."""

    def constraints(self, name: TableName) -> Sequence[Constraint]:
        """The table's own, among them foreign keys whose child it is; empty when the table is missing."""

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]:
        """Foreign keys whose parent the table is."""

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        """Statistics of those of the table's columns that have some."""

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        """The same of the named partitions, by name, read in batches; those that have none are left out."""
