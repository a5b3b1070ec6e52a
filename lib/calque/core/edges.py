"""Which one operation crosses a difference, what it costs, and the operation itself (design §4).

The planner works with the target's declared abilities and limits alone, never with the name of a system. Lists beyond
an operation's limit, or of a catalog whose lists are not atomic, are applied in parts.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from calque.core.fold import LineageId
from calque.core.state import Content, Delta, Difference, Stage, Touch
from calque.core.walk import Walk
from calque.model.plan import (
    AddPartitions,
    AlterPartitions,
    AlterTable,
    CommitTable,
    CreateTable,
    Data,
    DropPartitions,
    DropTable,
    HiddenBuild,
    Operation,
    Part,
    PrepareFlipSweep,
    Publish,
    Rebuild,
    RenamePartition,
)
from calque.model.policy import Abilities


@dataclass(frozen=True, slots=True)
class Ground:
    """What decides over edges besides the chain. `extends` says whether all files of one content are in another,
    unchanged; `in_place` allows appends to live directories, `rows` early listings (`atomicity = "rows"`)."""

    abilities: Abilities
    extends: Callable[[Content, Content], bool]
    in_place: bool = True
    rows: bool = False


@dataclass(slots=True)
class Edge:
    """How to cross a difference: the delta says what, `kind` which operation."""

    kind: str
    lineage: LineageId
    delta: Delta
    objects: int
    bytes: int
    calls: int
    in_parts: int = 1
    bridge: bool = False


class Totals:
    """Of each lineage that the window created, at every state: its partitions, and the bytes of all its content."""

    def __init__(self, complete: Collection[LineageId], stages: Sequence[Stage]) -> None:
        self._rows: dict[LineageId, tuple[list[int], list[tuple[int, int]]]] = {}
        for index, stage in enumerate(stages):
            for touch in stage.touches:
                if touch.lineage in complete:
                    indices, totals = self._rows.setdefault(touch.lineage, ([], []))
                    indices.append(index)
                    totals.append(grown(*(totals[-1] if totals else (0, 0)), touch))

    def at(self, lineage: LineageId, index: int) -> tuple[int, int] | None:
        """(partitions, bytes); None for a lineage that the window did not create."""
        if lineage not in self._rows:
            return None
        indices, totals = self._rows[lineage]
        return totals[bisect_right(indices, index) - 1]


def grown(count: int, size: int, touch: Touch) -> tuple[int, int]:
    if touch.head is not None:
        size += touch.head.size - (touch.was_head.size if touch.was_head else 0)
    for _, was, now in touch.parts:
        count += (now is not None) - (was is not None)
        size += (now.size if now else 0) - (was.size if was else 0)
    return count, size


def edge_of(ground: Ground, difference: Difference, totals: Totals, later: int) -> Edge | None:
    """The one operation that crosses the difference to the state `later`, if there is one."""
    only = difference.only()
    if only is None:
        return None
    lineage, delta = only
    if delta.was is None:
        return appearing(ground, lineage, delta, totals, later)
    if delta.now is None:
        return Edge("drop_table", lineage, delta, 1, 0, 1)
    if delta.unknown or delta.two_columns():
        return None
    beside = delta.beside_partitions()
    if not delta.touches_partitions():
        return header_edge(ground, lineage, delta)
    edge = None if beside else partition_edge(ground, lineage, delta)
    if (edge is None or edge.in_parts > 1) and ground.abilities.any_difference:
        head_bytes = delta.head.size if delta.head is not None and delta.content else 0
        size = head_bytes + delta.bytes_added + delta.bytes_changed
        return Edge("commit", lineage, delta, objects_of(delta), size, 1)
    if edge is None and ground.rows and not beside:
        return flip_edge(ground, lineage, delta, bridge=False)
    if edge is None and delta.vanished:
        return rebuild_edge(lineage, delta, bridge=False)
    return edge


def appearing(ground: Ground, lineage: LineageId, delta: Delta, totals: Totals, later: int) -> Edge | None:
    total = totals.at(lineage, later)
    if total is None:
        return None
    count, size = total
    if not count:
        return Edge("create_table", lineage, delta, 1, size, 1)
    if ground.abilities.any_difference:
        return Edge("build", lineage, delta, count, size, 1)
    return Edge("hidden_build", lineage, delta, count, size, 2 + pieces(count, ground.abilities.limits.add_partitions))


def header_edge(ground: Ground, lineage: LineageId, delta: Delta) -> Edge:
    if not delta.content:
        return Edge("alter_table", lineage, delta, 1, 0, 1)
    was, now = delta.was_head, delta.head
    assert was is not None
    assert now is not None
    only_content = delta.was == delta.now and not delta.definition
    if only_content and ground.in_place and ground.extends(was.content, now.content):
        return Edge("publish", lineage, delta, 1, max(0, now.size - was.size), 0)
    return Edge("alter_table", lineage, delta, 1, now.size, 1)


def partition_edge(ground: Ground, lineage: LineageId, delta: Delta) -> Edge | None:
    limits = ground.abilities.limits
    match bool(delta.added), bool(delta.changed), bool(delta.removed):
        case (True, False, False):
            return listed(ground, "add_partitions", lineage, delta, delta.bytes_added, limits.add_partitions)
        case (False, False, True):
            return listed(ground, "drop_partitions", lineage, delta, 0, limits.drop_partitions)
        case (False, True, False):
            if len(delta.changed) == 1 and (edge := append_edge(ground, lineage, delta)) is not None:
                return edge
            return listed(ground, "alter_partitions", lineage, delta, delta.bytes_changed, limits.alter_partitions)
        case (True, False, True) if len(delta.added) == len(delta.removed) == 1:
            (now,), (was,) = delta.added.values(), delta.removed.values()
            if now.lineage == was.lineage and now.content == was.content:
                return Edge("rename_partition", lineage, delta, 1, 0, 1)
    return None


def append_edge(ground: Ground, lineage: LineageId, delta: Delta) -> Edge | None:
    ((was, now),) = delta.changed.values()
    same_definition = (was.lineage, was.version) == (now.lineage, now.version)
    if same_definition and ground.in_place and ground.extends(was.content, now.content):
        return Edge("publish", lineage, delta, 1, now.size - was.size, 0)
    return None


def listed(ground: Ground, kind: str, lineage: LineageId, delta: Delta, size: int, limit: int) -> Edge:
    count = objects_of(delta)
    calls = pieces(count, limit)
    return Edge(kind, lineage, delta, count, size, calls, calls if ground.abilities.atomic_lists else count)


def objects_of(delta: Delta) -> int:
    return len(delta.added) + len(delta.changed) + len(delta.removed)


def flip_edge(ground: Ground, lineage: LineageId, delta: Delta, *, bridge: bool) -> Edge:
    """Prepare, flip, sweep: rows change in one call, listings are early."""
    edge = listed(
        ground,
        "prepare_flip_sweep",
        lineage,
        delta,
        delta.bytes_added + delta.bytes_changed,
        ground.abilities.limits.alter_partitions,
    )
    edge.calls += bool(delta.added) + bool(delta.removed)
    edge.bridge = bridge
    return edge


def bridge_of(ground: Ground, difference: Difference, totals: Totals, later: int) -> Edge | None:
    """The last resort where the chain has a hole (design §1)."""
    only = difference.only()
    if only is None:
        return replacement(ground, difference, totals, later)
    lineage, delta = only
    if delta.was is None or delta.now is None or delta.unknown or delta.two_columns():
        return None
    if not delta.beside_partitions():
        return flip_edge(ground, lineage, delta, bridge=True)
    return rebuild_edge(lineage, delta, bridge=True)


def rebuild_edge(lineage: LineageId, delta: Delta, *, bridge: bool) -> Edge:
    """The table goes for one call: no bridge where the source had such a state between."""
    size = delta.bytes_added + delta.bytes_changed
    return Edge("rebuild", lineage, delta, objects_of(delta), size, 4, bridge=bridge)


def replacement(ground: Ground, difference: Difference, totals: Totals, later: int) -> Edge | None:
    """Another incarnation under the same name, with no state between in which there is none."""
    if len(difference.differing) != 2:
        return None
    gone = next((delta for delta in difference.differing.values() if delta.now is None), None)
    lineage, new = next(((key, delta) for key, delta in difference.differing.items() if delta.was is None), (0, None))
    if gone is None or new is None or gone.was != new.now:
        return None
    edge = appearing(ground, lineage, new, totals, later)
    if edge is None:
        return None
    return Edge("replace", lineage, new, edge.objects, edge.bytes, 4, bridge=True)


def pieces(count: int, limit: int) -> int:
    return max(1, math.ceil(count / limit))


def operation_of(walk: Walk, edge: Edge) -> Operation:
    """The edge as an operation, with the definitions at the state that it leads to."""
    delta, lineage = edge.delta, edge.lineage
    table = delta.now or delta.was
    assert table is not None
    if edge.kind == "drop_table":
        return DropTable(table)
    match edge.kind:
        case "create_table":
            return CreateTable(table, walk.head(lineage))
        case "hidden_build":
            return HiddenBuild(table, walk.head(lineage), walk.all(lineage))
        case "build":
            return CommitTable(table, None, walk.head(lineage), walk.all(lineage))
        case "alter_table":
            assert delta.was is not None
            return AlterTable(table, delta.was, walk.head(lineage), switch=delta.content, cascade=bool(delta.cascade))
        case "add_partitions":
            return AddPartitions(table, walk.some(lineage, delta.added))
        case "drop_partitions":
            return DropPartitions(table, tuple(sorted(delta.removed)))
        case "rename_partition":
            (name,), (was,) = delta.added, delta.removed
            return RenamePartition(table, was, name, present(walk, lineage, name))
        case "alter_partitions":
            return AlterPartitions(table, named_before(walk.some(lineage, delta.changed), delta), switched(delta))
        case "publish":
            return publish_of(walk, edge)
        case "prepare_flip_sweep":
            added, changed = (named_before(walk.some(lineage, names), delta) for names in (delta.added, delta.changed))
            return PrepareFlipSweep(table, added, changed, tuple(sorted(delta.removed)))
        case "replace":
            return Rebuild(table, table, walk.head(lineage), walk.all(lineage), whole=True)
        case "rebuild":
            return Rebuild(table, delta.was, walk.head(lineage), touched(walk, edge), cascade=delta.cascade)
        case "commit":
            head_switched = frozenset({""} if delta.content else ())
            head = walk.head(lineage)
            return CommitTable(
                table, delta.was, head, touched(walk, edge), switched(delta) | head_switched, delta.cascade
            )
    raise AssertionError(edge.kind)


def switched(delta: Delta) -> frozenset[str]:
    return frozenset(name for name, (was, now) in delta.changed.items() if was.content != now.content)


def touched(walk: Walk, edge: Edge) -> tuple[tuple[str, Part | None], ...]:
    delta = edge.delta
    found = dict(named_before(walk.some(edge.lineage, {*delta.added, *delta.changed}), delta))
    return tuple((name, found.get(name)) for name in sorted({*found, *delta.removed}))


def named_before(parts: tuple[tuple[str, Part], ...], delta: Delta) -> tuple[tuple[str, Part], ...]:
    """Each partition's lineage as the name that it has before the operation: what the window does not say of it, its
    incarnation for instance, is what the target shows there."""
    names = {was.lineage: name for name, was in delta.removed.items()}
    names |= {was.lineage: name for name, (was, _) in delta.changed.items()}
    return tuple((name, replace(part, lineage=names.get(part.lineage, part.lineage))) for name, part in parts)


def present(walk: Walk, lineage: LineageId, name: str) -> Part:
    part = walk.at(lineage, name)
    assert part is not None
    return part


def publish_of(walk: Walk, edge: Edge) -> Publish:
    delta = edge.delta
    assert delta.now is not None
    if delta.changed:
        (name,) = delta.changed
        part = walk.parts[edge.lineage, name]
        assert part is not None
        return Publish(delta.now, name, part.data, part.since)
    head = walk.heads[edge.lineage]
    assert isinstance(head.data, Data)
    return Publish(delta.now, "", head.data, head.since)
