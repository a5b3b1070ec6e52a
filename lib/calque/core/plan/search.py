"""Chain → the cheapest hops over a target's declared operations (docs/how-hops-work.md).

Nodes are states, an edge is one operation that takes the replica from a state to a later one (`core.plan.edges`). The
cheapest path compares (bridges, hops in parts, work, calls), where work is the bytes copied and `HOP_BYTES` for each
hop: a hop less is worth copying that much, not a table. States whose files are not exactly known are no nodes. Bridges
are edges only where no path exists without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from calque.core.plan.afterwards import counted, facet_events_of, facets_of
from calque.core.plan.edges import LineageTotals, bridge_of, edge_of
from calque.core.plan.operations import Edge, EdgeCost, operation_of
from calque.core.plan.problem import START, Problem
from calque.core.states.fold import LineageId
from calque.core.states.state import UNLISTED, Delta, Difference, Stage, departure
from calque.core.states.walk import StateWalk
from calque.model.names import EventId
from calque.model.plan import GroupPlan, Hop

Cost = tuple[int, int, int, int]
"""(bridges, hops in parts, work, calls)."""
FREE: Cost = (0, 0, 0, 0)
HOP_BYTES = 16 * 2**20

PATIENCE, AT_LEAST = 2, 4000
"""A search follows all edges while it has looked at fewer than `PATIENCE` later states for each of the chain's, or
`AT_LEAST` so many in all; from then on the farthest edges of each kind alone."""


@dataclass(frozen=True, slots=True)
class Solution:
    """`reached` is the index of the last state that the hops lead to; -1 when none can be reached at all."""

    plan: GroupPlan
    reached: int
    missing: bool
    """The end is visitable, and yet no operations lead there: something must be read."""


@dataclass(frozen=True, slots=True)
class PlannedEdge:
    """An edge, the index of the state that it reaches, and the first event on the way that touches its table."""

    reaches: int
    edge: Edge
    first_event: EventId


@dataclass(slots=True)
class _PathLabel:
    cost: Cost
    before: int
    twin: bool = False
    """The same state as `before`, which looks ahead for both."""


def solve(problem: Problem) -> Solution:
    """The cheapest plan to the last visitable state that can be reached."""
    solution = cheapest(problem, bridges=False)
    if solution.missing and problem.own_order:
        apart = cheapest(dropped_left_out(problem), bridges=False)
        solution = solution if apart.missing else apart
    if solution.missing:
        bridged = cheapest(problem, bridges=True)
        solution = solution if bridged.missing else bridged
    return solution


def cheapest(problem: Problem, *, bridges: bool) -> Solution:
    visitable = visitable_states(problem)
    stops = {index for index in visitable if index >= problem.first_stop}
    origin, last = problem.origin, problem.last
    goal = max(stops, default=START)
    if origin == last or goal <= origin:
        return Solution(group_plan(problem, visitable, [], origin), origin, False)
    search = ChainSearch(problem, kept_stops(problem, stops), origin, goal)
    reached = search.run(bridges=bridges)
    path = list(search.path(reached))
    return Solution(group_plan(problem, visitable, path, reached), reached, goal == last != reached)


def visitable_states(problem: Problem) -> set[int]:
    """Indices of states (0: before the first step) whose files, and whose partitions' columns, are known."""
    shown = problem.first.shown()
    heads = {lineage for lineage, value in problem.first.heads.items() if value.content == UNLISTED}
    parts: dict[LineageId, set[str]] = {}
    for (lineage, name), value in problem.first.parts.items():
        if value is not None and value.content == UNLISTED:
            parts.setdefault(lineage, set()).add(name)
    doubtful: set[LineageId] = set()
    indices = set()
    for index in range(problem.last + 1):
        if index:
            stage = problem.stages[index - 1]
            doubtful = (doubtful | stage.doubtful) - stage.settled
            for touch in stage.touches:
                lineage = touch.lineage
                if touch.named is not None:
                    shown[lineage] = touch.named
                else:
                    shown.pop(lineage, None)
                if touch.cascade and lineage not in stage.doubtful:
                    doubtful.discard(lineage)
                if touch.head is not None:
                    (heads.add if touch.head.content == UNLISTED else heads.discard)(lineage)
                for name, _, value in touch.parts:
                    if value is not None and value.content == UNLISTED:
                        parts.setdefault(lineage, set()).add(name)
                    elif lineage in parts:
                        parts[lineage].discard(name)
                        if not parts[lineage]:
                            del parts[lineage]
        if not any(lineage in shown for unknown in (heads, parts, doubtful) for lineage in unknown):
            indices.add(index)
    return indices


