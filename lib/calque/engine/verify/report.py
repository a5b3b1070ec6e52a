"""The report of `verify`: the objects by name, those that it skipped, and what it found out about a target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from calque.core.images.compare import ComparedCounts, Difference
from calque.model.names import EventId, TableName


class VerifiedObject(NamedTuple):
    """An object by its name at the source; `kind` as in the ledger's rows."""

    kind: str
    name: TableName


@dataclass(frozen=True, slots=True)
class SkippedObject:
    """An object that could not be compared; `shows` is the event id that the target shows of it."""

    table: TableName
    state: str
    shows: EventId | None
    reason: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying a target.

    Each object was compared at an event id at or below `event_id`, and at `event_id` itself unless it was touched after
    its comparison. On a source that rests, or rests long enough for each table in turn, all comparisons hold at
    `event_id` together; under a load that never lets them it is the newest event id at which one of them holds.
    """

    target: str
    event_id: EventId
    compared: ComparedCounts = field(default_factory=ComparedCounts)
    differences: tuple[Difference, ...] = ()
    set_aside: tuple[SkippedObject, ...] = ()
    notes: tuple[tuple[TableName, str, str], ...] = ()
    """Places that parameters of the source's tables name and calque does not follow: (table, key, value). They are no
    differences."""
