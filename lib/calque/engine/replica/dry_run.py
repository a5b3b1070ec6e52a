"""The explanation of the next window (`calque plan`): the window that `run` would play, with ports that write nothing
and an interpreter that explains each group's plan.

Everything is read and decided as `run` does, in its order. No background read begins, evidence is not waited for, and
copies that take long stay in the window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, assert_never

from calque.core.events.effects import OF_FUNCTIONS
from calque.core.policy.admit import Admission
from calque.core.records.lifecycle import UNREAD, State
from calque.core.states.fold import names_of
from calque.engine.apply import AppliedChanges
from calque.engine.apply.databases import is_of_database
from calque.engine.replica.dry_run_ports import DryRunCatalog, DryRunEvidence, DryRunLedger, DryRunStorage
from calque.engine.replica.replica import Replica
from calque.engine.sides import told_states
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.sides.table_states import TableStates
from calque.engine.window.advance import GroupOutcome
from calque.engine.window.explain import ExplainedGroup, explain, present_after
from calque.engine.window.prepare import ReadyPlan, TargetIsAhead
from calque.engine.window.result import WindowResult
from calque.engine.window.run_boundaries import RunBoundaries
from calque.errors import Unavailable
from calque.model.ledger import TableRow
from calque.model.names import OURS, EventId, Span, TableName
from calque.model.plan import CatalogCall, DatabaseCall, FunctionCall, GroupPlan, TableCall
from calque.model.records import BootstrapBeginning, one_of


@dataclass(frozen=True, slots=True)
class ExplainedCall:
    """One call that belongs to no hop: for a database or a function, or for a table that a start or a change of policy
    takes on. `name` is the object's at the source."""

    name: TableName
    operation: str
    to_event: EventId


@dataclass(frozen=True, slots=True)
class ExplainedWindow:
    """The next window, explained. `reads` are tables that it passes by because they must be read exactly, `quarantined`
    those that stay as they are; `began` says that the target has been begun with before."""

    target: str
    span: Span
    events: int
    began: bool
    groups: tuple[ExplainedGroup, ...]
    other_calls: tuple[ExplainedCall, ...]
    reads: tuple[TableRow, ...]
    quarantined: tuple[TableRow, ...]


class ExplainedReplica(Protocol):
    """The part of a replica that explaining needs. The replica has taken up what its ledger says; it writes to its
    ports, which are dry, and gives its plans to its interpreter."""

    @property
    def cursor(self) -> EventId:
        """The event that the windows have come to."""

    @property
    def tables(self) -> TableStates: ...

    def apply_groups(self, window: WindowResult, upto: EventId) -> None:
        """Play one window, without its epoch. Raises `TargetIsAhead` where the target shows a state beyond the window's
        end, and `Unavailable` and `Refused` as the ports do."""


def explain_next_window(
    source: SourceSide,
    side: TargetSide,
    begin: Callable[[], EventId],
    upto: EventId | None,
    most: int = 100_000,
    take_up_requests: Callable[[Replica], object] = lambda _: None,
) -> ExplainedWindow:
    """Explain the window to `upto`, or, without `upto`, to the journal's end, of at most `most` events. As a window
    does, it goes on to the end of a run of events and to what the target shows already. `take_up_requests` takes up
    what operators asked for.

    Changes nothing. Raises what a window raises.
    """
    source = replace(source, evidence=DryRunEvidence(source.evidence))
    beginning = one_of(side.ledger.records(), BootstrapBeginning)
    began = side.ledger.last_epoch() is not None or beginning is not None
    catalog = DryRunCatalog(side.catalog)
    dry_side = TargetSide.of(
        side.policy, catalog, DryRunLedger(side.ledger), DryRunStorage(side.storage), bounds=side.bounds
    )
    explainer = Explainer(catalog)
    replica = Replica(source, dry_side, begin, lambda: None, pool, patience=math.inf, interpret=explainer)
    try:
        replica.restore()
        take_up_requests(replica)
        end = end_of_window(source, max(begin(), replica.cursor), replica.cursor, upto, most)
        return explained(replica, source, dry_side, explainer, end, began=began)
    except TargetIsAhead as ahead:
        beyond = ahead.event_id
    finally:
        replica.close()
    if not end < beyond <= (source.journal.last() or 0):
        raise Unavailable(
            f"{side.policy.target} shows event {beyond}, which the journal does not have",
            "Capture is behind, or the state folder is older than the target",
            "Try again, and look at `calque status`",
        )
    return explain_next_window(source, side, begin, beyond, most, take_up_requests)


