"""A target with tied hands: reads are answered as if the effects that are only noted had been made.

Reads see what comes before a window's own hops: rows of the ledger, and what a start or a change of policy makes of
tables, their partitions, and the times of files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from calque.core.layout import join
from calque.engine.failpoints import EFFECTS
from calque.engine.sides.sides import TargetSide
from calque.model.files import Listing
from calque.model.hive import Partition, Table
from calque.model.ledger import StateKey, StateRow, state_key
from calque.model.names import TableName, table_name
from calque.model.records import Record, RecordKey, record_key
from calque.ports import Catalog, Ledger, Storage

Notes = list[tuple[str, tuple[Any, ...]]]
"""Effects that were not made: method and arguments."""


def tied(side: TargetSide, notes: Notes) -> TargetSide:
    """The side with effects that are noted and not made."""
    return TargetSide.of(
        side.policy,
        cast(Catalog, TiedCatalog(side.catalog, "catalog", notes)),
        cast(Ledger, TiedLedger(side.ledger, "ledger", notes)),
        cast(Storage, TiedStorage(side.storage, "storage", notes)),
    )


class Tied:
    """A port whose reads are answered and whose effects are only noted."""

    def __init__(self, port: object, name: str, notes: Notes) -> None:
        self._port, self._notes = cast(Any, port), notes
        self._effects = frozenset(EFFECTS[name])

    def __getattr__(self, method: str) -> Any:
        if method not in self._effects:
            return getattr(self._port, method)
        return lambda *given, **_: self._notes.append((method, given))


class TiedCatalog(Tied):
    """One whose tables are read as they would have been altered, and under the names that they would have: a start and
    a change of policy come before the window."""

    def __init__(self, port: Catalog, name: str, notes: Notes) -> None:
        super().__init__(port, name, notes)
        self._altered: dict[TableName, Table | None] = {}
        self._was: dict[TableName, TableName] = {}
        self._partitions: dict[tuple[TableName, tuple[str, ...]], Partition] = {}

    def table(self, name: TableName) -> Table | None:
        return self._altered[name] if name in self._altered else cast(Table | None, self._port.table(name))

    def headers(self, database: str, tables: Sequence[str]) -> Mapping[str, Table]:
        found = {table: self.table(TableName(database, table)) for table in tables}
        return {table: row for table, row in found.items() if row is not None}

    def partition_names(self, name: TableName) -> Sequence[str]:
        return cast(Sequence[str], self._port.partition_names(self._was.get(name, name)))

    def partitions(self, name: TableName, partitions: Sequence[str]) -> Mapping[str, Partition]:
        was = self._was.get(name, name)
        found = self._port.partitions(was, partitions)
        rows = {key: self._partitions.get((was, part.values), part) for key, part in found.items()}
        return {key: replace(part, database=name.database, table=name.table) for key, part in rows.items()}

    def alter_table(self, name: TableName, table: Table, **_: Any) -> None:
        self._notes.append(("alter_table", (name, table)))
        self._altered[name] = None
        self._altered[to := table_name(table.database, table.name)] = table
        self._was[to] = self._was.get(name, name)

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        self._notes.append(("alter_partitions", (name, partitions)))
        was = self._was.get(name, name)
        self._partitions |= {(was, tuple(partition.values)): partition for partition in partitions}


class TiedStorage(Tied):
    """One whose files have the times that they would have been given."""

    def __init__(self, port: Storage, name: str, notes: Notes) -> None:
        super().__init__(port, name, notes)
        self._times: dict[str, int] = {}

    def date(self, times: Mapping[str, int]) -> None:
        self._times |= times

    def list(self, locations: Sequence[str]) -> Mapping[str, Listing]:
        found: Mapping[str, Listing] = self._port.list(locations)
        return {at: self.dated(listing) for at, listing in found.items()} if self._times else found

    def dated(self, listing: Listing) -> Listing:
        times = {file.path: self._times.get(join(listing.location, file.path)) for file in listing.files}
        files = (replace(file, modified_ns=times[file.path] or file.modified_ns) for file in listing.files)
        return replace(listing, files=tuple(files))


class TiedLedger(Tied):
    """One whose states and records are read as they would have been written."""

    def __init__(self, port: Ledger, name: str, notes: Notes) -> None:
        super().__init__(port, name, notes)
        self._rows = dict(port.tables())
        self._records = {record_key(record): record for record in port.records()}

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
