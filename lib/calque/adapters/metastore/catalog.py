"""The objects of a metastore, read and written.

Each writing method is one Thrift call and one transaction at the server. Comments beside a call say what else the
server does in it on its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calque.adapters.metastore import messages
from calque.adapters.metastore.client import Client, ConnectionLost
from calque.adapters.metastore.faults import INCOMPATIBLE
from calque.adapters.metastore.messages import (
    AddPartitionsRequest,
    AlterTableRequest,
    Call,
    CallUnknown,
    Context,
    CreateTableRequest,
    DropConstraintRequest,
    DropPartitionsRequest,
    PartitionsByName,
    SetStatisticsRequest,
)
from calque.adapters.metastore.reader import HiveReader
from calque.core.plan.limits import ListOperation, batches, check_commit, check_list, lowered
from calque.errors import AlterationRefused, CallFailed, Refused, Unavailable
from calque.model.facets import (
    ENGINE,
    AnalyzedColumns,
    AnalyzedObject,
    ColumnStatistics,
    Constraint,
    ForeignKey,
    Longs,
    Statistics,
)
from calque.model.hive import Database, Function, Partition, Table
from calque.model.names import TableName
from calque.model.policy import TargetCapabilities
from calque.ports import Conflict, TableCommit, TooLarge
from calque.ports.services import COLUMN_CHANGES

STATISTICS_BATCH = 500
"""The partitions whose statistics one call writes: 3.1 makes a transaction of each."""
RENAME_SECONDS = 60.0
"""The seconds after which a rename is given up. A rename changes the table's own row, so that it takes as long for
100,000 partitions as for 1,000: at most 2 s on both servers under heavy load, as `tests/bench/bench_rename.py` measures
it."""

EVENT_PARAMETER = "calque.event"
KEEP_STATISTICS: Mapping[str, str] = {"DO_NOT_UPDATE_STATS": "true"}


class HiveCatalog:
    """The port `ports.Catalog` over Thrift. `abilities` says whether the server has compare-and-swap: `world` finds it
    out."""

    def __init__(self, client: Client, abilities: TargetCapabilities, rename_seconds: float = RENAME_SECONDS) -> None:
        self.client, self._reader = client, HiveReader(client)
        self._calls = self._reader.calls
        self._abilities, self._rename_seconds = abilities, rename_seconds

    def identity(self) -> str:
        return self._reader.identity()

    def abilities(self) -> TargetCapabilities:
        return self._abilities

    def databases(self) -> Sequence[str]:
        return self._reader.databases()

    def tables(self, database: str) -> Sequence[str]:
        return self._reader.tables(database)

    def functions(self, database: str) -> Sequence[str]:
        return self._reader.functions(database)

    def database(self, name: str) -> Database | None:
        return self._reader.database(name)

    def table(self, name: TableName) -> Table | None:
        return self._reader.table(name)

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        return self._reader.headers(database, names)

    def function(self, name: TableName) -> Function | None:
        return self._reader.function(name)

    def partition_names(self, name: TableName) -> Sequence[str]:
        return self._reader.partition_names(name)

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        return self._reader.few_partitions(table, most)

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        return self._reader.partitions(name, names)

    def constraints(self, name: TableName) -> Sequence[Constraint]:
        return self._reader.constraints(name)

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]:
        return self._reader.foreign_keys_to(name)

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        return self._reader.table_statistics(name, columns)

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        return self._reader.partition_statistics(name, columns, partitions)

    def create_database(self, database: Database) -> None:
        self._calls.call(messages.CREATE_DATABASE, database)

    def alter_database(self, name: str, database: Database) -> None:
        # 2.3 keeps description and location as they are and replaces parameters and owner only.
        self._calls.call(messages.ALTER_DATABASE, name, database)

    def drop_database(self, name: str) -> None:
        try:
            self._calls.call(messages.DROP_DATABASE, name, False, False)
        except Unavailable:
            # 2.3 and 3.1 answer a missing database with a NullPointerException.
            if self.database(name) is None:
                raise Conflict(f"database {name} does not exist") from None
            raise

    def create_table(self, table: Table) -> None:
        context = Context(KEEP_STATISTICS)
        self._calls.newest(
            (messages.CREATE_TABLE_REQUEST, CreateTableRequest(table, context)),
            (messages.CREATE_TABLE, table, context),
        )

    def alter_table(self, name: TableName, table: Table, *, cascade: bool = False, expected_event: str = "") -> None:
        context = Context(alter_properties(cascade, expected_event))
        renames = not cascade and (table.database, table.name) != name
        newer = (messages.ALTER_TABLE_REQUEST, AlterTableRequest(*name, table, context))
        older = (messages.ALTER_TABLE, *name, table, context)
        try:
            self._calls.newest(newer, older, self._rename_seconds if renames else None)
        except AlterationRefused as refusal:
            if not INCOMPATIBLE.search(refusal.why):
                raise
            self._change_columns(newer, older, refusal)

    def drop_table(self, name: TableName) -> None:
        self._calls.call(messages.DROP_TABLE, *name, False, Context())

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        request = AddPartitionsRequest(*name, tuple(partitions))
        self._call_list("add_partitions", len(partitions), messages.ADD_PARTITIONS, request)

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        arguments = (*name, tuple(partitions), Context(KEEP_STATISTICS))
        self._call_list("alter_partitions", len(partitions), messages.ALTER_PARTITIONS, *arguments)

    def rename_partition(self, name: TableName, values: Sequence[str], partition: Partition) -> None:
        self._calls.call(messages.RENAME_PARTITION, *name, tuple(values), partition)

    def drop_partitions(self, name: TableName, names: Sequence[str]) -> None:
        request = DropPartitionsRequest(*name, PartitionsByName(tuple(names)))
        self._call_list("drop_partitions", len(names), messages.DROP_PARTITIONS, request)

    def commit_table(self, commit: TableCommit) -> None:  # noqa: ARG002
        """Raise `Refused`: no metastore can commit any difference of a table."""
        check_commit(any_difference=False)

    def contents(self, table: Table, partitions: Sequence[str]) -> None:
        """Return None: no metastore knows the files of a table."""

    def settle(self, table: Table) -> None:
        """Do nothing: each change of a table is one call, which a death can't leave half done."""

    def add_constraints(self, constraints: Sequence[Constraint]) -> None:
        kind, name = type(constraints[0]), TableName(constraints[0].database, constraints[0].table)
        try:
            self._calls.call(messages.ADD_CONSTRAINTS[kind], messages.ROWS[kind](tuple(constraints)))
        except Unavailable as error:
            # Servers answer every refusal of theirs with a failure, most of them with an undeclared one.
            names = {row.name for row in constraints}
            if not names <= {row.name for row in self.constraints(name)}:
                raise Refused(
                    f"The metastore does not take {', '.join(sorted(map(str, names)))} of {name}",
                    error.why,
                    "Look whether another constraint has the name, or the key that it points to is missing",
                ) from error

    def drop_constraint(self, name: TableName, constraint: str) -> None:
        try:
            self._calls.call(messages.DROP_CONSTRAINT, DropConstraintRequest(*name, constraint))
        except Unavailable:
            # A missing constraint is an undeclared failure.
            if all(row.name != constraint for row in self.constraints(name)):
                raise Conflict(f"constraint {constraint} of {name} does not exist") from None
            raise

    def put_statistics(self, name: TableName, statistics: Mapping[str, Statistics]) -> None:
        objects = [
            AnalyzedColumns(
                AnalyzedObject(not partition, *name, partition or None), tuple(map(sent, columns.values())), ENGINE
            )
            for partition, columns in statistics.items()
        ]
        for batch in [objects[:1]] if "" in statistics else batches(objects, STATISTICS_BATCH):
            self._set_statistics(batch)

    def drop_statistics(self, name: TableName, partition: str, column: str) -> None:
        if partition:
            self._calls.call(messages.DROP_PARTITION_STATISTICS, *name, partition, column, ENGINE)
        else:
            self._calls.call(messages.DROP_TABLE_STATISTICS, *name, column, ENGINE)

    def create_function(self, function: Function) -> None:
        self._calls.call(messages.CREATE_FUNCTION, function)

    def drop_function(self, name: TableName) -> None:
        self._calls.call(messages.DROP_FUNCTION, *name)

    def _set_statistics(self, objects: Sequence[AnalyzedColumns]) -> None:
        """Write the statistics in one call, or in halves where the server finds that too large. Readers may see a part:
        statistics make no states."""
        try:
            self._calls.call_many(len(objects), messages.SET_STATISTICS, SetStatisticsRequest(tuple(objects)))
        except TooLarge:
            half = len(objects) // 2
            self._set_statistics(objects[:half])
            self._set_statistics(objects[half:])

    def _change_columns(self, newer: tuple[Any, ...], older: tuple[Any, ...], refusal: AlterationRefused) -> None:
        """Make the alteration on a connection whose own setting permits changes of column types. 3.1 and 4.x let a
        connection have the setting. Raises `refusal` where the server does not."""
        call = older if newer[0] in self._calls.lacking else newer
        try:
            self._calls.call(*call, setting=(COLUMN_CHANGES, "false"))
        except (CallUnknown, CallFailed) as error:
            if isinstance(error, ConnectionLost):
                raise
            raise refusal from error

    def _call_list(self, operation: ListOperation, count: int, call: Call, *arguments: Any) -> None:
        """Make a call with a list of `count` partitions. Raises `Refused` for more than the limit, and `TooLarge`,
        after which the limit is lower."""
        check_list(operation, count, getattr(self._abilities.limits, operation))
        try:
            self._calls.call_many(count, call, *arguments)
        except TooLarge:
            self._abilities = lowered(self._abilities, operation, count)
            raise


def alter_properties(cascade: bool, expected_event: str) -> dict[str, str]:
    """Return the properties of the environment of an alter_table call. They have the server keep statistics; with
    `cascade` change the columns of all partitions, too; and, unless `expected_event` is empty, refuse the call where
    the parameter `calque.event` has another value (see `ports.Catalog.alter_table`)."""
    properties = dict(KEEP_STATISTICS)
    if cascade:
        properties["CASCADE"] = "true"
    if expected_event:
        properties["expected_parameter_key"] = EVENT_PARAMETER
        properties["expected_parameter_value"] = expected_event
    return properties


def sent(statistics: ColumnStatistics) -> ColumnStatistics:
    """Return the statistics with timestamps as longs: 3.1 knows no others, 4 stores them alike and goes by the column's
    type."""
    moments = statistics.counted.timestamps
    if moments is None:
        return statistics
    low, high = (moment.since_epoch if moment else None for moment in (moments.low, moments.high))
    longs = Longs(low, high, moments.nulls, moments.distinct, moments.bit_vectors, moments.histogram)
    return replace(statistics, counted=replace(statistics.counted, longs=longs, timestamps=None))
