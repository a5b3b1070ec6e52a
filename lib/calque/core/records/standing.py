"""Does a target show an event: yes, not yet, or only without tables that are set aside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from calque.model.ledger import StateRow, TableState, shown_event
from calque.model.names import EventId

PAUSED = "paused"
"""What the reasons of tables begin with that an operator holds back, and of those that wait for these."""


class Standing(Enum):
    REACHED = "reached"
    GOING = "going"
    WITHOUT = "without"
    """The position is there; tables that are set aside for long are missing."""


@dataclass(frozen=True, slots=True)
class TargetStanding:
    standing: Standing
    missing: tuple[str, ...] = ()


def standing(position: EventId | None, rows: Iterable[StateRow], event_id: EventId) -> TargetStanding:
    """How a target stands to `event_id`. Rows are the ledger's; tables being read or copied are waited for, and so are
    waiting ones that nobody holds back: they are read, or quarantined, after a while."""
    if position is None or position < event_id:
        return TargetStanding(Standing.GOING)
    missing = []
    for row in rows:
        if row.state is TableState.LIVE or (shown_event(row) or 0) >= event_id:
            continue
        if row.state is not TableState.QUARANTINED and not is_paused(row):
            return TargetStanding(Standing.GOING)
        missing.append(str(row.name))
    return TargetStanding(Standing.WITHOUT if missing else Standing.REACHED, tuple(sorted(missing)))


def is_paused(row: StateRow) -> bool:
    """Whether the table stays as it is until an operator lets it go on."""
    return row.state not in (TableState.LIVE, TableState.QUARANTINED) and row.reason.startswith(PAUSED)
