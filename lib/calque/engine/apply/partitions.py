"""The operations on partitions: they are added, altered, renamed, dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from calque.core.events.kinds import partition_obstacle
from calque.core.formats.layout import join
from calque.core.formats.pointers import relocated
from calque.core.formats.symlinks import is_symlinks, require_same_reading
from calque.core.images.image import EVENT, INCARNATION, STATE, STATISTICS, Marks, as_in
from calque.core.images.table_layout import has_own_row_files
from calque.core.small_files.grouping import GroupedFiles, group_files, layout_of
from calque.engine.apply.context import HopContext
from calque.engine.apply.facets import statistics_of_others, write_kept
from calque.engine.files.stage import StagedFiles, StageRequest
from calque.engine.target.observe import ShownTable, event_of
from calque.errors import Refused
from calque.model.hive import Partition, Table, is_transactional, location_of
from calque.model.names import EventId, TableName
from calque.model.plan import BASE, AddPartitions, AlterPartitions, DropPartitions, Part, RenamePartition, Version

Parts = Sequence[tuple[str, Part]]


@dataclass(frozen=True, slots=True)
class PartitionWrite:
    """A partition to write. `event_id` and `change` are for its row in the ledger. Without `placed` it keeps its
    directory."""

    definition: Partition
    event_id: EventId
    change: str
    placed: StagedFiles | None


def add_partitions(context: HopContext, operation: AddPartitions) -> None:
    table = operation.table
    added = new_partitions(context, table, context.shown_table(table), operation.partitions)
    context.add_partitions(table, context.name_at_target(table), definitions(added))
    remember(context, table, added)


def alter_partitions(context: HopContext, operation: AlterPartitions) -> None:
    table = operation.table
    altered = altered_partitions(context, table, context.shown_table(table), operation.partitions, operation.switched)
    kept_statistics = statistics_of_others(context, table, operation.partitions)
    context.leave(table, {name for name, write in altered.items() if write.placed is not None})
    context.alter_partitions(context.name_at_target(table), definitions(altered))
    remember(context, table, altered)
    write_kept(context, table, kept_statistics)


def rename_partition(context: HopContext, operation: RenamePartition) -> None:
    table, was, name, part = operation.table, operation.was, operation.name, operation.part
    shown = context.shown_table(table)
    target_partition = shown.partitions[was]
    renamed = altered_partition(context, table, target_partition, part, None)
    if context.lies_at_source(table, renamed):
        # A rename leaves an external partition where it is, so that its new place is said first.
        elsewhere = relocated(target_partition, location_of(renamed))
        context.alter_partitions(context.name_at_target(table), [elsewhere])
    context.leave(table, {was})
    context.call(context.side.catalog.rename_partition, context.name_at_target(table), target_partition.values, renamed)
    del shown.partitions[was]
    if was in shown.listings:
        shown.listings[name] = shown.listings.pop(was)
    context.record(table, was, incarnation_of(renamed), part.since, "rename_away")
    counted_anew = replace(
        renamed, parameters={key: value for key, value in (renamed.parameters or {}).items() if key not in STATISTICS}
    )
    remember(context, table, {name: PartitionWrite(counted_anew, part.since, "rename_partition", None)})


def drop_partitions(context: HopContext, operation: DropPartitions, event_id: EventId) -> None:
    context.drop_partitions(context.name_at_target(operation.table), operation.names)
    forget(context, operation.table, operation.names, event_id)


def new_partitions(
    context: HopContext,
    table: TableName,
    shown: ShownTable,
    partitions: Parts,
    kept_directories: Mapping[str, StagedFiles] | None = None,
) -> dict[str, PartitionWrite]:
    """Return the definitions of partitions that are not there yet, with their files staged. Those in `kept_directories`
    have a directory already."""
    stored = {name: part for name, part in partitions if part.data.location and name not in (kept_directories or {})}
    requests = {name: fresh(context, table, shown, name, part) for name, part in stored.items()}
    placed = {**(kept_directories or {}), **context.staged(table, requests)}
    writes = {}
    for name, part in partitions:
        place = placed.get(name, StagedFiles("", ()))
        marks = Marks(part.since, part.incarnation or incarnation_of(shown.partitions.get(part.lineage)))
        image = context.side.imaging.partition(source_of(context, part), table, marks, place.location or None)
        definition = as_in(shown.table, image)
        writes[name] = PartitionWrite(context.attachments.of(table, definition), part.since, "add_partition", place)
    return writes


def fresh(context: HopContext, table: TableName, shown: ShownTable, name: str, part: Part) -> StageRequest:
    """Return the request for the first directory of a partition."""
    natural = join(location_of(shown.table) or "", name)
    target_table, source = context.shown.get(table), source_of(context, part)
    target_partition = target_table.partitions.get(name) if target_table is not None else None
    return StageRequest(
        context.staged_listing(shown.table, part.data),
        natural,
        context.name_at_target(table),
        name,
        shown.incarnation(),
        part.since,
        part.incarnation or f"moved{part.since}",
        grows=context.side.is_native(shown.table),
        shown=target_partition is not None and location_of(target_partition) == natural,
        grouped=small_files(context, table, shown.table, source, part),
        root=context.root(shown.table),
        symlinks=is_symlinks(source),
        is_acid=context.side.is_native(shown.table),
    )


def small_files(
    context: HopContext, table: TableName, definition: Table, partition: Partition, part: Part
) -> GroupedFiles | None:
    """Return which files of a new directory are combined; None where all are copied as they are, or none are."""
    rule = context.side.admission.small_files(table)
    if rule is None or context.side.policy.appends != "new_directory":
        return None
    if is_transactional(definition) or has_own_row_files(definition):
        return None
    return group_files(rule, layout_of(definition, partition), context.listing(part.data).files)


def altered_partitions(
    context: HopContext,
    table: TableName,
    shown: ShownTable,
    partitions: Parts,
    switched: frozenset[str],
    kept_directories: Mapping[str, StagedFiles] | None = None,
) -> dict[str, PartitionWrite]:
    """Return the new definitions of partitions that are there, with their files staged. The `switched` ones get a
    directory of their own, and so do those that wait in the empty directory (`flip`). Those in `kept_directories` have
    their new files where they are."""
    requests = {}
    for name, part in partitions:
        if has_no_place(shown.partitions[name]):
            requests[name] = fresh(context, table, shown, name, part)
        elif name in switched:
            definition = shown.partitions[name] if part.version == BASE else source_of(context, part)
            requests[name] = StageRequest(
                context.listing(part.data),
                None,
                context.name_at_target(table),
                name,
                shown.incarnation(),
                part.since,
                grouped=small_files(context, table, shown.table, definition, part),
                root=context.root(shown.table),
                symlinks=is_symlinks(definition),
            )
    placed = {**(kept_directories or {}), **context.staged(table, requests)}
    writes = {}
    for name, part in partitions:
        place = placed.get(name)
        before = shown.partitions.get(part.lineage)
        definition = altered_partition(context, table, shown.partitions[name], part, place, before)
        writes[name] = PartitionWrite(definition, part.since, "alter_partition", place)
    return writes


def altered_partition(
    context: HopContext,
    table: TableName,
    target_partition: Partition,
    part: Part,
    placed: StagedFiles | None,
    before: Partition | None = None,
) -> Partition:
    """Return the definition of a partition after an alteration; a definition that the target showed before only changes
    place and mark. `before` is the same partition under the name that it had, where that was another."""
    if part.version == BASE:
        target_partition = with_columns(context, target_partition, part)
        parameters = {
            **(target_partition.parameters or {}),
            EVENT: str(part.since or event_of(target_partition.parameters)),
        }
        kept = replace(target_partition, parameters=parameters)
        return relocated(kept, context.place(table, target_partition, target_partition, placed))
    marks = Marks(part.since, part.incarnation or incarnation_of(before or target_partition))
    source = source_of(context, part)
    if placed is None and context.side.admission.copies(table):
        require_same_reading(before or target_partition, source)
    definition = context.side.imaging.partition(
        source, table, marks, context.place(table, target_partition, source, placed)
    )
    return context.attachments.of(table, as_in(context.shown_table(table).table, definition))


def source_of(context: HopContext, part: Part) -> Partition:
    """Return the source's definition of the partition at the state that the hop leads to. Raises `Refused` for a
    partition of a kind that is not replicated."""
    partition = context.images.partition(part.version)
    if problem := partition_obstacle(partition):
        raise Refused(problem)
    return with_columns(context, partition, part)


def with_columns(context: HopContext, partition: Partition, part: Part) -> Partition:
    """Return the definition, with the columns that a CASCADE gave the partition."""
    if not part.columns or partition.storage is None:
        return partition
    table = context.images.table(Version(part.columns))
    columns = table.storage.columns if table.storage is not None else None
    return replace(partition, storage=replace(partition.storage, columns=columns))


def has_no_place(target_partition: Partition) -> bool:
    """Tell whether the partition is listed before or after its rows (`flip`): it shares the empty directory."""
    return STATE in (target_partition.parameters or {})


def other_files(context: HopContext, shown: ShownTable, partitions: Parts) -> frozenset[str]:
    """Return those of the partitions that are to have other files than the target shows."""
    return frozenset(
        name
        for name, part in partitions
        if name not in shown.listings or shown.listings[name].fingerprint() != context.listing(part.data).fingerprint()
    )


def definitions(writes: Mapping[str, PartitionWrite]) -> Iterable[Partition]:
    return [write.definition for write in writes.values()]


def remember(context: HopContext, table: TableName, writes: Mapping[str, PartitionWrite]) -> None:
    """Note that the partitions are at the target now, with rows for the ledger."""
    shown = context.shown_table(table)
    for name, write in writes.items():
        shown.partitions[name] = write.definition
        if write.placed is not None:
            context.shows_files(table, name, write.placed)
        context.record(table, name, incarnation_of(write.definition), write.event_id, write.change, write.placed)


def forget(context: HopContext, table: TableName, names: Iterable[str], event_id: EventId) -> None:
    """Note that the partitions are gone at event `event_id`, with rows for the ledger."""
    shown = context.shown_table(table)
    for name in names:
        target_partition = shown.partitions.pop(name, None)
        shown.listings.pop(name, None)
        context.record(table, name, incarnation_of(target_partition), event_id, "drop_partition")


def incarnation_of(partition: Partition | None) -> str:
    return ((partition.parameters or {}) if partition is not None else {}).get(INCARNATION, "")
