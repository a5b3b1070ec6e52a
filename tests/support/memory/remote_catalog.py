"""A catalog without a log, in memory: a small world that is written to while others look at it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from calque.core.events.log_messages import key_names
from calque.errors import Unavailable
from calque.model.hive import Database, Partition, Table
from calque.model.names import TableName, partition_name


@dataclass(slots=True)
class MemoryCatalog:
    """`plugins.remotes.ports.RemoteCatalog`, and what writes to it. While it is `away` nothing answers. `has_versions`:
    tables have versions, which partitions do not change."""

    id: str = "memory"
    has_versions: bool = True
    away: bool = False
    calls: int = 0
    """How often it was asked."""
    _databases: dict[str, Database] = field(default_factory=dict)
    _tables: dict[TableName, tuple[int, Table]] = field(default_factory=dict)
    _partitions: dict[TableName, dict[str, Partition]] = field(default_factory=dict)
    _writes: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    # What is looked at

    def identity(self) -> str:
        return self.id

    def databases(self) -> Sequence[str]:
        self._answer()
        with self._lock:
            return sorted(self._databases)

    def database(self, name: str) -> Database | None:
        self._answer()
        return self._databases.get(name)

    def versions(self, database: str) -> Mapping[str, str]:
        self._answer()
        with self._lock:
            return {
                name.table: str(version) if self.has_versions else ""
                for name, (version, _) in self._tables.items()
                if name.database == database
            }

    def table(self, name: TableName) -> Table | None:
        self._answer()
        version_and_table = self._tables.get(name)
        return version_and_table[1] if version_and_table is not None else None

    def partitions(self, table: Table) -> Mapping[str, Partition]:
        self._answer()
        with self._lock:
            return dict(self._partitions.get(TableName(table.database, table.name), {}))

    def close(self) -> None:
        """There is nothing to let go of."""

    def _answer(self) -> None:
        self.calls += 1
        if self.away:
            raise Unavailable("The catalog in memory does not answer", "It is away", "Have it come back")

    # What writes to it

    def put_database(self, database: Database) -> None:
        self._databases[database.name] = database

    def drop_database(self, name: str) -> None:
        """With its tables."""
        with self._lock:
            for table in [table for table in self._tables if table.database == name]:
                self.drop_table(table)
            del self._databases[name]

    def create_table(self, table: Table) -> None:
        """A new one, in place of one that is there."""
        with self._lock:
            self._writes += 1
            name = TableName(table.database, table.name)
            self._tables[name] = self._writes, replace(table, create_time=self._writes)
            self._partitions[name] = {}

    def alter_table(self, table: Table) -> None:
        with self._lock:
            self._writes += 1
            name = TableName(table.database, table.name)
            made = self._tables[name][1].create_time
            self._tables[name] = self._writes, replace(table, create_time=made)

    def drop_table(self, name: TableName) -> None:
        with self._lock:
            del self._tables[name], self._partitions[name]

    def put_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        """Those of the same values are replaced."""
        with self._lock:
            keys = key_names(self._tables[name][1])
            self._partitions[name] |= {partition_name(keys, one.values): one for one in partitions}

    def drop_partitions(self, name: TableName, names: Sequence[str]) -> None:
        with self._lock:
            for one in names:
                self._partitions[name].pop(one, None)
