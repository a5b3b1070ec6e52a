"""Renames keep what is in a directory, whether it goes along with the name or stays.

A metastore moves the directory of a managed table that lies where its name says, its partitions' with it, and that of a
managed partition; of all else a rename changes the name alone. What was known of a directory is true of it under its
new path. Only a rename of a table that gives it another location by itself says nothing of what is there. Delta tables
are none of this: they are changed without events, and a rename is one at which their newest version is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from calque.core.events import decode
from calque.model.hive import Table, is_delta, location_of
from calque.model.journal import Entry, Event, EventKind, TableShape
from calque.model.names import EventId


@dataclass(frozen=True, slots=True)
class Move:
    """At `event_id` all that lay at `old`, and below it, went to `new`; both are the same where it stayed."""

    event_id: EventId
    old: str
    new: str

    def follow(self, location: str) -> str:
        """Where a location is after the move."""
        if location == self.old or location.startswith(f"{self.old}/"):
            return self.new + location[len(self.old) :]
        return location


def may_move(entry: Entry) -> bool:
    """Whether the event can be a move; `move_of` its message says for sure."""
    kind, shape = entry.keys.kind, entry.keys.shape
    return kind is EventKind.RENAME_PARTITION or (kind is EventKind.RENAME_TABLE and shape is not TableShape.VIEW)


def move_of(event: Event) -> Move | None:
    """The move in a rename's message; None for a table that got another location by it or has none, or is Delta's."""
    try:
        if "PARTITION" in event.event_type:
            (after,) = decode.partitions_after(event)
            old, new = location_of(decode.partition_before(event)), location_of(after)
        else:
            table_before, table_after = decode.table_before(event), decode.table_after(event)
            old, new = location_of(table_before), location_of(table_after)
            is_moved = is_named(old, table_before.name) and is_named(new, table_after.name)
            if is_delta(table_after) or (old != new and not is_moved):
                return None
    except decode.Undecodable:
        return None
    return Move(event.event_id, old.rstrip("/"), new.rstrip("/")) if old and new else None


def move_of_tables(old: str | None, name: str, old_type: str, after: Table, event_id: EventId) -> Move | None:
    """The move that took a managed table from `old`, where it lay under its name before, to where it lies after one or
    more renames; None where nothing moved. It may have become managed before, or external afterwards."""
    new = location_of(after)
    was_managed = "MANAGED_TABLE" in (old_type, after.type)
    is_moved = was_managed and is_named(old, name) and is_named(new, after.name)
    return Move(event_id, old.rstrip("/"), new.rstrip("/")) if is_moved and old and new and old != new else None


def is_named(location: str | None, table: str | None) -> bool:
    """Whether a directory has a table's name, as a metastore gives it."""
    return (location or "").rstrip("/").rpartition("/")[2].lower() == (table or "").lower()


def places(event_id: EventId, location: str, moves: Iterable[Move]) -> Sequence[str]:
    """Where a directory of `event_id` was in turn; the last is where it is after all moves."""
    locations = [location]
    for move in moves:
        if move.event_id > event_id and (followed := move.follow(locations[-1])) != locations[-1]:
            locations.append(followed)
    return locations
