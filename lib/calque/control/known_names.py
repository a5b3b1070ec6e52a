"""The names that ledgers know, by which shells complete a line: tables, epochs and their events. No server is asked: a
ledger that lies in a store knows nothing here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from calque.engine.check.shared_storage import is_on_a_disk
from calque.model.ledger import TableRow
from calque.model.names import EventId
from calque.wiring.wiring import Wiring

MOST = 50
"""The number of epochs that are named at most, the newest ones."""


def known_tables(wiring: Wiring, targets: Iterable[str]) -> Sequence[str]:
    """Return the tables that the targets have or await, by their names at the source. As the functions below, it raises
    what a ledger raises."""
    rows = (row for target in near(wiring, targets) for row in wiring.ledger(target).tables().values())
    return sorted({str(row.name) for row in rows if isinstance(row, TableRow)})


def known_epochs(wiring: Wiring, target: str, beginning: str) -> Sequence[str]:
    """Return the numbers of the target's epochs that begin so, the newest first."""
    numbers = (str(number) for one in near(wiring, (target,)) for number in reversed(wiring.ledger(one).numbers()))
    return tuple(islice((number for number in numbers if number.startswith(beginning)), MOST))


def known_events(wiring: Wiring, targets: Iterable[str]) -> Sequence[EventId]:
    """Return the event ids of the targets' newest epochs, the newest first."""
    event_ids: set[EventId] = set()
    for ledger in map(wiring.ledger, near(wiring, targets)):
        event_ids.update(epoch.event_id for epoch in ledger.epochs(max(ledger.numbers().stop - 1 - MOST, 0)))
    return sorted(event_ids, reverse=True)[:MOST]


def near(wiring: Wiring, targets: Iterable[str]) -> Sequence[str]:
    """Return the targets, none of them where the ledgers lie in a store."""
    return tuple(targets) if is_on_a_disk(wiring.config.state.table_folder()) else ()
