"""How a target begins with all its tables unknown: for the first time, or again after gaps.

The rows for that are one write of the ledger, which comes last: who dies before it begins once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from calque.engine.apply.databases import Databases
from calque.engine.apply.functions import Functions
from calque.engine.exact_reads import gap_recovery
from calque.engine.exact_reads.gap_recovery import Key, Mended
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TABLE
from calque.engine.window.consistency import Consistency
from calque.engine.window.scan_backlog import Scanned
from calque.model.gaps import Cause, Gap
from calque.model.ledger import Epoch, TableRow, TableState, Why
from calque.model.names import EventId, TableName


@dataclass(frozen=True, slots=True)
class Begun:
    """All tables are unknown since event `low`; the source was listed before event `listed`. `tables` is how many."""

    low: EventId
    listed: EventId
    mended: Mended
    tables: int


@dataclass(frozen=True, slots=True)
class Afresh:
    """One target's beginnings. `begin` says where the journal begins."""

    source: SourceSide
    side: TargetSide
    begin: Callable[[], EventId]
    databases: Databases
    functions: Functions
    consistency: Consistency
    scanned: Scanned

    def bootstrap(self) -> Begun:
        """List the source; every admitted table is to be read by itself."""
        low = self.low()
        names = self.names()
        self.consistency.bootstrap({name.database for name in names})
        self.make(low)
        rows = [TableRow(*name, TableState.UNKNOWN, None, gap_recovery.BOOTSTRAP, low, why=Why.ALL) for name in names]
        newest = max((one.number for one in gap_recovery.newer(self.source.gaps, Mended())), default=0)
        return self.begun(low, Mended(newest, drops=""), rows)

    def again(
        self, rows: Mapping[Key, TableRow], gaps: Sequence[Gap], mended: Mended, cursor: EventId, epoch: Epoch | None
    ) -> Begun:
        """After gaps of the log, or one of the target's own: nothing that it shows is known to be so at the source, and
        the position is where the log is now. What is equal is found out before anything is read."""
        low = self.low()
        known = [TableName(row.database, row.table) for row in rows.values() if row.kind == TABLE]
        names = {*self.names(), *filter(self.side.admission.takes, known)}
        self.consistency.open((), bootstrapping=epoch is None)
        for database in sorted({name.database for name in names}):
            self.consistency.rebase(database)
        self.make(low)
        unknown = gap_recovery.unknown_rows(names, rows, cursor, low, gaps)
        own = [gap_recovery.behind_row(gap) for gap in gaps if gap.cause is Cause.FORGOTTEN]
        return self.begun(low, mended.with_gaps(gaps, epoch), unknown, own)

    def low(self) -> EventId:
        """An event that comes before the listing. What scans found by now is nothing new to who reads after it."""
        low = max(self.source.log.current(), self.begin())
        self.scanned.begin()
        return low

    def names(self) -> list[TableName]:
        """Every admitted table of the source, and those at the target that the source lost."""
        found = self.names_at_source()
        return [*found, *self.databases.left_over(set(found))]

    def names_at_source(self) -> list[TableName]:
        """Every admitted table."""
        found: list[TableName] = []
        for database in self.source.catalog.databases():
            if self.side.admission.touches_database(database):
                names = [TableName(database, table.lower()) for table in self.source.catalog.tables(database)]
                found += [name for name in names if self.side.admission.takes(name)]
        return found

    def make(self, low: EventId) -> None:
        """Databases and functions, as the source has them now."""
        self.databases.bootstrap(low)
        self.functions.bootstrap(low)

    def begun(self, low: EventId, mended: Mended, unknown: Sequence[TableRow], own: Sequence[TableRow] = ()) -> Begun:
        listed, scans = self.source.log.current(), self.scanned.row()
        others = [gap_recovery.begun_at(low, listed), mended.row(), *own, *([scans] if scans is not None else [])]
        self.side.ledger.put_tables([*unknown, *others])
        return Begun(low, listed, mended, len(unknown))
