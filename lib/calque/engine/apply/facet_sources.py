"""The sources of facets, which are written beside the states: the events of a window, or a table that was read
exactly."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from calque.core.events.decode import Undecodable
from calque.core.events.later_names import LaterNames
from calque.core.images.compare import Difference, TableSide
from calque.core.images.table_layout import committed_format
from calque.core.plan.limits import batches
from calque.core.states.facets import (
    Changes,
    Rows,
    by_name,
    columns_of,
    compare_columns,
    compare_constraint,
    constraint_image,
)
from calque.engine.apply.context import AppliedChanges, HopContext
from calque.engine.apply.definitions import ReadImages
from calque.engine.apply.facets import (
    add_foreign_key,
    add_waiting_keys,
    has_key,
    statistics_at_target,
    write_columns,
    write_constraints,
)
from calque.engine.apply.statistics import write_statistics
from calque.engine.sides.journal_reads import entries_in, messages
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.exact_read import ExactTable
from calque.engine.target.observe import ShownTable
from calque.model.facets import ForeignKey, Statistics
from calque.model.files import Listing
from calque.model.hive import is_view
from calque.model.names import EventId, Span, TableName, table_name
from calque.model.plan import CreateTable, Data, FacetEvent, GroupPlan, HiddenBuild
from calque.ports import CatalogReader, Journal

LOG = logging.getLogger(__name__)
AT_ONCE = 1000
"""Partitions that are held at a time."""


def changes_of(journal: Journal, events: Iterable[FacetEvent]) -> dict[TableName, Changes]:
    """Return what the events change of each table's facets. A message that can't be read is passed over with a warning,
    because facets are no state."""
    changes: dict[TableName, Changes] = {}
    by_event: dict[EventId, list[FacetEvent]] = {}
    for facet in events:
        by_event.setdefault(facet.event_id, []).append(facet)
    for event in messages(journal, by_event):
        for facet in by_event[event.event_id]:
            try:
                changes.setdefault(facet.table, Changes()).note(facet, event)
            except Undecodable as error:
                LOG.warning("%s: event %d is passed over: %s", facet.table, facet.event_id, error)
    return changes


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

    They are read later than the table. Changes that events make meanwhile are written again by windows. An object that
    got another name meanwhile is read by that name. Raises `Unavailable`.
    """
    if exact.table is None or is_view(exact.table):
        return
    context = HopContext(side, ReadImages(exact), no_files, {}, applied)
    if side.wanted_format(exact.table) and has_log(context, exact.name):
        return
    new = any(isinstance(hop.operation, CreateTable | HiddenBuild) for hop in landing.hops)
    names: Sequence[str] = list(exact.partitions) if partitions is None else partitions
    source_names, upto = LaterNames(exact.name), exact.exact_at
    while True:
        copy_facets_of(source, context, exact, source_names, names, new)
        span = Span(upto, source.log.current())
        later_names, upto, new = source_names.after(entries_in(source, span)), span.upto, False
        if later_names == source_names:
            return
        if later_names.table == source_names.table:
            names = [name for name in names if later_names.partition(name) != source_names.partition(name)]
        source_names = later_names


def copy_facets_of(
    source: SourceSide,
    context: HopContext,
    exact: ExactTable,
    source_names: LaterNames,
    partitions: Sequence[str],
    new: bool,
) -> None:
    """Write the facets of the table, and of `partitions`, as they are called at the source now (`source_names`). `new`
    says that the table has just been made, so that it has no facets at the target yet."""
    assert exact.table is not None
    name, source_name = exact.name, source_names.table
    columns = [column.name for column in columns_of(exact.table)]
    of_table = source.catalog.table_statistics(source_name, columns) if source_name else {}
    if of_table or not new:
        if not look(context, name):
            return
        copy_columns(context, name, {"": of_table}, [""], new)
    for names in batches(partitions, AT_ONCE):
        first_names = {now: first for first in names if (now := source_names.partition(first)) is not None}
        statistics: Mapping[str, Statistics] = {}
        if source_name and first_names:
            read = source.catalog.partition_statistics(source_name, columns, list(first_names))
            statistics = {first_names[now]: rows for now, rows in read.items()}
        if (statistics or not new) and look(context, name):
            copy_columns(context, name, statistics, names, new)
    copy_constraints(source, context, name, source_name, new)


def look(context: HopContext, name: TableName) -> bool:
    """Tell whether the table is at the target, which is asked once."""
    if name not in context.shown:
        target_table = context.side.catalog.table(context.name_at_target(name))
        context.shown[name] = ShownTable(target_table) if target_table is not None else None
    return context.shown[name] is not None


