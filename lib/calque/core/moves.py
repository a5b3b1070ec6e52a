"""Renames of managed tables move directories, partitions' too, without any event for the partitions.

What was known of a directory is true of it under its new path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from calque.core import decode
from calque.model.hive import location_of
from calque.model.journal import Entry, Event, EventKind, TableShape
from calque.model.names import EventId


@dataclass(frozen=True, slots=True)
class Move:
    """At `event_id` everything below `old` went below `new`."""

    event_id: EventId
    old: str
    new: str

    def follow(self, location: str) -> str:
        """Where a location is after the move."""
        return self.new + location[len(self.old) :] if location.startswith(f"{self.old}/") else location


def may_move(entry: Entry) -> bool:
    """Whether the event can be a move; `move_of` its message says for sure."""
    return entry.keys.kind is EventKind.RENAME_TABLE and entry.keys.shape is TableShape.PARTITIONED


def move_of(event: Event) -> Move | None:
    """The move in a rename's message, if the table's directory changed with its name."""
    try:
        old, new = location_of(decode.table_before(event)), location_of(decode.table_after(event))
    except decode.Undecodable:
        return None
    return Move(event.event_id, old.rstrip("/"), new.rstrip("/")) if old and new and old != new else None


def places(event_id: EventId, location: str, moves: Iterable[Move]) -> Sequence[str]:
    """Where a directory of `event_id` was in turn; the last is where it is after all moves."""
    locations = [location]
    for move in moves:
        if move.event_id > event_id and (followed := move.follow(locations[-1])) != locations[-1]:
            locations.append(followed)
    return locations
