"""What a target has done about gaps of the log: which it has dealt with, and what everything in it becomes then.

After a gap nobody knows what happened, so every table is UNKNOWN at once, in one write of the ledger: whoever dies
before it finds the gap again, whoever dies after it finds the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import assert_never

from calque.core.mended import BEHIND, KIND, REPAIRED
from calque.engine.apply import Applied
from calque.engine.apply.databases import Databases
from calque.engine.apply.functions import Functions
from calque.engine.sides.journal_reads import reach
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.model.gaps import Cause, Gap
from calque.model.ledger import Epoch, TableRow, TableState, Why
from calque.model.names import EventId, TableName
from calque.model.policy import Policy
from calque.ports import Gaps

BEGIN = ("cursor", "*", "*")
"""The ledger's row for the event ids at which a bootstrap began, or all started again after a gap (`shows`), and after
its listing (`since_event`)."""
GAP = (KIND, "*", "*")
"""The ledger's row for the gaps that a target has dealt with."""
BOOTSTRAP = "bootstrap"
"""The reason of tables that are unknown since the first bootstrap."""

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Mended:
    """Up to which gap a target has started again. `untold` are the first and the last event of the gaps that no epoch
    after number `before` has told of; `drops` is empty, or one of the words of `core.mended`."""

    number: int = 0
    untold: tuple[EventId, EventId] | None = None
    before: int = 0
    drops: str = REPAIRED

    @staticmethod
    def of(rows: Mapping[Key, TableRow], epoch: Epoch | None) -> Mended:
        """As the ledger has it; what the last epoch has told of is told."""
        row = rows.get(GAP)
        if row is None:
            return Mended()
        first, _, last = row.owned.partition("-")
        found = Mended(row.shows or 0, (int(first), int(last)) if last else None, row.since_event or 0, row.reason)
        told = epoch is not None and epoch.epoch > found.before
        return replace(found, untold=None) if told else found

    def row(self) -> TableRow:
        """For the ledger."""
        kind, database, table = GAP
        events = "-".join(map(str, self.untold or ()))
        return TableRow(database, table, TableState.LIVE, self.number, self.drops, self.before, kind, events)

    def with_gaps(self, gaps: Sequence[Gap], epoch: Epoch | None) -> Mended:
        """After starting again for all of `gaps`: their drops are not counted yet."""
        ends = [*(self.untold or ()), *(event for gap in gaps for event in gap.span)]
        untold = (min(ends), max(ends)) if ends else None
        return Mended(max(gap.number for gap in gaps), untold, epoch.epoch if epoch else 0, "")


def begun_at(event_id: EventId, listed: EventId | None = None) -> TableRow:
    """The row of a bootstrap that began at the event, for the ledger."""
    kind, database, table = BEGIN
    return TableRow(database, table, TableState.LIVE, event_id, since_event=listed, kind=kind)


def goes_on_from(rows: Mapping[Key, TableRow], epoch: Epoch | None) -> EventId:
    """The event that a target goes on from: its last epoch's, until a gap makes it another one; 0 before the first."""
    begun = rows.get(BEGIN)
    if epoch is None or (begun is not None and Mended.of(rows, epoch).untold is not None):
        return begun.shows or 0 if begun is not None else 0
    return epoch.event_id


def newer(gaps: Gaps | None, mended: Mended) -> list[Gap]:
    """Gaps that the target has not dealt with."""
    return [gap for gap in gaps.found() if gap.number > mended.number] if gaps is not None else []


def before(gaps: Gaps | None, start: EventId) -> Mended:
    """Of a target that equals the source at event `start`: it has nothing to do with gaps before that."""
    return Mended(max((gap.number for gap in newer(gaps, Mended()) if gap.at <= start), default=0))


def left_behind(source: SourceSide, begin: EventId, cursor: EventId, mended: Mended) -> list[Gap]:
    """The gap between a target's position and the journal's first event; none where one follows the other."""
    at = max(reach(source.journal), begin)
    if cursor >= at:
        return []
    now = datetime.fromtimestamp(source.clock.now_ns() / 1e9, UTC).isoformat(timespec="seconds")
    return [Gap(mended.number, cursor, at, Cause.FORGOTTEN, now)]


def behind_row(gap: Gap) -> TableRow:
    """For the ledger: a gap that is the target's own."""
    first, last = gap.span
    number = str(gap.number)
    return TableRow("*", "*", TableState.LIVE, first, gap.found_at, last, kind=BEHIND, owned=number)


def unknown_rows(
    names: Iterable[TableName], rows: Mapping[Key, TableRow], cursor: EventId, low: EventId, gaps: Sequence[Gap]
) -> list[TableRow]:
    """A row for each table. What it shows is an event of the log as it was, so at most the last one that both have."""
    common = min(gap.at for gap in gaps)
    found = []
    for name in sorted(set(names)):
        before = rows.get(("table", *name))
        shows = before.shows if before is not None else None
        if before is not None and before.state is TableState.LIVE:
            shows = max(shows or 0, cursor)
        reason = said(gaps[-1])
        shows = None if shows is None else min(shows, common)
        found.append(TableRow(*name, TableState.UNKNOWN, shows, reason, low, why=Why.GAP))
    return found


def said(gap: Gap) -> str:
    first, last = gap.span
    match gap.cause:
        case Cause.PURGED:
            return f"gap {gap.number}: the log has lost events {first} to {last}"
        case Cause.WENT_BACK:
            return f"gap {gap.number}: the log went back from event {last} to {first - 1}"
        case Cause.REPEATED:
            return f"gap {gap.number}: the log has event {last} twice"
        case Cause.FORGOTTEN:
            return f"the journal has no events {first} to {last} any more"
        case other:
            assert_never(other)


def held_reason(policy: Policy, count: int, total: int, objects: int) -> str:
    return (
        f"held: {count} of its objects would be dropped without an event that says so, and {total} of {objects} in "
        f'all, more than max_drop = "{policy.max_drop:.4g}" lets go: look why the source lost them, then run '
        f"`calque release-drops --target {policy.target}`"
    )


def at_target(side: TargetSide, names: Iterable[TableName]) -> set[TableName]:
    """Those of the tables whose names are taken at the target."""
    places = {name: side.admission.name_at_target(name) for name in names}
    there = {database: {*side.catalog.tables(database)} for database in {at.database for at in places.values()}}
    return {name for name, at in places.items() if at.table in there[at.database]}


def drop_leftovers(source: SourceSide, side: TargetSide, databases: Databases, functions: Functions) -> None:
    """Functions of ours that the source has not go now, databases when they are empty."""
    for name in sorted(functions.owned):
        if source.catalog.function(name) is None:
            functions.drop(name, Applied())
    for at in side.catalog.databases():
        of = side.admission.source_of(TableName(at))
        if of is None or not databases.is_replica(at, of.database):
            continue
        if source.catalog.database(of.database) is not None:
            databases.let_go(of.database)
        elif side.policy.drops != "keep":
            databases.drop(of.database, Applied())
