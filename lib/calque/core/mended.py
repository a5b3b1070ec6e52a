"""How far targets have dealt with gaps in the log, from their ledgers' rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from calque.model.gaps import Gap
from calque.model.ledger import TableRow, TableState, Why

KIND = "gap"
"""Of the row that says with `shows` which gap a target has dealt with last, and with its reason how far that is."""
COUNTED, HELD, REPAIRED = "counted", "held", "repaired"
"""What became of the drops that were found by difference: they were few enough, or wait for an operator; in the end
facets were compared, too."""
ASIDE = frozenset({TableState.UNKNOWN, TableState.READING, TableState.STAGING, TableState.WAITING})


class Mending(StrEnum):
    """What became of a gap, over all targets."""

    REPAIRING = "repairing"
    REPAIRED = "repaired"
    HELD = "held"
    """All that changed was read; drops wait for an operator."""


def dealt_with(rows: Iterable[TableRow]) -> int:
    """The newest gap that a target has dealt with; 0 for none."""
    return max((row.shows or 0 for row in rows if row.kind == KIND), default=0)


def states_of(gaps: Sequence[Gap], targets: Iterable[Sequence[TableRow]]) -> Mapping[int, Mending]:
    """Each gap's state by its number. What is still being read because of a gap counts for the newest one."""
    rows = list(targets)
    states = {}
    for gap in gaps:
        newest = gap.number == len(gaps)
        if any(dealt_with(found) < gap.number or (newest and is_under_way(found)) for found in rows):
            states[gap.number] = Mending.REPAIRING
        elif any(is_held(found, gap.number) for found in rows):
            states[gap.number] = Mending.HELD
        else:
            states[gap.number] = Mending.REPAIRED
    return states


def is_under_way(rows: Iterable[TableRow]) -> bool:
    """Whether something is still compared, or tables are set aside because of a gap."""
    return any(
        (row.kind == KIND and row.reason not in (HELD, REPAIRED))
        or (row.kind == "table" and row.state in ASIDE and row.why is Why.GAP)
        for row in rows
    )


def is_held(rows: Iterable[TableRow], number: int) -> bool:
    return any(row.kind == KIND and row.shows == number and row.reason == HELD for row in rows)
