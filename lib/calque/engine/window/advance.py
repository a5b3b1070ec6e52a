"""The work on one group of a window: observe the target, fold the events, plan the hops, and apply them. `perform`
applies the plan of an exact read, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from calque.core.states.facets import Changes
from calque.core.states.fold import ColumnChanges, names_in
from calque.engine.apply import AppliedChanges, Applier, DefinitionSource
from calque.engine.apply.definitions import EventImages
from calque.engine.apply.facet_sources import changes_of
from calque.engine.files.copies import ContentLost, Lost
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.target.observe import NO_LOOKS, LookedTables
from calque.engine.target.recovered_rows import recovered_rows
from calque.engine.window.prepare import ATTEMPTS, Positions, PreparedGroup, ReadyPlan, Unreachable, prepare, ready_of
from calque.errors import Broken
from calque.model.files import Listing
from calque.model.journal import Entry
from calque.model.names import EventId, TableName
from calque.model.plan import Data, GroupPlan
from calque.ports import Conflict, FormatMisfit


@dataclass(slots=True)
class GroupOutcome:
    """The outcome of one group's way through a window. `shows` is the event id of the last state that the group
    reached, or the event that its tables showed before when it reached none; `complete` says that this is the state at
    the window's end. `present` are those of its tables that the target has then. `arrived` are names under which the
    source shows a table of which the target has nothing; the target shows no table under them."""

    tables: tuple[TableName, ...]
    plan: GroupPlan
    complete: bool
    shows: EventId
    present: frozenset[TableName]
    applied: AppliedChanges = field(default_factory=AppliedChanges)
    arrived: frozenset[TableName] = frozenset()


class Interpreter(Protocol):
    """A function that decides what is done with a group's plan: `carry_out` applies the plan, a dry run explains it."""

    def __call__(
        self,
        source: SourceSide,
        side: TargetSide,
        ready: ReadyPlan,
        applied: AppliedChanges,
        recorded: EventId | None,
        /,
    ) -> GroupOutcome:
        """Return the outcome of the plan in `ready`. `applied` collects what is written; `recorded` is as in
        `carry_out`. Raises `Conflict`, `ContentLost`."""


def advance(
    source: SourceSide,
    side: TargetSide,
    entries: Sequence[Entry],
    positions: Positions,
    upto: EventId,
    column_changes: ColumnChanges | None,
    applied: AppliedChanges | None = None,
    accept: Callable[[ReadyPlan], None] = lambda _: None,
    lost: set[Lost] | None = None,
    *,
    interpret: Interpreter,
    tried: bool = False,
    looked: LookedTables = NO_LOOKS,
) -> GroupOutcome:
    """Take the group's tables from what the target shows to the state after `entries`, or to the last state before it
    whose files are known. After a `Conflict`, or when files turn out to be gone, prepare the group again, and give up
    after `ATTEMPTS` conflicts.

    `applied` is what was done for the tables before, and gets what is done here. `accept` sees each plan before it is
    carried out, and may raise to leave all as it is. `lost` are files that are known to be gone at the source; files
    that turn out to be gone are added. `interpret` carries the plan out or explains it. `tried` says that an attempt
    whose record was lost may have shown some of the states. `looked` are tables that were just read at the target.

    Raises `Unfoldable`, `Unreachable`, `NotOurReplica`, `TargetIsAhead`, `decode.Undecodable`, and what ports raise.
    """
    lost = set() if lost is None else lost
    applied = applied or AppliedChanges()
    cursor = positions.by_all(names_in(entries))
    conflicts = 0
    while conflicts < ATTEMPTS:
        prepared = prepare(source, side, entries, positions, upto, column_changes, frozenset(lost), looked)
        ready, looked = ready_of(prepared, cursor), NO_LOOKS
        accept(ready)
        try:
            return interpret(source, side, ready, applied, cursor if tried else None)
        except Conflict:
            conflicts += 1
        except FormatMisfit as misfit:
            name = entries[0].keys.table
            formats = (side.admission.wanted_format(name), side.admission.acid_format(name)) if name else ()
            kind = next(filter(None, formats), "committed")
            raise Unreachable(f"{name} can't go on as a {kind.title()} table: {misfit}") from misfit
        except ContentLost as error:
            if error.files <= lost:
                raise Unreachable(str(error)) from error
            lost |= error.files
        tried = True
    raise Unreachable(f"{entries[0].keys.table} was changed at the target by another while it was being written")


def carry_out(
    source: SourceSide, side: TargetSide, ready: ReadyPlan, applied: AppliedChanges, recorded: EventId | None = None
) -> GroupOutcome:
    """Apply the hops and facets of `ready`, as long as nothing has changed at the target since the group was prepared.
    With an event id in `recorded` the ledger has no rows of what attempts after that event may have shown: what the
    target shows gets its rows first. Raises `Conflict` where another writer changed the target, and `ContentLost` where
    files of a state can't be copied any more."""
    if recorded is not None:
        applied.objects += recovered_rows(side, ready.shown, ready.looked_for, recorded)
    changes = changes_of(source.journal, ready.plan.facet_events)
    perform(side, ready, EventImages(source.journal, ready.plan, moves=ready.moves), changes, applied)
    return advanced(ready, applied)


def perform(
    side: TargetSide,
    ready: ReadyPlan,
    images: DefinitionSource,
    changes: Mapping[TableName, Changes],
    applied: AppliedChanges,
) -> None:
    """Apply the plan's hops in order, then its facets. Raises `Broken` where the plan copies files of which `ready` has
    no listing."""
    listings = ready.listings

    def listing(data: Data) -> Listing:
        if data.stays:
            return Listing(images.place(data.event_id, data.location), ())
        if data in listings:
            return listings[data]
        raise Broken(
            f"The plan copies files of {data.location} at event {data.event_id}",
            "No evidence lists them",
            "Report this",
        )

    hops = ready.plan.hops
    applier = Applier(side, images, listing, ready.shown, hops[-1] if hops else None, applied)
    applier.disarm()
    for number, hop in enumerate(hops):
        applier.run(hop)
        images.passed(number)
    applier.end_transactions()
    basic = {table: dict(versions) for table, versions in ready.plan.facets}
    for table in sorted(changes.keys() | basic.keys()):
        applier.facets(table, changes.get(table, Changes()), basic.get(table, {}))
    applier.waiting_keys(ready.tables)


def outcome(prepared: PreparedGroup, applied: AppliedChanges, cursor: EventId) -> GroupOutcome:
    return advanced(ready_of(prepared, cursor), applied)


def advanced(ready: ReadyPlan, applied: AppliedChanges) -> GroupOutcome:
    present = frozenset(name for name, table in ready.shown.items() if table is not None)
    return GroupOutcome(ready.tables, ready.plan, ready.complete, ready.shows, present, applied, ready.arrived)
