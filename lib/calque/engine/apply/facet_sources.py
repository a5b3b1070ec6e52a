"""Facets beside the states: from the events of a window, or of a table that was read exactly."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from calque.core.compare import Difference, TableSide
from calque.core.decode import Undecodable
from calque.core.facets import Changes, Rows, by_name, columns_of, compare_columns, compare_constraint, constraint_image
from calque.core.limits import batches
from calque.engine.apply.context import AppliedChanges, HopContext
from calque.engine.apply.definitions import ReadImages
from calque.engine.apply.facets import (
    add_foreign_key,
    add_waiting_keys,
    has_key,
    statistics_there,
    write_columns,
    write_constraints,
)
from calque.engine.apply.statistics import write_statistics
from calque.engine.sides.journal_reads import messages, touching
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.exact_read import ExactTable
from calque.engine.target.observe import ShownTable
from calque.errors import Unavailable
from calque.model.facets import ForeignKey, Statistics
from calque.model.files import Listing
from calque.model.hive import is_view
from calque.model.journal import EventKind
from calque.model.names import EventId, Span, TableName, table_name
from calque.model.plan import CreateTable, Data, FacetEvent, GroupPlan, HiddenBuild
from calque.ports import CatalogReader, Journal

LOG = logging.getLogger(__name__)
AT_ONCE = 1000
"""Partitions that are held at a time."""


def changes_of(journal: Journal, events: Iterable[FacetEvent]) -> dict[TableName, Changes]:
    """What the events make of each table's facets. A message that can't be read is passed over: facets are no state."""
    found: dict[TableName, Changes] = {}
    by_event: dict[EventId, list[FacetEvent]] = {}
    for facet in events:
        by_event.setdefault(facet.event_id, []).append(facet)
    for event in messages(journal, by_event):
        for facet in by_event[event.event_id]:
            try:
                found.setdefault(facet.table, Changes()).note(facet, event)
            except Undecodable as error:
                LOG.warning("%s: event %d is passed over: %s", facet.table, facet.event_id, error)
    return found


def copy_facets(
    source: SourceSide,
    side: TargetSide,
    exact: ExactTable,
    landing: GroupPlan,
    applied: AppliedChanges,
    partitions: Sequence[str] | None = None,
) -> None:
    """Write the facets of a table that has just landed, a batch of partitions at a time: of all that were read, or of
    `partitions`.

    They are read later than the table: what events change of them meanwhile, the windows write again. Raises
    `Unavailable` where names came to mean others meanwhile."""
    if exact.table is None or is_view(exact.table):
        return
    hand = HopContext(side, ReadImages(exact), no_files, {}, applied)
    new = any(isinstance(hop.operation, CreateTable | HiddenBuild) for hop in landing.hops)
    columns = [column.name for column in columns_of(exact.table)]
    of_table = source.catalog.table_statistics(exact.name, columns)
    if of_table or not new:
        if not look(hand, exact.name):
            return
        copy_columns(hand, exact.name, {"": of_table}, [""], new)
    for names in batches(list(exact.partitions) if partitions is None else partitions, AT_ONCE):
        found = source.catalog.partition_statistics(exact.name, columns, names)
        if (found or not new) and look(hand, exact.name):
            copy_columns(hand, exact.name, found, names, new)
    copy_constraints(source, hand, exact.name, new)
    later = touching(source, exact.name, Span(exact.exact_at, source.log.current()))
    if any(entry.keys.kind in NAMING for entry in later):
        raise Unavailable(f"{exact.name} was renamed, or made anew, while its facets were read", "", "It is read again")


def look(hand: HopContext, name: TableName) -> bool:
    """Whether the table is at the target, seen once."""
    if name not in hand.shown:
        there = hand.side.catalog.table(hand.at(name))
        hand.shown[name] = ShownTable(there) if there is not None else None
    return hand.shown[name] is not None


NAMING = frozenset(
    {
        EventKind.CREATE_TABLE,
        EventKind.DROP_TABLE,
        EventKind.RENAME_TABLE,
        EventKind.RENAME_PARTITION,
        EventKind.UNKNOWN,
    }
)


def copy_columns(
    hand: HopContext, table: TableName, found: Mapping[str, Statistics], names: Sequence[str], new: bool
) -> None:
    """All column statistics of the table (`""`) or of partitions."""
    there = {} if new else statistics_there(hand, table, names)
    some = [name for name in names if found.get(name) or there.get(name)]
    changes = {name: {**dict.fromkeys(there.get(name, {})), **found.get(name, {})} for name in some}
    if partitions := [name for name in some if name]:
        hand.seen(table).partitions = dict(hand.side.catalog.partitions(hand.at(table), partitions))
    write_statistics(hand, table, {}, {}, write_columns(hand, table, changes, there))


def copy_constraints(source: SourceSide, hand: HopContext, table: TableName, new: bool) -> None:
    """All constraints of the table, and the foreign keys of others that waited for it."""
    catalog, admission = hand.side.catalog, hand.side.admission
    there = {} if new else by_name(catalog.constraints(hand.at(table)))
    found = by_name(source.catalog.constraints(table))
    write_constraints(hand, table, {**dict.fromkeys(there), **found}, there)
    others: dict[TableName, list[ForeignKey]] = {}
    for row in source.catalog.foreign_keys_to(table):
        others.setdefault(table_name(row.database, row.table), []).append(row)
    for child, rows in others.items():
        if child != table and admission.takes(child) and catalog.table(admission.name_at_target(child)) is not None:
            shown = by_name(catalog.constraints(admission.name_at_target(child)))
            for name, key in by_name(rows).items():
                image = constraint_image(key, child, admission)
                if image is not None and name not in shown:
                    add_foreign_key(hand, image)
    add_waiting_keys(hand, table)


def no_files(data: Data) -> Listing:
    """Facets have none."""
    return Listing(data.location, ())


def compare_facets(
    catalog: CatalogReader, side: TargetSide, name: TableName, here: TableSide, there: TableSide
) -> list[Difference]:
    """Of a table that is at both sides, the partitions that are at both."""
    assert here.table is not None
    assert there.table is not None
    at = side.admission.name_at_target(name)
    columns = [[column.name for column in columns_of(table)] for table in (here.table, there.table)]
    found = compare_columns(
        name, "", here.table, catalog.table_statistics(name, columns[0]), side.catalog.table_statistics(at, columns[1])
    )
    both = [partition for partition in here.partitions if partition in there.partitions]
    for names in batches(both, AT_ONCE):
        ours = catalog.partition_statistics(name, columns[0], names)
        theirs = side.catalog.partition_statistics(at, columns[1], names)
        for partition in names:
            found += compare_columns(name, partition, here.table, ours.get(partition, {}), theirs.get(partition, {}))
    wanted, shown = by_name(catalog.constraints(name)), by_name(side.catalog.constraints(at))
    for constraint in sorted(wanted.keys() | shown.keys()):
        image = constraint_image(wanted[constraint], name, side.admission) if constraint in wanted else None
        if image is not None and constraint not in shown and not stands(side.catalog, image):
            continue
        found += compare_constraint(name, constraint, image, shown.get(constraint))
    return found


def stands(catalog: CatalogReader, constraint: Rows) -> bool:
    """Whether a constraint can be at the target: a foreign key not without the key that it points to."""
    return not isinstance(constraint[0], ForeignKey) or has_key(catalog, constraint)
