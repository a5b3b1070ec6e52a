"""Tables built where no reader looks: new ones with partitions, and the last resort for any difference."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from calque.engine.apply.context import HopContext
from calque.engine.apply.facets import FacetsAtTarget, kept_facets, restore_facets
from calque.engine.apply.partitions import (
    PartitionWrite,
    altered_partitions,
    definitions,
    forget,
    new_partitions,
    other_files,
    remember,
)
from calque.engine.apply.tables import altered, created, followed, new_table, now_under, switched_content
from calque.engine.files.stage import StagedFiles
from calque.engine.sides.calque_database import ensure_own_database
from calque.engine.target.observe import ShownTable
from calque.model.hive import Partition, Table
from calque.model.names import OURS, EventId, TableName
from calque.model.plan import HiddenBuild, Rebuild
from calque.ports import Conflict

LONGEST = 127
"""Characters that a name may have on every metastore."""


def build(hand: HopContext, operation: HiddenBuild) -> None:
    """A new table with its partitions, built under a hidden name and renamed in by one call."""
    table, head = operation.table, operation.head
    definition, placed = new_table(hand, table, head)
    shown = ShownTable(definition)
    partitions = new_partitions(hand, table, shown, operation.partitions)
    hidden = hidden_name(hand.at(table), shown.incarnation())
    make(hand, hidden, definition, definitions(partitions))
    hand.call(hand.side.catalog.alter_table, hidden, definition)
    created(hand, table, head, shown, placed)
    remember(hand, table, partitions)


def rebuild(hand: HopContext, operation: Rebuild, event_id: EventId) -> None:
    """Build the whole table hidden over the same files, rename the old away and the new in. Facets follow: servers
    drop constraints with the old table by their names, and lose statistics in a rename."""
    table, was, head = operation.table, operation.was, operation.head
    old = hand.seen(was) if was is not None else None
    facets: FacetsAtTarget | None = None
    change = "rebuild"
    if operation.whole or was is None or old is None:
        definition, placed = new_table(hand, table, head)
        before, new_placed, change = ShownTable(definition), placed if head.data is not None else None, "replace"
    else:
        before = replace(old, partitions=every_partition(hand, was))
        facets = kept_facets(hand, was, before.partitions)
        new_placed = rebuilt_content(hand, operation, before)
        definition = altered(hand, table, before, head, new_placed)
    written = rebuilt_partitions(hand, operation, replace(before, table=definition))
    gone = [name for name, part in operation.partitions if part is None and name in before.partitions]
    cascade = bool(operation.cascade)
    kept = {name: followed(part, definition, cascade) for name, part in before.partitions.items() if name not in gone}
    whole = {**kept, **{name: one.definition for name, one in written.items()}}
    swap(hand, table, was, definition, whole.values(), event_id)
    if was is not None and old is not None:
        now_under(hand, was, table, old, head.since)
    hand.shown[table] = ShownTable(definition, dict(before.partitions), dict(before.listings))
    if new_placed is not None:
        hand.shows_files(table, "", new_placed)
    hand.record(table, "", hand.seen(table).incarnation(), head.since, change, new_placed)
    forget(hand, table, gone, event_id)
    remember(hand, table, written)
    hand.seen(table).partitions.update(whole)
    if facets is not None:
        lineages = {name: part.lineage for name, part in operation.partitions if part is not None}
        restore_facets(hand, table, facets, {name: lineages.get(name, name) for name in whole})


def rebuilt_content(hand: HopContext, operation: Rebuild, old: ShownTable) -> StagedFiles | None:
    """The files of a plain table where they are others than it shows."""
    head = operation.head
    if head.data is None or not head.data.event_id:
        return None
    there = old.listings.get("")
    if there is not None and there.fingerprint() == hand.listing(head.data).fingerprint():
        return None
    return switched_content(hand, operation.table, head, old)


def rebuilt_partitions(hand: HopContext, operation: Rebuild, before: ShownTable) -> dict[str, PartitionWrite]:
    """The touched partitions that are to be there."""
    parts = [(name, part) for name, part in operation.partitions if part is not None]
    old = [(name, part) for name, part in parts if name in before.partitions]
    new = [(name, part) for name, part in parts if name not in before.partitions]
    written = altered_partitions(hand, operation.table, before, old, other_files(hand, before, old))
    return written | new_partitions(hand, operation.table, before, new)


def swap(
    hand: HopContext,
    table: TableName,
    was: TableName | None,
    definition: Table,
    partitions: Iterable[Partition],
    event_id: EventId,
) -> None:
    """Build hidden; then the old away, the new in, the old dropped."""
    catalog, at = hand.side.catalog, hand.at(table)
    hidden = hidden_name(at, f"{ShownTable(definition).incarnation()}_{event_id}")
    away = hidden_name(at, f"old_{event_id}")
    clear(hand, away)
    make(hand, hidden, definition, partitions)
    current = catalog.table(hand.at(was)) if was is not None else None
    if was is not None and current is not None:
        gone = replace(current, database=away.database, name=away.table)
        hand.call(catalog.alter_table, hand.at(was), gone)
    hand.call(catalog.alter_table, hidden, definition)
    if current is not None:
        hand.call(catalog.drop_table, away)


def make(hand: HopContext, hidden: TableName, definition: Table, partitions: Iterable[Partition]) -> None:
    """The table with its partitions under the hidden name."""
    begin(hand, hidden, definition)
    hand.add_partitions(hidden, [replace(part, database=hidden.database, table=hidden.table) for part in partitions])


def begin(hand: HopContext, hidden: TableName, definition: Table) -> None:
    """The table alone under the hidden name. Whether the database is there, and nothing that a crash left, is only
    asked where that fails."""
    empty = replace(definition, database=hidden.database, name=hidden.table)
    try:
        hand.call(hand.side.catalog.create_table, empty)
    except Conflict:
        hand.applied.calls -= 1
        ensure_own_database(hand.side.catalog, hand.side.policy.warehouse)
        clear(hand, hidden)
        hand.call(hand.side.catalog.create_table, empty)


def clear(hand: HopContext, hidden: TableName) -> None:
    """Nothing that a crash left stands there."""
    if hand.side.catalog.table(hidden) is not None:
        hand.call(hand.side.catalog.drop_table, hidden)


def every_partition(hand: HopContext, table: TableName) -> dict[str, Partition]:
    at, catalog = hand.at(table), hand.side.catalog
    return dict(catalog.partitions(at, catalog.partition_names(at)))


def hidden_name(at: TableName, token: str) -> TableName:
    """The name under which a table is built, in the hidden database: one that no other table has."""
    name = f"{OURS}_{at.database}_{at.table}_{token}"
    if len(name) > LONGEST:
        name = f"{OURS}_{hashlib.blake2b(name.encode(), digest_size=12).hexdigest()}"
    return TableName(OURS, name)
