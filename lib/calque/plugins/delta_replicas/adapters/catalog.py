"""The parts of a target in which some tables are Delta tables.

The engine sees such a table as the source has it: with partitions, each with its definition and its files. All of that
is in the table's log, and each state is one commit there. The metastore has the table without partitions, at the root
of its log, and is told of a state after its commit, because a reader who finds the table there reads the log. A rename
is a call to the metastore alone, so that it is one step for readers who go by names; the log learns of it afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from calque.core.acid.columns import format_of
from calque.core.formats.layout import join
from calque.core.images.image import EVENT, SOURCE
from calque.core.images.table_layout import has_own_row_files, has_row_ids, root_of_content
from calque.errors import Broken, Refused
from calque.model.facets import Constraint, ForeignKey, Statistics
from calque.model.files import Listing
from calque.model.hive import Partition, Table, location_of
from calque.model.names import TableName, table_name
from calque.model.plan import ShownState
from calque.plugins.delta_replicas.adapters.logs import ReplicaLogs
from calque.plugins.delta_replicas.adapters.row_files import RowsBefore, RowTable, RowWriter
from calque.plugins.delta_replicas.adapters.statistics import DescribeFiles, describe_parquet
from calque.plugins.delta_replicas.core.definition import registered, with_registered
from calque.plugins.delta_replicas.core.log import LogChange, LoggedTable, NewContent, ShownVersion, names_of
from calque.plugins.delta_replicas.core.replica_mark import is_delta_replica
from calque.plugins.delta_replicas.core.row_log import NewRows, row_sources
from calque.plugins.delta_replicas.core.schema import data_columns, partition_columns, partition_values, schema_of
from calque.ports import Conflict, Facets, FormatMisfit, Partitions, Storage, TableCommit, Tables, TargetParts


def with_delta_replicas(
    parts: TargetParts,
    storage: Storage,
    logs: ReplicaLogs,
    next_epoch: Callable[[], int],
    describe: DescribeFiles = describe_parquet,
) -> TargetParts:
    """Return the parts of a target, changed so that some of its tables are Delta tables. `next_epoch` returns the
    number of the epoch that will tell of what is done now; `describe` finds what the log says of new files."""
    tables = DeltaReplicaTables(parts.tables, storage, logs, next_epoch, describe)
    partitions = DeltaReplicaPartitions(parts.partitions, tables)
    return replace(parts, tables=tables, partitions=partitions, facets=DeltaReplicaFacets(parts.facets, tables))


class DeltaReplicaTables:
    """The tables of a target, of which some are Delta tables. `at_metastore` are the tables as the target's metastore
    has them; calls for a table that is not a Delta table go there unchanged."""

    def __init__(
        self,
        at_metastore: Tables,
        storage: Storage,
        logs: ReplicaLogs,
        next_epoch: Callable[[], int],
        describe: DescribeFiles,
    ) -> None:
        self._metastore = at_metastore
        self._storage, self._logs, self._next_epoch, self._describe = storage, logs, next_epoch, describe
        self._roots: dict[TableName, str] = {}
        """The roots of tables as they were seen or written last, so that none is asked for twice; empty for a table
        that is not a Delta table."""

    # What the engine sees

    def tables(self, database: str) -> Sequence[str]:
        return self._metastore.tables(database)

    def table(self, name: TableName) -> Table | None:
        at_metastore = self.at_metastore(name)
        return at_metastore if at_metastore is None else self._shown(at_metastore)

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        """Return the definitions of these tables. A table whose log is gone has the metastore's, because the look at
        other tables must not fail for it."""
        headers = {}
        at_metastore_by_name = self._metastore.headers(database, names)
        for name in names:
            self._note(table_name(database, name), at_metastore_by_name.get(name))
        for name, at_metastore in at_metastore_by_name.items():
            try:
                headers[name] = self._shown(at_metastore)
            except Refused:
                headers[name] = at_metastore
        return headers

    def contents(self, table: Table, partitions: Sequence[str]) -> Mapping[str, Listing] | None:
        if not is_delta_replica(table):
            return None
        logged = self._logs.read(root_of_content(location_of(table) or ""))
        if table.partition_keys:
            there = logged.partition_names()
            return {name: logged.contents(name) for name in partitions if name in there}
        return {"": logged.contents("")}

    def at_metastore(self, name: TableName) -> Table | None:
        table = self._metastore.table(name)
        self._note(name, table)
        return table

    def _note(self, name: TableName, at_metastore: Table | None) -> None:
        """Note the root of the table's log, as it was seen just now."""
        if at_metastore is None:
            self._roots.pop(name, None)
        else:
            self._roots[name] = (location_of(at_metastore) or "") if is_delta_replica(at_metastore) else ""

    def _root(self, name: TableName) -> str:
        """Return the root of the table's log; empty for a table that is missing or not a Delta table."""
        if name not in self._roots:
            self.at_metastore(name)
        return self._roots.get(name, "")

    def logged(self, name: TableName) -> LoggedTable | None:
        root = self._root(name)
        return self._logs.read(root) if root else None

    def _shown(self, at_metastore: Table) -> Table:
        """Return the source's definition from the log. After a rename that the log has not heard of, the metastore's
        newer words replace the log's. Raises `Refused` where the log is gone."""
        if not is_delta_replica(at_metastore):
            return at_metastore
        root = location_of(at_metastore) or ""
        logged = self._logs.read(root)
        if logged.version < 0:
            raise Refused(
                f"{at_metastore.database}.{at_metastore.name} has no Delta log",
                f"There is none at {root}",
                "Drop the table at the target and release it, and it is made anew",
            )
        table, said = logged.table, at_metastore.parameters or {}
        if event_of(at_metastore) > event_of(table):
            table = with_registered(table, at_metastore)
        parameters = {**(table.parameters or {}), SOURCE: said.get(SOURCE, "")}
        return replace(table, database=at_metastore.database, name=at_metastore.name, parameters=parameters)

    def shown(self, name: TableName) -> Table | None:
        """Return the definition of a Delta table as the engine sees it; None for a table that is missing or not a Delta
        table."""
        return self.table(name) if self._root(name) else None

    def require_plain(self, name: TableName) -> None:
        if self.logged(name) is not None:
            raise Broken(f"{name} is a Delta table", "All that becomes of it is a commit", "Report this")

    # Changes

    def create_table(self, table: Table) -> None:
        if is_delta_replica(table):
            self.commit_table(TableCommit(None, table))
        else:
            self._metastore.create_table(table)
            self._roots[table_name(table.database, table.name)] = ""

    def alter_table(self, name: TableName, table: Table, *, cascade: bool = False, expected_event: str = "") -> None:
        if not is_delta_replica(table):
            self._metastore.alter_table(name, table, cascade=cascade, expected_event=expected_event)
            self._roots.pop(name, None)
            self._roots[table_name(table.database, table.name)] = ""
            return
        new_name = table_name(table.database, table.name)
        if new_name != name:
            root = self._require_root(name)
            self._metastore.alter_table(name, registered(table, root), expected_event=expected_event)
            self._roots.pop(name, None)
            self._roots[new_name] = root
        self.commit_table(TableCommit(new_name, table, cascade=cascade, expected_event=expected_event))

    def drop_table(self, name: TableName) -> None:
        root = self._root(name)
        self._metastore.drop_table(name)
        self._roots.pop(name, None)
        if root:
            self._logs.forget(root)

    def commit_table(self, commit: TableCommit) -> None:
        """Make a commit of the change in the table's log, then tell the metastore. Where the commit also gives the
        table another name, the metastore has the table under neither name meanwhile, because no reader may see the new
        name with the old state, or the old name with the new one.

            Event 93 renames `t` to `u`, and event 94 adds a partition to `u`; one hop makes both. The metastore loses
            `t`, the log gets the commit of event 94, the metastore gets `u`.
        """
        table, name = commit.table, commit.name
        if not is_delta_replica(table):
            self._metastore.commit_table(commit)
            return
        root = root_of_content(location_of(table) or "") if name is None else self._require_root(name)
        logged, put = self._logs.begin(root) if name is None else self._logs.read(root), names_of(table, commit.put)
        if name is not None and commit.expected_event:
            self._require_event(name, logged, commit.expected_event)
        there = logged.partition_names()
        drop = commit.drop if name is not None else [*(there - put.keys())]
        if missing := [one for one in drop if one not in there]:
            raise Conflict(f"partition {missing[0]} does not exist")
        has_row_files = has_own_row_files(table)
        contents = {} if has_row_files else self._new_contents(logged, table, put, commit.contents)
        rows = self._new_rows(logged, root, commit, put) if has_row_files else {}
        schema = schema_of(table)
        others = logged.metadata is not None and logged.metadata["schemaString"] != schema
        restated = self._restated(logged, table) if others else {}
        since = logged.version if has_row_files else None
        change = LogChange(
            table, schema, partition_columns(table), put, tuple(drop), contents, commit.cascade, restated, rows, since
        )
        event_id = event_of(table)
        shows = commit.shows or ShownState(max(event_id, logged.shows), 0)
        shown = ShownVersion(replace(shows, first_event=shows.first_event or logged.shows + 1), self._next_epoch())
        new_name = table_name(table.database, table.name)
        if name not in {None, new_name}:
            self._metastore.drop_table(name)
            self._roots.pop(name, None)
        self._logs.commit(root, change, shown, (table.parameters or {}).get(SOURCE, ""))
        if name == new_name:
            self._metastore.alter_table(name, registered(table, root))
        else:
            self._metastore.create_table(registered(table, root))
            self._roots[new_name] = root

    def settle(self, table: Table) -> None:
        name = table_name(table.database, table.name)
        at_metastore = self.at_metastore(name)
        if at_metastore is None or not is_delta_replica(at_metastore):
            return
        root, shown = location_of(at_metastore) or "", self._shown(at_metastore)
        wanted = registered(shown, root)
        if event_of(at_metastore) > event_of(self._logs.read(root).table):
            self.commit_table(TableCommit(name, shown))
        elif event_of(at_metastore) != event_of(wanted) or columns_of(at_metastore) != columns_of(wanted):
            self._metastore.alter_table(name, wanted)

    def _require_event(self, name: TableName, logged: LoggedTable, expected: str) -> None:
        """Check that the table still shows the event that the caller expects: by the log, or by the metastore after a
        rename that the log has not heard of. Raises `Conflict` where it shows another one."""
        if expected == str(event_of(logged.table)):
            return
        at_metastore = self.at_metastore(name)
        if at_metastore is None or expected != str(event_of(at_metastore)):
            raise Conflict(f"{name} has been modified: {EVENT} is {event_of(logged.table)}")

    def _require_root(self, name: TableName) -> str:
        root = self._root(name)
        if not root:
            raise Conflict(f"{name} is no Delta table")
        return root

    # Files

    def _new_contents(
        self, logged: LoggedTable, table: Table, put: Mapping[str, Partition], contents: Mapping[str, Listing]
    ) -> dict[str, NewContent]:
        known = {
            name: {file.path: file for file in logged.contents(name).files} for name in contents if name in logged.files
        }
        new_paths = {
            join(listing.location, file.path): (name, file.path)
            for name, listing in contents.items()
            for file in listing.files
            if known.get(name, {}).get(file.path) != file
        }
        statistics: dict[str, dict[str, str]] = {}
        for path, text in self._describe(self._storage, list(new_paths), data_columns(table)).items():
            name, relative = new_paths[path]
            statistics.setdefault(name, {})[relative] = text
        return {
            name: NewContent(
                listing, partition_values(table, put[name].values) if name else {}, statistics.get(name, {})
            )
            for name, listing in contents.items()
        }

    def _new_rows(
        self, logged: LoggedTable, root: str, commit: TableCommit, put: Mapping[str, Partition]
    ) -> dict[str, NewRows]:
        """Write the files with the rows of an ACID table that the commit has, and return what the log says of them."""
        table, rows = commit.table, {}
        row_table = RowTable(root, data_columns(table), has_row_ids(table))
        for name, listing in commit.contents.items():
            was = commit.before.get(name)
            before = rows_before(logged, was) if was is not None else RowsBefore()
            file_format = format_of(put[name].storage if name in put else table.storage)
            if file_format is None:
                raise FormatMisfit(f"calque has no reader for the files in {listing.location}")
            writer = RowWriter(self._storage, row_table, file_format, listing, before)
            values = partition_values(table, put[name].values) if name else {}
            rows[name] = writer.rows(values, moves=was != name)
        return rows

    def _restated(self, logged: LoggedTable, table: Table) -> dict[str, str]:
        """Return new statistics of all files that are there, by path, because the table is to have other columns than
        before."""
        paths = {join(logged.root, path): path for files in logged.files.values() for path in files}
        statistics = self._describe(self._storage, list(paths), data_columns(table))
        return {paths[path]: text for path, text in statistics.items()}