def end_of_window(source: SourceSide, low: EventId, cursor: EventId, upto: EventId | None, most: int) -> EventId:
    """Return the event at which a window ends that begins at `cursor`. The journal has events after `low`."""
    requested_end = min(source.journal.last() or 0, cursor + most) if upto is None else upto
    return RunBoundaries().end(source, low, cursor, max(requested_end, cursor), lambda: False)


class Explainer:
    """The interpreter of groups' plans that explains them. Groups of one wave come side by side."""

    def __init__(self, catalog: DryRunCatalog) -> None:
        self.catalog = catalog
        self.groups: dict[GroupPlan, ExplainedGroup] = {}

    def __call__(
        self,
        _source: SourceSide,
        side: TargetSide,
        ready: ReadyPlan,
        _applied: AppliedChanges,
        _recorded: EventId | None,
        /,
    ) -> GroupOutcome:
        present = present_after(side, ready)
        self.groups[ready.plan] = explain(side, ready)
        self.catalog.assume({side.admission.name_at_target(name): name in present for name in ready.shown})
        return GroupOutcome(ready.tables, ready.plan, ready.complete, ready.shows, present, arrived=ready.arrived)


def explained(
    replica: ExplainedReplica, source: SourceSide, side: TargetSide, explainer: Explainer, upto: EventId, *, began: bool
) -> ExplainedWindow:
    """Play the window to `upto` with the replica, and return it explained."""
    window, before = WindowResult(Span(replica.cursor, upto)), len(explainer.catalog.calls)
    replica.apply_groups(window, upto)
    calls, admission = explainer.catalog.calls, side.admission
    events = events_of_calls(source, window) if calls[before:] else {}
    tables = replica.tables
    return ExplainedWindow(
        side.policy.target,
        window.span,
        window.events,
        began,
        tuple(explainer.groups[plan] for plan in window.plans),
        (
            *explained_calls(calls[:before], admission, {}, window.span.after),
            *sorted(explained_calls(calls[before:], admission, events, window.span.after), key=event_of),
        ),
        tuple(told_states.recorded(tables, tables.in_state(*UNREAD))),
        tuple(told_states.recorded(tables, tables.in_state(State.QUARANTINED))),
    )


Concerned = tuple[type[CatalogCall], TableName]
"""The kind of a call, and its object at the source."""


def explained_calls(
    calls: Sequence[CatalogCall], admission: Admission, events: Mapping[Concerned, EventId], cursor: EventId
) -> Iterator[ExplainedCall]:
    """Yield the calls by the source's names, each with its event; calls without one come from what was before
    `cursor`."""
    for call in calls:
        match call:
            case DatabaseCall(operation, database):
                at_target = TableName(database)
            case FunctionCall(operation, at_target) | TableCall(operation, at_target):
                pass
            case _:
                assert_never(call)
        if at_target.database == OURS and operation in ("create_database", "create_table"):
            continue  # calque's own
        name = admission.source_of(at_target) or at_target
        yield ExplainedCall(name, operation, events.get((type(call), name), cursor))


def event_of(call: ExplainedCall) -> EventId:
    return call.to_event


def events_of_calls(source: SourceSide, window: WindowResult) -> dict[Concerned, EventId]:
    """Return the newest event of each database and function in the window; of a database without one, the first event
    of a table in it, which needs the database."""
    first: dict[Concerned, EventId] = {}
    newest: dict[Concerned, EventId] = {}
    upto = window.span.upto
    for entry in source.journal.entries(Span(upto - window.events, upto)):
        if entry.keys.table is None:
            continue
        if entry.keys.kind in OF_FUNCTIONS:
            newest[FunctionCall, entry.keys.table] = entry.event_id
        elif is_of_database(entry):
            newest[DatabaseCall, entry.keys.table] = entry.event_id
        else:
            for name in names_of(entry):
                first.setdefault((DatabaseCall, TableName(name.database)), entry.event_id)
    return first | newest


def pool(workers: int, name: str) -> Executor:
    """Return threads for explaining groups side by side, and an executor that does nothing for work beside windows."""
    return ThreadPoolExecutor(workers, name) if name.startswith("apply") else NoExactReads()


class NoExactReads(Executor):
    """An executor that takes work and never does it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:  # noqa: ARG002
        return Future()
