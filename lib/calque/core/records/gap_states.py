"""The progress of targets in dealing with gaps of the source's log, as their ledgers tell it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from calque.model.gaps import Gap, GapCause
from calque.model.ledger import NotLiveReason, StateRow, TableRow, TableState
from calque.model.records import DropReview, ForgottenSpan, GapRecovery, Record, one_of

NOT_SHOWN = frozenset({TableState.UNKNOWN, TableState.READING, TableState.STAGING, TableState.WAITING})


@dataclass(frozen=True, slots=True)
class TargetGaps:
    """One target's record of gaps: `recovery` says which gap of the log it has come to, `own` is the newest gap of its
    own, and `reads` tells whether tables are set aside because of a gap."""

    recovery: GapRecovery | None = None
    own: Gap | None = None
    reads: bool = False

    @staticmethod
    def of(records: Collection[Record], rows: Iterable[StateRow]) -> TargetGaps:
        reads = any(
            isinstance(row, TableRow) and row.state in NOT_SHOWN and row.why is NotLiveReason.GAP for row in rows
        )
        return TargetGaps(one_of(records, GapRecovery), own_gap(records), reads)

    def is_under_way(self) -> bool:
        """Tell whether drops that were found because of a gap are still counted or made, or tables are set aside
        because of a gap."""
        settled = DropReview.HELD, DropReview.REPAIRED
        return self.reads or (self.recovery is not None and self.recovery.drops not in settled)

    def state(self) -> GapState:
        """Return the state of the target's newest gap, by this target alone."""
        if self.is_under_way():
            return GapState.REPAIRING
        is_held = self.recovery is not None and self.recovery.drops is DropReview.HELD
        return GapState.HELD if is_held else GapState.REPAIRED

    def state_of_own(self, gap: Gap, gaps: Sequence[Gap]) -> GapState:
        """Return the state of `gap`, one of the target's own. It counts as repaired once `gaps`, the log's, has a newer
        one, to which the target's work then belongs."""
        return self.state() if gap.number == len(gaps) else GapState.REPAIRED


class GapState(StrEnum):
    """The state of a gap of the log, over all targets."""

    REPAIRING = "repairing"
    REPAIRED = "repaired"
    HELD = "held"
    """All changes behind the gap were read; only drops wait for an operator."""


def dealt_with(records: Iterable[Record]) -> int:
    """Return the number of the newest gap that a target has dealt with; 0 for none."""
    recovery = one_of(records, GapRecovery)
    return recovery.newest_gap if recovery is not None else 0


def states_of(gaps: Sequence[Gap], targets: Iterable[TargetGaps]) -> Mapping[int, GapState]:
    """Return the state of each gap of the log by its number. Reads that a target still makes because of a gap count for
    the newest gap alone, and not for it where the target has a newer gap of its own."""
    targets = list(targets)
    states = {}
    for gap in gaps:
        is_late = any((target.recovery.newest_gap if target.recovery else 0) < gap.number for target in targets)
        last = [target for target in targets if gap.number == len(gaps) > number_of(target.own)]
        states[gap.number] = GapState.REPAIRING if is_late else worst(target.state() for target in last)
    return states


def own_gap(records: Iterable[Record]) -> Gap | None:
    """Return the newest gap that is the target's own: the journal forgot events before the target had taken them. None
    for none."""
    span = one_of(records, ForgottenSpan)
    if span is None:
        return None
    return Gap(span.after_gap, span.first_event - 1, span.last_event, GapCause.FORGOTTEN, span.found_at)


def number_of(gap: Gap | None) -> int:
    return gap.number if gap is not None else -1


def worst(states: Iterable[GapState]) -> GapState:
    """Return the state that is farthest from repaired; repaired where `states` is empty."""
    distinct_states = {*states}
    return next((one for one in (GapState.REPAIRING, GapState.HELD) if one in distinct_states), GapState.REPAIRED)
