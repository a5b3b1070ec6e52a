"""Costs of hops: calls of the target's catalog, and the files that must be copied.

Files that a window which died half-way has copied are not known here: they are counted, and are not copied again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from calque.core.plan.limits import of_hidden
from calque.model.files import File, Listing
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
    GroupPlan,
    Head,
    HiddenBuild,
    Hop,
    OfOneTable,
    Operation,
    Part,
    PrepareFlipSweep,
    Publish,
    Rebuild,
    RenamePartition,
)
from calque.model.policy import Limits

ShownFiles = dict[tuple[TableName, str], Listing]
"""The target's files by table (the source's name) and partition (`""`: a plain table)."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one hop: calls of the catalog, files that are copied, and their bytes."""

    calls: int = 0
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class SourcePlaces:
    """The objects that are made at the source's places, each with a second call that sets the place: tables whose files
    stay at the source (`stays`) and their partitions. Tables of the lineages `views` have no place."""

    stays: Callable[[TableName], bool] = lambda _: False
    views: frozenset[int] = frozenset()

    def has_table(self, table: TableName, head: Head) -> bool:
        return self.stays(table) and head.lineage not in self.views

    def has_partition(self, parts: Iterable[Part]) -> bool:
        return any(part.data.stays and part.data.location for part in parts)


NO_PLACES = SourcePlaces()


def costs(
    hops: Sequence[Hop],
    held: ShownFiles,
    listings: Mapping[Data, Listing],
    limits: Limits,
    places: SourcePlaces = NO_PLACES,
) -> list[Cost]:
    """Return the cost of each hop, in order. `held` are the files that the target has before the first; it is not
    changed."""
    held, hop_costs = dict(held), []
    for hop in hops:
        files = copied(hop.operation, held, listings)
        hop_costs.append(Cost(calls_of(hop.operation, limits, places), len(files), sum(file.size for file in files)))
    return hop_costs


def statistics_calls(plan: GroupPlan, limits: Limits) -> int:
    """Return the number of calls that write statistics and constraints after the last hop. Values that are there
    already are not known here, so column statistics and constraints count as one call for each object."""
    basic = sum(
        ("" in names) + pieces(sum(bool(name) for name in names), limits.alter_partitions)
        for names in map(dict, (versions for _, versions in plan.facets))
    )
    return basic + len({(event.table, event.partition) for event in plan.facet_events})


def calls_of(operation: Operation, limits: Limits, places: SourcePlaces = NO_PLACES) -> int:
    """Return the number of calls that the engine makes for an operation when a crash has left nothing over. A rebuild
    counts the partitions that it touches, and not those that it carries along."""
    match operation:
        case CreateTable(table, head):
            return 1 + places.has_table(table, head)
        case RenamePartition(part=part):
            return 1 + places.has_partition([part])
        case AlterTable() | DropTable() | CommitTable():
            return 1
        case Publish():
            return 0
        case CommitRows(tables):
            return 2 + len(tables)
        case HiddenBuild(_, _, partitions):
            return 2 + adding_calls(partitions, of_hidden(limits), places)
        case AddPartitions(_, partitions):
            return adding_calls(partitions, limits, places)
        case AlterPartitions(_, partitions):
            return pieces(len(partitions), limits.alter_partitions)
        case DropPartitions(_, names):
            return pieces(len(names), limits.drop_partitions)
        case PrepareFlipSweep(_, added, changed, doomed, header):
            flipped = len(added) + len(changed) + len(doomed)
            calls = pieces(len(added), limits.add_partitions) + pieces(flipped, limits.alter_partitions)
            return calls + pieces(len(doomed), limits.drop_partitions) + (header is not None)
        case Rebuild(_, was, _, partitions):
            present = [(name, part) for name, part in partitions if part is not None]
            return 2 + adding_calls(present, of_hidden(limits), places) + (2 if was is not None else 0)
        case _:
            assert_never(operation)


def adding_calls(partitions: Sequence[tuple[str, Part]], limits: Limits, places: SourcePlaces) -> int:
    calls = pieces(len(partitions), limits.add_partitions)
    if places.has_partition(part for _, part in partitions):
        calls += pieces(len(partitions), limits.alter_partitions)
    return calls


