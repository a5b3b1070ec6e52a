"""Chain → the cheapest hops over a target's declared operations (design §1, §4).

Nodes are states, an edge is one operation that takes the replica from a state to a later one. The cheapest path
compares (bridges, hops, bytes, calls). States whose files are not exactly known are no nodes. Bridges are edges only
where no path exists without them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from calque.core.fold import Chain, LineageId, Step
from calque.core.state import UNLISTED, Cells, Difference, LineageDelta, StepValues
from calque.model.names import TableName
from calque.model.plan import (
    BASE,
    AddPartitions,
    AlterPartitions,
    AlterTable,
    CreateTable,
    Data,
    DropPartitions,
    DropTable,
    GroupPlan,
    Head,
    HiddenBuild,
    Hop,
    Operation,
    Part,
    PrepareFlipSweep,
    Publish,
    Rebuild,
    RenamePartition,
)
from calque.model.policy import Abilities

Cost = tuple[int, int, int, int]
"""(bridges, hops, bytes, calls)."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What is known of files: `size` of a content, and whether one content extends another (all files of the first are
    in the second, unchanged)."""

    size: Callable[[str], int]
    extends: Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Problem:
    """One group's planning problem. `start` is what the target shows; `first_stop` the earliest state (0: before the
    first step) that may still be shown. `in_place` allows appends to live directories."""

    chain: Chain
    first: Cells
    steps: list[StepValues]
    start: Cells
    start_index: int | None
    first_stop: int
    contents: Contents
    abilities: Abilities
    in_place: bool = True


@dataclass(frozen=True, slots=True)
class Solution:
    """`reached` is the index of the last state that the hops lead to; -1 when none can be reached at all."""

    plan: GroupPlan
    reached: int
    missing: bool
    """The end is visitable, and yet no operations lead there: something must be read."""


@dataclass(slots=True)
class _Label:
    cost: Cost
    before: int
    edge: Edge | None


@dataclass(frozen=True, slots=True)
class Edge:
    """How to cross a difference: the delta says what, `kind` which operation."""

    kind: str
    lineage: LineageId
    delta: LineageDelta
    bytes: int
    calls: int
    in_parts: int = 1
    bridge: bool = False


START = -1
"""The node of what the target shows, where that is none of the chain's states."""


def solve(problem: Problem) -> Solution:
    """The cheapest plan to the last visitable state that can be reached."""
    visitable = visitable_states(problem)
    goals = [index for index in sorted(visitable, reverse=True) if index >= problem.first_stop]
    last = len(problem.steps)
    origin = START if problem.start_index is None else problem.start_index
    if origin == last or (origin != START and not any(goal > origin for goal in goals)):
        return Solution(group_plan(problem, visitable, [], origin), origin, False)
    labels = cheapest(problem, visitable, origin, bridges=False)
    goal = next((index for index in goals if index in labels), None)
    if goal != last and last in visitable:
        bridged = cheapest(problem, visitable, origin, bridges=True)
        if last in bridged:
            labels, goal = bridged, last
    if goal is None:
        return Solution(group_plan(problem, visitable, [], origin), origin, last in visitable)
    return Solution(
        group_plan(problem, visitable, path_to(labels, goal), goal), goal, goal != last and last in visitable
    )


def visitable_states(problem: Problem) -> set[int]:
    """Indices of states (0: before the first step) whose files are known."""
    cells = problem.first.copy()
    found = {0} if cells.visitable() else set()
    unlisted: set[object] = {lineage for lineage, value in cells.heads.items() if value.content == UNLISTED}
    unlisted |= {cell for cell, value in cells.parts.items() if value is not None and value.content == UNLISTED}
    for index, values in enumerate(problem.steps, start=1):
        cells.apply(values)
        for lineage, head in values.heads.items():
            (unlisted.add if head.content == UNLISTED else unlisted.discard)(lineage)
        for cell, part in values.parts.items():
            (unlisted.add if part is not None and part.content == UNLISTED else unlisted.discard)(cell)
        shown = cells.shown() if unlisted else {}
        if not any((item[0] if isinstance(item, tuple) else item) in shown for item in unlisted):
            found.add(index)
    return found


