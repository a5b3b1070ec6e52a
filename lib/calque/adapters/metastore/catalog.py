"""The objects of a metastore: read by `HiveReader`, read and written by `HiveCatalog`.

Each writing method is one Thrift call and one transaction at the server; facts of what else a call does on its own are
in the comments beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from calque.adapters.metastore import messages
from calque.adapters.metastore.client import Client, ConnectionLost
from calque.adapters.metastore.faults import INCOMPATIBLE, settled
from calque.adapters.metastore.messages import (
    AddPartitionsRequest,
    AllConstraintsResult,
    AlterTableRequest,
    Call,
    CallUnknown,
    ColumnConstraintsRequest,
    ConstraintsRequest,
    Context,
    CreateTableRequest,
    DropConstraintRequest,
    DropPartitionsRequest,
    Fault,
    ForeignKeysRequest,
    FunctionsResult,
    PartitionsByName,
    PartitionsStatisticsRequest,
    PartitionsStatisticsResult,
    SetStatisticsRequest,
    TableRequest,
    TableResult,
    TablesRequest,
    TablesResult,
    TableStatisticsRequest,
    TableStatisticsResult,
)
from calque.core.plan.limits import ListOperation, check_commit, check_list, lowered
from calque.errors import AlterationRefused, CallFailed, Refused, Unavailable
from calque.model.facets import (
    CONSTRAINTS,
    ENGINE,
    AnalyzedColumns,
    AnalyzedObject,
    ColumnStatistics,
    Constraint,
    ForeignKey,
    Longs,
    PrimaryKey,
    Statistics,
)
from calque.model.hive import Database, Function, Partition, Table
from calque.model.names import TableName, named_values, partition_name, partition_values, table_name
from calque.model.policy import TargetCapabilities
from calque.ports import Conflict, TableCommit, TooLarge
from calque.ports.services import COLUMN_CHANGES

T = TypeVar("T")
ALL = -1
SHORT = (1 << 15) - 1
"""What the limits of calls can count to."""
LIMITED = "limit.partition.request"
"""The setting by which a server refuses to give more partitions at once, as its answer names it."""
READ_BATCH = 1000
"""Names of one `get_partitions_by_names`: servers turn them into one SQL statement each."""
STATISTICS_BATCH = 500
"""Partitions whose statistics are written by one call: 3.1 makes a transaction of each."""

RENAME_SECONDS = 60.0
"""After which a rename is given up. It changes the table's own row, so that it takes as long for 100,000 partitions as
for 1,000: at most 2 s on both servers under heavy load, as `tests/bench/bench_rename.py` measures it."""

TOO_LARGE = re.compile(
    r"""message\ ?size | frame\ size | length\ exceeded | OutOfMemory | heap\ space
      | 2-byte\ value               # PostgreSQL's driver: more parameters of a statement than it can count
      | stack\ depth\ limit         # PostgreSQL: longer conditions than it can read
      | packet\ .*\ is\ too\ large  # MySQL
      | ORA-01795                   # Oracle: more than 1000 expressions in a list
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What servers and their databases say of a call about too many objects."""

EVENT_PARAMETER = "calque.event"
KEEP_STATISTICS: Mapping[str, str] = {"DO_NOT_UPDATE_STATS": "true"}


class HiveReader:
    """`ports.CatalogReader` over Thrift. What is missing is answered as such, never as an error."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._lacking: set[Call] = set()

    def identity(self) -> str:
        try:
            return str(self._call(messages.GET_ID) or "")
        except CallUnknown:
            return ""

    def databases(self) -> Sequence[str]:
        return self._call(messages.GET_ALL_DATABASES) or ()

    def tables(self, database: str) -> Sequence[str]:
        return self._found(messages.GET_ALL_TABLES, database) or ()

    def functions(self, database: str) -> Sequence[str]:
        """Under the names by which they are known: 3.1 lists them as they were written (`core.events.kept_names`)."""
        return tuple(name.lower() for name in self._found(messages.GET_FUNCTIONS, database, "*") or ())

    def database(self, name: str) -> Database | None:
        database: Database | None = self._found(messages.GET_DATABASE, name)
        return database

    def table(self, name: TableName) -> Table | None:
        result: TableResult | None = self._found(messages.GET_TABLE, TableRequest(*name))
        return result.table if result else None

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        results: Iterator[TablesResult | None] = self._found_many(
            names, messages.GET_TABLES, lambda batch: (TablesRequest(database, batch),)
        )
        return {table.name: table for result in results if result for table in result.tables}

    def function(self, name: TableName) -> Function | None:
        function: Function | None = self._found(messages.GET_FUNCTION, *name)
        if function is None and any(map(spelled, self._found(messages.GET_FUNCTIONS, *name) or ())):
            every: FunctionsResult = self._call(messages.GET_ALL_FUNCTIONS)
            return next((one for one in every.functions or () if table_name(one.database, one.name) == name), None)
        return function

    def partition_names(self, name: TableName) -> Sequence[str]:
        return self._found(messages.GET_PARTITION_NAMES, *name, ALL) or ()

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        most = min(most, SHORT - 1)
        try:
            partitions = self._found(messages.GET_PARTITIONS, table.database, table.name, most + 1) or ()
        except Unavailable as error:
            if LIMITED in error.why:
                return None
            raise
        keys = [key.name for key in table.partition_keys or ()]
        well_formed = (partition for partition in partitions if len(partition.values) == len(keys))
        return {partition_name(keys, one.values): one for one in well_formed} if len(partitions) <= most else None

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        by_values = {partition_values(one): one for one in names}
        return {
            by_values[values]: partition
            for partitions in self._found_many(names, messages.GET_PARTITIONS_BY_NAMES, lambda batch: (*name, batch))
            for partition in partitions or ()
            if (values := named_values(partition.values)) in by_values
        }

    def constraints(self, name: TableName) -> Sequence[Constraint]:
        if messages.GET_ALL_CONSTRAINTS not in self._lacking:
            try:
                result: AllConstraintsResult | None = self._found(
                    messages.GET_ALL_CONSTRAINTS, ConstraintsRequest(*name)
                )
            except CallUnknown:
                self._lacking.add(messages.GET_ALL_CONSTRAINTS)
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
        result = self._found(messages.GET_CONSTRAINTS[ForeignKey], ForeignKeysRequest(*name))
        return result.rows or () if result else ()

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        if not columns:
            return {}
        request = TableStatisticsRequest(*name, tuple(columns))
        result: TableStatisticsResult | None = self._found(messages.GET_TABLE_STATISTICS, request)
        return by_column(result.columns) if result else {}

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        results: Iterator[PartitionsStatisticsResult | None] = self._found_many(
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
        result = self._found(messages.GET_CONSTRAINTS[kind], request)
        return result.rows or () if result else ()

    def _found_many(
        self, names: Sequence[str], call: Call, arguments: Callable[[tuple[str, ...]], tuple[object, ...]]
    ) -> Iterator[Any]:
        """The results of calls that take names, some at a time; None where the server says that something they are
        about does not exist."""
        waiting = [*batches(names, READ_BATCH)][::-1]
        while waiting:
            batch = waiting.pop()
            try:
                result = self._call_many(len(batch), call, *arguments(batch))
            except TooLarge:
                waiting += [*batches(batch, (len(batch) + 1) // 2)][::-1]
            except Conflict:
                yield None
            else:
                yield result

    def _found(self, call: Call, *arguments: Any) -> Any:
        """The call's result, or None where the server says that the thing does not exist."""
        try:
            return self._call(call, *arguments)
        except Conflict:
            return None

    def _call(
        self,
        call: Call,
        *arguments: Any,
        seconds: float | None = None,
        setting: tuple[str, str] | None = None,
    ) -> Any:
        try:
            return self.client.call(call, *arguments, seconds=seconds, setting=setting)
        except Fault as fault:
            raise settled(fault, call) from fault

    def _call_many(self, count: int, call: Call, *arguments: Any) -> Any:
        """A call about `count` objects. A server that is sent too much says so, or hangs up without a word while it
        goes on answering: where that happens twice to one list, it is `TooLarge`."""
        for attempt in (1, 2):
            try:
                return self._call(call, *arguments)
            except CallFailed as failing:
                hung_up = isinstance(failing, ConnectionLost) and count > 1 and self._answers()
                if count < 2 or not (hung_up or TOO_LARGE.search(failing.why)):
                    raise
                if not hung_up or attempt == 2:
                    problem = f"The metastore does not take {count} objects in one {call.name}"
                    raise TooLarge(problem, failing.why, "They are sent again in parts") from failing
        raise AssertionError

    def _answers(self) -> bool:
        try:
            self.database("default")
        except Unavailable:
            return False
        return True


class HiveCatalog(HiveReader):
    """`ports.Catalog` over Thrift. `abilities` says whether the server has compare-and-swap: `world` finds it out."""

    def __init__(self, client: Client, abilities: TargetCapabilities, rename_seconds: float = RENAME_SECONDS) -> None:
        super().__init__(client)
        self._abilities, self._rename_seconds = abilities, rename_seconds

    def abilities(self) -> TargetCapabilities:
        return self._abilities

    def create_database(self, database: Database) -> None:
        self._call(messages.CREATE_DATABASE, database)

    def alter_database(self, name: str, database: Database) -> None:
        # 2.3 keeps description and location as they are and replaces parameters and owner only.
        self._call(messages.ALTER_DATABASE, name, database)

    def drop_database(self, name: str) -> None:
        try:
            self._call(messages.DROP_DATABASE, name, False, False)
        except Unavailable:
            # 2.3 and 3.1 answer a missing database with a NullPointerException.
            if self.database(name) is None:
                raise Conflict(f"database {name} does not exist") from None
            raise

    def create_table(self, table: Table) -> None:
        context = Context(KEEP_STATISTICS)
        self._newest(
            (messages.CREATE_TABLE_REQUEST, CreateTableRequest(table, context)),
            (messages.CREATE_TABLE, table, context),
        )

    def alter_table(self, name: TableName, table: Table, *, cascade: bool = False, expected_event: str = "") -> None:
        context = Context(alter_properties(cascade, expected_event))
        renames = not cascade and (table.database, table.name) != name
        newer = (messages.ALTER_TABLE_REQUEST, AlterTableRequest(*name, table, context))
        older = (messages.ALTER_TABLE, *name, table, context)
        try:
            self._newest(newer, older, self._rename_seconds if renames else None)
        except AlterationRefused as refusal:
            if not INCOMPATIBLE.search(refusal.why):
                raise
            self._change_columns(newer, older, refusal)

    def drop_table(self, name: TableName) -> None:
        self._call(messages.DROP_TABLE, *name, False, Context())

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        request = AddPartitionsRequest(*name, tuple(partitions))
        self._call_list("add_partitions", len(partitions), messages.ADD_PARTITIONS, request)

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        arguments = (*name, tuple(partitions), Context(KEEP_STATISTICS))
        self._call_list("alter_partitions", len(partitions), messages.ALTER_PARTITIONS, *arguments)

    def rename_partition(self, name: TableName, values: Sequence[str], partition: Partition) -> None:
        self._call(messages.RENAME_PARTITION, *name, tuple(values), partition)

    def drop_partitions(self, name: TableName, names: Sequence[str]) -> None:
        request = DropPartitionsRequest(*name, PartitionsByName(tuple(names)))
        self._call_list("drop_partitions", len(names), messages.DROP_PARTITIONS, request)

    def commit_table(self, commit: TableCommit) -> None:  # noqa: ARG002
        """No metastore can."""
        check_commit(any_difference=False)

    def contents(self, table: Table, partitions: Sequence[str]) -> None:
        """No metastore knows any."""

    def settle(self, table: Table) -> None:
        """Each change is one call."""

    def add_constraints(self, constraints: Sequence[Constraint]) -> None:
        kind, name = type(constraints[0]), TableName(constraints[0].database, constraints[0].table)
        try:
            self._call(messages.ADD_CONSTRAINTS[kind], messages.ROWS[kind](tuple(constraints)))
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
            self._call(messages.DROP_CONSTRAINT, DropConstraintRequest(*name, constraint))
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
            self._call(messages.DROP_PARTITION_STATISTICS, *name, partition, column, ENGINE)
        else:
            self._call(messages.DROP_TABLE_STATISTICS, *name, column, ENGINE)

    def create_function(self, function: Function) -> None:
        self._call(messages.CREATE_FUNCTION, function)

    def drop_function(self, name: TableName) -> None:
        self._call(messages.DROP_FUNCTION, *name)

    def _set_statistics(self, objects: Sequence[AnalyzedColumns]) -> None:
        """Statistics make no states, so that nobody minds to see halves."""
        try:
            self._call_many(len(objects), messages.SET_STATISTICS, SetStatisticsRequest(tuple(objects)))
        except TooLarge:
            half = len(objects) // 2
            self._set_statistics(objects[:half])
            self._set_statistics(objects[half:])

    def _change_columns(self, newer: tuple[Any, ...], older: tuple[Any, ...], refusal: AlterationRefused) -> None:
        """The alteration, on a connection whose own setting permits it. 3.1 and 4.x let connections have it."""
        call = older if newer[0] in self._lacking else newer
        try:
            self._call(*call, setting=(COLUMN_CHANGES, "false"))
        except (CallUnknown, CallFailed) as error:
            if isinstance(error, ConnectionLost):
                raise
            raise refusal from error

    def _call_list(self, operation: ListOperation, count: int, call: Call, *arguments: Any) -> None:
        """A call with a list of `count` partitions. Raises `Refused`, `TooLarge`."""
        check_list(operation, count, getattr(self._abilities.limits, operation))
        try:
            self._call_many(count, call, *arguments)
        except TooLarge:
            self._abilities = lowered(self._abilities, operation, count)
            raise

    def _newest(self, newer: tuple[Any, ...], older: tuple[Any, ...], seconds: float | None = None) -> None:
        """Make the first of two equivalent calls that the server has."""
        if newer[0] not in self._lacking:
            try:
                self._call(*newer, seconds=seconds)
                return
            except CallUnknown:
                self._lacking.add(newer[0])
        self._call(*older, seconds=seconds)


def alter_properties(cascade: bool, expected_event: str) -> dict[str, str]:
    """The environment of an alter_table: see `ports.Catalog.alter_table`."""
    properties = dict(KEEP_STATISTICS)
    if cascade:
        properties["CASCADE"] = "true"
    if expected_event:
        properties["expected_parameter_key"] = EVENT_PARAMETER
        properties["expected_parameter_value"] = expected_event
    return properties


def spelled(name: str) -> bool:
    """Whether a name is kept with capitals: 3.1 then finds the function under no name."""
    return name != name.lower()


def by_column(rows: Sequence[ColumnStatistics]) -> Statistics:
    return {row.column: row for row in rows}


def sent(statistics: ColumnStatistics) -> ColumnStatistics:
    """Timestamps as longs: 3.1 knows no others, 4 stores them alike and goes by the column's type."""
    moments = statistics.counted.timestamps
    if moments is None:
        return statistics
    low, high = (moment.since_epoch if moment else None for moment in (moments.low, moments.high))
    longs = Longs(low, high, moments.nulls, moments.distinct, moments.bit_vectors, moments.histogram)
    return replace(statistics, counted=replace(statistics.counted, longs=longs, timestamps=None))


def batches(names: Sequence[T], size: int) -> Iterator[tuple[T, ...]]:
    for start in range(0, len(names), size):
        yield tuple(names[start : start + size])