def pieces(count: int, limit: int) -> int:
    return -(-count // limit)


def copied(operation: Operation, held: ShownFiles, listings: Mapping[Data, Listing]) -> list[File]:
    """Return the files that are copied for the operation: those that it shows and the target does not have in their
    place. Brings `held` to the state after the operation."""
    follow_names(operation, held)
    files: list[File] = []
    for cell, data in cells(operation):
        if data is None or data not in listings:
            continue
        now, was = listings[data], held.get(cell)
        held[cell] = now
        if was is not None and isinstance(operation, Publish | CommitRows):
            held_paths = {file.path for file in was.files}
            files += [file for file in now.files if file.path not in held_paths]
        elif was is None or was.fingerprint() != now.fingerprint():
            files += now.files
    return files


def follow_names(operation: Operation, held: ShownFiles) -> None:
    """Bring `held` to the names after an operation: renamed objects keep their files, and objects that are dropped or
    made anew have none."""
    if isinstance(operation, PrepareFlipSweep) and operation.header is not None:
        follow_names(operation.header, held)
    match operation:
        case DropTable(table) | CreateTable(table) | HiddenBuild(table) | Rebuild(table, whole=True):
            dropped_cells = [cell for cell in held if cell[0] == table]
        case AlterTable(table, was) | CommitTable(table, was) | Rebuild(table, was) if was != table:
            for cell in [cell for cell in held if cell[0] == was]:
                held[table, cell[1]] = held.pop(cell)
            dropped_cells = []
        case RenamePartition(table, was, name) if (table, was) in held:
            held[table, name] = held.pop((table, was))
            dropped_cells = []
        case DropPartitions(table, names) | PrepareFlipSweep(table, doomed=names):
            dropped_cells = [(table, name) for name in names]
        case _:
            dropped_cells = []
    if isinstance(operation, CommitTable):
        follow_partitions(operation, held)
    if isinstance(operation, CommitTable | Rebuild):
        dropped_cells += [(operation.table, name) for name, part in operation.partitions if part is None]
    for cell in dropped_cells:
        held.pop(cell, None)


def follow_partitions(operation: CommitTable, held: ShownFiles) -> None:
    """Move, in `held`, the files of each partition that vanishes in the commit and comes back under another name."""
    vanishing = {name for name, part in operation.partitions if part is None}
    for name, part in operation.partitions:
        if part is not None and part.lineage in vanishing and (operation.table, part.lineage) in held:
            held[operation.table, name] = held.pop((operation.table, part.lineage))


def cells(operation: Operation) -> Iterator[tuple[tuple[TableName, str], Data | None]]:
    """Yield what an operation writes, by table and partition (`""`: the table itself), each with the content that it
    may bring, or None."""
    if not isinstance(operation, CommitRows):
        yield from (((operation.table, name), data) for name, data in contents(operation))
        return
    for rows in operation.tables:
        if rows.head is not None:
            yield (rows.table, ""), rows.head.data
        yield from (((rows.table, name), part.data) for name, part in rows.partitions)


def contents(operation: OfOneTable) -> Iterator[tuple[str, Data | None]]:
    """Yield the partitions (`""`: the table itself) that an operation on one table writes, each with the content that
    it may bring, or None."""
    match operation:
        case CreateTable(_, head):
            yield "", head.data
        case HiddenBuild(_, head, partitions):
            yield "", head.data
            yield from ((name, part.data) for name, part in partitions)
        case AlterTable(head=head, switch=switch):
            yield "", head.data if switch else None
        case DropTable():
            yield "", None
        case AddPartitions(_, partitions):
            yield from ((name, part.data) for name, part in partitions)
        case AlterPartitions(_, partitions, switched):
            yield from ((name, part.data if name in switched else None) for name, part in partitions)
        case RenamePartition(name=name):
            yield name, None
        case DropPartitions(_, names):
            yield from ((name, None) for name in names)
        case Publish(_, partition, data):
            yield partition, data
        case PrepareFlipSweep(_, added, changed, doomed, header):
            if header is not None:
                yield from contents(header)
            yield from ((name, part.data) for name, part in (*added, *changed))
            yield from ((name, None) for name in doomed)
        case Rebuild(_, _, head, partitions):
            yield "", head.data
            yield from ((name, part.data if part is not None else None) for name, part in partitions)
        case CommitTable(head=head, partitions=partitions, switched=switched, was=was):
            yield "", head.data if was is None or "" in switched else None
            for name, part in partitions:
                yield name, part.data if part is not None else None
        case _:
            assert_never(operation)
