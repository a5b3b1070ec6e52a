"""A target's catalog in which some tables are Delta tables.

The engine sees such a table as the source has it, with partitions, each with its definition and its files. What it sees
is in the table's log; a state is one commit there. The metastore has the table without partitions, at the root of its
log, and is told of a state after its commit: who finds the table there reads the log. A rename is the metastore's
call alone, so that it is one step for whoever goes by names; the log learns of it afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from calque.core.formats.layout import join
from calque.core.images.image import EVENT, SOURCE
from calque.core.images.table_layout import is_delta_replica, root_of_content
from calque.errors import Broken, Refused
from calque.model.facets import Statistics
from calque.model.files import Listing
from calque.model.hive import Partition, Table, location_of
from calque.model.names import TableName, table_name
from calque.model.plan import ShownState
from calque.plugins.delta_replicas.adapters.logs import ReplicaLogs
from calque.plugins.delta_replicas.adapters.statistics import DescribeFiles, describe_parquet
from calque.plugins.delta_replicas.core.definition import registered, with_registered
from calque.plugins.delta_replicas.core.log import Change, LoggedTable, NewContent, ShownVersion, names_of
from calque.plugins.delta_replicas.core.schema import data_columns, partition_columns, partition_values, schema_of
from calque.ports import Catalog, Conflict, Storage, TableCommit
from calque.ports.forwarding import ForwardingCatalog


class DeltaReplicaCatalog(ForwardingCatalog):
    """`catalog` is the target's metastore, `next_epoch` the number of the epoch that will tell of what is done now;
    `describe` finds what the log says of new files."""

    def __init__(
        self,
        catalog: Catalog,
        storage: Storage,
        logs: ReplicaLogs,
        next_epoch: Callable[[], int],
        describe: DescribeFiles = describe_parquet,
    ) -> None:
        super().__init__(catalog)
        self._storage, self._logs, self._next_epoch, self._describe = storage, logs, next_epoch, describe
        self._roots: dict[TableName, str] = {}
        """Of tables as they were seen or written last, so that none is asked for twice; empty for those that are no
        Delta tables."""

    # What the engine sees

    def table(self, name: TableName) -> Table | None:
        at_metastore = self._at_metastore(name)
        return at_metastore if at_metastore is None else self._shown(at_metastore)

    def headers(self, database: str, names: Sequence[str]) -> Mapping[str, Table]:
        """One whose log is gone is as the metastore has it: no other table's look may fail for it."""
        headers = {}
        for name, at_metastore in super().headers(database, names).items():
            try:
                headers[name] = self._shown(at_metastore)
            except Refused:
                headers[name] = at_metastore
        return headers

    def partition_names(self, name: TableName) -> Sequence[str]:
        logged = self._logged(name)
        return super().partition_names(name) if logged is None else sorted(logged.partition_names())

    def few_partitions(self, table: Table, most: int) -> Mapping[str, Partition] | None:
        if not is_delta_replica(table):
            return super().few_partitions(table, most)
        name = table_name(table.database, table.name)
        return self.partitions(name, self.partition_names(name))

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        logged = self._logged(name)
        if logged is None:
            return super().partitions(name, names)
        partitions = ((one, logged.partition(one)) for one in names)
        return {
            one: replace(partition, database=name.database, table=name.table)
            for one, partition in partitions
            if partition is not None
        }

    def contents(self, table: Table, partitions: Sequence[str]) -> Mapping[str, Listing] | None:
        if not is_delta_replica(table):
            return None
        logged = self._logs.read(root_of_content(location_of(table) or ""))
        if table.partition_keys:
            there = logged.partition_names()
            return {name: logged.contents(name) for name in partitions if name in there}
        return {"": logged.contents("")}

    def table_statistics(self, name: TableName, columns: Sequence[str]) -> Statistics:
        return {} if self._logged(name) is not None else super().table_statistics(name, columns)

    def partition_statistics(
        self, name: TableName, columns: Sequence[str], partitions: Sequence[str]
    ) -> Mapping[str, Statistics]:
        return {} if self._logged(name) is not None else super().partition_statistics(name, columns, partitions)

    def _at_metastore(self, name: TableName) -> Table | None:
        table = super().table(name)
        if table is None:
            self._roots.pop(name, None)
        else:
            self._roots[name] = (location_of(table) or "") if is_delta_replica(table) else ""
        return table

    def _root(self, name: TableName) -> str:
        """Empty for a table that is no Delta table, or missing."""
        if name not in self._roots:
            self._at_metastore(name)
        return self._roots.get(name, "")

    def _logged(self, name: TableName) -> LoggedTable | None:
        root = self._root(name)
        return self._logs.read(root) if root else None

    def _shown(self, at_metastore: Table) -> Table:
        """The source's definition. What came with a rename that the log has not heard of, the metastore says."""
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

    # Changes

    def create_table(self, table: Table) -> None:
        if is_delta_replica(table):
            self.commit_table(TableCommit(None, table))
        else:
            super().create_table(table)
            self._roots[table_name(table.database, table.name)] = ""

    def alter_table(self, name: TableName, table: Table, *, cascade: bool = False, expected_event: str = "") -> None:
        if not is_delta_replica(table):
            super().alter_table(name, table, cascade=cascade, expected_event=expected_event)
            self._roots.pop(name, None)
            self._roots[table_name(table.database, table.name)] = ""
            return
        new_name = table_name(table.database, table.name)
        if new_name != name:
            root = self._require_root(name)
            super().alter_table(name, registered(table, root), expected_event=expected_event)
            self._roots.pop(name, None)
            self._roots[new_name] = root
        self.commit_table(TableCommit(new_name, table, cascade=cascade, expected_event=expected_event))

    def drop_table(self, name: TableName) -> None:
        root = self._root(name)
        super().drop_table(name)
        self._roots.pop(name, None)
        if root:
            self._logs.forget(root)

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        self._require_plain(name)
        super().add_partitions(name, partitions)

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        """Their definitions alone."""
        table = self.table(name) if self._root(name) else None
        if table is None:
            super().alter_partitions(name, partitions)
        else:
            self.commit_table(TableCommit(name, table, partitions))

    def rename_partition(self, name: TableName, values: Sequence[str], partition: Partition) -> None:
        self._require_plain(name)
        super().rename_partition(name, values, partition)

    def drop_partitions(self, name: TableName, names: Sequence[str]) -> None:
        self._require_plain(name)
        super().drop_partitions(name, names)

    def put_statistics(self, name: TableName, statistics: Mapping[str, Statistics]) -> None:
        self._require_plain(name)
        super().put_statistics(name, statistics)

    def _require_plain(self, name: TableName) -> None:
        if self._logged(name) is not None:
            raise Broken(f"{name} is a Delta table", "All that becomes of it is a commit", "Report this")

    def commit_table(self, commit: TableCommit) -> None:
        """The commit first, then the metastore, which has no table meanwhile where it gets another name: nobody is to
        see the one without the other."""
        table, name = commit.table, commit.name
        if not is_delta_replica(table):
            super().commit_table(commit)
            return
        root = root_of_content(location_of(table) or "") if name is None else self._require_root(name)
        logged, put = self._logs.begin(root) if name is None else self._logs.read(root), names_of(table, commit.put)
        if name is not None and commit.expected_event:
            self._require_event(name, logged, commit.expected_event)
        there = logged.partition_names()
        drop = commit.drop if name is not None else [*(there - put.keys())]
        if missing := [one for one in drop if one not in there]:
            raise Conflict(f"partition {missing[0]} does not exist")
        contents = self._new_contents(logged, table, put, commit.contents)
        schema = schema_of(table)
        others = logged.metadata is not None and logged.metadata["schemaString"] != schema
        restated = self._restated(logged, table) if others else {}
        change = Change(table, schema, partition_columns(table), put, tuple(drop), contents, commit.cascade, restated)
        event_id = event_of(table)
        shows = commit.shows or ShownState(max(event_id, logged.shows), 0)
        shown = ShownVersion(replace(shows, first_event=shows.first_event or logged.shows + 1), self._next_epoch())
        new_name = table_name(table.database, table.name)
        if name not in {None, new_name}:
            super().drop_table(name)
            self._roots.pop(name, None)
        self._logs.commit(root, change, shown, (table.parameters or {}).get(SOURCE, ""))
        if name == new_name:
            super().alter_table(name, registered(table, root))
        else:
            super().create_table(registered(table, root))
            self._roots[new_name] = root

    def settle(self, table: Table) -> None:
        name = table_name(table.database, table.name)
        at_metastore = self._at_metastore(name)
        if at_metastore is None or not is_delta_replica(at_metastore):
            return
        root, shown = location_of(at_metastore) or "", self._shown(at_metastore)
        wanted = registered(shown, root)
        if event_of(at_metastore) > event_of(self._logs.read(root).table):
            self.commit_table(TableCommit(name, shown))
        elif event_of(at_metastore) != event_of(wanted) or columns_of(at_metastore) != columns_of(wanted):
            super().alter_table(name, wanted)

    def _require_event(self, name: TableName, logged: LoggedTable, expected: str) -> None:
        """What the log says, or the metastore after a rename that the log has not heard of."""
        if expected == str(event_of(logged.table)):
            return
        at_metastore = self._at_metastore(name)
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

    def _restated(self, logged: LoggedTable, table: Table) -> dict[str, str]:
        """Statistics of all files that are there, for other columns than the table had."""
        paths = {join(logged.root, path): path for files in logged.files.values() for path in files}
        statistics = self._describe(self._storage, list(paths), data_columns(table))
        return {paths[path]: text for path, text in statistics.items()}


def event_of(table: Table) -> int:
    text = (table.parameters or {}).get(EVENT, "")
    return int(text) if text.isdigit() else 0


def columns_of(table: Table) -> list[tuple[str, str]]:
    columns = table.storage.columns if table.storage is not None else None
    return [(column.name, column.type) for column in columns or ()]
