"""Looks at a catalog without a log, and writes what it finds as a log of our own.

A look asks each database that links take for the versions of its tables, and reads those whose version is another one
than before. Partitions have no versions: those of partitioned tables are read at each look. What is found of one table
is one step of the log. A look that fails in its midst has recorded what it found until then.
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
from calque.plugins.remotes.core.compare_looks import (
    KnownTable,
    database_changes,
    digests_of,
    first_seen,
    table_changes,
)
from calque.plugins.remotes.ports import LookedDatabase, LookedTable, Looks, RemoteCatalog
from calque.ports import Clock

LOG = logging.getLogger(__name__)
AT_ONCE = 100
"""Tables that are recorded together."""
THREADS = 8
Versions = Mapping[str, str]
"""Of a database's tables, by name."""
TRIES = 5
"""How often a table is read that changes while it is read."""


@dataclass(slots=True)
class Looker:
    """`admissions` says what links take at this moment. One thread looks."""

    catalog: RemoteCatalog
    looks: Looks
    admissions: Callable[[], Sequence[Admission]]
    clock: Clock
    refused: dict[TableName, str] = field(default_factory=dict)
    """Tables that can't be had, with the reason: told once."""

    def look(self, stopped: Callable[[], bool] = lambda: False) -> EventId:
        """Look once; the newest event id. Raises `Unavailable`, `AccessRefused`, `Refused`."""
        admissions = self.admissions()
        known = self.looks.databases()
        there = [name for name in self.catalog.databases() if any(one.touches_database(name) for one in admissions)]
        databases = [*self.databases(admissions, known, there)]
        newest = self.append(databases, ()) if databases else self.looks.current()
        for name in sorted({*there, *self.looks.databases_with_tables()}):
            versions = self.catalog.versions(name)
            for names in batches(sorted(self.suspects(name, versions, admissions)), AT_ONCE):
                if stopped():
                    return newest
                tables = self.tables(name, names, versions, admissions)
                if tables:
                    newest = self.append((), tables)
        return newest

    def append(self, databases: Sequence[LookedDatabase], tables: Sequence[LookedTable]) -> EventId:
        return self.looks.append(self.clock.now_ns() // 10**9, databases, tables)

    def databases(
        self, admissions: Sequence[Admission], known: Mapping[str, Database], there: Iterable[str]
    ) -> Iterator[LookedDatabase]:
        """Those that links take, and are other ones than before."""
        taken = {name for name in {*known, *there} if any(one.takes_database(name) for one in admissions)}
        for name in sorted({*known, *taken}):
            after = self.catalog.database(name) if name in taken else None
            messages = database_changes(known.get(name), after, name) if name in taken else []
            if messages or name not in taken:
                yield LookedDatabase(name, after, tuple(messages))

    def suspects(self, database: str, versions: Versions, admissions: Sequence[Admission]) -> set[str]:
        """Tables that are new, gone, not asked for any more, or that may have changed."""
        known, partitioned = self.looks.versions(database), self.looks.partitioned(database)
        taken = {name for name in {*versions, *known} if takes(admissions, TableName(database, name))}
        return {
            name
            for name in {*taken, *known}
            if name not in taken or not versions.get(name) or versions[name] != known.get(name) or name in partitioned
        }

    def tables(
        self, database: str, names: Sequence[str], versions: Versions, admissions: Sequence[Admission]
    ) -> list[LookedTable]:
        def looked(name: str) -> LookedTable | None:
            table = TableName(database, name)
            return self.table(table, versions.get(name, "")) if takes(admissions, table) else LookedTable(table, None)

        with ThreadPoolExecutor(THREADS, "look") as pool:
            return [table for table in pool.map(looked, names) if table is not None]

    def table(self, name: TableName, version: str) -> LookedTable | None:
        """What is new of the table; None for nothing."""
        before = self.looks.table(name)
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
            return None if after is None else LookedTable(name, known, (first_seen(name),), tuple(digests))
        messages = tuple(table_changes(before, after, digests, partitions))
        if not messages and version == before.version:
            return None
        changed = tuple(one for one, digest in digests.items() if before.partitions.get(one) != digest)
        return LookedTable(name, known, messages, changed, tuple(before.partitions.keys() - digests.keys()))

    def is_as_before(self, before: KnownTable, version: str) -> bool:
        """Whether version and partitions say so."""
        if not version or version != before.version or not before.table.partition_keys:
            return False
        return digests_of(self.catalog.partitions(before.table)) == before.partitions

    def read(self, name: TableName) -> tuple[Table | None, Mapping[str, Partition]]:
        """The table and its partitions, of one moment as far as its definition tells."""
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
