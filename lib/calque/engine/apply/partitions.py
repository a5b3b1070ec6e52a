"""Partitions: added, altered, renamed, dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from calque.core.image import EVENT, INCARNATION, STATE, Marks, moved
from calque.core.layout import join
from calque.engine.apply.context import HopContext, claim_of
from calque.engine.apply.facets import statistics_of_others, write_kept
from calque.engine.files.stage import StagedFiles, StageRequest
from calque.engine.target.observe import ShownTable, event_of
from calque.model.hive import Partition, location_of
from calque.model.names import EventId, TableName
from calque.model.plan import BASE, AddPartitions, AlterPartitions, DropPartitions, Part, RenamePartition, Version

Parts = Sequence[tuple[str, Part]]


@dataclass(frozen=True, slots=True)
class PartitionWrite:
    """A partition to write. Without `placed` it keeps its directory."""

    definition: Partition
    event_id: EventId
    change: str
    placed: StagedFiles | None


def add_partitions(hand: HopContext, operation: AddPartitions) -> None:
    table = operation.table
    added = new_partitions(hand, table, hand.seen(table), operation.partitions)
    hand.add_partitions(hand.at(table), definitions(added))
    remember(hand, table, added)


def alter_partitions(hand: HopContext, operation: AlterPartitions) -> None:
    table = operation.table
    altered = altered_partitions(hand, table, hand.seen(table), operation.partitions, operation.switched)
    kept = statistics_of_others(hand, table, operation.partitions)
    hand.alter_partitions(hand.at(table), definitions(altered))
    remember(hand, table, altered)
    write_kept(hand, table, kept)


def rename_partition(hand: HopContext, operation: RenamePartition) -> None:
    table, was, name, part = operation.table, operation.was, operation.name, operation.part
    shown = hand.seen(table)
    there = shown.partitions[was]
    renamed = altered_partition(hand, table, there, part, None)
    hand.call(hand.side.catalog.rename_partition, hand.at(table), there.values, renamed)
    del shown.partitions[was]
    if was in shown.listings:
        shown.listings[name] = shown.listings.pop(was)
    hand.record(table, was, incarnation_of(renamed), part.since, "rename_away")
    remember(hand, table, {name: PartitionWrite(renamed, part.since, "rename_partition", None)})


def drop_partitions(hand: HopContext, operation: DropPartitions, event_id: EventId) -> None:
    hand.drop_partitions(hand.at(operation.table), operation.names)
    forget(hand, operation.table, operation.names, event_id)


def new_partitions(
    hand: HopContext,
    table: TableName,
    shown: ShownTable,
    partitions: Parts,
    kept: Mapping[str, StagedFiles] | None = None,
) -> dict[str, PartitionWrite]:
    """Definitions of partitions that are not there yet, their files staged; those in `kept` have a directory."""
    stored = {name: part for name, part in partitions if part.data.location and name not in (kept or {})}
    placed = {
        **(kept or {}),
        **hand.staged({name: fresh(hand, table, shown, name, part) for name, part in stored.items()}),
    }
    found = {}
    for name, part in partitions:
        place = placed.get(name, StagedFiles("", ()))
        marks = Marks(part.since, part.incarnation or incarnation_of(shown.partitions.get(part.lineage)))
        definition = hand.side.imaging.partition(source_of(hand, part), table, marks, place.location or None)
        found[name] = PartitionWrite(hand.attachments.of(definition), part.since, "add_partition", place)
    return found


def fresh(hand: HopContext, table: TableName, shown: ShownTable, name: str, part: Part) -> StageRequest:
    """The first directory of a partition."""
    created = hand.images.partition(part.version).create_time
    claim = claim_of(part.incarnation or f"moved{part.since}", created)
    natural = join(location_of(shown.table) or "", name)
    now = hand.shown.get(table)
    there = now.partitions.get(name) if now is not None else None
    return StageRequest(
        hand.listing(part.data),
        natural,
        hand.at(table),
        name,
        shown.incarnation(),
        part.since,
        claim,
        shown=there is not None and location_of(there) == natural,
    )


def altered_partitions(
    hand: HopContext, table: TableName, shown: ShownTable, partitions: Parts, switched: frozenset[str]
) -> dict[str, PartitionWrite]:
    """New definitions of partitions that are there; `switched` ones get a directory of their own, and so do those that
    wait at one that is nobody's (`flip`)."""
    wanted = {}
    for name, part in partitions:
        if has_no_place(shown.partitions[name]):
            wanted[name] = fresh(hand, table, shown, name, part)
        elif name in switched:
            listing = hand.listing(part.data)
            wanted[name] = StageRequest(listing, None, hand.at(table), name, shown.incarnation(), part.since)
    placed = hand.staged(wanted)
    found = {}
    for name, part in partitions:
        place = placed.get(name)
        before = shown.partitions.get(part.lineage)
        definition = altered_partition(hand, table, shown.partitions[name], part, place, before)
        found[name] = PartitionWrite(definition, part.since, "alter_partition", place)
    return found


