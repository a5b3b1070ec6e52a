"""The differences between two looks at a catalog without a log, as messages of the log that calque keeps for it.

States between two looks are unknown. All changes of one table that one look finds are one step. Where the step takes
several messages, their types begin with `LOOKED_`, and no state lies between them (`core.states.fold.same_run`). A name
that is looked at for the first time gets the message `LOOKED`: the table is read then, because its changes before are
unknown. A table that was dropped and made again between two looks is dropped and made in the log, too.
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
"""The digest of each partition's definition, by partition name."""


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table as the last look found it: its version, its definition, and the digests of its partitions."""

    version: str
    table: Table
    partitions: Digests


def digests_of(partitions: Mapping[str, Partition]) -> Digests:
    return {name: xxhash.xxh3_64_hexdigest(tjson(in_order(partition))) for name, partition in partitions.items()}


def in_order(partition: Partition) -> Partition:
    """Return the partition with the keys of its maps in ascending order, so that equal partitions have equal
    digests."""
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
    """Return the message that the table of this name is to be read, as a look sees it for the first time."""
    return LogMessage(LOOKED, name.database, name.table, {})


def database_changes(before: Database | None, after: Database | None, name: str) -> list[LogMessage]:
    """Return the messages for the change of the database from one look to the next. A database that is looked at for
    the first time counts as new."""
    if before is None:
        return [database_created(after)] if after is not None else []
    if after is None:
        return [LogMessage("DROP_DATABASE", name, "", {"db": name})]
    return [] if before == after else [database_altered(before, after)]


def table_changes(
    before: KnownTable, after: Table | None, digests: Digests, partitions: Mapping[str, Partition]
) -> list[LogMessage]:
    """Return the messages for the change of the table from the last look (`before`) to this one: `after` is the table
    now, None where it is gone, and `digests` has all its partitions. `partitions` has at least those whose digests are
    new."""
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
    """Tell whether `after` is another table than `before`, which was dropped in between, and no alteration of it: its
    time of creation or its partition keys differ, or only one of the two is a view."""
    made = {table.create_time for table in (before, after) if table.create_time}
    keys = [tuple((key.name, key.type) for key in table.partition_keys or ()) for table in (before, after)]
    return len(made) > 1 or keys[0] != keys[1] or is_view(before) != is_view(after)


def added(table: Table, partitions: Mapping[str, Partition], names: Sequence[str]) -> LogMessage:
    return partitions_added(table, [partitions[name] for name in names])


def joined(messages: Sequence[LogMessage]) -> list[LogMessage]:
    """Return the messages as one step: where there are several, their types begin with `LOOKED_`."""
    if len(messages) < 2:
        return list(messages)
    return [replace(message, event_type=f"{PART_OF_LOOK}{message.event_type}") for message in messages]
