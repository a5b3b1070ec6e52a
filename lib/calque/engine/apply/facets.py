"""Column statistics and constraints, written when their objects are there: what differs, and nothing else (design §2).

What a target does not take of them is left out and logged: no table is set aside for a facet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ParamSpec

from calque.core.facets import (
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


def write_facets(hand: HopContext, table: TableName, changes: Changes, versions: Mapping[str, Version]) -> None:
    """All facets of the table, if it is there. `versions` are newer than what the hops wrote, and only their basic
    statistics are taken."""
    if hand.shown.get(table) is None:
        return
    there = statistics_there(hand, table, changes.statistics)
    written = write_columns(hand, table, changes.statistics, there)
    write_statistics(hand, table, versions, changes.parameters, written)
    if changes.constraints:
        write_constraints(hand, table, changes.constraints, by_name(hand.side.catalog.constraints(hand.at(table))))


# Column statistics


def write_columns(
    hand: HopContext, table: TableName, changes: Mapping[str, Columns], there: Mapping[str, Statistics]
) -> dict[str, set[str]]:
    """Statistics of the table (`""`) and of partitions, as far as they are shown, where they are not what is `there`.
    The columns that were written, or that went, by object."""
    shown, at, catalog = hand.seen(table), hand.at(table), hand.side.catalog
    wanted = {name: columns for name, columns in changes.items() if not name or name in shown.partitions}
    put: dict[str, Statistics] = {}
    written: dict[str, set[str]] = {}
    for name, columns in wanted.items():
        old = there.get(name, {})
        usable = of_columns({column: row for column, row in columns.items() if row is not None}, shown.table)
        differing = {
            column: row for column, row in usable.items() if column not in old or not same_statistics(old[column], row)
        }
        gone = {column for column, row in columns.items() if row is None and column in old}
        for column in sorted(gone):
            attempt(hand, catalog.drop_statistics, at, name, column)
        if differing:
            put[name] = differing
        if differing or gone:
            written[name] = gone | differing.keys()
    if "" in put:
        hand.call(catalog.put_statistics, at, {"": put.pop("")})
    if put:
        hand.call(catalog.put_statistics, at, put)
    return written


def statistics_there(hand: HopContext, table: TableName, names: Iterable[str]) -> dict[str, Statistics]:
    """What the target has of the table (`""`) and of partitions."""
    at, catalog = hand.at(table), hand.side.catalog
    columns = [column.name for column in columns_of(hand.seen(table).table)]
    partitions = sorted(set(names) - {""})
    found = dict(catalog.partition_statistics(at, columns, partitions)) if partitions else {}
    if "" in names:
        found[""] = catalog.table_statistics(at, columns)
    return found


# Constraints


def write_constraints(
    hand: HopContext, table: TableName, changes: Mapping[str, Rows | None], there: Mapping[str, Rows]
) -> None:
    """Drop what is to go or is another than is `there`, then add."""
    at, catalog = hand.at(table), hand.side.catalog
    new = []
    for name, rows in changes.items():
        image = constraint_image(rows, table, hand.side.admission) if rows is not None else None
        hand.side.keys.withdraw(at, name)
        if name in there and image is not None and same_constraint(image, there[name]):
            continue
        if name in there:
            attempt(hand, catalog.drop_constraint, at, name)
        if image is not None:
            new.append(image)
    add_constraints(hand, new)


def add_constraints(hand: HopContext, constraints: Iterable[Rows]) -> None:
    """Each kind at once, or one by one when that is refused; foreign keys last."""
    every = list(constraints)
    for kind in CONSTRAINTS:
        of_kind = [rows for rows in every if isinstance(rows[0], kind)]
        if kind is ForeignKey:
            for rows in of_kind:
                add_foreign_key(hand, rows)
        elif of_kind and not add(hand, [row for rows in of_kind for row in rows]) and len(of_kind) > 1:
            for rows in of_kind:
                add(hand, rows)


def add_foreign_key(hand: HopContext, rows: Rows) -> None:
    """Now, or when the key that it points to is there."""
    key, name = rows[0], (rows[0].name or "").lower()
    assert isinstance(key, ForeignKey)
    child = TableName(key.database, key.table)
    hand.side.keys.put(child, name, key.parent, rows)
    if has_key(hand.side.catalog, rows) and add(hand, rows):
        hand.side.keys.withdraw(child, name)


def add_waiting_keys(hand: HopContext, table: TableName) -> None:
    """Foreign keys that waited for the table's key."""
    at = hand.at(table)
    for (child, name), rows in hand.side.keys.of(at).items():
        if has_key(hand.side.catalog, rows):
            add(hand, rows)
            hand.side.keys.withdraw(child, name)


