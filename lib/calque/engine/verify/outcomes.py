"""The outcomes of one comparison of one object: compared, skipped, or not yet comparable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calque.core.images.compare import ComparedCounts, Difference
from calque.engine.verify.report import SkippedObject, VerifiedObject
from calque.model.ledger import Epoch, StateKey, StateRow, TableState
from calque.model.names import EventId, Span

TOO_FAST = "changes too fast to be compared"


@dataclass(frozen=True, slots=True)
class TargetSnapshot:
    """The target's ledger, in the order in which it is read: its last epoch, then its rows. `head` is the source's
    newest event after that."""

    epoch: Epoch | None
    rows: Mapping[StateKey, StateRow]
    head: EventId

    @property
    def position(self) -> EventId | None:
        return self.epoch.event_id if self.epoch is not None else None

    def row(self, verified_object: VerifiedObject) -> StateRow | None:
        return self.rows.get((verified_object.kind, *verified_object.name))


@dataclass(frozen=True, slots=True)
class ObjectComparison:
    """The result of a comparison that could be made. `valid_span` are the event ids at which it holds, both ends
    included. It is None for an object that is set aside, of which only its foreign namesake was looked at: `skipped`
    says why."""

    valid_span: Span | None
    counts: ComparedCounts = field(default_factory=ComparedCounts)
    differences: tuple[Difference, ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    skipped: SkippedObject | None = None


@dataclass(frozen=True, slots=True)
class NotYetComparable:
    """The object can't be compared now: `skipped` is what to report if that stays so. `awaited_event` is the event that
    the target has to show first; 0 when the object waits for no event."""

    skipped: SkippedObject
    awaited_event: EventId = 0


Outcome = ObjectComparison | NotYetComparable | SkippedObject


def behind(verified_object: VerifiedObject, position: EventId, event: EventId) -> NotYetComparable:
    reason = f"the target shows event {position}, and event {event} changed it since"
    return NotYetComparable(SkippedObject(verified_object.name, TableState.LIVE.value, position, reason), event)
