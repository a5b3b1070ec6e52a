"""Search for the cheapest chain of hops over a target's declared operations (docs/how-hops-work.md).

Nodes are states, an edge is one operation that takes the replica from a state to a later one (`core.plan.edges`). The
cheapest path is the least by (bridges, hops in parts, work, calls), where work is the bytes copied and `HOP_BYTES` for
each hop: to save a hop is worth copying that many bytes, but not a table. States whose files are not exactly known are
no nodes. Bridges are edges only where no path exists without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from calque.core.plan.afterwards import counted, facet_events_of, facets_of
from calque.core.plan.edges import LineageTotals, bridge_of, edge_of
from calque.core.plan.operations import Edge, EdgeCost, operation_of
from calque.core.plan.problem import START, Problem, part_of
from calque.core.states.fold import LineageId
from calque.core.states.state import UNLISTED, Delta, Stage, StateDifference, departure
from calque.core.states.walk import StateWalk
from calque.model.names import EventId
from calque.model.plan import GroupPlan, Hop

Cost = tuple[int, int, int, int]
"""The cost of a path: (bridges, hops in parts, work, calls)."""
FREE: Cost = (0, 0, 0, 0)
HOP_BYTES = 16 * 2**20

PATIENCE, AT_LEAST = 2, 4000
"""A search follows all edges until it has looked at `PATIENCE` later states for each state of the chain, and at no
fewer than `AT_LEAST` in all. From then on it follows only the farthest edge of each run of edges of one kind."""


@dataclass(frozen=True, slots=True)
class Solution:
    """A plan, and how far it leads: `reached` is the index of the last state that the hops lead to, -1 when there is
    none."""

    plan: GroupPlan
    reached: int
    missing: bool
    """True where the last state could be shown and yet no operations lead there, so that tables must be read."""


@dataclass(frozen=True, slots=True)
class PlannedEdge:
    """An edge of the plan, the index of the state that it reaches, and the first event on the way that touches its
    table."""

    reaches: int
    edge: Edge
    first_event: EventId


@dataclass(slots=True)
class _PathLabel:
    cost: Cost
    before: int
    twin: bool = False
    """Whether the state equals that at `before`, which looks ahead for both."""


def solve(problem: Problem) -> Solution:
    """Return the cheapest plan to the last visitable state that can be reached: without bridges where that leads there,
    then, for tables at events of their own, with dropped tables left out, and at last with bridges. Parts that
    transactions alone link take no bridge together that they need not take apart: then no plan leads to the end."""
    solution = cheapest(problem, bridges=False)
    if solution.missing and problem.own_order and not problem.parts:
        apart = cheapest(dropped_left_out(problem), bridges=False)
        solution = solution if apart.missing else apart
    if solution.missing:
        bridged = cheapest(problem, bridges=True)
        is_better_apart = problem.parts and bridges_of(bridged) > sum(
            bridges_of(solve(part_of(problem, names))) for names in problem.parts
        )
        solution = solution if bridged.missing or is_better_apart else bridged
    return solution


def bridges_of(solution: Solution) -> int:
    return sum(hop.bridge for hop in solution.plan.hops)


def cheapest(problem: Problem, *, bridges: bool) -> Solution:
    """Return the cheapest plan, with or without bridges, to the last visitable state that can be reached."""
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
    """Return the indices of states (0: before the first step) in which the files of all shown tables, and the columns
    of their partitions, are known."""
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
    """Return the problem with tables that are gone at the chain's end hidden from their next rename on. Only renames
    that the target does not show yet count.

    Each name still shows its own states in their order; a name that such a table would get shows none for longer. So
    two tables can change names although one of them has files that are not known, if that one is dropped in the end:
    event 81 renames `a` to `old`, 82 renames `b` to `a`, and 83 drops `old`. The table that `a` was is hidden from
    event 81 on, and its unknown files bar no state.
    """
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
    """Return the stops without those inside a run of stages that all write the same one thing anew (`overwritten`): of
    each run only the last stop is kept.

    The last one is never worse, because no definition and no content ever comes back. Events 20, 30 and 40 insert into
    partition `p` of one table, with no other event between: only the state after event 40 is kept.
    """
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
    """Return the one thing that the stage writes anew, if it does nothing else: the definition (True) or the content of
    a table (`""`) or of one of its partitions. None for any other stage."""
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
    """A branch-and-bound search over the states in their order: edges only lead forward."""

    def __init__(self, problem: Problem, stops: set[int], origin: int, goal: int) -> None:
        self.problem, self.stops, self.origin, self.goal = problem, stops, origin, goal
        self.stages = [departure(problem.start, problem.first), *problem.stages]
        """The stage at an index leads to the state of that index; the first one leads from `START` to state 0."""
        self.totals = LineageTotals(problem.chain.complete, self.stages)
        self.presences = presences(self.stages)
        self.labels = {origin: _PathLabel(FREE, origin)}
        self.bridges = False
        self.looks = 0
        """The number of later states that the search has looked at."""

    def run(self, *, bridges: bool) -> int:
        """Search, and return the index of the last state that can be reached: the goal if any way leads there."""
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
        """Return the edge to the goal from each state that has one; None where the two states are equal."""
        edges: dict[int, Edge | None] = {}
        difference = StateDifference()
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

    def ahead(self, index: int, upto: int) -> Iterator[tuple[int, StateDifference]]:
        """Yield the index of each later state up to `upto`, with its difference from the state at `index`. One
        `StateDifference` grows and is yielded again and again."""
        difference = StateDifference()
        for later in range(index + 1, upto + 1):
            difference.forward(self.stages[later])
            yield later, difference
            if later >= self.problem.first_stop:
                difference.see()

    def look_ahead(self, index: int) -> None:
        """Offer (`offer`) to each later stop the edge that leads there from the state at `index`, and end where no
        state beyond can be one operation away (`stuck`). Past the bound of `PATIENCE` only the farthest edge of each
        run of edges of one kind is offered."""
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

    def edge(self, difference: StateDifference, later: int) -> Edge | None:
        """Return the edge that crosses the difference to the state `later`, a bridge where bridges are allowed and no
        other edge does; None for none."""
        ground = self.problem.ground
        edge = edge_of(ground, difference, self.totals, later)
        return bridge_of(ground, difference, self.totals, later) if edge is None and self.bridges else edge

    def offer(self, index: int, later: int, edge: Edge | None) -> None:
        """Take the way to `later` over `index` where it is the cheapest so far; `edge` is None between equal states."""
        cost = self.labels[index].cost
        if edge is not None:
            cost = add(cost, edge.cost)
        label = self.labels.get(later)
        if label is None or cost < label.cost:
            self.labels[later] = _PathLabel(cost, index, twin=edge is None)

    def stuck(self, difference: StateDifference, later: int) -> bool:
        """Tell whether no state after `later` can be one operation away from where `difference` begins. A difference
        lasts where no later state is as the first one was, because no definition and no content ever comes back. Two
        lineages with lasting differences are more than one operation can make, but for rows that one transaction
        commits, and so is a lineage for which `too_much` says so."""
        lasting, rows = 0, False
        for lineage, delta in difference.differing.items():
            last_shown, last_absent = self.presences[lineage]
            if delta.now is None:
                if last_shown <= later:
                    lasting += 1
                    if len(difference.differing) == 1 and later in self.labels:
                        return True
            elif last_absent <= later and (delta.was is None or delta.stays_different()):
                if self.problem.ground.commits_rows(lineage, delta):
                    rows = True
                    continue
                lasting += 1
                if delta.was is not None and self.too_much(lineage, delta):
                    return True
        return lasting + rows > 1

    def too_much(self, lineage: LineageId, delta: Delta) -> bool:
        """Tell whether no one operation can make the lasting differences of the lineage."""
        ground = self.problem.ground
        if ground.commits(lineage):
            return False
        if delta.lasting_header():
            return delta.lasting_partitions() + delta.staying > 0
        return delta.staying > 0 < delta.lasting_partitions() and not ground.rows and not delta.renames_one()

    def path(self, goal: int) -> Iterator[PlannedEdge]:
        """Yield the edges of the cheapest path from the origin to `goal`."""
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

    def first_event(self, before: int, after: int, difference: StateDifference) -> EventId:
        """Return the event of the first stage on the way that touches a lineage that differs; 0 where it has no
        event."""
        stages = self.stages[before + 1 : after + 1]
        touching = (
            stage.event_id for stage in stages if any(touch.lineage in difference.differing for touch in stage.touches)
        )
        return next(filter(None, touching), 0)


def presences(stages: list[Stage]) -> dict[LineageId, tuple[int, int]]:
    """Return, for each lineage that a stage touches, the last state that shows it, and the last that does not (-1:
    none)."""
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
    """Return the plan of the path: its hops, and the events of the states that it passes over and that can't be
    visited."""
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
