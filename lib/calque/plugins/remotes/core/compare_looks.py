"""What a look at a catalog without a log finds there, against the look before: messages of a log of our own.

States between two looks are unknown. What one look finds of a table is one step: where it takes several messages, their
types begin with `LOOKED_`, and no state lies between them (`core.states.fold.same_run`). A name that is looked at for
the first time is to be read, whatever happened before: `LOOKED` says so. A table that was made again was gone in
between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import xxhash

from calque.core.events.effects import PART_OF_LOOK
from calque.core.events.encode import tjson
from calque.core.events.log_messages import (
    LogMessage,
    database_altered,
    database_created,
    partitions_added,
    partitions_altered,
    partitions_dropped,
    table_altered,
    table_created,
    table_dropped,
)
from calque.model.hive import Database, Partition, Table, is_view
from calque.model.journal import LOOKED
from calque.model.names import TableName, partition_values

Digests = Mapping[str, str]
"""Partitions by name, each as a digest of its definition."""


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table as the last look found it."""

    version: str
    table: Table
    partitions: Digests


def digests_of(partitions: Mapping[str, Partition]) -> Digests:
    return {name: xxhash.xxh3_64_hexdigest(tjson(in_order(partition))) for name, partition in partitions.items()}


def in_order(partition: Partition) -> Partition:
    """The partition, whose maps have one order."""
    storage = partition.storage
    if storage is not None:
        serde = storage.serde
        if serde is not None:
            serde = replace(serde, parameters=ordered(serde.parameters))
        storage = replace(storage, serde=serde, parameters=ordered(storage.parameters))
    return replace(partition, storage=storage, parameters=ordered(partition.parameters))


def ordered(parameters: Mapping[str, str] | None) -> Mapping[str, str] | None:
    return parameters if parameters is None else dict(sorted(parameters.items()))


def first_seen(name: TableName) -> LogMessage:
    """The name is to be read."""
    return LogMessage(LOOKED, name.database, name.table, {})


def database_changes(before: Database | None, after: Database | None, name: str) -> list[LogMessage]:
    """A database that is looked at for the first time is one that was made."""
    if before is None:
        return [database_created(after)] if after is not None else []
    if after is None:
        return [LogMessage("DROP_DATABASE", name, "", {"db": name})]
    return [] if before == after else [database_altered(before, after)]


def table_changes(
    before: KnownTable, after: Table | None, digests: Digests, partitions: Mapping[str, Partition]
) -> list[LogMessage]:
    """`partitions` are those of `after` whose digests are new, at least."""
    if after is None:
        return [table_dropped(before.table)]
    if is_other(before.table, after):
        made = [table_created(after)]
        if digests:
            made.append(added(after, partitions, sorted(digests)))
        return [table_dropped(before.table), *joined(made)]
    messages = []
    if before.table != after:
        messages.append(table_altered(before.table, after))
    dropped_names = sorted(before.partitions.keys() - digests.keys())
    if dropped_names:
        gone = [Partition(partition_values(name), after.database, after.name) for name in dropped_names]
        messages.append(partitions_dropped(after, gone))
    if new_names := sorted(digests.keys() - before.partitions.keys()):
        messages.append(added(after, partitions, new_names))
    changed = sorted(name for name, digest in digests.items() if before.partitions.get(name, digest) != digest)
    if changed:
        messages.append(partitions_altered(after, [partitions[name] for name in changed]))
    return joined(messages)


def is_other(before: Table, after: Table) -> bool:
    """Whether the one is no alteration of the other: somebody dropped it and made a new one of the name."""
    made = {table.create_time for table in (before, after) if table.create_time}
    keys = [tuple((key.name, key.type) for key in table.partition_keys or ()) for table in (before, after)]
    return len(made) > 1 or keys[0] != keys[1] or is_view(before) != is_view(after)


def added(table: Table, partitions: Mapping[str, Partition], names: Sequence[str]) -> LogMessage:
    return partitions_added(table, [partitions[name] for name in names])


def joined(messages: Sequence[LogMessage]) -> list[LogMessage]:
    """The messages as one step."""
    if len(messages) < 2:
        return list(messages)
    return [replace(message, event_type=f"{PART_OF_LOOK}{message.event_type}") for message in messages]
