"""Column statistics and constraints: facets of a table beside its definition, and the numbers of their Thrift fields.

A constraint of several columns is several rows of one name. The kinds of column statistics are a union on the wire:
exactly one field of `StatisticsCounts` is there. Source of the numbers: Hive's `hive_metastore.thrift`, 3.1 and 4.x.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from calque.model.hive import Kind, ListOf
from calque.model.names import TableName, table_name


@dataclass(frozen=True, slots=True)
class PrimaryKey:
    database: str = ""
    table: str = ""
    column: str | None = None
    position: int | None = None
    name: str | None = None
    enabled: bool | None = None
    validated: bool | None = None
    relied: bool | None = None
    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A row of a foreign key. `table` is the child, whose column points to a column of the parent."""

    parent_database: str = ""
    parent_table: str = ""
    parent_column: str | None = None
    database: str = ""
    table: str = ""
    column: str | None = None
    position: int | None = None
    update_rule: int | None = None
    delete_rule: int | None = None
    name: str | None = None
    parent_key: str | None = None
    enabled: bool | None = None
    validated: bool | None = None
    relied: bool | None = None
    catalog: str | None = None

    @property
    def parent(self) -> TableName:
        return table_name(self.parent_database, self.parent_table)


@dataclass(frozen=True, slots=True)
class UniqueKey:
    catalog: str | None = None
    database: str = ""
    table: str = ""
    column: str | None = None
    position: int | None = None
    name: str | None = None
    enabled: bool | None = None
    validated: bool | None = None
    relied: bool | None = None


@dataclass(frozen=True, slots=True)
class NotNull:
    catalog: str | None = None
    database: str = ""
    table: str = ""
    column: str | None = None
    name: str | None = None
    enabled: bool | None = None
    validated: bool | None = None
    relied: bool | None = None


@dataclass(frozen=True, slots=True)
class DefaultValue:
    catalog: str | None = None
    database: str = ""
    table: str = ""
    column: str | None = None
    value: str | None = None
    name: str | None = None
    enabled: bool | None = None
    validated: bool | None = None
    relied: bool | None = None


@dataclass(frozen=True, slots=True)
class Check:
    catalog: str | None = None
    database: str = ""
    table: str = ""
    column: str | None = None
    expression: str | None = None
    name: str | None = None
    enabled: bool | None = None
    validated: bool | None = None
    relied: bool | None = None


Constraint = PrimaryKey | ForeignKey | UniqueKey | NotNull | DefaultValue | Check
CONSTRAINTS: tuple[type[Constraint], ...] = (PrimaryKey, UniqueKey, NotNull, DefaultValue, Check, ForeignKey)
"""The kinds of constraints in the order in which they are to be added: a foreign key needs the key that it points
to."""


@dataclass(frozen=True, slots=True)
class Decimal:
    unscaled: bytes = b""
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """A date in days, or a timestamp in seconds, since the epoch."""

    since_epoch: int = 0


@dataclass(frozen=True, slots=True)
class Booleans:
    trues: int = 0
    falses: int = 0
    nulls: int = 0
    bit_vectors: bytes | None = None


@dataclass(frozen=True, slots=True)
class Longs:
    low: int | None = None
    high: int | None = None
    nulls: int = 0
    distinct: int = 0
    bit_vectors: bytes | None = None
    histogram: bytes | None = None


@dataclass(frozen=True, slots=True)
class Doubles:
    low: float | None = None
    high: float | None = None
    nulls: int = 0
    distinct: int = 0
    bit_vectors: bytes | None = None
    histogram: bytes | None = None


@dataclass(frozen=True, slots=True)
class Strings:
    longest: int = 0
    average: float = 0.0
    nulls: int = 0
    distinct: int = 0
    bit_vectors: bytes | None = None


@dataclass(frozen=True, slots=True)
class Binaries:
    longest: int = 0
    average: float = 0.0
    nulls: int = 0
    bit_vectors: bytes | None = None


@dataclass(frozen=True, slots=True)
class Decimals:
    low: Decimal | None = None
    high: Decimal | None = None
    nulls: int = 0
    distinct: int = 0
    bit_vectors: bytes | None = None
    histogram: bytes | None = None


@dataclass(frozen=True, slots=True)
class Moments:
    low: Moment | None = None
    high: Moment | None = None
    nulls: int = 0
    distinct: int = 0
    bit_vectors: bytes | None = None
    histogram: bytes | None = None


@dataclass(frozen=True, slots=True)
class StatisticsCounts:
    """The counts of one column: exactly one field is not None. 3.1 has no timestamps, which are `longs` there."""

    booleans: Booleans | None = None
    longs: Longs | None = None
    doubles: Doubles | None = None
    strings: Strings | None = None
    binaries: Binaries | None = None
    decimals: Decimals | None = None
    dates: Moments | None = None
    timestamps: Moments | None = None


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """The statistics of one column of a table, or of one of its partitions."""

    column: str = ""
    type: str = ""
    counted: StatisticsCounts = StatisticsCounts()


