"""Files appended to a live directory."""

from __future__ import annotations

from dataclasses import replace

from calque.engine.apply.context import HopContext
from calque.engine.apply.partitions import incarnation_of
from calque.engine.apply.tables import advanced, alter_table
from calque.engine.files.stage import StagedFiles, stage_append
from calque.model.files import File, Listing
from calque.model.names import TableName
from calque.model.plan import BASE, AlterTable, Head, Publish


def publish(hand: HopContext, operation: Publish) -> None:
    """Copy to hidden names, then rename into place, in order."""
    table, partition = operation.table, operation.partition
    shown = hand.seen(table)
    there = shown.listings[partition]
    if there.version is not None:
        go_on(hand, operation)
        return
    append = stage_append(hand.side, there, hand.listing(operation.data), operation.since)
    if append.renames:
        hand.side.storage.publish(append.renames)
    hand.count(append.placed)
    files = tuple(
        sorted([*known_files(hand, table, partition, there), *append.placed.files], key=lambda file: file.path)
    )
    placed = StagedFiles(there.location, files)
    hand.shows_files(table, partition, placed)
    incarnation = incarnation_of(shown.partitions[partition]) if partition else shown.incarnation()
    hand.record(table, partition, incarnation, operation.since, "append", placed)


def go_on(hand: HopContext, operation: Publish) -> None:
    """A Delta table's log goes on; where it can't, the version gets a directory of its own, and the table moves to
    it."""
    table, shown = operation.table, hand.seen(operation.table)
    placed = advanced(hand, shown, hand.listing(operation.data), operation.since)
    if placed is None:
        head = Head(0, BASE, data=operation.data, since=operation.since)
        alter_table(hand, AlterTable(table, table, head, switch=True))
        return
    hand.shows_files(table, "", placed)
    hand.record(table, "", shown.incarnation(), operation.since, "append", placed)


def known_files(hand: HopContext, table: TableName, partition: str, there: Listing) -> tuple[File, ...]:
    """The files of a live directory with the checksums that the ledger remembers."""
    row = hand.side.ledger.latest_objects([(*table, partition)]).get((*table, partition))
    known = {(file.path, file.size): file.checksum for file in row.files} if row else {}
    return tuple(replace(file, checksum=known.get((file.path, file.size))) for file in there.files)
