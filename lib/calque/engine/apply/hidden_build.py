"""The builds of tables where no reader looks: new ones with partitions, and the last resort for any difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from calque.engine.apply.context import HopContext
from calque.engine.apply.facets import FacetsAtTarget, kept_facets, restore_facets
from calque.engine.apply.hidden_table import begin, clear, hidden_name
from calque.engine.apply.partitions import (
    PartitionWrite,
    altered_partitions,
    definitions,
    forget,
    new_partitions,
    other_files,
    remember,
)
from calque.engine.apply.tables import (
    altered,
    created,
    followed,
    move_of_directory,
    new_table,
    now_under,
    switched_content,
    with_directory,
)
from calque.engine.files.stage import StagedFiles
from calque.engine.target.observe import ShownTable, every_partition
from calque.model.hive import Partition, Table
from calque.model.names import EventId, TableName
from calque.model.plan import HiddenBuild, Rebuild


def build(context: HopContext, operation: HiddenBuild) -> None:
    """Build a new table with its partitions under a hidden name, and rename it in by one call."""
    table, head = operation.table, operation.head
    definition, placed = new_table(context, table, head)
    shown = ShownTable(definition)
    partitions = new_partitions(context, table, shown, operation.partitions)
    hidden = hidden_name(context.name_at_target(table), shown.incarnation())
    make(context, table, hidden, definition, definitions(partitions))
    context.call(context.side.catalog.alter_table, hidden, definition)
    created(context, table, head, shown, placed)
    remember(context, table, partitions)


def rebuild(context: HopContext, operation: Rebuild, event_id: EventId) -> None:
    """Build the whole table hidden over the same files, rename the old one away and the new one in. Facets follow,
    because servers drop constraints with the old table by their names, and lose statistics in a rename."""
    table, was, head = operation.table, operation.was, operation.head
    old = context.shown_table(was) if was is not None else None
    facets: FacetsAtTarget | None = None
    change = "rebuild"
    if operation.whole or was is None or old is None:
        definition, placed = new_table(context, table, head)
        before, new_placed, change = ShownTable(definition), placed if head.data is not None else None, "replace"
    else:
        partitions_before = dict(every_partition(context.side, old.table))
        if (move := move_of_directory(context, operation, old.table)) is not None:
            partitions_before |= with_directory(partitions_before, move)
        before = replace(old, partitions=partitions_before)
        facets = kept_facets(context, was, before.partitions)
        new_placed = rebuilt_content(context, operation, before)
        definition = altered(context, table, before, head, new_placed)
    written = rebuilt_partitions(context, operation, replace(before, table=definition))
    dropped_names = [name for name, part in operation.partitions if part is None and name in before.partitions]
    cascade = bool(operation.cascade)
    kept_partitions = {
        name: followed(part, definition, cascade)
        for name, part in before.partitions.items()
        if name not in dropped_names
    }
    partitions = {**kept_partitions, **{name: one.definition for name, one in written.items()}}
    swap(context, table, was, definition, partial(make, context, table, partitions=partitions.values()), event_id)
    if was is not None and old is not None:
        now_under(context, was, table, old, head.since)
    context.shown[table] = ShownTable(definition, dict(before.partitions), dict(before.listings))
    if new_placed is not None:
        context.shows_files(table, "", new_placed)
    context.record(table, "", context.shown_table(table).incarnation(), head.since, change, new_placed)
    forget(context, table, dropped_names, event_id)
    remember(context, table, written)
    context.shown_table(table).partitions.update(partitions)
    if facets is not None:
        lineages = {name: part.lineage for name, part in operation.partitions if part is not None}
        restore_facets(context, table, facets, {name: lineages.get(name, name) for name in partitions})


def rebuilt_content(context: HopContext, operation: Rebuild, old: ShownTable) -> StagedFiles | None:
    """Return the files of a plain table where they are others than it shows; else None."""
    head = operation.head
    if head.data is None or not head.data.event_id:
        return None
    target_listing = old.listings.get("")
    if target_listing is not None and target_listing.fingerprint() == context.listing(head.data).fingerprint():
        return None
    return switched_content(context, operation.table, head, old)


def rebuilt_partitions(context: HopContext, operation: Rebuild, before: ShownTable) -> dict[str, PartitionWrite]:
    """Return the touched partitions that are to be there, with their definitions and files."""
    parts = [(name, part) for name, part in operation.partitions if part is not None]
    old_parts = [(name, part) for name, part in parts if name in before.partitions]
    new_parts = [(name, part) for name, part in parts if name not in before.partitions]
    written = altered_partitions(context, operation.table, before, old_parts, other_files(context, before, old_parts))
    return written | new_partitions(context, operation.table, before, new_parts)


def swap(
    context: HopContext,
    table: TableName,
    was: TableName | None,
    definition: Table,
    build_hidden: Callable[[TableName, Table], None],
    event_id: EventId,
) -> None:
    """Have `build_hidden` build the table under a hidden name; then rename the old table away and the new one in, and
    drop the old one. Between the renames the table is absent."""
    catalog, target_name = context.side.catalog, context.name_at_target(table)
    hidden = hidden_name(target_name, f"{ShownTable(definition).incarnation()}_{event_id}")
    away_name = hidden_name(target_name, f"old_{event_id}")
    clear(context, away_name)
    build_hidden(hidden, definition)
    current = catalog.table(context.name_at_target(was)) if was is not None else None
    if was is not None and current is not None:
        context.leave(was)
        old_table = replace(current, database=away_name.database, name=away_name.table)
        context.call(catalog.alter_table, context.name_at_target(was), old_table)
    context.call(catalog.alter_table, hidden, definition)
    if current is not None:
        context.call(catalog.drop_table, away_name)


def make(
    context: HopContext, table: TableName, hidden: TableName, definition: Table, partitions: Iterable[Partition]
) -> None:
    """Make the table with its partitions under the hidden name."""
    begin(context, table, hidden, definition)
    context.add_partitions(
        table, hidden, [replace(part, database=hidden.database, table=hidden.table) for part in partitions]
    )
