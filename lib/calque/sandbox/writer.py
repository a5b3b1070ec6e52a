"""A client that writes to a metastore: all that Hive or Spark do to a source, as calls.

It is for tests and the demo. Unlike `ports.Catalog` it lets the server behave as it does for its usual clients: data
are deleted with managed tables, statistics computed where the server is set so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calque.adapters.metastore import messages
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.messages import (
    AddPartitionsRequest,
    Call,
    Context,
    DropPartitionsRequest,
    FiredData,
    FireRequest,
    InsertEventData,
    PartitionsByName,
    TruncateRequest,
)
from calque.adapters.metastore.reader import HiveReader
from calque.model.access import MetastoreAccess
from calque.model.hive import Database, Function, Partition, Table
from calque.model.journal import Event
from calque.model.names import EventId, TableName

AT_ONCE = 10_000


class HiveClient:
    """A client that writes to the metastore at `uri` as `access` says. It raises `messages.Fault` for what the server
    refuses. `catalog` reads what is there, `log` the events."""

    def __init__(self, uri: str, connections: int = 8, access: MetastoreAccess = MetastoreAccess()) -> None:  # noqa: B008
        self.client = Client(uri, access, connections=connections)
        self.catalog = HiveReader(self.client)
        self.log = HiveLog(self.client)

    def create_database(self, database: Database) -> None:
        self.client.call(messages.CREATE_DATABASE, database)

    def alter_database(self, name: str, database: Database) -> None:
        self.client.call(messages.ALTER_DATABASE, name, database)

    def drop_database(self, name: str, *, cascade: bool = False, delete_data: bool = True) -> None:
        self.client.call(messages.DROP_DATABASE, name, delete_data, cascade)

    def create_table(self, table: Table) -> None:
        self.client.call(messages.CREATE_TABLE, table, Context())

    def alter_table(self, name: TableName, table: Table, *, cascade: bool = False) -> None:
        """Replace the table's definition. Another name in `table` renames it; with `cascade` partitions get the
        columns, too."""
        properties = {"CASCADE": "true"} if cascade else {}
        self.client.call(messages.ALTER_TABLE, *name, table, Context(properties))

    def truncate_table(self, name: TableName, partitions: Sequence[str] | None = None) -> None:
        """Empty the table, or the named partitions."""
        self.client.call(messages.TRUNCATE_TABLE, *name, None if partitions is None else tuple(partitions))

    def truncate_acid_table(self, name: TableName, write_id: int, partitions: Sequence[str] | None = None) -> None:
        """Empty an ACID table of a metastore of 4.x, or the named partitions, by a base directory of the write id
        without rows. Files stay."""
        context = Context({"truncateSkipDataDeletion": "true"})
        named = None if partitions is None else tuple(partitions)
        valid = f"{name}:{write_id}:{write_id}:{write_id}:"
        self.client.call(messages.TRUNCATE_TABLE_REQUEST, TruncateRequest(*name, named, write_id, valid, context))

    def drop_table(self, name: TableName, *, delete_data: bool = True) -> None:
        self.client.call(messages.DROP_TABLE, *name, delete_data, Context())

    def add_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        self.client.call(messages.ADD_PARTITIONS, AddPartitionsRequest(*name, tuple(partitions)))

    def append_partition(self, name: TableName, values: Sequence[str]) -> Partition:
        """Add a partition at its natural place, with the table's storage."""
        added: Partition = self.client.call(messages.APPEND_PARTITION, *name, tuple(values))
        return added

    def alter_partition(self, name: TableName, partition: Partition) -> None:
        self.client.call(messages.ALTER_PARTITION, *name, partition, Context())

    def alter_partitions(self, name: TableName, partitions: Sequence[Partition]) -> None:
        self.client.call(messages.ALTER_PARTITIONS, *name, tuple(partitions), Context())

    def rename_partition(self, name: TableName, values: Sequence[str], partition: Partition) -> None:
        self.client.call(messages.RENAME_PARTITION, *name, tuple(values), partition)

    def drop_partitions(self, name: TableName, names: Sequence[str], *, delete_data: bool = True) -> None:
        request = DropPartitionsRequest(*name, PartitionsByName(tuple(names)), delete_data=delete_data)
        self.client.call(messages.DROP_PARTITIONS, request)

    def exchange_partitions(
        self, specification: Mapping[str, str], source: TableName, target: TableName
    ) -> Sequence[Partition]:
        """Move the partitions of `source` that match the specification into `target`, with their directories."""
        moved_partitions: Sequence[Partition] = self.client.call(
            messages.EXCHANGE_PARTITIONS, specification, *source, *target
        )
        return moved_partitions

    def insert(
        self,
        name: TableName,
        files: Sequence[str],
        *,
        values: Sequence[str] | None = None,
        replace: bool = False,
        checksums: Sequence[str] | None = None,
    ) -> None:
        """Tell the metastore of files that were written (`fire_listener_event`): full paths, in the partition with
        `values`, or in the table. 3.1.3 ends the connection unless there is one checksum for each file."""
        inserted = InsertEventData(replace, tuple(files), tuple(checksums or ("",) * len(files)))
        data = FiredData(inserted)
        partition = None if values is None else tuple(values)
        self.client.call(messages.FIRE_LISTENER_EVENT, FireRequest(True, data, *name, partition))

    def reload(self, name: TableName) -> None:
        """Tell a metastore of 4.x that the table's files were looked at anew, as an engine's REFRESH does."""
        self.client.call(messages.FIRE_LISTENER_EVENT, FireRequest(True, FiredData(reloaded=True), *name))

    def create_function(self, function: Function) -> None:
        self.client.call(messages.CREATE_FUNCTION, function)

    def drop_function(self, name: TableName) -> None:
        self.client.call(messages.DROP_FUNCTION, *name)

    def current(self) -> EventId:
        return self.log.current()

    def events(self, after: EventId = 0) -> list[Event]:
        """Return all events after the id."""
        events: list[Event] = []
        while page := self.log.read(events[-1].event_id if events else after, AT_ONCE):
            events.extend(page)
        return events

    def call(self, call: Call, *arguments: Any) -> Any:
        """Make any other call of the metastore's Thrift service, and return its answer."""
        return self.client.call(call, *arguments)

    def close(self) -> None:
        self.client.close()
