"""How far targets have dealt with gaps in the log, from their ledgers' rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from calque.model.gaps import Cause, Gap
from calque.model.ledger import TableRow, TableState, Why

KIND = "gap"
"""Of the row that says with `shows` which gap a target has dealt with last, and with its reason how far that is."""
BEHIND = "behind"
"""Of the row that has the newest gap of a target's own: its first event is `shows`, its last one `since_event`, when it
was found `reason`; `owned` is the number of the log's newest gap by then."""
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
    """Each gap's state by its number. What is still being read because of a gap counts for the newest one, or for a
    gap of a target's own that came after it."""
    rows = list(targets)
    states = {}
    for gap in gaps:
        late = any(dealt_with(found) < gap.number for found in rows)
        last = [found for found in rows if gap.number == len(gaps) > number_of(own_gap(found))]
        states[gap.number] = Mending.REPAIRING if late else worst(map(state_of, last))
    return states


def own_gap(rows: Iterable[TableRow]) -> Gap | None:
    """The newest gap that is the target's own."""
    row = next((row for row in rows if row.kind == BEHIND), None)
    if row is None:
        return None
    return Gap(int(row.owned), (row.shows or 1) - 1, row.since_event or 0, Cause.FORGOTTEN, row.reason)


def state_of_own(gap: Gap, gaps: Sequence[Gap], rows: Sequence[TableRow]) -> Mending:
    """What became of a gap of the target's own: it is of no account behind the log's next one."""
    return state_of(rows) if gap.number == len(gaps) else Mending.REPAIRED


def number_of(gap: Gap | None) -> int:
    return gap.number if gap is not None else -1


def worst(states: Iterable[Mending]) -> Mending:
    found = {*states}
    return next((one for one in (Mending.REPAIRING, Mending.HELD) if one in found), Mending.REPAIRED)


def state_of(rows: Sequence[TableRow]) -> Mending:
    """What became of the target's newest gap."""
    if is_under_way(rows):
        return Mending.REPAIRING
    held = any(row.kind == KIND and row.reason == HELD for row in rows)
    return Mending.HELD if held else Mending.REPAIRED


def is_under_way(rows: Iterable[TableRow]) -> bool:
    """Whether something is still compared, or tables are set aside because of a gap."""
    return any(
        (row.kind == KIND and row.reason not in (HELD, REPAIRED))
        or (row.kind == "table" and row.state in ASIDE and row.why is Why.GAP)
        for row in rows
    )
