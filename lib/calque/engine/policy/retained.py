"""Replicas at the target that no policy looks after. They were kept when their tables were not admitted any more, or
left where they were because their new name was taken.

Before such a table is read again, its replica is moved to the table's place, so that none of it is copied twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from calque.core.images.image import EVENT, SOURCE, source_mark
from calque.core.plan.limits import batches
from calque.core.states.facets import columns_of
from calque.engine.sides.sides import TargetSide
from calque.model.facets import Statistics
from calque.model.hive import Table, is_partitioned
from calque.model.names import EventId, TableName
from calque.model.records import Record, RetainedReplica, all_of, record_key
from calque.ports import Conflict

AT_ONCE = 1000
"""The number of partitions whose statistics are read by one call."""


class RetainedReplicas:
    """The target's retained replicas, by the names of their tables at the source."""

    def __init__(self, side: TargetSide) -> None:
        self.side = side
        self.replicas: dict[TableName, RetainedReplica] = {}

    def adopt(self, records: Iterable[Record]) -> None:
        """Take over the retained replicas that the ledger has."""
        self.replicas = {replica.table: replica for replica in all_of(records, RetainedReplica)}

    def keep(self, name: TableName, target_name: TableName, shows: EventId, reason: str) -> None:
        replica = RetainedReplica(name, target_name, shows, reason)
        self.side.ledger.put_records([replica])
        self.replicas[name] = replica

    def bring(self, name: TableName) -> None:
        """Move the table's replica to the name that the policy gives it, if that name is free, and forget it as a
        retained one."""
        replica = self.replicas.get(name)
        if replica is None:
            return
        old_name, new_name = replica.at_target, self.side.admission.name_at_target(name)
        target_table = self.side.catalog.table(old_name)
        is_own = target_table is not None and is_replica(target_table, self.side.policy.source, name)
        if (
            target_table is not None
            and is_own
            and old_name != new_name
            and not move(self.side, old_name, new_name, target_table)
        ):
            return
        self.side.ledger.remove_records([record_key(replica)])
        del self.replicas[name]


def is_replica(table: Table, source: str, name: TableName) -> bool:
    return (table.parameters or {}).get(SOURCE) == source_mark(source, name)


def move(side: TargetSide, was: TableName, to: TableName, table: Table) -> bool:
    """Rename a table of calque's at the target, and return whether that was done. Nothing else of it changes, but its
    partitions lose their column statistics. Return False if an object has the new name already, or another writer
    changed the table."""
    if side.catalog.table(to) is not None:
        return False
    expected = (table.parameters or {}).get(EVENT, "")
    try:
        for partition, columns in partition_statistics(side, was, table):
            for column in columns:
                side.catalog.drop_statistics(was, partition, column)
        side.catalog.alter_table(was, replace(table, database=to.database, name=to.table), expected_event=expected)
    except Conflict:
        return False
    return True


def partition_statistics(side: TargetSide, target_name: TableName, table: Table) -> Iterator[tuple[str, Statistics]]:
    """Yield the partitions that have column statistics, each with these. Hive 3 leaves statistics behind under the
    table's old name, where they keep the partitions from ever being dropped."""
    if is_partitioned(table):
        columns = [column.name for column in columns_of(table)]
        for batch in batches(list(side.catalog.partition_names(target_name)), AT_ONCE):
            statistics_by_partition = side.catalog.partition_statistics(target_name, columns, batch)
            yield from ((name, statistics) for name, statistics in statistics_by_partition.items() if statistics)
