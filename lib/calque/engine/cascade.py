"""Did a column change change the partitions too? The log does not say (design §3): one older partition does."""

from __future__ import annotations

from collections.abc import Sequence

from calque.core import decode
from calque.core.fold import Unfoldable
from calque.core.image import canonical
from calque.engine.world import SourceSide, TargetSide
from calque.model.hive import Partition, Table
from calque.model.journal import Entry
from calque.model.names import EventId, Span, TableName


def cascaded(source: SourceSide, side: TargetSide, entries: Sequence[Entry]) -> frozenset[EventId]:
    """The ids among the group's column changes that changed all partitions.

    Raises `Unfoldable` when it can't be told: several column changes, or no partition that only this one could have
    changed.
    """
    changes = [entry for entry in entries if entry.keys.columns_changed]
    if not changes:
        return frozenset()
    change, name = changes[-1], entries[-1].keys.table
    assert name is not None
    assert change.keys.table is not None
    if len(changes) > 1 or is_new(change, entries):
        if is_new(change, entries) and not older_parts(change, entries):
            return frozenset()
        raise Unfoldable(name, change.event_id, "its columns changed, and which partitions with them is not known")
    at = side.admission.name_at_target(first_name(entries))
    touched = {part for entry in entries for part in (*entry.keys.partitions, *entry.keys.others)}
    older = [part for part in side.catalog.partition_names(at) if part not in touched]
    if not older:
        if older_parts(change, entries) or touched:
            raise Unfoldable(name, change.event_id, "its columns changed, and all its partitions after that")
        return frozenset()
    event = source.journal.events([change.event_id])[change.event_id]
    after = decode.table_after(event)
    found = read_bracketed(source, name, older[0], change)
    return frozenset({change.event_id}) if columns_of(found) == columns_of(after) else frozenset()


def is_new(change: Entry, entries: Sequence[Entry]) -> bool:
    """Whether the table was created inside the window, so that all its partitions are in it."""
    return any(entry.event_type == "CREATE_TABLE" and entry.event_id < change.event_id for entry in entries)


def older_parts(change: Entry, entries: Sequence[Entry]) -> bool:
    return any(entry.keys.partitions and entry.event_id < change.event_id for entry in entries)


def first_name(entries: Sequence[Entry]) -> TableName:
    """The name that the table had before the window."""
    name = entries[0].keys.other or entries[0].keys.table
    assert name is not None
    return name


def read_bracketed(source: SourceSide, name: TableName, partition: str, change: Entry) -> Partition:
    """The partition as no later event has changed it. Raises `Unfoldable`."""
    found = source.catalog.partitions(name, [partition]).get(partition)
    current = source.log.current()
    last = source.journal.last() or 0
    if found is None or current > last:
        raise Unfoldable(name, change.event_id, "its columns changed while it went on changing")
    later = source.journal.entries(Span(change.event_id, last)) if last > change.event_id else ()
    for entry in later:
        if name in (entry.keys.table, entry.keys.other) and (
            entry.keys.columns_changed or partition in entry.keys.partitions or partition in entry.keys.others
        ):
            raise Unfoldable(name, change.event_id, "its columns changed again")
    return found


def columns_of(thing: Table | Partition) -> object:
    return canonical(thing.storage.columns if thing.storage else ())
