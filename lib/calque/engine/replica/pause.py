"""Tables that an operator holds back: windows and reads pass them by, and each shows the event that it showed.

What a rename links to such a table, or what shares a chain with it, waits with it. Which tables are chosen is an
operator's record; which event each shows stands in its row of the ledger, so that it catches up from the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from calque.core.fold import names_in
from calque.core.standing import PAUSED, is_paused
from calque.engine.sides.journal_reads import reach
from calque.engine.sides.table_states import OUT
from calque.model.journal import Entry
from calque.model.ledger import TableState
from calque.model.names import EventId, TableName

if TYPE_CHECKING:
    from calque.engine.replica.replica import Replica

REASON = f"{PAUSED} by an operator; `calque resume --tables` lets it go on"
CATCHES_UP = "it was paused, and catches up"


def nobody(_name: TableName) -> bool:
    return False


@dataclass(slots=True)
class Paused:
    """`takes` says which tables are chosen. `names` are passed by windows, each with its row WAITING, and cost no look
    at the journal; `parked` wait to be read. With `fresh` one window looks at all that they have not shown, to find
    again who waits with whom."""

    takes: Callable[[TableName], bool] = nobody
    whole: Callable[[], bool] = lambda: False
    """Whether the target itself is held back, so that no read is to begin."""
    names: set[TableName] = field(default_factory=set)
    parked: set[TableName] = field(default_factory=set)
    fresh: bool = False

    def forget(self) -> None:
        self.names, self.parked, self.fresh = set(), set(), False


def hold_back(replica: Replica, takes: Callable[[TableName], bool]) -> None:
    """From now on the chosen tables are held back, and no others. Only between windows."""
    replica.paused.takes = takes
    take_up(replica)


def take_up(replica: Replica) -> None:
    """Hold back what is chosen now, and let go what is not any more."""
    rows = list(replica.tables.rows.items())
    for name, row in rows:
        if is_paused(row) and not replica.paused.takes(name):
            let_go(replica, name)
    for name, _ in rows:
        if replica.paused.takes(name):
            hold(replica, name)


def hold(replica: Replica, name: TableName, reason: str = REASON) -> None:
    """The table stays as it is. One that is being read, or copied beside the windows, is held when that has ended."""
    tables, paused = replica.tables, replica.paused
    row = tables.rows.get(name)
    if name in replica.staging.names or (row is not None and row.state is TableState.QUARANTINED):
        return
    if row is not None and row.state in OUT:
        tables.put(name, row.state, row.shows, reason, row.since_event or 0, row.why)
        return
    shows = row.shows or 0 if name in paused.names and row is not None else replica.shown(name)
    replica.waiting_since.pop(name, None)
    tables.put(name, TableState.WAITING, shows, reason, shows)
    paused.names.add(name)
    if paused.fresh:
        tables.apart[name] = shows
    else:
        tables.apart.pop(name, None)


def park(replica: Replica, name: TableName) -> None:
    """The table is to be read when it goes on. What it would lose by that is counted already where it is to be."""
    row = replica.tables.rows[name]
    replica.reading.reads.leave(name)
    replica.tables.put(name, TableState.UNKNOWN, row.shows, REASON, row.since_event or 0)
    replica.paused.parked.add(name)


def let_go(replica: Replica, name: TableName) -> None:
    """The table catches up from the journal. Where that does not reach back to what it shows it is read, and drops that
    the journal does not tell of any more are counted first."""
    tables, paused = replica.tables, replica.paused
    row = tables.rows[name]
    if row.state in OUT:
        tables.put(name, row.state, row.shows, "it was paused before it was read", row.since_event or 0, row.why)
        if name in paused.parked:
            paused.parked.discard(name)
            replica.submit(name)
        return
    paused.names.discard(name)
    shows = row.shows or 0
    if shows < max(reach(replica.source.journal), replica.begin()):
        replica.read_counted(name, "it was paused for longer than the journal reaches back")
        return
    paused.fresh = paused.fresh or row.reason != REASON
    tables.apart[name] = shows
    tables.put(name, TableState.WAITING, shows, CATCHES_UP, shows)


def hold_group(replica: Replica, group: Sequence[Entry]) -> bool:
    """Whether a window passes the group by, because of a table that is held back."""
    because = held_in(replica, group)
    if because is None:
        return False
    names, paused = replica.admitted(group), replica.paused
    replica.scanned.miss(names)
    for name in names:
        if name not in paused.names and not replica.tables.is_(name, OUT):
            hold(replica, name, REASON if paused.takes(name) else f"{PAUSED} with {because}, to which its events lead")
    return True


def held_in(replica: Replica, group: Sequence[Entry]) -> TableName | None:
    """A table that keeps the group from going on."""
    paused, names = replica.paused, names_in(group)
    for name in sorted(names):
        if name in paused.names:
            return name
        if paused.takes(name) and replica.side.admission.takes(name) and not replica.tables.is_(name, UNDISTURBED):
            return name
    if paused.names and replica.consistency.by_database:
        databases = {name.database for name in names}
        return next((name for name in sorted(paused.names) if name.database in databases), None)
    return None


UNDISTURBED = OUT | {TableState.QUARANTINED}
"""States in which windows pass a table by anyway."""


def reason_of_view(replica: Replica, base: TableName) -> str:
    """Why a view on `base` waits."""
    held = base in replica.paused.names or base in replica.paused.parked
    return f"{PAUSED} with {base}, which it shows" if held else f"{base}, which it shows, is not there yet"


def arrive(replica: Replica, upto: EventId) -> None:
    """At a window's end: tables that had nothing to catch up with are live."""
    apart = replica.tables.apart
    if replica.paused.fresh:
        replica.paused.fresh = False
        for name in replica.paused.names:
            apart.pop(name, None)
    for name, shows in list(apart.items()):
        row = replica.tables.rows.get(name)
        if row is not None and row.reason == CATCHES_UP and shows <= upto and row.state is TableState.WAITING:
            replica.arrive(name, upto, present=True)
