"""Column statistics and constraints: the changes that events made, their image at a target, and the differences.

Facets make no state (docs/glossary.md): the newest event that names a facet decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal as Number
from typing import Any

from calque.core.events import decode
from calque.core.images.compare import Difference, DifferenceKind
from calque.core.policy.admit import Admission
from calque.model.facets import (
    ENGINE,
    FLAGS,
    AnalyzedColumns,
    Check,
    ColumnStatistics,
    Constraint,
    Decimal,
    DefaultValue,
    ForeignKey,
    Moment,
    NotNull,
    PrimaryKey,
    Statistics,
    UniqueKey,
)
from calque.model.hive import Partition, Table
from calque.model.journal import Event
from calque.model.names import TableName, table_name
from calque.model.plan import FacetEvent

ADDED: Mapping[str, tuple[type[Constraint], str]] = {
    "ADD_PRIMARYKEY": (PrimaryKey, "primaryKeyListJson"),
    "ADD_FOREIGNKEY": (ForeignKey, "foreignKeyListJson"),
    "ADD_UNIQUECONSTRAINT": (UniqueKey, "uniqueConstraintListJson"),
    "ADD_NOTNULLCONSTRAINT": (NotNull, "notNullConstraintListJson"),
    "ADD_DEFAULTCONSTRAINT": (DefaultValue, "defaultConstraintListJson"),
    "ADD_CHECKCONSTRAINT": (Check, "checkConstraintListJson"),
}
"""The kind of constraint, and the field of the message that lists its rows, by event type."""

Rows = tuple[Constraint, ...]


@dataclass(slots=True)
class Changes:
    """The changes to make to a table's facets, by the source's names. Facets that are not named stay; a None removes
    one.

    `constraints` are by name, `statistics` by partition (`""`: the table) and column. `parameters` are the source's, by
    partition, for objects of which a change of column statistics is the newest event that wrote parameters.
    """

    constraints: dict[str, Rows | None] = field(default_factory=dict)
    statistics: dict[str, dict[str, ColumnStatistics | None]] = field(default_factory=dict)
    parameters: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def note(self, facet: FacetEvent, event: Event) -> None:
        """Take up the next event. Raises `Undecodable`."""
        kind, partition = event.event_type, facet.partition
        if kind in ADDED:
            self.constraints |= by_name(added(event))
        elif kind == "DROP_CONSTRAINT":
            self.constraints[decode.string_at(decode.fields(event), "constraintName").lower()] = None
        elif kind.startswith("UPDATE_"):
            message = decode.fields(event)
            analyzed = decode.thrift_object(AnalyzedColumns, decode.string_at(message, "colStatsJson"))
            if (analyzed.engine or ENGINE) == ENGINE:
                columns = self.statistics.setdefault(partition, {})
                columns.update({row.column.lower(): row for row in analyzed.columns})
                parameters = message.get("parameters")
                if facet.newest and type(parameters) is dict:
                    self.parameters[partition] = parameters
        else:
            message = decode.fields(event)
            column = decode.string_at(message, "colName").lower()
            if (message.get("engine") or ENGINE) == ENGINE:
                self.statistics.setdefault(partition, {})[column] = None


def added(event: Event) -> Iterator[Constraint]:
    """Yield the rows of constraints that an event among `ADDED` lists. Raises `Undecodable`."""
    kind, holder = ADDED[event.event_type]
    for row in decode.embedded_list(decode.fields(event), holder):
        yield decode.thrift_object(kind, row)


def by_name(rows: Iterable[Constraint]) -> dict[str, Rows]:
    """Return the rows of each constraint by its name, in the order of its columns. Names are lower-case, as metastores
    keep them."""
    rows_by_name: dict[str, list[Constraint]] = {}
    for row in rows:
        rows_by_name.setdefault((row.name or "").lower(), []).append(row)
    return {name: tuple(sorted(rows, key=position)) for name, rows in rows_by_name.items()}


def position(row: Constraint) -> tuple[int, str]:
    return getattr(row, "position", None) or 0, row.column or ""


def constraint_image(rows: Rows, child: TableName, admission: Admission) -> Rows | None:
    """Return the rows of a constraint as the target has them, on the table that the source calls `child` now. None for
    a foreign key to a table that the policy does not take."""
    images = []
    for row in rows:
        child_at_target = admission.name_at_target(child)
        image: Constraint = replace(row, database=child_at_target.database, table=child_at_target.table, catalog="hive")
        if isinstance(image, ForeignKey):
            own = image.parent == table_name(row.database, row.table)
            parent = child if own else image.parent
            if not admission.takes(parent):
                return None
            parent_at_target = admission.name_at_target(parent)
            image = replace(image, parent_database=parent_at_target.database, parent_table=parent_at_target.table)
        images.append(image)
    return tuple(images)


def same_constraint(one: Rows, other: Rows) -> bool:
    """Tell whether two constraints are equal, but for the case of names."""
    return list(map(essence_of_row, one)) == list(map(essence_of_row, other))


def essence_of_row(row: Constraint) -> tuple[object, ...]:
    values = ((item.name, getattr(row, item.name)) for item in fields(row) if item.name != "catalog")
    return (
        type(row),
        *(
            value.lower() if isinstance(value, str) and name not in ("value", "expression") else value or None
            for name, value in values
        ),
    )


def of_columns(statistics: Statistics, thing: Table | Partition) -> Statistics:
    """Return the statistics of columns that the object has, with the type that they have there."""
    types = {column.name.lower(): column.type.lower() for column in columns_of(thing)}
    return {column: row for column, row in statistics.items() if types.get(column) == row.type.lower()}


def columns_of(thing: Table | Partition) -> Sequence[Any]:
    return (thing.storage.columns if thing.storage else None) or ()


def same_statistics(one: ColumnStatistics, other: ColumnStatistics) -> bool:
    """Tell whether the values are equal (see `plain`) in any spelling. Sketches are not compared, because many servers
    do not give them out."""
    return essence(one) == essence(other)


def essence(row: ColumnStatistics) -> tuple[tuple[str, object], ...]:
    counted = next((kind for item in fields(row.counted) if (kind := getattr(row.counted, item.name))), None)
    if counted is None:
        return ()
    names = (item.name for item in fields(counted) if item.name not in ("bit_vectors", "histogram"))
    return tuple((name, plain(getattr(counted, name))) for name in names)


def plain(value: object) -> object:
    """Return a form that is equal only for values of equal bits: a float's text, in which NaN equals itself and -0.0 is
    not 0.0, as in Java's `Double.equals`; a decimal with all its digits, which arithmetic of `Number` would round."""
    match value:
        case float():
            return repr(value)
        case Decimal(unscaled, scale):
            sign, digits, _ = Number(int.from_bytes(unscaled, "big", signed=True)).as_tuple()
            return Number((sign, digits, -scale))
        case Moment(since_epoch):
            return since_epoch
        case _:
            return value


