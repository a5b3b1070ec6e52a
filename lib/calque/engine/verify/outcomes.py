"""What one comparison of one object comes to: compared, skipped, or not yet comparable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calque.core.compare import ComparedCounts, Difference
from calque.engine.verify.report import SkippedObject, VerifiedObject
from calque.model.ledger import Epoch, StateKey, StateRow, TableState
from calque.model.names import EventId, Span

TOO_FAST = "changes too fast to be compared"


@dataclass(frozen=True, slots=True)
class TargetSnapshot:
    """The target's own word on itself, in the order that it was read; `head` is the source's newest event then."""

    epoch: Epoch | None
    rows: Mapping[StateKey, StateRow]
    head: EventId

    @property
    def position(self) -> EventId | None:
        return self.epoch.event_id if self.epoch is not None else None

    def row(self, thing: VerifiedObject) -> StateRow | None:
        return self.rows.get((thing.kind, *thing.name))


@dataclass(frozen=True, slots=True)
class ObjectComparison:
    """`held` are the event ids at which it holds, both ends included; None for an object that is set aside, of which
    only its foreign namesake was looked at."""

    held: Span | None
    counts: ComparedCounts = field(default_factory=ComparedCounts)
    differences: tuple[Difference, ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    aside: SkippedObject | None = None


@dataclass(frozen=True, slots=True)
class NotYetComparable:
    """Not now: `aside` is what to say if it stays so. `event` is the event that the target would have to show; 0 where
    it is not for an event that the object waits."""

    aside: SkippedObject
    event: EventId = 0


Outcome = ObjectComparison | NotYetComparable | SkippedObject


def behind(thing: VerifiedObject, position: EventId, event: EventId) -> NotYetComparable:
    reason = f"the target shows event {position}, and event {event} changed it since"
    return NotYetComparable(SkippedObject(thing.name, TableState.LIVE.value, position, reason), event)
