"""Edges between states: the one operation that crosses a difference, and its cost (docs/how-hops-work.md).

The planner works with the target's declared abilities and limits alone, never with the name of a system. Lists beyond
an operation's limit, or of a catalog whose lists are not atomic, are applied in parts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from calque.core.plan.operations import (
    AddPartitionsEdge,
    AlterPartitionsEdge,
    AlterTableEdge,
    CommitNewTableEdge,
    CommitRowsEdge,
    CommitTableEdge,
    CreateTableEdge,
    DropPartitionsEdge,
    DropTableEdge,
    Edge,
    EdgeCost,
    HiddenBuildEdge,
    PrepareFlipSweepEdge,
    PublishEdge,
    RebuildEdge,
    RenamePartitionEdge,
    ReplaceTableEdge,
)
from calque.core.states.fold import LineageId
from calque.core.states.state import Content, Delta, LineageChange, Stage, StateDifference
from calque.model.files import NO_FILES
from calque.model.policy import TargetCapabilities


@dataclass(frozen=True, slots=True)
class EdgeRules:
    """The rules that decide over edges besides the chain.

    `extends` tells whether all files of one content are in another, unchanged. `in_place` allows appends to live
    directories, `rows` early listings (`atomicity = "rows"`). Any difference of a `committed` lineage is one commit, as
    of every lineage where the catalog can. Of a `defined` lineage the target has definitions alone: its files stay at
    the source. Rows of a `transacted` lineage change by transactions, in calls of their own.
    """

    abilities: TargetCapabilities
    extends: Callable[[Content, Content], bool]
    in_place: bool = True
    rows: bool = False
    committed: frozenset[LineageId] = frozenset()
    defined: frozenset[LineageId] = frozenset()
    transacted: frozenset[LineageId] = frozenset()

    def commits(self, lineage: LineageId) -> bool:
        """Tell whether any difference of the lineage but its name is one commit."""
        return self.abilities.any_difference or lineage in self.committed

    def commits_rows(self, lineage: LineageId, delta: Delta) -> bool:
        """Tell whether a transaction makes the difference, beside those of other lineages of which this holds, too."""
        return lineage in self.transacted and changes_rows(delta) and changes_rows_alone(delta)


ONE_CALL = EdgeCost()
"""The cost of one call for one object, without files."""


class LineageTotals:
    """The number of partitions and the bytes of all content, at every state, of each lineage that the window
    created."""

    def __init__(self, complete: Collection[LineageId], stages: Sequence[Stage]) -> None:
        self._rows: dict[LineageId, tuple[list[int], list[tuple[int, int]]]] = {}
        for index, stage in enumerate(stages):
            for touch in stage.touches:
                if touch.lineage in complete:
                    indices, totals = self._rows.setdefault(touch.lineage, ([], []))
                    indices.append(index)
                    totals.append(grown(*(totals[-1] if totals else (0, 0)), touch))

    def at(self, lineage: LineageId, index: int) -> tuple[int, int] | None:
        """Return the number of partitions and the bytes of the lineage at the state `index`; None for a lineage that
        the window did not create."""
        if lineage not in self._rows:
            return None
        indices, totals = self._rows[lineage]
        return totals[bisect_right(indices, index) - 1]


def grown(count: int, size: int, touch: LineageChange) -> tuple[int, int]:
    if touch.head is not None:
        size += touch.head.size - (touch.was_head.size if touch.was_head else 0)
    for _, was, now in touch.parts:
        count += (now is not None) - (was is not None)
        size += (now.size if now else 0) - (was.size if was else 0)
    return count, size


def edge_of(ground: EdgeRules, difference: StateDifference, totals: LineageTotals, later: int) -> Edge | None:
    """Return the edge of the one operation that crosses the difference to the state `later`, without a bridge; None
    where there is none."""
    single_delta = difference.only()
    if single_delta is None:
        return joint_edge(ground, difference)
    lineage, delta = single_delta
    if delta.was is None:
        return appearing(ground, lineage, delta, totals, later)
    if delta.now is None:
        return DropTableEdge(delta.table, ONE_CALL)
    if delta.unknown or delta.two_columns():
        return None
    if lineage in ground.transacted:
        return transacted_edge(ground, lineage, delta)
    if ground.commits(lineage):
        return commit_edge(lineage, delta, in_log=lineage in ground.committed)
    differs_beside = delta.beside_partitions()
    if not delta.touches_partitions():
        return header_edge(ground, lineage, delta)
    edge = None if differs_beside else partition_edge(ground, lineage, delta)
    if edge is None and ground.rows and not differs_beside:
        return flip_edge(ground, lineage, delta, bridge=False)
    if edge is None and delta.vanished:
        return rebuild_edge(lineage, delta, bridge=False)
    return edge


def appearing(ground: EdgeRules, lineage: LineageId, delta: Delta, totals: LineageTotals, later: int) -> Edge | None:
    """Return the edge that makes a table of the window's where there was none; None for a lineage that the window did
    not create, because not all of its partitions are known."""
    total = totals.at(lineage, later)
    if total is None:
        return None
    count, size = total
    if ground.commits(lineage):
        return CommitNewTableEdge(lineage, delta.table, EdgeCost(max(count, 1), size))
    has_rows = lineage in ground.transacted and has_content(delta.head_().content)
    if not count and not has_rows:
        return CreateTableEdge(lineage, delta.table, EdgeCost(1, size))
    calls = 2 + pieces(count, ground.abilities.limits.add_partitions)
    return HiddenBuildEdge(lineage, delta.table, EdgeCost(count, size, calls))


def transacted_edge(ground: EdgeRules, lineage: LineageId, delta: Delta) -> Edge | None:
    """Return the edge for a lineage whose rows change by transactions: either rows differ, in any number of partitions
    that have the same definitions, or definitions do, as those of any other table. None where both do, which needs two
    operations, and for a rename of a partition, because the server moves its directory before readers learn of it."""
    if changes_rows(delta):
        return commit_rows_edge([(lineage, delta)]) if changes_rows_alone(delta) else None
    if not delta.touches_partitions():
        return header_edge(ground, lineage, delta)
    is_apart = delta.beside_partitions() or delta.renames_one()
    is_empty = not any(has_content(part.content) for part in delta.added.values())
    return partition_edge(ground, lineage, delta) if is_empty and not is_apart else None


def joint_edge(ground: EdgeRules, difference: StateDifference) -> Edge | None:
    """Return the edge for a difference of several lineages: one transaction, where rows that come by transactions are
    all that differs. None for any other difference."""
    deltas = list(difference.differing.items())
    is_joint = all(ground.commits_rows(lineage, delta) for lineage, delta in deltas)
    return commit_rows_edge(deltas) if deltas and is_joint else None


def commit_rows_edge(deltas: Sequence[tuple[LineageId, Delta]]) -> Edge:
    """Return the edge of one transaction. Beside its begin and its commit, each table has a call of its own."""
    objects = sum(max(1, len(delta.changed)) for _, delta in deltas)
    size = sum(delta.bytes_changed + (delta.head_().size if delta.content else 0) for _, delta in deltas)
    return CommitRowsEdge(tuple(deltas), EdgeCost(objects, size, 2 + len(deltas)))


def changes_rows(delta: Delta) -> bool:
    """Tell whether rows differ of objects that are there before and after."""
    return delta.content or any(was.content != now.content for was, now in delta.changed.values())


def changes_rows_alone(delta: Delta) -> bool:
    """Tell whether no definition differs."""
    is_same = all((was.lineage, was.version) == (now.lineage, now.version) for was, now in delta.changed.values())
    is_apart = delta.added or delta.removed or delta.definition or delta.cascade or delta.was != delta.now
    return is_same and not is_apart


def has_content(content: Content) -> bool:
    """Tell whether a content has files, or may have some."""
    return content not in ("", NO_FILES)


def commit_edge(lineage: LineageId, delta: Delta, *, in_log: bool) -> Edge | None:
    """Return the edge for a lineage of which any difference is one commit.

    A new name is no part of a commit but a call of its own, which brings the header too. For a table whose header is in
    a log (`in_log`) the call brings only the definition of the rename's own event, and no columns, because readers take
    these from the log. Where a new name comes with more than its call brings, a rebuild crosses the difference if the
    source had a state without the table in between; else None.
    """
    if delta.was == delta.now:
        head_bytes = delta.head.size if delta.head is not None and delta.content else 0
        size = head_bytes + delta.bytes_added + delta.bytes_changed
        return CommitTableEdge(lineage, delta, EdgeCost(max(objects_of(delta), 1), size))
    is_said_apart = in_log and (delta.redefined or delta.columns or delta.cascade)
    if not delta.content and not delta.touches_partitions() and not is_said_apart:
        return AlterTableEdge(lineage, delta, ONE_CALL)
    return rebuild_edge(lineage, delta, bridge=False) if delta.vanished else None


def header_edge(ground: EdgeRules, lineage: LineageId, delta: Delta) -> Edge:
    """Return the edge for a difference that no partition is part of: an append in place, or an alteration of the
    table."""
    if not delta.content:
        return AlterTableEdge(lineage, delta, ONE_CALL)
    was, now = delta.was_head, delta.head
    assert was is not None
    assert now is not None
    only_content = delta.was == delta.now and not delta.definition
    if only_content and ground.in_place and ground.extends(was.content, now.content):
        return PublishEdge(lineage, delta.table, "", EdgeCost(1, max(0, now.size - was.size), 0))
    return AlterTableEdge(lineage, delta, EdgeCost(1, now.size))


def partition_edge(ground: EdgeRules, lineage: LineageId, delta: Delta) -> Edge | None:
    """Return the edge for a difference of partitions alone: one list that is added, dropped or altered, one append, or
    one rename. None where two kinds of lists would be needed."""
    limits = ground.abilities.limits
    if not delta.changed and not delta.removed:
        cost = listed(ground, len(delta.added), delta.bytes_added, limits.add_partitions)
        return AddPartitionsEdge(lineage, delta, cost)
    if not delta.added and not delta.changed:
        return DropPartitionsEdge(delta, listed(ground, len(delta.removed), 0, limits.drop_partitions))
    if not delta.added and not delta.removed:
        if len(delta.changed) == 1 and (edge := append_edge(ground, lineage, delta)) is not None:
            return edge
        cost = listed(ground, len(delta.changed), delta.bytes_changed, limits.alter_partitions)
        return AlterPartitionsEdge(lineage, delta, cost)
    if delta.renames_one():
        (now,), (was,) = delta.added.values(), delta.removed.values()
        if now.lineage == was.lineage and now.content == was.content:
            return RenamePartitionEdge(lineage, delta, ONE_CALL)
    return None


def append_edge(ground: EdgeRules, lineage: LineageId, delta: Delta) -> Edge | None:
    """Return the edge that appends files to the one changed partition in place; None where it changes otherwise."""
    ((name, (was, now)),) = delta.changed.items()
    same_definition = (was.lineage, was.version) == (now.lineage, now.version)
    if same_definition and ground.in_place and ground.extends(was.content, now.content):
        return PublishEdge(lineage, delta.table, name, EdgeCost(1, now.size - was.size, 0))
    return None


def listed(ground: EdgeRules, count: int, size: int, limit: int) -> EdgeCost:
    """Return the cost of a list of `count` partitions, of which one call of the catalog takes `limit`."""
    calls = pieces(count, limit)
    return EdgeCost(count, size, calls, calls if ground.abilities.atomic_lists else count)


def objects_of(delta: Delta) -> int:
    return len(delta.added) + len(delta.changed) + len(delta.removed)


def flip_edge(ground: EdgeRules, lineage: LineageId, delta: Delta, *, bridge: bool) -> Edge:
    """Return the edge whose operation is a `PrepareFlipSweep`: new partitions are listed before they have rows
    (prepare), one alter_partitions then changes the rows of all partitions (flip), and partitions without rows are
    dropped (sweep). A call for the table's own definition, where that changes, comes before."""
    count, size = objects_of(delta), delta.bytes_added + delta.bytes_changed
    flip = listed(ground, count, size, ground.abilities.limits.alter_partitions)
    calls = flip.calls + bool(delta.added) + bool(delta.removed) + delta.beside_partitions()
    return PrepareFlipSweepEdge(lineage, delta, flip._replace(calls=calls, bridge=bridge))


