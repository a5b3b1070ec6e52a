"""Looks at a catalog without a log, whose findings become a log that calque keeps.

A look asks each database that links take for the versions of its tables, and reads the tables whose version is another
one than before. Partitions have no versions: those of partitioned tables are read at each look. All that is found of
one table is one step of the log. A look that fails half-way has recorded what it found until then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from calque.core.plan.limits import batches
from calque.core.policy.admit import Admission
from calque.errors import Refused
from calque.model.hive import Database, Partition, Table
from calque.model.names import EventId, TableName
from calque.plugins.remotes.core.compare_polls import (
    KnownTable,
    database_changes,
    digests_of,
    first_seen,
    table_changes,
)
from calque.plugins.remotes.ports import PolledDatabase, PolledTable, PollHistory, RemoteCatalog
from calque.ports import Clock

LOG = logging.getLogger(__name__)
AT_ONCE = 100
"""The most tables that one transaction records."""
THREADS = 8
Versions = Mapping[str, str]
"""The versions of a database's tables, by table name."""
TRIES = 5
"""The most times that a table is read which changes while it is read."""


@dataclass(slots=True)
class CatalogPoller:
    """The looks at one catalog. `admissions` returns the policies that say which objects links take at the moment. Only
    one thread looks."""

    catalog: RemoteCatalog
    history: PollHistory
    admissions: Callable[[], Sequence[Admission]]
    clock: Clock
    refused: dict[TableName, str] = field(default_factory=dict)
    """Tables that can't be read, with the reason. A reason is logged once."""

    def poll(self, stopped: Callable[[], bool] = lambda: False) -> EventId:
        """Look at the catalog once, record what is new, and return the newest event id of the log. End early where
        `stopped` returns True. Raises `Unavailable`, `AccessRefused` and `Refused` as
        `plugins.remotes.ports.RemoteCatalog` does."""
        admissions = self.admissions()
        known = self.history.databases()
        there = [name for name in self.catalog.databases() if any(one.touches_database(name) for one in admissions)]
        databases = [*self.databases(admissions, known, there)]
        newest = self.append(databases, ()) if databases else self.history.current()
        for name in sorted({*there, *self.history.databases_with_tables()}):
            versions = self.catalog.versions(name)
            for names in batches(sorted(self.suspects(name, versions, admissions)), AT_ONCE):
                if stopped():
                    return newest
                tables = self.tables(name, names, versions, admissions)
                if tables:
                    newest = self.append((), tables)
        return newest

    def append(self, databases: Sequence[PolledDatabase], tables: Sequence[PolledTable]) -> EventId:
        return self.history.append(self.clock.now_ns() // 10**9, databases, tables)

    def databases(
        self, admissions: Sequence[Admission], known: Mapping[str, Database], there: Iterable[str]
    ) -> Iterator[PolledDatabase]:
        """Return the databases that links take and that differ from the last look, and those that links do not take any
        more."""
        taken = {name for name in {*known, *there} if any(one.takes_database(name) for one in admissions)}
        for name in sorted({*known, *taken}):
            after = self.catalog.database(name) if name in taken else None
            messages = database_changes(known.get(name), after, name) if name in taken else []
            if messages or name not in taken:
                yield PolledDatabase(name, after, tuple(messages))

    def suspects(self, database: str, versions: Versions, admissions: Sequence[Admission]) -> set[str]:
        """Return the tables of the database that are new or gone, that links do not take any more, or that may have
        changed."""
        known, partitioned = self.history.versions(database), self.history.partitioned(database)
        taken = {name for name in {*versions, *known} if takes(admissions, TableName(database, name))}
        return {
            name
            for name in {*taken, *known}
            if name not in taken or not versions.get(name) or versions[name] != known.get(name) or name in partitioned
        }

    def tables(
        self, database: str, names: Sequence[str], versions: Versions, admissions: Sequence[Admission]
    ) -> list[PolledTable]:
        def looked(name: str) -> PolledTable | None:
            table = TableName(database, name)
            return self.table(table, versions.get(name, "")) if takes(admissions, table) else PolledTable(table, None)

        with ThreadPoolExecutor(THREADS, "look") as pool:
            return [table for table in pool.map(looked, names) if table is not None]

    def table(self, name: TableName, version: str) -> PolledTable | None:
        """Return what is new of the table; None where nothing is new. Also None where the table can't be read, which
        `refused` notes."""
        before = self.history.table(name)
        try:
            if before is not None and self.is_as_before(before, version):
                return None
            after, partitions = self.read(name)
        except Refused as refused:
            if self.refused.get(name) != str(refused):
                LOG.warning("%s can't be looked at: %s", name, refused)
            self.refused[name] = str(refused)
            return None
        self.refused.pop(name, None)
        digests = digests_of(partitions)
        known = None if after is None else KnownTable(version, after, digests)
        if before is None:
            return None if after is None else PolledTable(name, known, (first_seen(name),), tuple(digests))
        messages = tuple(table_changes(before, after, digests, partitions))
        if not messages and version == before.version:
            return None
        changed = tuple(one for one, digest in digests.items() if before.partitions.get(one) != digest)
        return PolledTable(name, known, messages, changed, tuple(before.partitions.keys() - digests.keys()))

    def is_as_before(self, before: KnownTable, version: str) -> bool:
        """Tell whether the partitioned table is as the last look found it: version and partitions are the same. The
        result is false for a plain table, and for one without a version."""
        if not version or version != before.version or not before.table.partition_keys:
            return False
        return digests_of(self.catalog.partitions(before.table)) == before.partitions

    def read(self, name: TableName) -> tuple[Table | None, Mapping[str, Partition]]:
        """Return the table and its partitions as of one moment, as far as its definition tells: it was the same before
        and after the partitions were read. Raises `Refused` where the definition differs each time."""
        table = self.catalog.table(name)
        for _ in range(TRIES):
            if table is None or not table.partition_keys:
                return table, {}
            partitions, again = self.catalog.partitions(table), self.catalog.table(name)
            if table == again:
                return table, partitions
            table = again
        raise Refused(f"{name} changes all the time", "It was another one after each reading", "It is tried again")


def takes(admissions: Sequence[Admission], name: TableName) -> bool:
    return any(one.takes(name) for one in admissions)
