"""The state that a target has reached with regard to an event: it shows the event, does not yet, or only without tables
that are set aside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from calque.model.ledger import StateRow, TableState, shown_event
from calque.model.names import EventId

PAUSED = "paused"
"""The beginning of the reason of a table that an operator holds back, and of one that waits for such a table."""


class ReachedState(Enum):
    """The state that a target has reached with regard to one event."""

    REACHED = "reached"
    GOING = "going"
    WITHOUT = "without"
    """The position has reached the event; quarantined or paused tables do not show it."""


@dataclass(frozen=True, slots=True)
class TargetReachedState:
    """The state that a target has reached with regard to one event, with the objects that do not show it (only with
    `ReachedState.WITHOUT`)."""

    state: ReachedState
    missing: tuple[str, ...] = ()


def reached_state(position: EventId | None, rows: Iterable[StateRow], event_id: EventId) -> TargetReachedState:
    """Return how a target with this position and these rows of its ledger stands to `event_id`.

    Tables that are read or copied are waited for (`ReachedState.GOING`). So are waiting tables that no operator holds
    back, because after a while they are read or quarantined.
    """
    if position is None or position < event_id:
        return TargetReachedState(ReachedState.GOING)
    missing = []
    for row in rows:
        if row.state is TableState.LIVE or (shown_event(row) or 0) >= event_id:
            continue
        if row.state is not TableState.QUARANTINED and not is_paused(row):
            return TargetReachedState(ReachedState.GOING)
        missing.append(str(row.name))
    return TargetReachedState(ReachedState.WITHOUT if missing else ReachedState.REACHED, tuple(sorted(missing)))


def is_paused(row: StateRow) -> bool:
    """Tell whether the table stays as it is until an operator lets it go on."""
    return row.state not in (TableState.LIVE, TableState.QUARANTINED) and row.reason.startswith(PAUSED)
