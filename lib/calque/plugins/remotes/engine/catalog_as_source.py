"""A catalog without a log in the form in which the engine reads sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calque.model.facets import Constraint, ForeignKey, Statistics
from calque.model.hive import Database, Function, Partition, Table
from calque.model.names import TableName
from calque.plugins.remotes.ports import RemoteCatalog

NO_STATISTICS: Statistics = {}


class RemoteReader:
    """A catalog without a log as `ports.CatalogReader`. It has no functions, constraints or statistics."""

    def __init__(self, catalog: RemoteCatalog) -> None:
        self._catalog = catalog

    def identity(self) -> str:
        return self._catalog.identity()

    def databases(self) -> Sequence[str]:
        return self._catalog.databases()

    def tables(self, database: str) -> Sequence[str]:
        return sorted(self._catalog.versions(database))

    def functions(self, database: str) -> Sequence[str]:  # noqa: ARG002
        return ()

    def database(self, name: str) -> Database | None:
        return self._catalog.database(name)

    def table(self, name: TableName) -> Table | None:
        return self._catalog.table(name)

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        tables = {name: self._catalog.table(TableName(database, name)) for name in names}
        return {name: table for name, table in tables.items() if table is not None}

    def function(self, name: TableName) -> Function | None:  # noqa: ARG002
        return None

    def partition_names(self, name: TableName) -> Sequence[str]:
        return sorted(self._all(name))

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        partitions = self._catalog.partitions(table)
        return partitions if len(partitions) <= most else None

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        partitions = self._all(name)
        return {one: partitions[one] for one in names if one in partitions}

    def constraints(self, name: TableName) -> Sequence[Constraint]:  # noqa: ARG002
        return ()

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]:  # noqa: ARG002
        return ()

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:  # noqa: ARG002
        return NO_STATISTICS

    def partition_statistics(
        self,
        name: TableName,  # noqa: ARG002
        columns: Sequence[str],  # noqa: ARG002
        partitions: Sequence[str],  # noqa: ARG002
    ) -> Mapping[str, Statistics]:
        return {}

    def _all(self, name: TableName) -> Mapping[str, Partition]:
        table = self._catalog.table(name)
        return self._catalog.partitions(table) if table is not None and table.partition_keys else {}
