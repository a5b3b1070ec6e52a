"""Moves: renames keep the content of a directory, whether it goes along with the name or stays.

A metastore moves the directory of a managed table that lies where its name says, with those of its partitions, and that
of a managed partition. Any other rename changes the name alone. So a content that was known of a directory is its
content under the new path too. Only a rename of a table that gives it another location by itself leaves the content
there unknown. Renames of Delta tables are no moves: these tables change without events, and at a rename their newest
version is looked for.
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
    """A move: at `event_id` all that lay at `old`, and below it, went to `new`. Both are the same where the directory
    stayed."""

    event_id: EventId
    old: str
    new: str

    def follow(self, location: str) -> str:
        """Return the place of `location` after the move."""
        if location == self.old or location.startswith(f"{self.old}/"):
            return self.new + location[len(self.old) :]
        return location


def may_move(entry: Entry) -> bool:
    """Tell whether the event can be a move, by its keys; only `move_of` its message says for sure."""
    kind, shape = entry.keys.kind, entry.keys.shape
    return kind is EventKind.RENAME_PARTITION or (kind is EventKind.RENAME_TABLE and shape is not TableShape.VIEW)


def move_of(event: Event) -> Move | None:
    """Return the move in a rename's message. None for a table that got another location by the rename or has none, for
    a Delta table, and for a message that can't be decoded."""
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
    """Return the move that took a managed table from `old`, where it lay under its name before, to its place after one
    or more renames; None where nothing moved. The table may have become managed before, or external afterwards."""
    new = location_of(after)
    was_managed = "MANAGED_TABLE" in (old_type, after.type)
    is_moved = was_managed and is_named(old, name) and is_named(new, after.name)
    return Move(event_id, old.rstrip("/"), new.rstrip("/")) if is_moved and old and new and old != new else None


def is_named(location: str | None, table: str | None) -> bool:
    """Tell whether a directory has a table's name, as a metastore gives it."""
    return (location or "").rstrip("/").rpartition("/")[2].lower() == (table or "").lower()


def places(event_id: EventId, location: str, moves: Iterable[Move]) -> Sequence[str]:
    """Return the places that a directory of `event_id` had in turn; the last is its place after all moves."""
    locations = [location]
    for move in moves:
        if move.event_id > event_id and (followed := move.follow(locations[-1])) != locations[-1]:
            locations.append(followed)
    return locations