def altered_partition(
    hand: HopContext,
    table: TableName,
    there: Partition,
    part: Part,
    placed: StagedFiles | None,
    before: Partition | None = None,
) -> Partition:
    """The definition after an alteration; one that the target showed before only changes place and mark. `before` is
    the same partition under the name that it had, where that was another."""
    if part.version == BASE:
        there = with_columns(hand, there, part)
        parameters = {**(there.parameters or {}), EVENT: str(part.since or event_of(there.parameters))}
        return replace(there, parameters=parameters, storage=moved(there.storage, hand.place(there, there, placed)))
    marks = Marks(part.since, part.incarnation or incarnation_of(before or there))
    source = source_of(hand, part)
    definition = hand.side.imaging.partition(source, table, marks, hand.place(there, source, placed))
    return hand.attachments.of(definition)


def source_of(hand: HopContext, part: Part) -> Partition:
    """The source's definition at the state."""
    return with_columns(hand, hand.images.partition(part.version), part)


def with_columns(hand: HopContext, partition: Partition, part: Part) -> Partition:
    """The definition, with the columns that a CASCADE gave it."""
    if not part.columns or partition.storage is None:
        return partition
    table = hand.images.table(Version(part.columns))
    columns = table.storage.columns if table.storage is not None else None
    return replace(partition, storage=replace(partition.storage, columns=columns))


def has_no_place(there: Partition) -> bool:
    """Whether the partition is listed before or after its rows (`flip`): its directory is shared."""
    return STATE in (there.parameters or {})


def other_files(hand: HopContext, shown: ShownTable, partitions: Parts) -> frozenset[str]:
    """Those of the partitions that are to have other files than the target shows."""
    return frozenset(
        name
        for name, part in partitions
        if name not in shown.listings or shown.listings[name].fingerprint() != hand.listing(part.data).fingerprint()
    )


def definitions(written: Mapping[str, PartitionWrite]) -> Iterable[Partition]:
    return [one.definition for one in written.values()]


def remember(hand: HopContext, table: TableName, written: Mapping[str, PartitionWrite]) -> None:
    """They are there now."""
    shown = hand.seen(table)
    for name, one in written.items():
        shown.partitions[name] = one.definition
        if one.placed is not None:
            hand.shows_files(table, name, one.placed)
        hand.record(table, name, incarnation_of(one.definition), one.event_id, one.change, one.placed)


def forget(hand: HopContext, table: TableName, names: Iterable[str], event_id: EventId) -> None:
    """They are gone."""
    shown = hand.seen(table)
    for name in names:
        there = shown.partitions.pop(name, None)
        shown.listings.pop(name, None)
        hand.record(table, name, incarnation_of(there), event_id, "drop_partition")


def incarnation_of(partition: Partition | None) -> str:
    return ((partition.parameters or {}) if partition is not None else {}).get(INCARNATION, "")
