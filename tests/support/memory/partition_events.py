"""What a metastore in memory is told of single partitions (port `PartitionEvents`)."""

from __future__ import annotations

from collections.abc import Mapping

from calque.errors import Refused
from calque.model.names import TableName
from support.memory.metastore.store import MemoryMetastore


class MemoryPartitionEvents:
    def __init__(self, metastore: MemoryMetastore) -> None:
        self.metastore = metastore
        self.told: list[tuple[TableName, tuple[tuple[str, str], ...]]] = []

    def mark_done(self, table: TableName, partition: Mapping[str, str]) -> None:
        self.told.append((table, self._known(table, partition)))

    def is_done(self, table: TableName, partition: Mapping[str, str]) -> bool:
        return (table, self._known(table, partition)) in self.told

    def _known(self, table: TableName, partition: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        is_there = table.database in self.metastore.databases() and table.table in self.metastore.tables(table.database)
        keys = self.metastore.the_table(table).table.partition_keys or () if is_there else ()
        if not is_there or {key.name.lower() for key in keys} != partition.keys():
            raise Refused(
                f"The metastore refused a mark of {table}", "It has no such table, or other keys", "Look there"
            )
        return tuple(sorted(partition.items()))