def cheapest(problem: Problem, visitable: set[int], origin: int, *, bridges: bool) -> dict[int, _Label]:
    """The cheapest label of each state that can be reached from `origin`."""
    labels = {origin: _Label((0, 0, 0, 0), origin, None)}
    last = len(problem.steps)
    at = problem.start.copy() if origin == START else None
    cells = problem.first.copy()
    for index in range(START, last + 1):
        if index > 0:
            cells.apply(problem.steps[index - 1])
        label = labels.get(index)
        if label is None or index == last:
            continue
        best = labels.get(last)
        if best is not None and label.cost[:2] >= best.cost[:2]:
            continue
        reference = at if index == START and at is not None else (problem.start if index == origin else cells)
        relax(problem, visitable, labels, index, reference, bridges=bridges)
    return labels


def relax(
    problem: Problem, visitable: set[int], labels: dict[int, _Label], index: int, reference: Cells, *, bridges: bool
) -> None:
    """Follow every edge out of one state."""
    difference = Difference(reference)
    if index == START:
        difference.add(StepValues(_NO_STEP, problem.first.names, problem.first.heads, problem.first.parts))
    label = labels[index]
    for later in range(max(index, 0), len(problem.steps) + 1):
        if later > max(index, 0):
            difference.add(problem.steps[later - 1])
        if later == index or later not in visitable or later < problem.first_stop:
            continue
        if not difference.differing:
            edge: Edge | None = None
            cost = label.cost
        else:
            edge = edge_of(problem, difference) or (bridge_of(problem, difference) if bridges else None)
            if edge is None:
                continue
            cost = add(label.cost, edge)
        known = labels.get(later)
        if known is None or cost < known.cost:
            kept = None if edge is None else replace(edge, delta=edge.delta.copy())
            labels[later] = _Label(cost, index, kept)


def add(cost: Cost, edge: Edge) -> Cost:
    return (cost[0] + edge.bridge, cost[1] + 1, cost[2] + edge.bytes, cost[3] + edge.calls)


def edge_of(problem: Problem, difference: Difference) -> Edge | None:
    """The one operation that crosses the difference, if there is one."""
    delta = difference.only()
    if delta is None:
        return None
    lineage = difference.only_lineage()
    if delta.was is None:
        return appearing(problem, difference, lineage, delta)
    if delta.now is None:
        return Edge("drop_table", lineage, delta, 0, 1)
    if not delta.touches_partitions():
        return header_edge(problem, difference, lineage, delta)
    if delta.was != delta.now or delta.definition or delta.content or delta.cascade:
        return None
    return partition_edge(problem, lineage, delta)


def appearing(problem: Problem, difference: Difference, lineage: LineageId, delta: LineageDelta) -> Edge | None:
    if lineage not in problem.chain.complete:
        return None
    head = difference.now.heads[lineage]
    parts = {cell[1]: value for cell, value in difference.now.parts.items() if cell[0] == lineage and value is not None}
    size = problem.contents.size(head.content) + sum(problem.contents.size(part.content) for part in parts.values())
    whole = LineageDelta(None, delta.now, True, True, 0, parts)
    if not parts:
        return Edge("create_table", lineage, whole, size, 1)
    limits = problem.abilities.limits
    if len(parts) > limits.hidden_build:
        return None
    return Edge("hidden_build", lineage, whole, size, 2 + pieces(len(parts), limits.add_partitions))


def header_edge(problem: Problem, difference: Difference, lineage: LineageId, delta: LineageDelta) -> Edge:
    was, now = difference.reference.heads[lineage].content, difference.now.heads[lineage].content
    if not delta.content:
        return Edge("alter_table", lineage, delta, 0, 1)
    only_content = delta.was == delta.now and not delta.definition
    if only_content and problem.in_place and problem.contents.extends(was, now):
        return Edge("publish", lineage, delta, problem.contents.size(now) - problem.contents.size(was), 0)
    return Edge("alter_table", lineage, delta, problem.contents.size(now), 1)


