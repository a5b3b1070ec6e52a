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


def commit_table(context: HopContext, operation: CommitTable, event_id: EventId) -> None:
    if operation.was is None:
        create(context, operation)
    else:
        change(context, operation, context.shown_table(operation.was), event_id)


def create(context: HopContext, operation: CommitTable) -> None:
    table, head = operation.table, operation.head
    definition, placed = new_table(context, table, head)
    shown = ShownTable(definition)
    parts = [(name, part) for name, part in operation.partitions if part is not None]
    added = new_partitions(context, table, shown, parts)
    context.call(context.side.catalog.commit_table, None, definition, list(definitions(added)), ())
    created(context, table, head, shown, placed)
    remember(context, table, added)


def change(context: HopContext, operation: CommitTable, old: ShownTable, event_id: EventId) -> None:
    table, was, head = operation.table, operation.was, operation.head
    assert was is not None
    placed = switched_content(context, table, head, old) if "" in operation.switched else None
    definition = altered(context, table, old, head, placed)
    before = replace(old, table=definition)
    parts = [(name, part) for name, part in operation.partitions if part is not None]
    old_parts = [(name, part) for name, part in parts if name in old.partitions]
    new_parts = [(name, part) for name, part in parts if name not in old.partitions]
    dropped_names = [name for name, part in operation.partitions if part is None and name in old.partitions]
    written = altered_partitions(context, table, before, old_parts, operation.switched)
    written |= new_partitions(context, table, before, new_parts, renamed(context, old, dropped_names, new_parts))
    kept_statistics = statistics_of_others(context, was, parts)
    context.call(
        context.side.catalog.commit_table,
        context.name_at_target(was),
        definition,
        list(definitions(written)),
        dropped_names,
        cascade=bool(operation.cascade),
        expected_event=expected(old),
    )
    partitions = {name: followed(part, definition, bool(operation.cascade)) for name, part in old.partitions.items()}
    now_under(context, was, table, replace(before, partitions=partitions), event_id)
    if placed is not None:
        context.shows_files(table, "", placed)
    context.record(table, "", context.shown_table(table).incarnation(), head.since, "commit_table", placed)
    forget(context, table, dropped_names, event_id)
    remember(context, table, written)
    write_kept(context, table, kept_statistics)


def renamed(context: HopContext, old: ShownTable, dropped_names: list[str], new_parts: Parts) -> dict[str, StagedFiles]:
    """The directories of new partitions that are vanished ones under another name, with the same files."""
    candidates = dict.fromkeys(dropped_names)
    directories = {}
    for name, part in new_parts:
        for was in candidates:
            old_partition = old.partitions[was]
            is_same = was == part.lineage or (part.incarnation and incarnation_of(old_partition) == part.incarnation)
            listing = old.listings.get(was)
            if (
                is_same
                and listing
                and part.data.location
                and listing.fingerprint() == context.listing(part.data).fingerprint()
            ):
                directories[name] = StagedFiles(
                    location_of(old_partition) or "", listing.files, combination=listing.combination
                )
                del candidates[was]
                break
    return directories