class DeltaReplicaPartitions:
    """The partitions of a target's tables. Those of a Delta table are in its log; all others are the metastore's."""

    def __init__(self, at_metastore: Partitions, tables: DeltaReplicaTables) -> None:
        self._metastore, self._tables = at_metastore, tables

    def partition_names(self, name: TableName) -> Sequence[str]:
        logged = self._tables.logged(name)
        return self._metastore.partition_names(name) if logged is None else sorted(logged.partition_names())

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        if not is_delta_replica(table):
            return self._metastore.few_partitions(table, most)
        name = table_name(table.database, table.name)
        return self.partitions(name, self.partition_names(name))

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        logged = self._tables.logged(name)
        if logged is None:
            return self._metastore.partitions(name, names)
        partitions = ((one, logged.partition(one)) for one in names)
        return {
            one: replace(partition, database=name.database, table=name.table)
            for one, partition in partitions
            if partition is not None
        }

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        self._tables.require_plain(name)
        self._metastore.add_partitions(name, partitions)

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        """Change the definitions of partitions, not their files."""
        table = self._tables.shown(name)
        if table is None:
            self._metastore.alter_partitions(name, partitions)
        else:
            self._tables.commit_table(TableCommit(name, table, partitions))

    def rename_partition(self, name: TableName, values: Sequence[str], partition: Partition) -> None:
        self._tables.require_plain(name)
        self._metastore.rename_partition(name, values, partition)

    def drop_partitions(self, name: TableName, names: Sequence[str]) -> None:
        self._tables.require_plain(name)
        self._metastore.drop_partitions(name, names)


