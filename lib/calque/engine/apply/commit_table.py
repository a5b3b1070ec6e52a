"""Any difference of one table in one commit, where the catalog can."""

from __future__ import annotations

from dataclasses import replace

from calque.engine.apply.context import HopContext
from calque.engine.apply.facets import statistics_of_others, write_kept
from calque.engine.apply.partitions import (
    Parts,
    altered_partitions,
    definitions,
    forget,
    incarnation_of,
    new_partitions,
    remember,
)
from calque.engine.apply.tables import altered, created, expected, followed, new_table, now_under, switched_content
from calque.engine.files.stage import StagedFiles
from calque.engine.target.observe import ShownTable
from calque.model.hive import location_of
from calque.model.names import EventId
from calque.model.plan import CommitTable


def commit_table(hand: HopContext, operation: CommitTable, event_id: EventId) -> None:
    if operation.was is None:
        create(hand, operation)
    else:
        change(hand, operation, hand.seen(operation.was), event_id)


def create(hand: HopContext, operation: CommitTable) -> None:
    table, head = operation.table, operation.head
    definition, placed = new_table(hand, table, head)
    shown = ShownTable(definition)
    parts = [(name, part) for name, part in operation.partitions if part is not None]
    added = new_partitions(hand, table, shown, parts)
    hand.call(hand.side.catalog.commit_table, None, definition, list(definitions(added)), ())
    created(hand, table, head, shown, placed)
    remember(hand, table, added)


def change(hand: HopContext, operation: CommitTable, old: ShownTable, event_id: EventId) -> None:
    table, was, head = operation.table, operation.was, operation.head
    assert was is not None
    placed = switched_content(hand, table, head, old) if "" in operation.switched else None
    definition = altered(hand, table, old, head, placed)
    before = replace(old, table=definition)
    parts = [(name, part) for name, part in operation.partitions if part is not None]
    there = [(name, part) for name, part in parts if name in old.partitions]
    new = [(name, part) for name, part in parts if name not in old.partitions]
    gone = [name for name, part in operation.partitions if part is None and name in old.partitions]
    written = altered_partitions(hand, table, before, there, operation.switched)
    written |= new_partitions(hand, table, before, new, renamed(hand, old, gone, new))
    kept = statistics_of_others(hand, was, parts)
    hand.call(
        hand.side.catalog.commit_table,
        hand.at(was),
        definition,
        list(definitions(written)),
        gone,
        cascade=bool(operation.cascade),
        expected_event=expected(old),
    )
    rest = {name: followed(part, definition, bool(operation.cascade)) for name, part in old.partitions.items()}
    now_under(hand, was, table, replace(before, partitions=rest), event_id)
    if placed is not None:
        hand.shows_files(table, "", placed)
    hand.record(table, "", hand.seen(table).incarnation(), head.since, "commit_table", placed)
    forget(hand, table, gone, event_id)
    remember(hand, table, written)
    write_kept(hand, table, kept)


def renamed(hand: HopContext, old: ShownTable, gone: list[str], new: Parts) -> dict[str, StagedFiles]:
    """The directories of new partitions that are vanished ones under another name, with the same files."""
    left = dict.fromkeys(gone)
    found = {}
    for name, part in new:
        for was in left:
            there = old.partitions[was]
            same = was == part.lineage or (part.incarnation and incarnation_of(there) == part.incarnation)
            listing = old.listings.get(was)
            if (
                same
                and listing
                and part.data.location
                and listing.fingerprint() == hand.listing(part.data).fingerprint()
            ):
                found[name] = StagedFiles(location_of(there) or "", listing.files)
                del left[was]
                break
    return found
