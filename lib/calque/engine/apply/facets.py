"""The facets, column statistics and constraints, written when their objects are there: what differs, and nothing else.

A facet that the target does not take is left out and logged: no table is set aside for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ParamSpec

from calque.core.states.facets import (
    Changes,
    Rows,
    by_name,
    columns_of,
    constraint_image,
    of_columns,
    same_constraint,
    same_statistics,
)
from calque.engine.apply.context import HopContext
from calque.engine.apply.statistics import write_statistics
from calque.errors import Refused
from calque.model.facets import CONSTRAINTS, ColumnStatistics, ForeignKey, PrimaryKey, Statistics, UniqueKey
from calque.model.names import TableName
from calque.model.plan import Part, Version
from calque.ports import CatalogReader, Conflict

LOG = logging.getLogger(__name__)
P = ParamSpec("P")
Columns = Mapping[str, ColumnStatistics | None]


def write_facets(context: HopContext, table: TableName, changes: Changes, versions: Mapping[str, Version]) -> None:
    """Write all facets of the table, if it is there. `versions` are newer than what the hops wrote, and only their
    basic statistics are taken."""
    if context.shown.get(table) is None:
        return
    target_statistics = statistics_at_target(context, table, changes.statistics)
    written = write_columns(context, table, changes.statistics, target_statistics)
    write_statistics(context, table, versions, changes.parameters, written)
    if changes.constraints:
        write_constraints(
            context,
            table,
            changes.constraints,
            by_name(context.side.catalog.constraints(context.name_at_target(table))),
        )


# Column statistics


def write_columns(
    context: HopContext, table: TableName, changes: Mapping[str, Columns], target_statistics: Mapping[str, Statistics]
) -> dict[str, set[str]]:
    """Write statistics of the table (`""`) and of partitions, as far as they are shown, where they differ from
    `target_statistics`; a column with None is dropped. Return the columns that were written or dropped, by object."""
    shown, target_name, catalog = context.shown_table(table), context.name_at_target(table), context.side.catalog
    shown_changes = {name: columns for name, columns in changes.items() if not name or name in shown.partitions}
    new_statistics: dict[str, Statistics] = {}
    written: dict[str, set[str]] = {}
    for name, columns in shown_changes.items():
        old = target_statistics.get(name, {})
        usable = of_columns({column: row for column, row in columns.items() if row is not None}, shown.table)
        differing = {
            column: row for column, row in usable.items() if column not in old or not same_statistics(old[column], row)
        }
        dropped_columns = {column for column, row in columns.items() if row is None and column in old}
        for column in sorted(dropped_columns):
            attempt(context, catalog.drop_statistics, target_name, name, column)
        if differing:
            new_statistics[name] = differing
        if differing or dropped_columns:
            written[name] = dropped_columns | differing.keys()
    if "" in new_statistics:
        context.call(catalog.put_statistics, target_name, {"": new_statistics.pop("")})
    if new_statistics:
        context.call(catalog.put_statistics, target_name, new_statistics)
    return written


def statistics_at_target(context: HopContext, table: TableName, names: Iterable[str]) -> dict[str, Statistics]:
    """Return the column statistics that the target has of the table (`""`) and of partitions."""
    target_name, catalog = context.name_at_target(table), context.side.catalog
    columns = [column.name for column in columns_of(context.shown_table(table).table)]
    partitions = sorted(set(names) - {""})
    statistics = dict(catalog.partition_statistics(target_name, columns, partitions)) if partitions else {}
    if "" in names:
        statistics[""] = catalog.table_statistics(target_name, columns)
    return statistics


# Constraints


def write_constraints(
    context: HopContext, table: TableName, changes: Mapping[str, Rows | None], target_constraints: Mapping[str, Rows]
) -> None:
    """Drop the constraints that go or differ from `target_constraints`, then add the new ones."""
    target_name, catalog = context.name_at_target(table), context.side.catalog
    new = []
    for name, rows in changes.items():
        image = constraint_image(rows, table, context.side.admission) if rows is not None else None
        context.side.waiting_foreign_keys.withdraw(target_name, name)
        if name in target_constraints and image is not None and same_constraint(image, target_constraints[name]):
            continue
        if name in target_constraints:
            attempt(context, catalog.drop_constraint, target_name, name)
        if image is not None:
            new.append(image)
    add_constraints(context, new)


def add_constraints(context: HopContext, constraints: Iterable[Rows]) -> None:
    """Add the constraints of each kind at once, or one by one when that is refused; foreign keys come last."""
    all_constraints = list(constraints)
    for kind in CONSTRAINTS:
        of_kind = [rows for rows in all_constraints if isinstance(rows[0], kind)]
        if kind is ForeignKey:
            for rows in of_kind:
                add_foreign_key(context, rows)
        elif of_kind and not add(context, [row for rows in of_kind for row in rows]) and len(of_kind) > 1:
            for rows in of_kind:
                add(context, rows)


def add_foreign_key(context: HopContext, rows: Rows) -> None:
    """Add the foreign key now, or keep it until the key that it points to is there."""
    key, name = rows[0], (rows[0].name or "").lower()
    assert isinstance(key, ForeignKey)
    child = TableName(key.database, key.table)
    context.side.waiting_foreign_keys.put(child, name, key.parent, rows)
    if has_key(context.side.catalog, rows) and add(context, rows):
        context.side.waiting_foreign_keys.withdraw(child, name)


def add_waiting_keys(context: HopContext, table: TableName) -> None:
    """Add the foreign keys that waited for the table's key."""
    target_name = context.name_at_target(table)
    for (child, name), rows in context.side.waiting_foreign_keys.of(target_name).items():
        if has_key(context.side.catalog, rows):
            add(context, rows)
            context.side.waiting_foreign_keys.withdraw(child, name)