@dataclass(frozen=True, slots=True)
class AnalyzedObject:
    """The table or partition whose statistics an `AnalyzedColumns` has. `partition` is None for the table."""

    whole_table: bool = True
    database: str = ""
    table: str = ""
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class AnalyzedColumns:
    """The statistics of one table or partition, as they travel on the wire. Each engine has statistics of its own in a
    metastore."""

    of: AnalyzedObject = AnalyzedObject()
    columns: tuple[ColumnStatistics, ...] = ()
    engine: str | None = None


Statistics = Mapping[str, ColumnStatistics]
"""The statistics of one table or partition, by column."""

ENGINE = "hive"
"""The engine whose statistics are carried over."""

FLAGS = ("enabled", "validated", "relied")
RANGE = ((3, "nulls", "i64"), (4, "distinct", "i64"), (5, "bit_vectors", "binary"), (6, "histogram", "binary"))


def flags_from(number: int) -> tuple[tuple[int, str, Kind], ...]:
    return tuple((number + place, name, "bool") for place, name in enumerate(FLAGS))


FIELDS: Mapping[type, tuple[tuple[int, str, Kind], ...]] = MappingProxyType(
    {
        PrimaryKey: (
            (1, "database", "string"),
            (2, "table", "string"),
            (3, "column", "string"),
            (4, "position", "i32"),
            (5, "name", "string"),
            *flags_from(6),
            (9, "catalog", "string"),
        ),
        ForeignKey: (
            (1, "parent_database", "string"),
            (2, "parent_table", "string"),
            (3, "parent_column", "string"),
            (4, "database", "string"),
            (5, "table", "string"),
            (6, "column", "string"),
            (7, "position", "i32"),
            (8, "update_rule", "i32"),
            (9, "delete_rule", "i32"),
            (10, "name", "string"),
            (11, "parent_key", "string"),
            *flags_from(12),
            (15, "catalog", "string"),
        ),
        UniqueKey: (
            (1, "catalog", "string"),
            (2, "database", "string"),
            (3, "table", "string"),
            (4, "column", "string"),
            (5, "position", "i32"),
            (6, "name", "string"),
            *flags_from(7),
        ),
        NotNull: (
            (1, "catalog", "string"),
            (2, "database", "string"),
            (3, "table", "string"),
            (4, "column", "string"),
            (5, "name", "string"),
            *flags_from(6),
        ),
        DefaultValue: (
            (1, "catalog", "string"),
            (2, "database", "string"),
            (3, "table", "string"),
            (4, "column", "string"),
            (5, "value", "string"),
            (6, "name", "string"),
            *flags_from(7),
        ),
        Check: (
            (1, "catalog", "string"),
            (2, "database", "string"),
            (3, "table", "string"),
            (4, "column", "string"),
            (5, "expression", "string"),
            (6, "name", "string"),
            *flags_from(7),
        ),
        Decimal: ((1, "unscaled", "binary"), (3, "scale", "i16")),
        Moment: ((1, "since_epoch", "i64"),),
        Booleans: ((1, "trues", "i64"), (2, "falses", "i64"), (3, "nulls", "i64"), (4, "bit_vectors", "binary")),
        Longs: ((1, "low", "i64"), (2, "high", "i64"), *RANGE),
        Doubles: ((1, "low", "dbl"), (2, "high", "dbl"), *RANGE),
        Strings: ((1, "longest", "i64"), (2, "average", "dbl"), *RANGE[:3]),
        Binaries: ((1, "longest", "i64"), (2, "average", "dbl"), (3, "nulls", "i64"), (4, "bit_vectors", "binary")),
        Decimals: ((1, "low", Decimal), (2, "high", Decimal), *RANGE),
        Moments: ((1, "low", Moment), (2, "high", Moment), *RANGE),
        StatisticsCounts: (
            (1, "booleans", Booleans),
            (2, "longs", Longs),
            (3, "doubles", Doubles),
            (4, "strings", Strings),
            (5, "binaries", Binaries),
            (6, "decimals", Decimals),
            (7, "dates", Moments),
            (8, "timestamps", Moments),
        ),
        ColumnStatistics: ((1, "column", "string"), (2, "type", "string"), (3, "counted", StatisticsCounts)),
        AnalyzedObject: (
            (1, "whole_table", "bool"),
            (2, "database", "string"),
            (3, "table", "string"),
            (4, "partition", "string"),
        ),
        AnalyzedColumns: ((1, "of", AnalyzedObject), (2, "columns", ListOf(ColumnStatistics)), (4, "engine", "string")),
    }
)
