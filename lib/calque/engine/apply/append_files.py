"""The publication of files that are appended to a live directory."""

from __future__ import annotations

from dataclasses import replace

from calque.core.formats.symlinks import is_symlinks
from calque.engine.apply.context import HopContext
from calque.engine.apply.partitions import alter_partitions, incarnation_of
from calque.engine.apply.tables import advanced, alter_table
from calque.engine.files.permissions import directories_below, keep
from calque.engine.files.stage import StagedFiles, identity, stage_append
from calque.model.files import File, Listing
from calque.model.names import EventId, TableName
from calque.model.plan import BASE, AlterPartitions, AlterTable, Head, Part, Publish


def publish(context: HopContext, operation: Publish) -> None:
    """Copy appended files to hidden names, then rename them into place, in order. A Delta table's log goes on instead,
    and manifests of a symlink table are replaced as a whole."""
    table, partition = operation.table, operation.partition
    shown = context.shown_table(table)
    target_listing = shown.listings[partition]
    if target_listing.version is not None:
        go_on(context, operation)
        return
    if is_symlinks(shown.partitions[partition] if partition else shown.table):
        replace_manifests(context, operation)
        return
    source_listing = context.listing(operation.data)
    placed = with_more(context, table, partition, target_listing, source_listing, operation.since)
    context.shows_files(table, partition, placed)
    incarnation = incarnation_of(shown.partitions[partition]) if partition else shown.incarnation()
    context.record(table, partition, incarnation, operation.since, "append", placed)


def replace_manifests(context: HopContext, operation: Publish) -> None:
    """Publish the new state of a symlink table, or of one of its partitions, by a switch to a new directory. Its files
    are manifests, which are never appended to in place: the data files that they name are copied beside them and get
    other paths at the target, so that all manifests are written anew."""
    table, partition = operation.table, operation.partition
    if not partition:
        head = Head(0, BASE, data=operation.data, since=operation.since)
        alter_table(context, AlterTable(table, table, head, switch=True))
        return
    part = Part(partition, BASE, operation.data, since=operation.since)
    alter_partitions(context, AlterPartitions(table, ((partition, part),), frozenset({partition})))


def go_on(context: HopContext, operation: Publish) -> None:
    """Let a Delta table's log go on; where it can't, put the version into a directory of its own, and move the table
    there."""
    table, shown = operation.table, context.shown_table(operation.table)
    placed = advanced(context, shown, context.listing(operation.data), operation.since)
    if placed is None:
        head = Head(0, BASE, data=operation.data, since=operation.since)
        alter_table(context, AlterTable(table, table, head, switch=True))
        return
    context.shows_files(table, "", placed)
    context.record(table, "", shown.incarnation(), operation.since, "append", placed)


def known_files(context: HopContext, table: TableName, partition: str, target_listing: Listing) -> tuple[File, ...]:
    """Return the files of a live directory with the checksums that the ledger remembers."""
    row = context.side.ledger.latest_objects([(*table, partition)]).get((*table, partition))
    checksums = {(file.path, file.size): file.checksum for file in row.files} if row else {}
    return tuple(replace(file, checksum=checksums.get((file.path, file.size))) for file in target_listing.files)


def append_unseen(
    context: HopContext,
    table: TableName,
    partition: str,
    target_listing: Listing,
    source_listing: Listing,
    event_id: EventId,
) -> StagedFiles | None:
    """Put the files that a Delta table's content gets beside those that it has: its log shows them later. Return None
    where the content does not only get more files, and where a death left other files in their place."""
    wanted = {file.path: identity(file) for file in source_listing.files}
    if not {identity(file) for file in target_listing.files} <= {*wanted.values()}:
        return None
    side, location = context.side, target_listing.location
    present = {file.path: identity(file) for file in side.storage.list([location])[location].files}
    if any(wanted.get(path) != one for path, one in present.items()):
        return None
    return with_more(context, table, partition, target_listing, source_listing, event_id)


def with_more(
    context: HopContext,
    table: TableName,
    partition: str,
    target_listing: Listing,
    source_listing: Listing,
    event_id: EventId,
) -> StagedFiles:
    """Copy what the source's directory has beyond the target's to hidden names, rename it into place, in order, and
    return the target's directory with all its files."""
    append = stage_append(context.side, target_listing, source_listing, event_id)
    if append.renames:
        context.side.storage.publish(append.renames)
        if any("/" in file.path for file in append.placed.files):
            keep(context.side, directories_below(source_listing, target_listing.location))
    context.count(append.placed)
    known = known_files(context, table, partition, target_listing)
    files = sorted([*known, *append.placed.files], key=lambda file: file.path)
    return StagedFiles(target_listing.location, tuple(files))
