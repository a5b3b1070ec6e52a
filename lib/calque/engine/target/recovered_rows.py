"""Rows for the ledger about what a target shows and the ledger may lack: results of attempts that were not recorded,
and tables that were there before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from calque.core.formats.bounded import number_of
from calque.core.formats.definition import text_of_partition, text_of_table
from calque.core.images.image import INCARNATION
from calque.core.images.object_row import row_of
from calque.core.plan.limits import batches
from calque.core.records.contents import FOUND, UNSURE
from calque.engine.sides.sides import TargetSide
from calque.engine.target.observe import ShownTable, event_of, observe, read_files
from calque.model.files import Listing
from calque.model.hive import Partition, Table, is_partitioned, is_view, location_of
from calque.model.ledger import ObjectRow, StateRow, TableRow
from calque.model.names import EventId, TableName

READ, ADOPT, CREATED = "read", "adopt", "create_table"
PAGE = 2000
"""The number of partitions that are held at a time."""


def recovered_rows(
    side: TargetSide,
    shown: Mapping[TableName, ShownTable | None],
    looked_for: Mapping[TableName, Collection[str]],
    recorded: EventId,
) -> list[ObjectRow]:
    """Return rows of what a group's tables show before it goes on. Attempts since the event `recorded` may have changed
    the partitions `looked_for` without a row in the ledger. Where they may have renamed a table, all of the table gets
    rows."""
    if len(shown) > 1:
        return [row for name in shown for row in as_it_is(side, name, recorded)]
    rows: list[ObjectRow] = []
    for name, table in shown.items():
        if table is None:
            rows.append(row_of(name, "", "", recorded, "drop_table", None))
            continue
        incarnation = table.incarnation()
        created = number_of(incarnation) > recorded
        rows += whole(name, table, recorded, CREATED if created else FOUND)
        dropped_partitions = sorted(set(looked_for.get(name, ())) - table.partitions.keys())
        rows += [row_of(name, partition, "", recorded, "drop_partition", None) for partition in dropped_partitions]
    return rows


def whole(name: TableName, shown: ShownTable | None, event_id: EventId, change: str) -> list[ObjectRow]:
    """Return a row of the table and of each of its partitions in `shown`, as the target shows them; of a table that
    does not exist, the row of a drop."""
    if shown is None:
        return [row_of(name, "", "", event_id, "drop_table", None)]
    table, incarnation = shown.table, shown.incarnation()
    place = Listing(location_of(table) or "", ()) if not is_view(table) and is_partitioned(table) else None
    listing, text = shown.listings.get("", place), text_of_table(table)
    rows = [row_of(name, "", incarnation, event_id, change, listing, text)]
    if change != CREATED and is_newer(table, event_id):
        rows.append(row_of(name, "", incarnation, event_of(table.parameters), "alter_table", None, text))
    return [*rows, *of_partitions(name, shown.partitions, shown.listings, event_id)]


def of_partitions(
    name: TableName, partitions: Mapping[str, Partition], listings: Mapping[str, Listing], event_id: EventId
) -> Iterator[ObjectRow]:
    for key, partition in partitions.items():
        incarnation = (partition.parameters or {}).get(INCARNATION, "")
        text = text_of_partition(partition)
        yield row_of(name, key, incarnation, event_id, FOUND, listings.get(key), text)
        if is_newer(partition, event_id):
            yield row_of(name, key, incarnation, event_of(partition.parameters), "alter_partition", None, text)


def is_newer(target_object: Table | Partition, event_id: EventId) -> bool:
    """Tell whether an attempt changed the object's definition after the event. Rows that restate the object do not
    show that, because they have no parameters of users."""
    incarnation = (target_object.parameters or {}).get(INCARNATION, "")
    is_made_later = number_of(incarnation) > event_id
    return event_of(target_object.parameters) > event_id and not is_made_later


def unsure(rows: Iterable[StateRow], cursor: EventId, reached: EventId) -> list[ObjectRow]:
    """Return rows that mark tables as unsure: attempts may have changed them without a record, and the events that
    would tell are lost. A window may have come up to the event `reached` while the ledger says less of the table."""
    return [
        row_of(row.name, "", "", cursor, UNSURE, None)
        for row in rows
        if isinstance(row, TableRow) and min(cursor, row.shows if row.shows is not None else cursor) < reached
    ]


def as_it_is(side: TargetSide, name: TableName, event_id: EventId, page: int = PAGE) -> list[ObjectRow]:
    """Return rows of all that the target has of the table, read `page` partitions at a time."""
    shown = observe(side, [name], {})[name]
    rows = whole(name, shown, event_id, READ)
    if shown is None or not is_partitioned(shown.table):
        return rows
    target_name = side.admission.name_at_target(name)
    for names in batches(list(side.catalog.partition_names(target_name)), page):
        page_table = ShownTable(shown.table, dict(side.catalog.partitions(target_name, names)))
        read_files(side, {name: page_table})
        rows += of_partitions(name, page_table.partitions, page_table.listings, event_id)
    return rows
