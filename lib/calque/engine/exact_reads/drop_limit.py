"""The limit on drops by difference, after a gap or when all tables are read again: it finds the tables that need not be
read, and what reading the others would drop.

Tables are compared in bulk first. What would be lost is counted over all of them before the first drop; if there is too
much of it, it waits for an operator. In the end facets are compared, and functions and databases go that the source
does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from calque.core.records.lifecycle import UNREAD, State
from calque.engine.apply.databases import Databases
from calque.engine.apply.functions import Functions
from calque.engine.exact_reads.bulk_compare_pool import BulkComparePool, PendingDrops
from calque.engine.exact_reads.gap_recovery import (
    at_target,
    drop_leftovers,
    held_after_going_back,
    held_reason,
    held_with_its_database,
)
from calque.engine.exact_reads.pool import ExactReadPool
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TableStates
from calque.model.ledger import NotLiveReason
from calque.model.names import EventId, TableName
from calque.model.records import DropReview, GapRecovery


@dataclass(frozen=True, slots=True)
class ComparisonResults:
    """The results of comparisons: tables to read, others whose facets differ, and those whose drops wait, with the
    reason."""

    read: list[TableName] = field(default_factory=list)
    other_facets: list[TableName] = field(default_factory=list)
    held: dict[TableName, str] = field(default_factory=dict)


class DropLimit:
    """The comparisons of one target. Tables that are equal come back as reads that are finished. `recovery` says how
    far the comparison is, and is recorded in the ledger before what follows from it."""

    def __init__(
        self,
        source: SourceSide,
        side: TargetSide,
        tables: TableStates,
        reading: ExactReadPool,
        begin: Callable[[], EventId],
        wake: Callable[[], None],
    ) -> None:
        self.source, self.side, self.tables = source, side, tables
        self.surveying = BulkComparePool(source, side, reading, begin, wake)
        self.recovery = GapRecovery()
        self.postponed_names: set[TableName] = set()
        """Tables whose losses are to be counted when nothing else is."""
        self.results = ComparisonResults()
        """Results that `take` has not given away yet: it goes on with them after the target or the ledger did not
        answer."""

    def is_under_way(self) -> bool:
        """Tell whether it is not known yet what all tables would lose."""
        return self.surveying.is_under_way()

    def is_repaired(self) -> bool:
        """Tell whether all tables and their facets were compared, and that is not recorded yet."""
        return self.recovery.drops is DropReview.COUNTED and not self.surveying.is_busy()

    def is_done(self) -> bool:
        """Tell whether nothing has to be compared with the source any more."""
        return self.recovery.drops in (DropReview.HELD, DropReview.REPAIRED)

    def has_news(self) -> bool:
        """Tell whether `take` has anything to do."""
        waits = bool(self.postponed_names) and not self.is_under_way()
        return waits or self.surveying.has_news() or self.is_repaired()

    def begin(self, names: Sequence[TableName]) -> list[TableName]:
        """Begin to compare those of the tables that may be what they were, or of which the target could lose objects by
        difference. Return the other tables, which are to be read at once."""
        rows = self.tables.rows
        since_gap = [name for name in names if rows[name].why is NotLiveReason.GAP]
        counted = [name for name in names if rows[name].why is NotLiveReason.ALL]
        names_at_target = at_target(self.side, counted) if counted else set()
        compared_names = {*since_gap, *names_at_target}
        if compared_names:
            for name in sorted(compared_names):
                self.tables.begin_reading(name)
            self.surveying.start(since_gap, sorted(names_at_target))
        elif self.recovery.drops is DropReview.COMPARING:
            self.record(DropReview.COUNTED)
        after_gap = self.recovery.newest_gap or self.recovery.after_epoch
        if not compared_names and after_gap and self.recovery.drops in (DropReview.COUNTED, DropReview.HELD):
            self.surveying.start_facets(self.tables.in_state(State.LIVE))
        return [name for name in names if name not in compared_names]

    def begin_all(self) -> None:
        """Record that tables are to be read again and that what they lose is counted anew. Not to be called while a
        count is under way."""
        self.record(DropReview.COMPARING)

    def begin_later(self) -> list[TableName]:
        """Begin to count for tables that had to wait until nothing else is counted. Return those of them that are to be
        read at once."""
        if self.is_under_way():
            return []
        names = sorted(name for name in self.postponed_names if self.tables.is_(name, UNREAD))
        to_read: list[TableName] = []
        if names:
            self.begin_all()
            to_read = self.begin(names)
        self.postponed_names.clear()
        return to_read

    def take(self, databases: Databases, functions: Functions) -> ComparisonResults:
        """Return the results of the comparisons by now, for tables that still need them. Once all tables are compared,
        that includes what becomes of those that lose objects; once facets are compared, too, functions and databases
        are dropped that the source does not have. Raises `Unavailable`; the next call goes on."""
        self.results.read.extend(self.surveying.drain())
        self.results.other_facets.extend(self.surveying.drain_facets())
        if self.surveying.is_counted():
            self.decide_pending_drops()
        self.results.read.extend(self.begin_later())
        is_held = self.held_drops() or self.results.held
        if self.recovery.drops is DropReview.HELD and not is_held and not self.is_under_way():
            self.record(DropReview.COUNTED)
        if self.is_repaired():
            drop_leftovers(self.source, self.side, databases, functions)
            self.recovery = replace(self.recovery, went_back=False)
            self.record(DropReview.REPAIRED)
        taken, self.results = self.results, ComparisonResults()
        return ComparisonResults(
            [name for name in taken.read if self.tables.is_(name, UNREAD)],
            [name for name in taken.other_facets if self.tables.is_(name, {State.LIVE})],
            {name: why for name, why in taken.held.items() if self.tables.is_(name, UNREAD)},
        )

    def decide_pending_drops(self) -> None:
        """Decide on the tables that would lose objects, after all were compared: they are read, or held for an
        operator."""
        pending_drops = self.surveying.pending_drops()
        loss_counts = {
            name: count for name, count in pending_drops.loss_counts.items() if self.tables.is_(name, UNREAD)
        }
        rows, compared = self.tables.rows.items(), self.surveying.names
        others = sum(row.shows is not None for name, row in rows if name not in compared)
        pending_drops = PendingDrops(
            loss_counts, pending_drops.objects + others, pending_drops.gone & loss_counts.keys()
        )
        reasons = self.reasons_to_hold(pending_drops) if self.recovery.drops is not DropReview.COUNTED else {}
        self.record(DropReview.HELD if reasons or self.held_drops() else DropReview.COUNTED)
        self.surveying.settle()
        self.results.held.update(reasons)
        self.results.read.extend(name for name in loss_counts if name not in reasons)
        self.surveying.start_facets(self.surveying.equal)

    def reasons_to_hold(self, pending_drops: PendingDrops) -> dict[TableName, str]:
        """Return the tables whose losses wait for an operator, with the reasons: all where the log went back or the
        losses are too many, else those with which all goes that the target has of a database, however little that is.
        None wait where the policy lets everything go."""
        policy, counts = self.side.policy, pending_drops.loss_counts
        if policy.max_drop >= 1:
            return {}
        if self.recovery.went_back:
            return {name: held_after_going_back(policy, count) for name, count in counts.items()}
        if pending_drops.are_too_many(policy.max_drop):
            return {
                name: held_reason(policy, count, pending_drops.total, pending_drops.objects)
                for name, count in counts.items()
            }
        # A ledger that is new knows nothing of what the target shows: of all tables those there are compared.
        databases = pending_drops.whole_databases(
            name
            for name, row in self.tables.rows.items()
            if row.shows is not None or (row.why is NotLiveReason.ALL and name in self.surveying.names)
        )
        return {
            name: held_with_its_database(policy, count, name.database)
            for name, count in counts.items()
            if name.database in databases
        }

    def mark_published(self) -> None:
        """Note that an epoch has told of the gaps."""
        self.recovery = replace(self.recovery, unpublished=None)

    def held_drops(self) -> list[TableName]:
        """Return the tables whose drops wait for an operator."""
        rows = self.tables.rows
        return [name for name in self.tables.in_state(State.QUARANTINED) if rows[name].why is NotLiveReason.HELD]

    def record(self, drops: DropReview) -> None:
        """Record in the ledger what becomes of drops by difference, before the first of them is made."""
        recovery = replace(self.recovery, drops=drops)
        self.side.ledger.put_records([recovery])
        self.recovery = recovery
