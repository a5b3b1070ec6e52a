"""Wrong planners, for the live proof to catch; `wrong.py` puts them into the engine.

One sorts a window into what it creates, adds, alters and drops, as replicators do that merge events. The others copy
what the source has by now, files or definitions, where they should show an event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from calque.core.plan.afterwards import facet_events_of, facets_of
from calque.core.plan.edges import LineageTotals, appearing
from calque.core.plan.operations import (
    AddPartitionsEdge,
    AlterPartitionsEdge,
    AlterTableEdge,
    DropPartitionsEdge,
    DropTableEdge,
    Edge,
    EdgeCost,
    operation_of,
)
from calque.core.plan.problem import Problem
from calque.core.plan.search import Solution, solve, visitable_states
from calque.core.states.fold import LineageId
from calque.core.states.state import Delta, StateDifference, departure
from calque.core.states.walk import StateWalk
from calque.engine.apply.definitions import EventImages
from calque.engine.sides.sides import SourceSide
from calque.model.files import Listing
from calque.model.hive import Partition, Table, is_partitioned
from calque.model.names import EventId, TableName, partition_name
from calque.model.plan import Data, GroupPlan, Hop, Version

CREATED, ADDED, ALTERED, DROPPED = range(4)


def sorted_into_kinds(problem: Problem) -> Solution:
    """From what is shown to the last state, kind by kind. What that can't do goes the right way."""
    stages = [departure(problem.start, problem.first), *problem.stages]
    whole = StateDifference()
    for stage in stages[problem.origin + 1 :]:
        whole.forward(stage)
    if not is_sortable(problem, whole):
        return solve(problem)
    totals = LineageTotals(problem.chain.complete, stages)
    walk = StateWalk(problem.chain)
    walk.to(problem.last)
    sorted_edges = sorted(
        (found for item in whole.differing.items() for found in edges(problem, *item, totals)),
        key=lambda found: found[0],
    )
    event = problem.stages[-1].event_id
    hops = tuple(Hop(event, operation_of(walk, edge), edge.cost.objects, edge.cost.bytes) for _, edge in sorted_edges)
    facets, facet_events = facets_of(problem, problem.last), facet_events_of(problem, problem.last)
    chain = problem.chain
    return Solution(GroupPlan(chain.tables, chain.events, hops, (), (), facets, facet_events), problem.last, False)


def is_sortable(problem: Problem, whole: StateDifference) -> bool:
    """Whether nothing is renamed, or made under a name that something else has, and all files are known."""
    deltas = whole.differing.values()
    gone = {delta.was for delta in deltas if delta.now is None}
    return (
        problem.last > max(problem.origin, 0)
        and problem.last in visitable_states(problem)
        and not any(delta.unknown or delta.two_columns() for delta in deltas)
        and all(None in (delta.was, delta.now) or delta.was == delta.now for delta in deltas)
        and not any(delta.was is None and delta.now in gone for delta in deltas)
    )


def edges(problem: Problem, lineage: LineageId, delta: Delta, totals: LineageTotals) -> Iterator[tuple[int, Edge]]:
    if delta.was is None:
        edge = appearing(problem.ground, lineage, delta, totals, problem.last)
        assert edge is not None
        yield CREATED, edge
        return
    if delta.now is None:
        yield DROPPED, DropTableEdge(delta.table, EdgeCost())
        return
    if delta.beside_partitions():
        yield ALTERED, AlterTableEdge(lineage, delta, EdgeCost())
    if delta.added:
        yield ADDED, AddPartitionsEdge(lineage, delta, EdgeCost(len(delta.added)))
    if delta.changed:
        yield ALTERED, AlterPartitionsEdge(lineage, delta, EdgeCost(len(delta.changed)))
    if delta.removed:
        yield DROPPED, DropPartitionsEdge(delta, EdgeCost(len(delta.removed)))


def files_of_now(source: SourceSide, listings: Mapping[Data, Listing]) -> dict[Data, Listing]:
    """What lies at the same places by now, where anything does."""
    now = source.storage.list(sorted({listing.location for listing in listings.values()}))
    return {
        data: replace(listing, files=now[listing.location].files) if now[listing.location].files else listing
        for data, listing in listings.items()
    }


@dataclass
class ImagesOfNow:
    """Definitions that the source has by now, of what it has still."""

    source: SourceSide
    plan: GroupPlan

    def __post_init__(self) -> None:
        self.then = EventImages(self.source.journal, self.plan)

    def table(self, version: Version) -> Table:
        then = self.then.table(version)
        return self.source.catalog.table(TableName(then.database, then.name)) or then

    def place(self, event_id: EventId, location: str) -> str:
        return self.then.place(event_id, location)

    def passed(self, hop: int) -> None:
        self.then.passed(hop)

    def partition(self, version: Version) -> Partition:
        then = self.then.partition(version)
        name = TableName(then.database, then.table)
        table = self.source.catalog.table(name)
        if table is None or not is_partitioned(table):
            return then
        of = partition_name([key.name for key in table.partition_keys or ()], then.values)
        return self.source.catalog.partitions(name, [of]).get(of, then)
