"""What the next window would do: the window's own steps with tied hands.

Everything is read as `run` reads it, by the same fold, observation and planner. What would leave something behind is
noted instead of done, and no background read begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

from calque.core.tally import Cost, costs, statistics_calls
from calque.engine.apply import Applied
from calque.engine.apply.databases import is_of_database
from calque.engine.apply.functions import FUNCTION_KINDS
from calque.engine.replica.dry_run_ports import Notes, tied
from calque.engine.replica.replica import APPLIERS, Replica
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import OUT
from calque.engine.source.cascade_detection import cascaded
from calque.engine.window.advance import Advanced, outcome
from calque.engine.window.groups import Group
from calque.engine.window.prepare import Ahead, prepare
from calque.engine.window.result import Window
from calque.engine.window.view_order import wave_of
from calque.errors import Unavailable
from calque.model.hive import Database, Function
from calque.model.journal import Entry
from calque.model.ledger import TableRow, TableState
from calque.model.names import EventId, Span, TableName
from calque.model.plan import DropTable, GroupPlan
from calque.model.records import BootstrapBeginning, one_of


@dataclass(frozen=True, slots=True)
class ForeseenGroup:
    """`costs` are the hops', in order. The group ends at `shows`: the last state, or (not `complete`) the last one
    whose files are known. `keeps`: the last hop, a drop, is not made (`drops = "keep"`)."""

    plan: GroupPlan
    costs: tuple[Cost, ...]
    statistics: int
    complete: bool
    shows: EventId
    keeps: bool

    @property
    def calls(self) -> int:
        return sum(cost.calls for cost in self.costs) + self.statistics


@dataclass(frozen=True, slots=True)
class Beside:
    """One call for a database, or a function, by its name at the source."""

    name: TableName
    operation: str
    to_event: EventId


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The next window. `reads` are tables that it passes by because they must be read exactly, `quarantined` those
    that stay as they are; `began` says that the target has been begun with before."""

    target: str
    span: Span
    events: int
    began: bool
    groups: tuple[ForeseenGroup, ...]
    beside: tuple[Beside, ...]
    reads: tuple[TableRow, ...]
    quarantined: tuple[TableRow, ...]


def foresee(
    source: SourceSide,
    side: TargetSide,
    begin: Callable[[], EventId],
    upto: EventId | None,
    most: int = 100_000,
    asked: Callable[[Replica], object] = lambda _: None,
) -> Foreseen:
    """The window up to `upto`, or as far as the journal has events, at most `most`. Like a window it goes on to the end
    of a run of events and to what the target shows already. `asked` takes up what operators asked for.

    Changes nothing. Raises what a window raises.
    """
    notes: Notes = []
    beginning = one_of(side.ledger.records(), BootstrapBeginning)
    began = side.ledger.last_epoch() is not None or beginning is not None
    replica = Replica(source, tied(side, notes), begin, lambda: None, pool)
    replica.take_up()
    replica.tried = replica.cursor
    asked(replica)
    last = source.journal.last() or 0
    wanted = min(last, replica.cursor + most) if upto is None else upto
    end = replica.end_of_run(max(wanted, replica.cursor))
    try:
        return through(replica, notes, end, began=began)
    except Ahead as ahead:
        if not end < ahead.event_id <= last:
            raise Unavailable(
                f"{replica.name} shows event {ahead.event_id}, which the journal does not have",
                "capture is behind, or the state folder is older than the target",
                "Try again, and look at `calque status`",
            ) from ahead
        return foresee(source, side, begin, ahead.event_id, most, asked)


def through(replica: Replica, notes: Notes, upto: EventId, *, began: bool) -> Foreseen:
    entries = replica.entries(upto)
    events = [entry for entry in entries if entry.event_id > replica.cursor]
    found = sorted(replica.live_groups(replica.with_scans(entries, upto)), key=wave_of)
    beside = [*noted(replica, notes, replica.cursor), *beside_tables(replica, notes, events, found)]
    window, groups = Window(Span(replica.cursor, upto)), []
    with ThreadPoolExecutor(APPLIERS) as pool:
        todo = found
        while todo:
            futures = [(group, pool.submit(foreseen_group, replica, group, upto)) for group in todo]
            todo = []
            for group, future in futures:
                if future.exception() is None:
                    groups.append(future.result())
                else:
                    todo += replica.settle(Group(group), upto, window, cast(Future[Advanced], future))
    tables = replica.tables
    return Foreseen(
        replica.name,
        window.span,
        len(events),
        began,
        tuple(groups),
        tuple(beside),
        tuple(tables.rows[name] for name in tables.in_state(*OUT)),
        tuple(tables.rows[name] for name in tables.in_state(TableState.QUARANTINED)),
    )


def beside_tables(
    replica: Replica, notes: Notes, events: Sequence[Entry], found: Sequence[Sequence[Entry]]
) -> Iterator[Beside]:
    """Calls for databases and functions: the newest event of each decides."""
    newest = {
        (entry.keys.kind in FUNCTION_KINDS, entry.keys.table): entry
        for entry in events
        if is_of_database(entry) or entry.keys.kind in FUNCTION_KINDS
    }
    for entry in newest.values():
        replica.databases.before([entry], Applied())
        replica.functions.apply([entry], Applied())
        replica.databases.after([entry], Applied())
        yield from noted(replica, notes, entry.event_id)
    for group in found:
        for name in replica.admitted(group):
            replica.databases.ensure(name)
            yield from noted(replica, notes, group[0].event_id)


def noted(replica: Replica, notes: Notes, event_id: EventId) -> Iterator[Beside]:
    """Take the notes so far; what concerns the ledger is nobody's business."""
    taken, notes[:] = list(notes), []
    for method, given in taken:
        match given[0]:
            case Database(name=database) | str(database):
                at_target = TableName(database)
            case Function(database=database, name=function):
                at_target = TableName(database, function)
            case TableName():
                at_target = given[0]
            case _:
                continue
        yield Beside(replica.side.admission.source_of(at_target) or at_target, method, event_id)


def foreseen_group(replica: Replica, group: Sequence[Entry], upto: EventId) -> ForeseenGroup:
    """Raises what `engine.window.advance.advance` raises."""
    source, side = replica.source, replica.side
    cursor = replica.cut(upto).shown_by_all(group)
    prepared = prepare(source, side, group, cursor, upto, cascaded(source, side, group))
    reached = outcome(prepared, Applied(), cursor)
    plan, limits = reached.plan, side.catalog.abilities().limits
    held = {
        (name, partition): listing
        for name, shown in prepared.shown.items()
        if shown is not None
        for partition, listing in shown.listings.items()
    }
    found = costs(plan.hops, held, prepared.listings if side.policy.data != "none" else {}, limits)
    keeps = side.policy.drops == "keep" and bool(plan.hops) and isinstance(plan.hops[-1].operation, DropTable)
    if keeps:
        found[-1] = Cost()
    calls = statistics_calls(plan, limits)
    return ForeseenGroup(plan, tuple(found), calls, reached.complete, reached.shows, keeps)


def pool(_workers: int, name: str) -> Executor:
    return AtOnce() if name.startswith("apply") else Idle()


class AtOnce(Executor):
    """Does what it is given in the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **named))
        except Exception as error:
            future.set_exception(error)
        return future


class Idle(Executor):
    """Takes work that nobody does."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:  # noqa: ARG002
        return Future()