def has_log(context: HopContext, name: TableName) -> bool:
    """Tell whether the table has a log of commits at the target. Such a table has statistics of its own, and no
    constraints."""
    return look(context, name) and bool(committed_format(context.shown_table(name).table))


def copy_columns(
    context: HopContext, table: TableName, source_statistics: Mapping[str, Statistics], names: Sequence[str], new: bool
) -> None:
    """Write all column statistics of the table (`""`) or of partitions, and drop those that the source does not
    have."""
    target_statistics = {} if new else statistics_at_target(context, table, names)
    names_with_statistics = [name for name in names if source_statistics.get(name) or target_statistics.get(name)]
    changes = {
        name: {**dict.fromkeys(target_statistics.get(name, {})), **source_statistics.get(name, {})}
        for name in names_with_statistics
    }
    if partitions := [name for name in names_with_statistics if name]:
        context.shown_table(table).partitions = dict(
            context.side.catalog.partitions(context.name_at_target(table), partitions)
        )
    write_statistics(context, table, {}, {}, write_columns(context, table, changes, target_statistics))


def copy_constraints(
    source: SourceSide, context: HopContext, table: TableName, source_name: TableName | None, new: bool
) -> None:
    """Write all constraints of the table, and the foreign keys of others that waited for it; `source_name` is what it
    is called at the source now."""
    catalog, admission = context.side.catalog, context.side.admission
    target_constraints = {} if new else by_name(catalog.constraints(context.name_at_target(table)))
    source_constraints = by_name(source.catalog.constraints(source_name)) if source_name else {}
    write_constraints(context, table, {**dict.fromkeys(target_constraints), **source_constraints}, target_constraints)
    others: dict[TableName, list[ForeignKey]] = {}
    for row in source.catalog.foreign_keys_to(source_name) if source_name else ():
        others.setdefault(table_name(row.database, row.table), []).append(row)
    for child, rows in others.items():
        if (
            child != source_name
            and admission.takes(child)
            and catalog.table(admission.name_at_target(child)) is not None
        ):
            shown = by_name(catalog.constraints(admission.name_at_target(child)))
            for name, key in by_name(rows).items():
                image = constraint_image(key, child, admission)
                if image is not None and name not in shown:
                    add_foreign_key(context, image)
    add_waiting_keys(context, table)


def no_files(data: Data) -> Listing:
    """Return an empty listing, because facets have no files."""
    return Listing(data.location, ())


def compare_facets(
    catalog: CatalogReader, side: TargetSide, name: TableName, source_table: TableSide, target_table: TableSide
) -> list[Difference]:
    """Return the differences in facets of a table that is at both sides, and of the partitions that are at both. A
    table that has a log of commits at the target has none."""
    assert source_table.table is not None
    assert target_table.table is not None
    if committed_format(target_table.table):
        return []
    target_name = side.admission.name_at_target(name)
    columns = [[column.name for column in columns_of(table)] for table in (source_table.table, target_table.table)]
    differences = compare_columns(
        name,
        "",
        source_table.table,
        catalog.table_statistics(name, columns[0]),
        side.catalog.table_statistics(target_name, columns[1]),
    )
    common_partitions = [partition for partition in source_table.partitions if partition in target_table.partitions]
    for names in batches(common_partitions, AT_ONCE):
        source_statistics = catalog.partition_statistics(name, columns[0], names)
        target_statistics = side.catalog.partition_statistics(target_name, columns[1], names)
        for partition in names:
            differences += compare_columns(
                name,
                partition,
                source_table.table,
                source_statistics.get(partition, {}),
                target_statistics.get(partition, {}),
            )
    source_constraints = by_name(catalog.constraints(name))
    target_constraints = by_name(side.catalog.constraints(target_name))
    for constraint in sorted(source_constraints.keys() | target_constraints.keys()):
        image = (
            constraint_image(source_constraints[constraint], name, side.admission)
            if constraint in source_constraints
            else None
        )
        if image is not None and constraint not in target_constraints and not stands(side.catalog, image):
            continue
        differences += compare_constraint(name, constraint, image, target_constraints.get(constraint))
    return differences


def stands(catalog: CatalogReader, constraint: Rows) -> bool:
    """Tell whether a constraint can be at the target: a foreign key can't without the key that it points to."""
    return not isinstance(constraint[0], ForeignKey) or has_key(catalog, constraint)