def dropped_left_out(problem: Problem) -> Problem:
    """The same without what its tables are called from their next rename on that the target does not show yet, where
    they are gone at the end. Each name still shows its own states in their order: where such a table comes, the name
    shows none for longer. So two tables change places although one of them had files that nobody knows."""
    gone: dict[LineageId, bool] = {}
    for stage in problem.stages:
        gone |= {touch.lineage: touch.named is None for touch in stage.touches}
    hidden: set[LineageId] = set()
    shown_stages = max(problem.origin, 0)
    stages = problem.stages[:shown_stages]
    for stage in problem.stages[shown_stages:]:
        touches = []
        for touch in stage.touches:
            was_hidden = touch.lineage in hidden
            if gone[touch.lineage] and touch.was_named != touch.named:
                hidden.add(touch.lineage)
            if touch.lineage in hidden:
                touches.append(replace(touch, was_named=None if was_hidden else touch.was_named, named=None))
            else:
                touches.append(touch)
        stages.append(replace(stage, touches=tuple(touches)))
    return replace(problem, stages=stages)


def kept_stops(problem: Problem, stops: set[int]) -> set[int]:
    """Without those inside a run of stages that write the same one thing anew: the run's end is never worse than they
    are (no definition and no content ever comes back)."""
    remaining_stops, later, key_after = set(), False, None
    for index in range(problem.last, -1, -1):
        key = overwritten(problem.stages[index - 1]) if index else None
        if index == problem.last or key is None or key != key_after:
            later = False
        if index in stops and not (later and index != problem.origin):
            remaining_stops.add(index)
            later = True
        key_after = key
    return remaining_stops


def overwritten(stage: Stage) -> tuple[LineageId, str, bool] | None:
    """What the stage writes anew, if it does nothing else: the definition (True) or the content of a table (`""`) or of
    one of its partitions."""
    if len(stage.touches) != 1:
        return None
    (touch,) = stage.touches
    if touch.was_named is None or touch.was_named != touch.named or touch.cascade or stage.doubtful or stage.settled:
        return None
    if len(touch.parts) + (touch.head is not None) != 1:
        return None
    name, was, now = touch.parts[0] if touch.parts else ("", touch.was_head, touch.head)
    if was is None or now is None or (was.version != now.version) == (was.content != now.content):
        return None
    return touch.lineage, name, was.version != now.version


