"""The changes of files that scans find and no event tells of, and the memory that scans compare with."""

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
    """A scan's find: directories of one table that had changed, by partition (`""`: the plain table). All of them were
    so at one time after `event_id`, and before any later event on them. `found_at` is in seconds since the epoch."""

    event_id: EventId
    found_at: int
    table: TableName
    shape: TableShape
    listings: Mapping[str, Listing]


@dataclass(frozen=True, slots=True)
class ScannedDirectory:
    """A directory as a scan saw it last. `directories` are those in it that held data (`""`: the directory itself),
    `times` when each was last changed; without times where these are not known."""

    location: str
    fingerprint: str
    directories: tuple[str, ...] = ()
    times: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """The directories as scans know them. `watched` has them as they were when all events up to `event_id` were looked
    at; what the scans up to number `scan` found is taken up in it."""

    event_id: EventId = 0
    watched: Mapping[ObjectKey, ScannedDirectory] = field(default_factory=dict)
    scan: int = 0