class DeltaReplicaFacets:
    """The statistics and constraints of a target's tables. A Delta table has no column statistics at the metastore,
    because its log has those of its files."""

    def __init__(self, at_metastore: Facets, tables: DeltaReplicaTables) -> None:
        self._metastore, self._tables = at_metastore, tables

    def constraints(self, name: TableName) -> Sequence[Constraint]:
        return self._metastore.constraints(name)

    def foreign_keys_to(self, name: TableName) -> Sequence[ForeignKey]:
        return self._metastore.foreign_keys_to(name)

    def add_constraints(self, constraints: Sequence[Constraint]) -> None:
        self._metastore.add_constraints(constraints)

    def drop_constraint(self, name: TableName, constraint: str) -> None:
        self._metastore.drop_constraint(name, constraint)

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        return {} if self._tables.logged(name) is not None else self._metastore.table_statistics(name, columns)

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        return (
            {}
            if self._tables.logged(name) is not None
            else self._metastore.partition_statistics(name, columns, partitions)
        )

    def put_statistics(self, name: TableName, statistics: Mapping[str, Statistics]) -> None:
        self._tables.require_plain(name)
        self._metastore.put_statistics(name, statistics)

    def drop_statistics(self, name: TableName, partition: str, column: str) -> None:
        self._metastore.drop_statistics(name, partition, column)


def rows_before(logged: LoggedTable, name: str) -> RowsBefore:
    """Return what the partition has; nothing where another writer changed its files."""
    files = logged.files.get(name, {})
    return RowsBefore() if logged.has_others(name) else RowsBefore(row_sources(logged.rows.get(name, "")).files, files)


def event_of(table: Table) -> int:
    text = (table.parameters or {}).get(EVENT, "")
    return int(text) if text.isdigit() else 0


def columns_of(table: Table) -> list[tuple[str, str]]:
    columns = table.storage.columns if table.storage is not None else None
    return [(column.name, column.type) for column in columns or ()]
