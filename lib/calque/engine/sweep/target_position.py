"""The position of a target, whether it has work to do, and when its readers last lost a directory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from calque.model.ledger import Epoch, TableRow, TableState
from calque.model.names import EventId, TableName
from calque.ports import Journal, Ledger

KEEPING = frozenset({"create_table", "add_partition", "append", "adopt"})
"""Changes that leave no directory behind that was shown before."""
SETTLED = frozenset({TableState.LIVE, TableState.QUARANTINED})


@dataclass(frozen=True, slots=True)
class TargetPosition:
    """The last epoch of a target and its event. `set_aside` are the tables (at the source) that are not live: an exact
    read of one may still want any of its directories. `is_idle`: everything that was captured is shown, and no table is
    being read."""

    epoch: int
    event_id: EventId
    set_aside: frozenset[TableName]
    is_idle: bool


def target_position_of(ledger: Ledger, journal: Journal) -> TargetPosition | None:
    """Return the target's position; None before the first epoch."""
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
    """Return the time in nanoseconds when the newest epoch was published that may have taken a directory from readers;
    `after_ns` if there was none since."""
    for epoch in reversed(ledger.epochs()):
        if published_ns(epoch) <= after_ns:
            break
        if any(row.change not in KEEPING for row in ledger.objects(epoch.epoch)):
            return published_ns(epoch)
    return after_ns


def published_ns(epoch: Epoch) -> int:
    return int(datetime.fromisoformat(epoch.published_at).timestamp() * 1000) * 1_000_000