def partition_edge(problem: Problem, lineage: LineageId, delta: LineageDelta) -> Edge | None:
    size, limits = problem.contents.size, problem.abilities.limits
    if unknown(delta):
        return None
    match bool(delta.added), bool(delta.changed), bool(delta.removed):
        case (True, False, False):
            total = sum(size(part.content) for part in delta.added.values())
            calls = pieces(len(delta.added), limits.add_partitions)
            return Edge("add_partitions", lineage, delta, total, calls, calls)
        case (False, False, True):
            calls = pieces(len(delta.removed), limits.drop_partitions)
            return Edge("drop_partitions", lineage, delta, 0, calls, calls)
        case (False, True, False):
            return changed_edge(problem, lineage, delta)
        case (True, False, True) if len(delta.added) == len(delta.removed) == 1:
            (now,), (was,) = delta.added.values(), delta.removed.values()
            if now.lineage == was.lineage and now.content == was.content:
                return Edge("rename_partition", lineage, delta, 0, 1)
    return None


def unknown(delta: LineageDelta) -> bool:
    """Whether a partition appears that should have been there already: its definition is in no event."""
    return any(part.version == BASE for part in delta.added.values())


def changed_edge(problem: Problem, lineage: LineageId, delta: LineageDelta) -> Edge:
    contents = problem.contents
    if len(delta.changed) == 1:
        ((was, now),) = delta.changed.values()
        same_definition = (was.lineage, was.version) == (now.lineage, now.version)
        if same_definition and problem.in_place and contents.extends(was.content, now.content):
            return Edge("publish", lineage, delta, contents.size(now.content) - contents.size(was.content), 0)
    total = sum(contents.size(now.content) for was, now in delta.changed.values() if was.content != now.content)
    calls = pieces(len(delta.changed), problem.abilities.limits.alter_partitions)
    return Edge("alter_partitions", lineage, delta, total, calls, calls)


def bridge_of(problem: Problem, difference: Difference) -> Edge | None:
    """The last resort where the chain has a hole (design §1)."""
    delta = difference.only()
    if delta is None:
        return replacement(problem, difference)
    if delta.was is None or delta.now is None or unknown(delta):
        return None
    lineage = difference.only_lineage()
    size = problem.contents.size
    moved = sum(size(part.content) for part in delta.added.values())
    moved += sum(size(now.content) for was, now in delta.changed.values() if was.content != now.content)
    if delta.was == delta.now and not (delta.definition or delta.content or delta.cascade):
        calls = 1 + bool(delta.added) + bool(delta.removed)
        return Edge("prepare_flip_sweep", lineage, delta, moved, calls, bridge=True)
    return Edge("rebuild", lineage, delta, moved, 4, bridge=True)


def replacement(problem: Problem, difference: Difference) -> Edge | None:
    """Another incarnation under the same name, with no state between in which there is none."""
    if len(difference.differing) != 2:
        return None
    deltas = {lineage: difference.deltas[lineage] for lineage in difference.differing}
    gone = next((delta for delta in deltas.values() if delta.now is None), None)
    lineage, new = next(((key, delta) for key, delta in deltas.items() if delta.was is None), (0, None))
    if gone is None or new is None or gone.was != new.now:
        return None
    edge = appearing(problem, difference, lineage, new)
    if edge is None:
        return None
    whole = replace(edge.delta, was=gone.was)
    return Edge("replace", lineage, whole, edge.bytes, 4, bridge=True)


def pieces(count: int, limit: int) -> int:
    return max(1, math.ceil(count / limit))


def path_to(labels: Mapping[int, _Label], goal: int) -> list[tuple[int, Edge]]:
    """The edges from the origin to `goal`, each with the state it reaches."""
    found: list[tuple[int, Edge]] = []
    index = goal
    while labels[index].before != index:
        label = labels[index]
        if label.edge is not None:
            found.append((index, label.edge))
        index = label.before
    return found[::-1]


def group_plan(problem: Problem, visitable: set[int], path: list[tuple[int, Edge]], reached: int) -> GroupPlan:
    """The path as hops, with what was passed over."""
    states = _States(problem)
    hops = tuple(hop_of(problem, states, index, edge) for index, edge in path)
    visited = {index for index, _ in path}
    origin = 0 if problem.start_index is None else problem.start_index
    between = range(max(origin, 0) + 1, max(reached, 0))
    events = {index: problem.steps[index - 1].step.event_id for index in range(1, len(problem.steps) + 1)}
    passed = tuple(events[index] for index in between if index not in visited)
    return GroupPlan(
        problem.chain.tables,
        problem.chain.events,
        hops,
        passed,
        tuple(event for index, event in events.items() if index not in visitable),
        facets_of(problem, reached),
    )


