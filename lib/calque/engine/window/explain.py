"""The explanation of one group's plan: what it costs, and what it leaves. `advance.carry_out` applies the same plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calque.core.plan.cost import Cost, ShownFiles, SourcePlaces, costs, statistics_calls
from calque.engine.sides.sides import TargetSide
from calque.engine.window.prepare import ReadyPlan
from calque.model.names import EventId, TableName
from calque.model.plan import (
    AlterTable,
    CommitTable,
    CreateTable,
    DropTable,
    GroupPlan,
    HiddenBuild,
    Hop,
    PrepareFlipSweep,
    Rebuild,
)


@dataclass(frozen=True, slots=True)
class ExplainedGroup:
    """The plan of a group with its costs. `costs` has the cost of each hop, in order; `statistics` is the number of
    calls for statistics after the last hop. The group ends at event `shows`: the last state, or (not `complete`) the
    last one whose files are known. `keeps` says that the last hop is a drop that is not made (`drops = "keep"`)."""

    plan: GroupPlan
    costs: tuple[Cost, ...]
    statistics: int
    complete: bool
    shows: EventId
    keeps: bool

    @property
    def calls(self) -> int:
        return sum(cost.calls for cost in self.costs) + self.statistics


def explain(side: TargetSide, ready: ReadyPlan) -> ExplainedGroup:
    """Return the costs of what `carry_out` would do with the plan, and the event that the group would show. Changes
    nothing."""
    plan, limits = ready.plan, side.catalog.abilities().limits
    places = SourcePlaces(lambda name: not side.admission.copies(name), ready.views)
    hops = costs(plan.hops, shown_files(ready), ready.listings, limits, places)
    keeps = is_kept(side, plan.hops)
    if keeps:
        hops[-1] = Cost()
    return ExplainedGroup(plan, tuple(hops), statistics_calls(plan, limits), ready.complete, ready.shows, keeps)


def shown_files(ready: ReadyPlan) -> ShownFiles:
    """Return the listings that the target shows before the first hop, by table and partition (`""`: the plain
    table)."""
    return {
        (name, partition): listing
        for name, shown in ready.shown.items()
        if shown is not None
        for partition, listing in shown.listings.items()
    }


def is_kept(side: TargetSide, hops: Sequence[Hop]) -> bool:
    """Tell whether the plan ends with a drop that the policy does not make (`drops = "keep"`)."""
    return side.policy.drops == "keep" and bool(hops) and isinstance(hops[-1].operation, DropTable)


def present_after(side: TargetSide, ready: ReadyPlan) -> frozenset[TableName]:
    """Return the names of those of the group's tables that are at the target after the plan's hops."""
    hops = ready.plan.hops
    present = {name for name, table in ready.shown.items() if table is not None}
    for hop in hops[:-1] if is_kept(side, hops) else hops:
        match hop.operation:
            case DropTable(table):
                present.discard(table)
            case AlterTable(table, was) | PrepareFlipSweep(header=AlterTable(table, was)):
                present.discard(was)
                present.add(table)
            case Rebuild(table, was) | CommitTable(table, was):
                present -= {was}
                present.add(table)
            case CreateTable(table) | HiddenBuild(table):
                present.add(table)
            case _:
                pass
    return frozenset(present)