def bridge_of(ground: EdgeRules, difference: StateDifference, totals: LineageTotals, later: int) -> Edge | None:
    """Return the edge that crosses the difference as a bridge, the last resort where the chain has a hole
    (docs/limits.md). None where no bridge leads across."""
    single_delta = difference.only()
    if single_delta is None:
        return replacement(ground, difference, totals, later)
    lineage, delta = single_delta
    if delta.was is None or delta.now is None or delta.unknown or delta.two_columns():
        return None
    if not delta.beside_partitions() or lineage in ground.defined | ground.transacted:
        return flip_edge(ground, lineage, delta, bridge=True)
    return rebuild_edge(lineage, delta, bridge=True)


def rebuild_edge(lineage: LineageId, delta: Delta, *, bridge: bool) -> Edge:
    """Return the edge that builds the table anew and puts it in its own place. Readers miss the table for one call,
    which is no bridge where the source had a state without the table in between."""
    size = delta.bytes_added + delta.bytes_changed
    return RebuildEdge(lineage, delta, EdgeCost(objects_of(delta), size, 4, bridge=bridge))


def replacement(ground: EdgeRules, difference: StateDifference, totals: LineageTotals, later: int) -> Edge | None:
    """Return the bridge from one incarnation of a name to another, where no state in between has the name free; None
    for any other difference."""
    if len(difference.differing) != 2:
        return None
    old = next((delta for delta in difference.differing.values() if delta.now is None), None)
    lineage, new = next(((key, delta) for key, delta in difference.differing.items() if delta.was is None), (0, None))
    if old is None or new is None or old.was != new.now:
        return None
    edge = appearing(ground, lineage, new, totals, later)
    if edge is None:
        return None
    return ReplaceTableEdge(lineage, new.table, EdgeCost(edge.cost.objects, edge.cost.bytes, 4, bridge=True))


def pieces(count: int, limit: int) -> int:
    """Return the number of calls for `count` objects, of which one call takes `limit`; at least one."""
    return max(1, -(-count // limit))