def facets_of(problem: Problem, reached: int) -> tuple[tuple[TableName, tuple[str, ...]], ...]:
    """Objects that are shown at the end and whose statistics changed last."""
    if reached != len(problem.steps):
        return ()
    cells = problem.first.copy()
    for values in problem.steps:
        cells.apply(values)
    shown = cells.shown()
    found: dict[TableName, list[str]] = {}
    for lineage, partition in problem.chain.facets:
        if lineage in shown and (not partition or cells.parts.get((lineage, partition)) is not None):
            found.setdefault(shown[lineage], []).append(partition)
    return tuple((table, tuple(sorted(partitions))) for table, partitions in sorted(found.items()))


@dataclass(slots=True)
class _States:
    """Heads and parts of the chain at an index, walked forward only."""

    problem: Problem
    index: int = 0
    heads: dict[LineageId, Head] = field(default_factory=dict)
    parts: dict[tuple[LineageId, str], Part | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.heads.update(self.problem.chain.heads)
        self.parts.update(self.problem.chain.parts)

    def go(self, index: int) -> None:
        while self.index < index:
            step = self.problem.steps[self.index].step
            self.heads.update(step.heads)
            self.parts.update(step.parts)
            self.index += 1

    def part(self, lineage: LineageId, name: str) -> Part:
        part = self.parts[lineage, name]
        assert part is not None
        return part

    def part_list(self, lineage: LineageId, names: Mapping[str, object]) -> tuple[tuple[str, Part], ...]:
        return tuple((name, self.part(lineage, name)) for name in sorted(names))


def hop_of(problem: Problem, states: _States, index: int, edge: Edge) -> Hop:
    states.go(index)
    operation = operation_of(states, edge)
    event = problem.steps[index - 1].step.event_id if index else 0
    delta = edge.delta
    objects = len(delta.added) + len(delta.changed) + len(delta.removed)
    return Hop(event, operation, max(objects, 1), edge.bytes, edge.bridge, edge.in_parts)


def operation_of(states: _States, edge: Edge) -> Operation:
    delta, lineage = edge.delta, edge.lineage
    table = delta.now or delta.was
    assert table is not None
    if edge.kind == "drop_table":
        return DropTable(table)
    head = states.heads.get(lineage)
    match edge.kind:
        case "create_table":
            assert head is not None
            return CreateTable(table, head)
        case "hidden_build":
            assert head is not None
            return HiddenBuild(table, head, states.part_list(lineage, delta.added))
        case "alter_table":
            assert head is not None
            assert delta.was is not None
            return AlterTable(table, delta.was, head, switch=delta.content, cascade=bool(delta.cascade))
        case "add_partitions":
            return AddPartitions(table, states.part_list(lineage, delta.added))
        case "drop_partitions":
            return DropPartitions(table, tuple(sorted(delta.removed)))
        case "rename_partition":
            (name,), (was,) = delta.added, delta.removed
            return RenamePartition(table, was, name, states.part(lineage, name))
        case "alter_partitions":
            switched = frozenset(name for name, (was, now) in delta.changed.items() if was.content != now.content)
            return AlterPartitions(table, states.part_list(lineage, delta.changed), switched)
        case "publish":
            return publish_of(states, table, lineage, delta)
        case "prepare_flip_sweep":
            return PrepareFlipSweep(
                table,
                states.part_list(lineage, delta.added),
                states.part_list(lineage, delta.changed),
                tuple(sorted(delta.removed)),
            )
        case "replace":
            assert head is not None
            return Rebuild(table, delta.was, head, states.part_list(lineage, delta.added), whole=True)
        case "rebuild":
            assert head is not None
            touched = {*delta.added, *delta.changed, *delta.removed}
            parts = tuple((name, states.parts[lineage, name]) for name in sorted(touched))
            return Rebuild(table, delta.was, head, parts, cascade=delta.cascade)
    raise AssertionError(edge.kind)


def publish_of(states: _States, table: TableName, lineage: LineageId, delta: LineageDelta) -> Publish:
    if delta.changed:
        (name,) = delta.changed
        part = states.part(lineage, name)
        return Publish(table, name, part.data, part.since)
    head = states.heads[lineage]
    assert isinstance(head.data, Data)
    return Publish(table, "", head.data, head.since)


_NO_STEP = Step((0,))