def has_key(catalog: CatalogReader, rows: Rows) -> bool:
    """Whether the parent has the columns that a foreign key points to among its keys."""
    wanted = {(row.parent, row.parent_column) for row in rows if isinstance(row, ForeignKey)}
    parent = next(iter(wanted))[0]
    keys = [row for row in catalog.constraints(parent) if isinstance(row, PrimaryKey | UniqueKey)]
    return wanted <= {(parent, row.column) for row in keys}


def add(hand: HopContext, rows: Iterable[object]) -> bool:
    return attempt(hand, hand.side.catalog.add_constraints, list(rows))  # type: ignore[arg-type]


def attempt(hand: HopContext, effect: Callable[P, None], /, *arguments: P.args, **named: P.kwargs) -> bool:
    """Whether the target took it."""
    try:
        hand.call(effect, *arguments, **named)
    except (Conflict, Refused) as error:
        LOG.warning("%s: a facet is left out: %s", hand.side.policy.target, error)
        return False
    return True


# Partitions and tables that are made anew


def statistics_of_others(hand: HopContext, table: TableName, parts: Iterable[tuple[str, Part]]) -> dict[str, Columns]:
    """What is to become of the statistics of partitions that come from others, or are others under the same name."""
    shown = hand.seen(table).partitions
    was = {name: part.lineage for name, part in parts if part.lineage != name}
    known = {one for pair in was.items() for one in pair if one in shown}
    there = statistics_there(hand, table, known) if known else {}
    changes = {name: {**dict.fromkeys(there.get(name, {})), **there.get(old, {})} for name, old in was.items()}
    return {name: columns for name, columns in changes.items() if columns}


def write_kept(hand: HopContext, table: TableName, statistics: Mapping[str, Columns]) -> None:
    """After the operation that made them others."""
    if statistics:
        there = statistics_there(hand, table, statistics)
        write_statistics(hand, table, {}, {}, write_columns(hand, table, statistics, there))


@dataclass(frozen=True, slots=True)
class FacetsAtTarget:
    """A table's facets at the target; `keys` are foreign keys of others that point to it."""

    at: TableName
    constraints: tuple[Rows, ...]
    keys: tuple[Rows, ...]
    statistics: Mapping[str, Statistics]


def kept_facets(hand: HopContext, table: TableName, partitions: Iterable[str]) -> FacetsAtTarget:
    """What the target has of the table before it is built anew."""
    at, catalog = hand.at(table), hand.side.catalog
    others = [row for row in catalog.foreign_keys_to(at) if (row.database, row.table) != at]
    by_child = {(row.database, row.table) for row in others}
    return FacetsAtTarget(
        at,
        tuple(by_name(catalog.constraints(at)).values()),
        tuple(
            rows
            for child in sorted(by_child)
            for rows in by_name(row for row in others if (row.database, row.table) == child).values()
        ),
        statistics_there(hand, table, {"", *partitions}),
    )


def restore_facets(hand: HopContext, table: TableName, before: FacetsAtTarget, names: Mapping[str, str]) -> None:
    """Write what was kept to the table that was built; `names` are those that its partitions had before."""
    at = hand.at(table)
    statistics = {name: found for name, was in {"": "", **names}.items() if (found := before.statistics.get(was))}
    write_kept(hand, table, statistics)
    own = [tuple(replace(row, database=at.database, table=at.table) for row in rows) for rows in before.constraints]
    add_constraints(hand, [pointing(rows, before.at, at) for rows in (*own, *before.keys)])


def pointing(rows: Rows, was: TableName, at: TableName) -> Rows:
    """Rows in which the table's new name stands for the old one where it is the parent."""
    return tuple(
        replace(row, parent_database=at.database, parent_table=at.table)
        if isinstance(row, ForeignKey) and row.parent == was
        else row
        for row in rows
    )
