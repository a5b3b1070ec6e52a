"""The recovery of a target from gaps of the log: which gaps it has dealt with, and what its tables become then.

What happened in a gap is not known, so every table is UNKNOWN at once. The record that says that the gap is dealt with
comes after the tables' rows: a process that dies before the record leaves the gap to be found again, one that dies
after it leaves the tables to be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import assert_never

from calque.engine.apply import AppliedChanges
from calque.engine.apply.databases import Databases
from calque.engine.apply.functions import Functions
from calque.engine.sides.journal_reads import reach
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TABLE
from calque.model.gaps import Gap, GapCause
from calque.model.ledger import Epoch, NotLiveReason, StateKey, StateRow, TableRow, TableState, shown_event
from calque.model.names import EventId, TableName
from calque.model.policy import Policy
from calque.model.records import BootstrapBeginning, DropReview, ForgottenSpan, GapRecovery, Record, one_of
from calque.ports import Gaps

OLDER = frozenset({GapCause.WENT_BACK, GapCause.REPEATED})
"""Gaps behind which the source may be in an older state, or another metastore."""
BOOTSTRAP = "bootstrap"
"""The reason of tables that are unknown since the first bootstrap."""


def recovery_of(records: Iterable[Record], epoch: Epoch | None) -> GapRecovery:
    """Return the recovery as the ledger has it; gaps that the last epoch lists are published."""
    recovery = one_of(records, GapRecovery) or GapRecovery()
    published = epoch is not None and epoch.epoch > recovery.after_epoch
    return replace(recovery, unpublished=None) if published else recovery


def with_gaps(recovery: GapRecovery, gaps: Sequence[Gap], epoch: Epoch | None) -> GapRecovery:
    """Return the recovery of a target that has begun again for all of `gaps`: its drops are not counted yet."""
    ends = [*(recovery.unpublished or ()), *(event for gap in gaps for event in gap.span)]
    unpublished = (min(ends), max(ends)) if ends else None
    newest, after = max(gap.number for gap in gaps), epoch.epoch if epoch else 0
    went_back = recovery.went_back or any(gap.cause in OLDER for gap in gaps)
    return GapRecovery(newest, unpublished, after, DropReview.COMPARING, went_back)


def goes_on_from(records: Collection[Record], epoch: Epoch | None) -> EventId:
    """Return the event that a target goes on from: its last epoch's, until a gap makes it another one; 0 before the
    first."""
    beginning = one_of(records, BootstrapBeginning)
    if epoch is None or (beginning is not None and recovery_of(records, epoch).unpublished is not None):
        return beginning.begun_at if beginning is not None else 0
    return epoch.event_id


def newer(gaps: Gaps | None, recovery: GapRecovery) -> list[Gap]:
    """Return the gaps that the target has not dealt with."""
    return [gap for gap in gaps.recorded() if gap.number > recovery.newest_gap] if gaps is not None else []


def before(gaps: Gaps | None, start: EventId) -> GapRecovery:
    """Return the recovery of a target that equals the source at event `start`: gaps before that event do not concern
    it."""
    return GapRecovery(max((gap.number for gap in newer(gaps, GapRecovery()) if gap.at <= start), default=0))


def left_behind(source: SourceSide, begin: EventId, cursor: EventId, recovery: GapRecovery) -> list[Gap]:
    """Return the gap between a target's position and the journal's first event; none where one follows the other."""
    first_reachable = max(reach(source.journal), begin)
    if cursor >= first_reachable:
        return []
    now = datetime.fromtimestamp(source.clock.now_ns() / 1e9, UTC).isoformat(timespec="seconds")
    return [Gap(recovery.newest_gap, cursor, first_reachable, GapCause.FORGOTTEN, now)]


def forgotten_span(gap: Gap) -> ForgottenSpan:
    """Return a gap that is the target's own as a record for the ledger."""
    first, last = gap.span
    return ForgottenSpan(first, last, gap.found_at, gap.number)


def unknown_rows(
    names: Iterable[TableName], rows: Mapping[StateKey, StateRow], cursor: EventId, low: EventId, gaps: Sequence[Gap]
) -> list[TableRow]:
    """Return a row for each table that makes it UNKNOWN. What the table shows is an event of the log as it was before
    the gaps, so at most the last one that both logs have."""
    common = min(gap.at for gap in gaps)
    unknown = []
    for name in sorted(set(names)):
        before = rows.get((TABLE, *name))
        shows = shown_event(before) if before is not None else None
        if before is not None and before.state is TableState.LIVE:
            shows = max(shows or 0, cursor)
        reason = said(gaps[-1])
        shows = None if shows is None else min(shows, common)
        unknown.append(TableRow(*name, TableState.UNKNOWN, shows, reason, low, why=NotLiveReason.GAP))
    return unknown


def said(gap: Gap) -> str:
    first, last = gap.span
    match gap.cause:
        case GapCause.PURGED:
            return f"gap {gap.number}: the log has lost events {first} to {last}"
        case GapCause.WENT_BACK:
            return f"gap {gap.number}: the log went back from event {last} to {first - 1}"
        case GapCause.REPEATED:
            return f"gap {gap.number}: the log has event {last} twice"
        case GapCause.FORGOTTEN:
            return f"the journal has no events {first} to {last} any more"
        case other:
            assert_never(other)


def held_reason(policy: Policy, count: int, total: int, objects: int) -> str:
    return (
        f"held: {count} of its objects would be dropped without an event that says so, and {total} of {objects} in "
        f'all, more than max_drop = "{policy.max_drop:.4g}" lets go: look why the source lost them, then run '
        f"`calque release-drops --target {policy.target}`"
    )


def held_after_going_back(policy: Policy, count: int) -> str:
    return (
        f"held: {count} of its objects would be dropped because the log went back, which may be an older state "
        "of the source, or another metastore: look why, then say `calque identity accept --source` with the id that "
        f"`calque identity show` gives, or `calque release-drops --target {policy.target}`"
    )


def held_with_its_database(policy: Policy, count: int, database: str) -> str:
    return (
        f"held: {count} of its objects would be dropped without an event that says so, and with them all that the "
        f"target has of the database {database}: look why the source lost them, then run `calque release-drops "
        f"--target {policy.target}`"
    )


def at_target(side: TargetSide, names: Iterable[TableName]) -> set[TableName]:
    """Return those of the tables whose names are taken at the target."""
    target_names = {name: side.admission.name_at_target(name) for name in names}
    target_tables = {
        database: {*side.catalog.tables(database)}
        for database in {target_name.database for target_name in target_names.values()}
    }
    return {
        name for name, target_name in target_names.items() if target_name.table in target_tables[target_name.database]
    }


def drop_leftovers(source: SourceSide, side: TargetSide, databases: Databases, functions: Functions) -> None:
    """Drop functions of ours that the source does not have now, and databases as soon as they are empty."""
    for name in sorted(functions.owned):
        if source.catalog.function(name) is None:
            functions.drop(name, AppliedChanges())
    for target_name in side.catalog.databases():
        source_name = side.admission.source_of(TableName(target_name))
        if source_name is None or not databases.is_replica(target_name, source_name.database):
            continue
        if source.catalog.database(source_name.database) is not None:
            databases.let_go(source_name.database)
        elif side.policy.drops != "keep":
            databases.drop(source_name.database, AppliedChanges())