# Differences


def compare_columns(
    name: TableName, partition: str, source: Table, source_statistics: Statistics, target_statistics: Statistics
) -> list[Difference]:
    """Return the differences in statistics of the columns that the source's table has, with the type that it has: those
    of other columns are not carried over. Statistics that only the target has are differences, too."""
    expected = of_columns(source_statistics, source)
    return [
        Difference(
            name,
            partition,
            DifferenceKind.DEFINITION,
            f"statistics of column {column}",
            text_of_statistics(expected.get(column)),
            text_of_statistics(target_statistics.get(column)),
        )
        for column in sorted(expected.keys() | (target_statistics.keys() - source_statistics.keys()))
        if column not in expected
        or column not in target_statistics
        or not same_statistics(expected[column], target_statistics[column])
    ]


def compare_constraint(
    name: TableName, constraint: str, source_rows: Rows | None, target_rows: Rows | None
) -> list[Difference]:
    """Return the difference in one constraint, which one of the sides may lack; none where both are equal."""
    if source_rows == target_rows or (
        source_rows is not None and target_rows is not None and same_constraint(source_rows, target_rows)
    ):
        return []
    what, source, target = f"constraint {constraint}", text_of_constraint(source_rows), text_of_constraint(target_rows)
    return [Difference(name, "", DifferenceKind.DEFINITION, what, source, target)]


def text_of_statistics(row: ColumnStatistics | None) -> str | None:
    return None if row is None else ", ".join(f"{name} {value}" for name, value in essence(row) if value is not None)


def text_of_constraint(rows: Rows | None) -> str | None:
    """Return the text of a constraint, one line with its kind, its columns, what it refers to and the flags that are
    set, so that two texts differ where two constraints do. None for no constraint."""
    if rows is None:
        return None
    kind, columns = type(rows[0]).__name__, ", ".join(str(row.column) for row in rows)
    values = [str(value) for item in fields(rows[0]) if (value := getattr(rows[0], item.name)) and item.name in SAID]
    flags = [flag for flag in FLAGS if getattr(rows[0], flag)]
    return " ".join([f"{kind} ({columns})", *values, *flags])


SAID = frozenset({"parent_database", "parent_table", "parent_key", "value", "expression"})
"""Fields of a constraint whose values `text_of_constraint` has beside its columns and flags."""
