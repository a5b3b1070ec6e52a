"""What scans find: changes of files that no event tells of, and what they compare with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calque.model.files import Listing
from calque.model.journal import TableShape
from calque.model.names import EventId, TableName

ObjectKey = tuple[TableName, str]
"""A table and a partition (empty: the plain table)."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Directories of one table, by partition (`""`: the plain table), that were found changed; all of them were so at
    one time after `event_id`, and before any later event on them. `found_at` is in seconds since the epoch."""

    event_id: EventId
    found_at: int
    table: TableName
    shape: TableShape
    listings: Mapping[str, Listing]


@dataclass(frozen=True, slots=True)
class ScannedDirectory:
    """A directory as it was last seen, with the directories below it that held data (`""`: itself) and when each was
    last changed; no times where that is not known."""

    location: str
    fingerprint: str
    directories: tuple[str, ...] = ()
    times: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """Directories as they were when everything up to event `event_id` was looked at, and what the scans up to number
    `scan` found was taken up."""

    event_id: EventId = 0
    watched: Mapping[ObjectKey, ScannedDirectory] = field(default_factory=dict)
    scan: int = 0
