"""The objects of a metastore, read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from calque.adapters.metastore import messages
from calque.adapters.metastore.calls import HiveCalls
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.messages import (
    AllConstraintsResult,
    CallUnknown,
    ColumnConstraintsRequest,
    ConstraintsRequest,
    ForeignKeysRequest,
    FunctionsResult,
    PartitionsStatisticsRequest,
    PartitionsStatisticsResult,
    TableRequest,
    TableResult,
    TablesRequest,
    TablesResult,
    TableStatisticsRequest,
    TableStatisticsResult,
)
from calque.errors import Unavailable
from calque.model.facets import (
    CONSTRAINTS,
    ColumnStatistics,
    Constraint,
    ForeignKey,
    PrimaryKey,
    Statistics,
)
from calque.model.hive import Database, Function, Partition, Table
from calque.model.names import TableName, named_values, partition_name, partition_values, table_name

ALL = -1
SHORT = (1 << 15) - 1
"""The greatest limit that a call can carry."""
LIMITED = "limit.partition.request"
"""The setting by which a server refuses to give more partitions at once, as its answer names it."""


class HiveReader:
    """The port `ports.CatalogReader` over Thrift. A missing object is answered as missing, never by an error."""

    def __init__(self, client: Client) -> None:
        self.client, self.calls = client, HiveCalls(client)

    def identity(self) -> str:
        try:
            return str(self.calls.call(messages.GET_ID) or "")
        except CallUnknown:
            return ""

    def databases(self) -> Sequence[str]:
        return self.calls.call(messages.GET_ALL_DATABASES) or ()

    def tables(self, database: str) -> Sequence[str]:
        return self.calls.found(messages.GET_ALL_TABLES, database) or ()

    def functions(self, database: str) -> Sequence[str]:
        """Return the functions' names in lower case, by which they are known. 3.1 lists them as they were written
        (`core.events.kept_names`)."""
        return tuple(name.lower() for name in self.calls.found(messages.GET_FUNCTIONS, database, "*") or ())

    def database(self, name: str) -> Database | None:
        database: Database | None = self.calls.found(messages.GET_DATABASE, name)
        return database

    def table(self, name: TableName) -> Table | None:
        result: TableResult | None = self.calls.found(messages.GET_TABLE, TableRequest(*name))
        return result.table if result else None

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        results: Iterator[TablesResult | None] = self.calls.found_many(
            names, messages.GET_TABLES, lambda batch: (TablesRequest(database, batch),)
        )
        return {table.name: table for result in results if result for table in result.tables}

    def function(self, name: TableName) -> Function | None:
        function: Function | None = self.calls.found(messages.GET_FUNCTION, *name)
        if function is None and any(map(spelled, self.calls.found(messages.GET_FUNCTIONS, *name) or ())):
            every: FunctionsResult = self.calls.call(messages.GET_ALL_FUNCTIONS)
            return next((one for one in every.functions or () if table_name(one.database, one.name) == name), None)
        return function

    def partition_names(self, name: TableName) -> Sequence[str]:
        return self.calls.found(messages.GET_PARTITION_NAMES, *name, ALL) or ()

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        most = min(most, SHORT - 1)
        try:
            partitions = self.calls.found(messages.GET_PARTITIONS, table.database, table.name, most + 1) or ()
        except Unavailable as error:
            if LIMITED in error.why:
                return None
            raise
        keys = [key.name for key in table.partition_keys or ()]
        well_formed = (partition for partition in partitions if len(partition.values) == len(keys))
        return {partition_name(keys, one.values): one for one in well_formed} if len(partitions) <= most else None

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        by_values = {partition_values(one): one for one in names}
        results = self.calls.found_many(names, messages.GET_PARTITIONS_BY_NAMES, lambda batch: (*name, batch))
        return {
            by_values[values]: partition
            for partitions in results
            for partition in partitions or ()
            if (values := named_values(partition.values)) in by_values
        }

    def constraints(self, name: TableName) -> Sequence[Constraint]:
        if messages.GET_ALL_CONSTRAINTS not in self.calls.lacking:
            try:
                result: AllConstraintsResult | None = self.calls.found(
                    messages.GET_ALL_CONSTRAINTS, ConstraintsRequest(*name)
                )
            except CallUnknown:
                self.calls.lacking.add(messages.GET_ALL_CONSTRAINTS)
            else:
                if result is None:
                    return ()
                every = result.constraints
                lists = (
                    every.primary_keys,
                    every.unique_keys,
                    every.not_null,
                    every.default_values,
                    every.checks,
                    every.foreign_keys,
                )
                return [row for rows in lists for row in rows or ()]
        return [row for kind in CONSTRAINTS for row in self._rows(kind, name)]

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]:
        result = self.calls.found(messages.GET_CONSTRAINTS[ForeignKey], ForeignKeysRequest(*name))
        return result.rows or () if result else ()

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        if not columns:
            return {}
        request = TableStatisticsRequest(*name, tuple(columns))
        result: TableStatisticsResult | None = self.calls.found(messages.GET_TABLE_STATISTICS, request)
        return by_column(result.columns) if result else {}

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        results: Iterator[PartitionsStatisticsResult | None] = self.calls.found_many(
            partitions if columns else (),
            messages.GET_PARTITIONS_STATISTICS,
            lambda batch: (PartitionsStatisticsRequest(*name, tuple(columns), batch),),
        )
        return {
            partition: by_column(rows) for result in results if result for partition, rows in result.partitions.items()
        }

    def _rows(self, kind: type[Constraint], name: TableName) -> Sequence[Constraint]:
        request: object
        if kind is PrimaryKey:
            request = ConstraintsRequest(*name)
        elif kind is ForeignKey:
            request = ForeignKeysRequest(None, None, *name)
        else:
            request = ColumnConstraintsRequest(*name)
        result = self.calls.found(messages.GET_CONSTRAINTS[kind], request)
        return result.rows or () if result else ()


def spelled(name: str) -> bool:
    """Return whether the server keeps a function's name with capitals. 3.1 then finds the function under no name."""
    return name != name.lower()


def by_column(rows: Sequence[ColumnStatistics]) -> Statistics:
    return {row.column: row for row in rows}
