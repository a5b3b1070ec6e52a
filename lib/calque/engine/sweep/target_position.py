"""Up to which event is a target, what has it still to do, and when did its readers last lose a directory?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from calque.model.ledger import Epoch, TableRow, TableState
from calque.model.names import EventId, TableName
from calque.ports import Journal, Ledger

KEEPING = frozenset({"create_table", "add_partition", "append", "adopt"})
"""Changes after which no directory is left that was shown before."""
SETTLED = frozenset({TableState.LIVE, TableState.QUARANTINED})


@dataclass(frozen=True, slots=True)
class TargetPosition:
    """Where a target is. `set_aside` are the tables (at the source) that are not live: reads of them may want any
    directory of theirs. `is_idle`: everything that was captured is shown, and nothing is being read."""

    epoch: int
    event_id: EventId
    set_aside: frozenset[TableName]
    is_idle: bool


def target_position_of(ledger: Ledger, journal: Journal) -> TargetPosition | None:
    """None before the first epoch."""
    epoch = ledger.last_epoch()
    if epoch is None:
        return None
    rows = [row for row in ledger.tables().values() if isinstance(row, TableRow)]
    set_aside = frozenset(row.name for row in rows if row.state is not TableState.LIVE)
    is_settled = all(row.state in SETTLED for row in rows)
    return TargetPosition(
        epoch.epoch, epoch.event_id, set_aside, is_settled and (journal.last() or 0) <= epoch.event_id
    )


def ended_ns(ledger: Ledger, after_ns: int) -> int:
    """When the newest epoch was published that may have taken a directory from readers; `after_ns` when none since."""
    for epoch in reversed(ledger.epochs()):
        if published_ns(epoch) <= after_ns:
            break
        if any(row.change not in KEEPING for row in ledger.objects(epoch.epoch)):
            return published_ns(epoch)
    return after_ns


def published_ns(epoch: Epoch) -> int:
    return int(datetime.fromisoformat(epoch.published_at).timestamp() * 1000) * 1_000_000
