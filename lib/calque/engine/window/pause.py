"""The tables that an operator holds back: windows and reads pass them by, and each shows the event that it showed.

A table that a rename links to such a table, or that shares a chain with it, waits with it. Which tables are chosen is
an operator's record; which event each shows stands in its row of the ledger, so that it catches up from the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from calque.core.records.lifecycle import ASIDE, UNREAD, State
from calque.core.records.reached_state import PAUSED
from calque.core.states.fold import names_in
from calque.engine.sides.journal_reads import reach
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import PAUSED_BY_OPERATOR, TableStates
from calque.engine.window.consistency import Consistency
from calque.engine.window.exact_reads import ExactReadRequests
from calque.engine.window.scan_backlog import ScanBacklog
from calque.model.journal import Entry
from calque.model.names import EventId, TableName


def nobody(_name: TableName) -> bool:
    return False


@dataclass(slots=True)
class PauseRules:
    """The choice of an operator: `takes` says which tables are held back, `is_target_paused` whether the target itself
    is, so that no read begins."""

    takes: Callable[[TableName], bool] = nobody
    is_target_paused: Callable[[], bool] = lambda: False

    def holds(self, name: TableName) -> bool:
        """Tell whether no read of the table may begin."""
        return self.takes(name) or self.is_target_paused()


@dataclass(frozen=True, slots=True)
class Pauses:
    """The means to hold tables of one target back, and to let them go on. `begin` says after which event the journal
    begins."""

    rules: PauseRules
    source: SourceSide
    side: TargetSide
    tables: TableStates
    consistency: Consistency
    scanned: ScanBacklog
    reads: ExactReadRequests
    begin: Callable[[], EventId]

    def apply_rules(self) -> None:
        """Hold back the tables that are chosen now, and let go those that are not chosen any more. Called between
        windows only."""
        names = list(self.tables.rows)
        for name in names:
            if self.is_paused(name) and not self.rules.takes(name):
                self.let_go(name)
        for name in names:
            if self.rules.takes(name):
                self.hold(name)

    def is_paused(self, name: TableName) -> bool:
        """Tell whether the table is held back already, be it one that the target shows or one that is to be read."""
        status = self.tables.rows[name]
        is_held = status.state in UNREAD and status.reason.startswith(PAUSED)
        return is_held or status.state is State.PAUSED

    def hold(self, name: TableName, reason: str = PAUSED_BY_OPERATOR) -> None:
        """Keep the table at what it shows, for `reason`. One that is being read, or copied beside the windows, is held
        when that ends. A quarantined table is left as it is."""
        if name in self.tables.copied or self.tables.is_(name, {State.QUARANTINED}):
            return
        if self.tables.is_(name, UNREAD):
            self.tables.explain(name, reason)
        else:
            self.tables.pauses.begin(name, reason)

    def let_go(self, name: TableName) -> None:
        """Let a table that was held back catch up from the journal. Where the journal does not reach back to what the
        table shows, it is read, and drops that the journal does not tell of any more are counted first. A table that
        was to be read when it was held back is read."""
        match self.tables.state(name):
            case State.PARKED:
                self.tables.pauses.unpark(name)
                self.reads.submit(name)
            case state if state in UNREAD:
                self.tables.explain(name, "it was paused before it was read")
            case _ if self.tables.shown(name) < max(reach(self.source.journal), self.begin()):
                self.reads.need_counted(name, "it was paused for longer than the journal reaches back")
            case _:
                self.tables.pauses.catch_up(name)

    def hold_group(self, group: Sequence[Entry]) -> bool:
        """Tell whether a window passes the group by because of a table that is held back, and hold back its other
        tables then."""
        held_table = self.held_in(group)
        if held_table is None:
            return False
        names = self.side.admission.taken(names_in(group))
        self.scanned.miss(names)
        for name in names:
            if not self.tables.is_(name, UNREAD | {State.PAUSED}):
                is_chosen = self.rules.takes(name)
                self.hold(
                    name, PAUSED_BY_OPERATOR if is_chosen else f"{PAUSED} with {held_table}, to which its events lead"
                )
        return True

    def held_in(self, group: Sequence[Entry]) -> TableName | None:
        """Return a table that is held back and keeps the group from going on, None for none."""
        names = names_in(group)
        for name in sorted(names):
            if self.tables.is_(name, {State.PAUSED}):
                return name
            if self.rules.takes(name) and self.side.admission.takes(name) and not self.tables.is_(name, ASIDE):
                return name
        if self.consistency.by_database:
            databases = {name.database for name in names}
            return next((name for name in sorted(self.tables.paused) if name.database in databases), None)
        return None

    def reason_of_view(self, base: TableName) -> str:
        """Return the reason why a view on `base` waits."""
        is_held = self.tables.is_(base, {State.PAUSED, State.PARKED})
        return f"{PAUSED} with {base}, which it shows" if is_held else f"{base}, which it shows, is not there yet"

    def end_window(self, upto: EventId) -> None:
        """Make the tables live that were let go and had nothing to catch up with, at the end of a window to `upto`."""
        self.tables.pauses.end_window()
        for name in self.tables.pauses.caught_up(upto):
            self.tables.arrive(name, upto, present=True)
