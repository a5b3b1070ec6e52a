"""Edges of the planner's graph: each is one operation with its cost, before its definitions are known.

The search weighs many edges and takes few, so an edge keeps only the parts that its operation is made of
(`operation_of`), and is a tuple, which is made faster than a dataclass. The classes are named after the operations of
docs/how-hops-work.md. `CommitTable` and `Rebuild` have two edges each, because a new table costs otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, assert_never

from calque.core.states.fold import LineageId
from calque.core.states.state import Delta
from calque.core.states.walk import StateWalk
from calque.model.names import TableName
from calque.model.plan import (
    AddPartitions,
    AlterPartitions,
    AlterTable,
    CommitRows,
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
    TableRows,
)


class EdgeCost(NamedTuple):
    """The cost of an edge: `objects` that it writes, `bytes` to copy, `calls` of the target's catalog. `in_parts` is
    the number of steps in which readers see it."""

    objects: int = 1
    bytes: int = 0
    calls: int = 1
    in_parts: int = 1
    bridge: bool = False


class CreateTableEdge(NamedTuple):
    lineage: LineageId
    table: TableName
    cost: EdgeCost


class HiddenBuildEdge(NamedTuple):
    lineage: LineageId
    table: TableName
    cost: EdgeCost


class CommitNewTableEdge(NamedTuple):
    """The commit of a table where there was none, with its partitions."""

    lineage: LineageId
    table: TableName
    cost: EdgeCost


class AlterTableEdge(NamedTuple):
    lineage: LineageId
    delta: Delta
    cost: EdgeCost


class DropTableEdge(NamedTuple):
    table: TableName
    cost: EdgeCost


class AddPartitionsEdge(NamedTuple):
    lineage: LineageId
    delta: Delta
    cost: EdgeCost


class AlterPartitionsEdge(NamedTuple):
    lineage: LineageId
    delta: Delta
    cost: EdgeCost


class RenamePartitionEdge(NamedTuple):
    lineage: LineageId
    delta: Delta
    cost: EdgeCost


class DropPartitionsEdge(NamedTuple):
    delta: Delta
    cost: EdgeCost


class PublishEdge(NamedTuple):
    """The append of files to a live directory; `partition` is empty for a plain table."""

    lineage: LineageId
    table: TableName
    partition: str
    cost: EdgeCost


class PrepareFlipSweepEdge(NamedTuple):
    lineage: LineageId
    delta: Delta
    cost: EdgeCost


class RebuildEdge(NamedTuple):
    """The rebuild of a table, which is built anew and replaces itself."""

    lineage: LineageId
    delta: Delta
    cost: EdgeCost


class ReplaceTableEdge(NamedTuple):
    """The rebuild of a name: another incarnation is built and replaces the one that stands there."""

    lineage: LineageId
    table: TableName
    cost: EdgeCost


class CommitTableEdge(NamedTuple):
    lineage: LineageId
    delta: Delta
    cost: EdgeCost


class CommitRowsEdge(NamedTuple):
    """The commit of a transaction that changes rows of ACID tables alone."""

    deltas: tuple[tuple[LineageId, Delta], ...]
    cost: EdgeCost


Edge = (
    CreateTableEdge
    | HiddenBuildEdge
    | CommitNewTableEdge
    | AlterTableEdge
    | DropTableEdge
    | AddPartitionsEdge
    | AlterPartitionsEdge
    | RenamePartitionEdge
    | DropPartitionsEdge
    | PublishEdge
    | PrepareFlipSweepEdge
    | RebuildEdge
    | ReplaceTableEdge
    | CommitTableEdge
    | CommitRowsEdge
)
"""The union of all edges. The delta in an edge belongs to the search and goes on growing; `operation_of` must be called
before it does."""


def operation_of(walk: StateWalk, edge: Edge) -> Operation:
    """Return the operation of an edge. `walk` must stand at the state that the edge leads to: the operation has the
    definitions of that state."""
    match edge:
        case CreateTableEdge(lineage, table):
            return CreateTable(table, walk.head(lineage))
        case HiddenBuildEdge(lineage, table):
            return HiddenBuild(table, walk.head(lineage), walk.all(lineage))
        case CommitNewTableEdge(lineage, table):
            return CommitTable(table, None, walk.head(lineage), walk.all(lineage))
        case AlterTableEdge(lineage, delta):
            return header_of(walk, lineage, delta)
        case DropTableEdge(table):
            return DropTable(table)
        case AddPartitionsEdge(lineage, delta):
            return AddPartitions(delta.table, walk.some(lineage, delta.added))
        case AlterPartitionsEdge(lineage, delta):
            changed = named_before(walk.some(lineage, delta.changed), delta)
            return AlterPartitions(delta.table, changed, switched(delta))
        case RenamePartitionEdge(lineage, delta):
            (name,), (was,) = delta.added, delta.removed
            part = present(walk, lineage, name)
            walk.written.discard(part.version)
            return RenamePartition(delta.table, was, name, part)
        case DropPartitionsEdge(delta):
            return DropPartitions(delta.table, tuple(sorted(delta.removed)))
        case PublishEdge(lineage, table, partition):
            return publish_of(walk, lineage, table, partition)
        case PrepareFlipSweepEdge(lineage, delta):
            added, changed = (named_before(walk.some(lineage, names), delta) for names in (delta.added, delta.changed))
            header = header_of(walk, lineage, delta) if delta.beside_partitions() else None
            return PrepareFlipSweep(delta.table, added, changed, tuple(sorted(delta.removed)), header)
        case RebuildEdge(lineage, delta):
            partitions = touched(walk, lineage, delta)
            return Rebuild(delta.table, delta.was, walk.head(lineage), partitions, cascade=delta.cascade)
        case ReplaceTableEdge(lineage, table):
            return Rebuild(table, table, walk.head(lineage), walk.all(lineage), whole=True)
        case CommitTableEdge(lineage, delta):
            directories = switched(delta) | frozenset({""} if delta.content else ())
            partitions = touched(walk, lineage, delta)
            return CommitTable(delta.table, delta.was, walk.head(lineage), partitions, directories, delta.cascade)
        case CommitRowsEdge(deltas):
            return CommitRows(tuple(sorted((rows_of(walk, *one) for one in deltas), key=lambda rows: rows.table)))
        case _:
            assert_never(edge)


def header_of(walk: StateWalk, lineage: LineageId, delta: Delta) -> AlterTable:
    assert delta.was is not None
    head, cascade = walk.head(lineage), bool(delta.cascade)
    return AlterTable(delta.table, delta.was, head, switch=delta.content, cascade=cascade)


def rows_of(walk: StateWalk, lineage: LineageId, delta: Delta) -> TableRows:
    head = walk.head(lineage) if delta.content else None
    return TableRows(delta.table, head, named_before(walk.some(lineage, delta.changed), delta))


def switched(delta: Delta) -> frozenset[str]:
    return frozenset(name for name, (was, now) in delta.changed.items() if was.content != now.content)


def touched(walk: StateWalk, lineage: LineageId, delta: Delta) -> tuple[tuple[str, Part | None], ...]:
    """Return the partitions that differ, by name, as they are at the walk's state; None for those that are gone."""
    parts_by_name = dict(named_before(walk.some(lineage, {*delta.added, *delta.changed}), delta))
    return tuple((name, parts_by_name.get(name)) for name in sorted({*parts_by_name, *delta.removed}))


def named_before(parts: tuple[tuple[str, Part], ...], delta: Delta) -> tuple[tuple[str, Part], ...]:
    """Return the partitions, each with the name that it has before the operation as its lineage. Facts that the window
    does not tell, the incarnation for instance, are read from the partition that the target shows under that name."""
    names = {was.lineage: name for name, was in delta.removed.items()}
    names |= {was.lineage: name for name, (was, _) in delta.changed.items()}
    return tuple((name, replace(part, lineage=names.get(part.lineage, part.lineage))) for name, part in parts)


def present(walk: StateWalk, lineage: LineageId, name: str) -> Part:
    part = walk.at(lineage, name)
    assert part is not None
    return part


def publish_of(walk: StateWalk, lineage: LineageId, table: TableName, partition: str) -> Publish:
    if partition:
        part = walk.parts[lineage, partition]
        assert part is not None
        return Publish(table, partition, part.data, part.since)
    head = walk.heads[lineage]
    assert isinstance(head.data, Data)
    return Publish(table, "", head.data, head.since)