def has_key(catalog: CatalogReader, rows: Rows) -> bool:
    """Tell whether the parent table has the columns that a foreign key points to among its keys."""
    parent_columns = {(row.parent, row.parent_column) for row in rows if isinstance(row, ForeignKey)}
    parent = next(iter(parent_columns))[0]
    keys = [row for row in catalog.constraints(parent) if isinstance(row, PrimaryKey | UniqueKey)]
    return parent_columns <= {(parent, row.column) for row in keys}


def add(context: HopContext, rows: Iterable[object]) -> bool:
    return attempt(context, context.side.catalog.add_constraints, list(rows))  # type: ignore[arg-type]


def attempt(context: HopContext, effect: Callable[P, None], /, *arguments: P.args, **named: P.kwargs) -> bool:
    """Make the call and tell whether the target took it; a call that it refused is logged."""
    try:
        context.call(effect, *arguments, **named)
    except (Conflict, Refused) as error:
        LOG.warning("%s: a facet is left out: %s", context.side.policy.target, error)
        return False
    return True


# Partitions and tables that are made anew


def statistics_of_others(
    context: HopContext, table: TableName, parts: Iterable[tuple[str, Part]]
) -> dict[str, Columns]:
    """Return the changes of column statistics for partitions that come from others, or are others under the same name:
    a partition gets those of its old name (`Part.lineage`). Read before the operation, written after it by
    `write_kept`."""
    shown = context.shown_table(table).partitions
    old_names = {name: part.lineage for name, part in parts if part.lineage != name}
    shown_names = {one for pair in old_names.items() for one in pair if one in shown}
    target_statistics = statistics_at_target(context, table, shown_names) if shown_names else {}
    changes = {
        name: {**dict.fromkeys(target_statistics.get(name, {})), **target_statistics.get(old, {})}
        for name, old in old_names.items()
    }
    return {name: columns for name, columns in changes.items() if columns}


def write_kept(context: HopContext, table: TableName, statistics: Mapping[str, Columns]) -> None:
    """Write statistics that were read before the operation that made partitions others."""
    if statistics:
        target_statistics = statistics_at_target(context, table, statistics)
        write_statistics(context, table, {}, {}, write_columns(context, table, statistics, target_statistics))


@dataclass(frozen=True, slots=True)
class FacetsAtTarget:
    """The facets of a table at the target; `keys` are foreign keys of others that point to it."""

    name: TableName
    constraints: tuple[Rows, ...]
    keys: tuple[Rows, ...]
    statistics: Mapping[str, Statistics]


def kept_facets(context: HopContext, table: TableName, partitions: Iterable[str]) -> FacetsAtTarget:
    """Return the facets that the target has of the table before it is built anew."""
    target_name, catalog = context.name_at_target(table), context.side.catalog
    others = [row for row in catalog.foreign_keys_to(target_name) if (row.database, row.table) != target_name]
    by_child = {(row.database, row.table) for row in others}
    return FacetsAtTarget(
        target_name,
        tuple(by_name(catalog.constraints(target_name)).values()),
        tuple(
            rows
            for child in sorted(by_child)
            for rows in by_name(row for row in others if (row.database, row.table) == child).values()
        ),
        statistics_at_target(context, table, {"", *partitions}),
    )


def restore_facets(context: HopContext, table: TableName, before: FacetsAtTarget, names: Mapping[str, str]) -> None:
    """Write the facets that were kept to the table that was built; `names` are the names that its partitions had
    before."""
    target_name = context.name_at_target(table)
    statistics = {name: columns for name, was in {"": "", **names}.items() if (columns := before.statistics.get(was))}
    write_kept(context, table, statistics)
    own = [
        tuple(replace(row, database=target_name.database, table=target_name.table) for row in rows)
        for rows in before.constraints
    ]
    add_constraints(context, [pointing(rows, before.name, target_name) for rows in (*own, *before.keys)])


def pointing(rows: Rows, old_name: TableName, new_name: TableName) -> Rows:
    """Return the rows with the table's new name in place of the old one where it is the parent."""
    return tuple(
        replace(row, parent_database=new_name.database, parent_table=new_name.table)
        if isinstance(row, ForeignKey) and row.parent == old_name
        else row
        for row in rows
    )
