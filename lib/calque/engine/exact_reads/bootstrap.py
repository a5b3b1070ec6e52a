"""The beginning of a target with all its tables unknown: for the first time, or again after gaps.

The ledger learns of it last: first the rows of all tables, then the records that make them count. A process that dies
before these records leaves a target that begins once more and writes the rows anew. A table that is gone from the
source by then is read like the others, and its row goes when the read finds it missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from calque.core.records.contents import contents, line_of
from calque.engine.apply.databases import Databases
from calque.engine.apply.functions import Functions
from calque.engine.exact_reads import gap_recovery
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.window.consistency import Consistency
from calque.engine.window.scan_backlog import ScanBacklog
from calque.model.gaps import Gap, GapCause
from calque.model.ledger import Epoch, NotLiveReason, StateKey, StateRow, TableRow, TableState
from calque.model.names import EventId, TableName
from calque.model.records import BootstrapBeginning, DropReview, ForgottenSpan, GapRecovery


@dataclass(frozen=True, slots=True)
class BootstrapStart:
    """A beginning that is recorded: all tables are unknown since event `low`, and the source was listed before event
    `listed`. `tables` is how many there are."""

    low: EventId
    listed: EventId
    recovery: GapRecovery
    tables: int


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The beginnings of one target. `begin` says after which event the journal begins."""

    source: SourceSide
    side: TargetSide
    begin: Callable[[], EventId]
    databases: Databases
    functions: Functions
    consistency: Consistency
    scanned: ScanBacklog

    def bootstrap(self) -> BootstrapStart:
        """Begin for the first time: list the source, make databases and functions, and record every admitted table as
        unknown, so that it is read by itself."""
        low = self.low()
        names = self.names()
        self.consistency.bootstrap({name.database for name in names})
        self.make(low)
        rows = [
            TableRow(*name, TableState.UNKNOWN, None, gap_recovery.BOOTSTRAP, low, why=NotLiveReason.ALL)
            for name in names
        ]
        newest = max((one.number for one in gap_recovery.newer(self.source.gaps, GapRecovery())), default=0)
        return self.begun(low, GapRecovery(newest, drops=DropReview.COMPARING), rows)

    def again(
        self,
        rows: Mapping[StateKey, StateRow],
        gaps: Sequence[Gap],
        recovery: GapRecovery,
        cursor: EventId,
        epoch: Epoch | None,
    ) -> BootstrapStart:
        """Begin again after `gaps` of the log, or one of the target's own. Nothing that the target shows is known to be
        so at the source, so all tables are unknown, and the position is where the log is now. Tables that are equal are
        found before anything is read. `rows` are the ledger's, `cursor` is the position until now, and `epoch` the last
        epoch."""
        low = self.low()
        known_names = {row.name for row in rows.values() if isinstance(row, TableRow)}
        if epoch is not None:
            # A window that died may have taken away the row of one that it dropped.
            headers = self.side.ledger.headers(epoch.epoch)
            known_names |= contents(line_of(index, row) for index, row in enumerate(headers)).keys()
        names = {*self.names(), *filter(self.side.admission.takes, known_names)}
        self.consistency.open((), bootstrapping=epoch is None)
        for database in sorted({name.database for name in names}):
            self.consistency.rebase(database)
        self.make(low)
        unknown = gap_recovery.unknown_rows(names, rows, cursor, low, gaps)
        forgotten_spans = [gap_recovery.forgotten_span(gap) for gap in gaps if gap.cause is GapCause.FORGOTTEN]
        return self.begun(low, gap_recovery.with_gaps(recovery, gaps, epoch), unknown, forgotten_spans)

    def low(self) -> EventId:
        """Return an event that comes before the listing. Scans until now count as taken, because tables are read after
        them."""
        low = max(self.source.log.current(), self.begin())
        self.scanned.begin()
        return low

    def names(self) -> list[TableName]:
        """Return every admitted table of the source, and those at the target that the source lost."""
        source_names = self.names_at_source()
        return [*source_names, *self.databases.left_over(set(source_names))]

    def names_at_source(self) -> list[TableName]:
        """Return every admitted table of the source."""
        names: list[TableName] = []
        for database in self.source.catalog.databases():
            if self.side.admission.touches_database(database):
                database_tables = [TableName(database, table.lower()) for table in self.source.catalog.tables(database)]
                names += [name for name in database_tables if self.side.admission.takes(name)]
        return names

    def make(self, low: EventId) -> None:
        """Make databases and functions as the source has them now, as of event `low`."""
        self.databases.bootstrap(low)
        self.functions.bootstrap(low)

    def begun(
        self,
        low: EventId,
        recovery: GapRecovery,
        unknown: Sequence[TableRow],
        forgotten_spans: Sequence[ForgottenSpan] = (),
    ) -> BootstrapStart:
        listed, scans = self.source.log.current(), self.scanned.progress()
        # Two commits, in this order: with the records alone a death between them would leave tables live that may have
        # changed. With the rows alone the next start finds no beginning, or the gap again, and comes here once more.
        self.side.ledger.put_tables(unknown)
        self.side.ledger.put_records([BootstrapBeginning(low, listed), recovery, *forgotten_spans, scans])
        self.scanned.recorded = scans.newest_scan
        return BootstrapStart(low, listed, recovery, len(unknown))