class ChainSearch:
    """Branch and bound over the states in their order: edges only lead forward."""

    def __init__(self, problem: Problem, stops: set[int], origin: int, goal: int) -> None:
        self.problem, self.stops, self.origin, self.goal = problem, stops, origin, goal
        self.stages = [departure(problem.start, problem.first), *problem.stages]
        """The stage at an index leads to the state of that index; the first one comes from `START`."""
        self.totals = LineageTotals(problem.chain.complete, self.stages)
        self.lasting = presences(self.stages)
        self.labels = {origin: _PathLabel(FREE, origin)}
        self.bridges = False
        self.looks = 0
        """At later states, so far."""

    def run(self, *, bridges: bool) -> int:
        """The last state that can be reached; the goal if any way leads there."""
        self.bridges = bridges
        ends = self.edges_to_goal()
        for index in range(self.origin, self.goal):
            label = self.labels.get(index)
            if label is None or label.twin:
                continue
            if index in ends:
                self.offer(index, self.goal, ends[index])
            best = self.labels.get(self.goal)
            bridged, parts, work, _ = label.cost
            if best is None or (bridged, parts, work + HOP_BYTES) < best.cost[:3]:
                self.look_ahead(index)
        return max(self.labels)

    def edges_to_goal(self) -> dict[int, Edge | None]:
        """The edge to the goal from each state that has one; None where both are the same."""
        edges: dict[int, Edge | None] = {}
        difference = Difference()
        for index in range(self.goal - 1, self.origin - 1, -1):
            difference.backward(self.stages[index + 1])
            if index in self.stops or index == self.origin:
                if not difference.differing:
                    edges[index] = None
                elif (edge := self.edge(difference, self.goal)) is not None:
                    edges[index] = edge
            if index >= self.problem.first_stop:
                difference.see()
        return edges

    def ahead(self, index: int, upto: int) -> Iterator[tuple[int, Difference]]:
        """Each later state, with its difference from the one at `index`."""
        difference = Difference()
        for later in range(index + 1, upto + 1):
            difference.forward(self.stages[later])
            yield later, difference
            if later >= self.problem.first_stop:
                difference.see()

    def look_ahead(self, index: int) -> None:
        """Follow the edges out of one state, as far as there can be any."""
        patience = max(PATIENCE * len(self.stages), AT_LEAST)
        farthest: tuple[int, Edge] | None = None
        for later, difference in self.ahead(index, self.goal - 1):
            self.looks += 1
            edge = self.edge(difference, later) if later in self.stops and difference.differing else None
            if later in self.stops and not difference.differing:
                self.offer(index, later, None)
            elif edge is not None and self.looks < patience:
                self.offer(index, later, edge)
            elif later in self.stops:
                if farthest is not None and (edge is None or type(edge) is not type(farthest[1])):
                    self.offer(index, *farthest)
                farthest = None if edge is None else (later, edge)
            if index != START and not self.bridges and self.stuck(difference, later):
                break
        if farthest is not None:
            self.offer(index, *farthest)

    def edge(self, difference: Difference, later: int) -> Edge | None:
        """What crosses the difference to the state `later`."""
        ground = self.problem.ground
        edge = edge_of(ground, difference, self.totals, later)
        return bridge_of(ground, difference, self.totals, later) if edge is None and self.bridges else edge

    def offer(self, index: int, later: int, edge: Edge | None) -> None:
        cost = self.labels[index].cost
        if edge is not None:
            cost = add(cost, edge.cost)
        label = self.labels.get(later)
        if label is None or cost < label.cost:
            self.labels[later] = _PathLabel(cost, index, twin=edge is None)

    def stuck(self, difference: Difference, later: int) -> bool:
        """Whether no later state than this can be one operation away: what differs can never be equal again, and is
        too much for one."""
        lasting = 0
        for lineage, delta in difference.differing.items():
            last_shown, last_absent = self.lasting[lineage]
            if delta.now is None:
                if last_shown <= later:
                    lasting += 1
                    if len(difference.differing) == 1 and later in self.labels:
                        return True
            elif last_absent <= later and (delta.was is None or delta.lasting()):
                lasting += 1
                if delta.was is not None and self.too_much(lineage, delta):
                    return True
        return lasting > 1

    def too_much(self, lineage: LineageId, delta: Delta) -> bool:
        """Whether one operation can't do what differs for good."""
        ground = self.problem.ground
        if ground.commits(lineage):
            return False
        if delta.lasting_header():
            return delta.lasting_partitions() + delta.staying > 0
        return delta.staying > 0 < delta.lasting_partitions() and not ground.rows and not delta.renames_one()

    def path(self, goal: int) -> Iterator[PlannedEdge]:
        """The edges from the origin to `goal`."""
        indices = [goal]
        while indices[-1] != self.origin:
            indices.append(self.labels[indices[-1]].before)
        indices.reverse()
        for before, after in pairwise(indices):
            *_, (_, difference) = self.ahead(before, after)
            if difference.differing:
                edge = self.edge(difference, after)
                assert edge is not None
                yield PlannedEdge(after, edge, self.first_event(before, after, difference))

    def first_event(self, before: int, after: int, difference: Difference) -> EventId:
        """Of the first stage on the way that touches what differs."""
        stages = self.stages[before + 1 : after + 1]
        touching = (
            stage.event_id for stage in stages if any(touch.lineage in difference.differing for touch in stage.touches)
        )
        return next(filter(None, touching), 0)


def presences(stages: list[Stage]) -> dict[LineageId, tuple[int, int]]:
    """Of each lineage that a stage touches: the last state that shows it, and the last that does not (-1: none)."""
    last_states: dict[LineageId, tuple[int, int]] = {}
    end = len(stages) - 1
    for index in range(end, -1, -1):
        for touch in stages[index].touches:
            if touch.lineage not in last_states:
                last_states[touch.lineage] = (-1, end) if touch.named is None else (end, -1)
            shown, absent = last_states[touch.lineage]
            if touch.was_named is not None:
                shown = max(shown, index - 1)
            else:
                absent = max(absent, index - 1)
            last_states[touch.lineage] = (shown, absent)
    return last_states


def add(cost: Cost, edge: EdgeCost) -> Cost:
    bridges, parts, work, calls = cost
    work += HOP_BYTES + edge.bytes
    return (bridges + edge.bridge, parts + (edge.in_parts > 1), work, calls + edge.calls)


def group_plan(problem: Problem, visitable: set[int], path: list[PlannedEdge], reached: int) -> GroupPlan:
    """The path as hops, with what was passed over."""
    walk = StateWalk(problem.chain, counted(problem, reached), reached)
    hops = []
    for planned in path:
        index = planned.reaches
        walk.to(index)
        event = problem.stages[index - 1].event_id if index else 0
        operation, cost = operation_of(walk, planned.edge), planned.edge.cost
        first_event = planned.first_event or event
        hops.append(Hop(event, operation, cost.objects, cost.bytes, cost.bridge, cost.in_parts, first_event))
    visited = {planned.reaches for planned in path}
    events: list[EventId] = [0, *(stage.event_id for stage in problem.stages)]
    return GroupPlan(
        problem.chain.tables,
        problem.chain.events,
        tuple(hops),
        tuple(events[index] for index in range(max(problem.origin, 0) + 1, max(reached, 0)) if index not in visited),
        tuple(events[index] for index in range(1, problem.last + 1) if index not in visitable),
        facets_of(problem, reached, walk.written),
        facet_events_of(problem, reached),
    )
