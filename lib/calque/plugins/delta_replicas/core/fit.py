"""The reasons why a Hive table, or one partition of it, is kept plain and not shown as a Delta table.

A Delta log over a table's own files must show the rows that Hive shows: `why_plain` and `why_partition_plain` look at
definitions, `parquet_fit.why_misread` at each file. All of them return the end of a sentence, as in "It is kept plain:
its column c has the type char(3), which Delta does not have"; empty where nothing is against it. Buckets and skew are
no reason, because Delta knows neither and reads every file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal as Number

from calque.core.acid.columns import ROW_ID, format_of
from calque.core.events.kinds import kind_beside_acid, kind_of
from calque.core.formats.hive_types import (
    Array,
    Decimal,
    HiveType,
    Map,
    Other,
    Primitive,
    Struct,
    others,
    parse_type,
    same_but_case,
)
from calque.core.formats.iceberg import is_iceberg
from calque.core.formats.partition_values import FRACTION, WHOLE, converter
from calque.core.formats.readers import SERDES, FileFormat
from calque.core.images.table_layout import has_own_row_files, has_row_ids
from calque.core.small_files.grouping import PARQUET_INPUT
from calque.model.hive import (
    PROVIDER,
    Column,
    Partition,
    Storage,
    Table,
    is_delta,
    is_full_acid,
    is_transactional,
    is_view,
    projects_partitions,
)
from calque.model.names import DEFAULT_PARTITION
from calque.plugins.delta_replicas.core.schema import data_columns, key_columns, own_columns, rounded, spark_schema

REFUSED_IN_NAMES = re.compile(r"[ ,;{}()\n\t=]")
"""Characters that Delta without column mapping refuses in names of columns (`ParquetSchemaConverter.checkFieldName` of
Spark)."""
READ_BY_INDEX = "parquet.column.index.access"
"""The parameter by which Hive's `DataWritableReadSupport` takes columns by their place in the file."""
INT96_ZONE = ("parquet.mr.int96.write.zone", "parquet.mr.int96.enable.utc.write.zone")
"""Hive's parameters that say in which time zone a table's INT96 timestamps are written; other readers ignore them."""
LINES_SKIPPED = ("skip.header.line.count", "skip.footer.line.count")
"""Parameters by which Hive leaves out rows at the ends of files, of any format."""
SPARK_PROVIDERS = frozenset({"", "hive", "parquet"})
NANOSECONDS = re.compile(r".*\.\d{6}\d*[1-9]\d*")
"""Timestamps with more than microseconds, which Delta's don't have."""


def why_plain(table: Table) -> str:
    """Say why no Delta log can show the table's rows; empty where one can, if its partitions and files fit too."""
    return next(reasons(table), "")


def why_partition_plain(table: Table, partition: Partition) -> str:
    """Say why the log of the table can't show the rows of this partition; empty where it can, if its files fit too."""
    return next(partition_reasons(table, partition), "")


def why_not_delta(table: Table, partitions: Iterable[Partition]) -> str:
    """Say why no Delta log can show the rows of the table with these partitions; empty where one can, if its files fit
    too."""
    return why_plain(table) or next(filter(None, (why_partition_plain(table, one) for one in partitions)), "")


def reasons(table: Table) -> Iterator[str]:
    if is_delta(table):
        yield "it is a Delta table already"
    if is_acid(table):
        yield from acid_reasons(table)
        return
    if is_view(table):
        yield "it is a view"
    if is_iceberg(table):
        yield "it is an Iceberg table"
    if kind := kind_of(table):
        yield f"it belongs to {kind}"
    if projects_partitions(table):
        yield "its partitions are made up by query engines (projection.enabled)"
    storage = table.storage or Storage()
    yield from format_reasons(storage)
    yield from parameter_reasons(table.parameters, storage)
    provider = {key.lower(): value for key, value in (table.parameters or {}).items()}.get(PROVIDER, "")
    if provider.lower() not in SPARK_PROVIDERS:
        yield f"Spark reads it as {provider} ({PROVIDER})"
    yield from column_reasons(data_columns(table), key_columns(table))
    columns = {column.name.lower(): column for column in (*data_columns(table), *key_columns(table))}
    for name, kind_at_spark in spark_schema(table.parameters or {}):
        if "timestamp_ntz" in others(kind_at_spark) and name.lower() in columns:
            yield f"its column {name} is a TIMESTAMP_NTZ for Spark and a TIMESTAMP for Hive"


def is_acid(table: Table) -> bool:
    """Tell whether the table, the source's or its replica, is an ACID table at the source."""
    return is_transactional(table) or has_own_row_files(table)


def acid_reasons(table: Table) -> Iterator[str]:
    """Yield why an ACID table, whose rows are written anew, can't be a Delta table."""
    if kind := kind_beside_acid(table):
        yield f"it belongs to {kind}"
    yield from acid_format_reasons(table, table.storage or Storage())
    columns = (*data_columns(table), *key_columns(table))
    for column in columns:
        if column.name.lower() in ROW_ID:
            yield f"its column {column.name} has the name of a row id's column"
    yield from column_reasons(data_columns(table), key_columns(table))


def acid_format_reasons(table: Table, storage: Storage) -> Iterator[str]:
    known, serde = format_of(storage), (storage.serde.class_name if storage.serde else None) or "there is none"
    if known is None:
        yield f"calque reads rows of ORC and Parquet files, and its SerDe is another: {serde}"
    elif known is not FileFormat.ORC and (is_full_acid(table) or has_row_ids(table)):
        yield f"it is a full ACID table with another SerDe than ORC's: {serde}"


def partition_reasons(table: Table, partition: Partition) -> Iterator[str]:
    storage, has_row_files = partition.storage or Storage(), is_acid(table)
    of_format = acid_format_reasons(table, storage) if has_row_files else format_reasons(storage)
    for reason in (*of_format, *(() if has_row_files else parameter_reasons(partition.parameters, storage))):
        yield reason.replace("its ", "the partition's ", 1)
    own = storage.columns or own_columns(table)
    if [column.name.lower() for column in own] != [column.name.lower() for column in own_columns(table)]:
        yield "the partition has other columns than the table"
        return
    for column, table_column in zip(own, own_columns(table), strict=True):
        if not same_but_case(parse_type(column.type), parse_type(table_column.type)):
            yield f"the partition's column {column.name} has the type {column.type}, the table's {table_column.type}"
    if len(partition.values) != len(table.partition_keys or ()):
        yield "the partition has not one value for each partition key"
        return
    for column, value in zip(table.partition_keys or (), partition.values, strict=True):
        if is_doubtful(parse_type(column.type), value):
            yield f'the partition\'s value "{value}" of a {column.type} is not read equally by all readers'


def format_reasons(storage: Storage) -> Iterator[str]:
    serde = (storage.serde.class_name if storage.serde else None) or ""
    if SERDES.get(serde) is not FileFormat.PARQUET:
        yield f"its SerDe is not Parquet's: {serde or 'there is none'}"
    elif storage.input_format != PARQUET_INPUT:
        yield f"its input format is not Parquet's: {storage.input_format or 'there is none'}"


def parameter_reasons(parameters: Mapping[str, str] | None, storage: Storage) -> Iterator[str]:
    """Yield a reason for each parameter with which Hive reads other rows than those in the files, by name."""
    serde = (storage.serde.parameters if storage.serde else None) or {}
    merged = {key.lower(): value.strip() for key, value in [*(parameters or {}).items(), *serde.items()]}
    if merged.get(READ_BY_INDEX, "").lower() == "true":
        yield f"its columns are read by their place in the file ({READ_BY_INDEX})"
    for key in LINES_SKIPPED:
        if merged.get(key, "0") not in ("", "0"):
            yield f"its rows are not all shown ({key})"
    for key in INT96_ZONE:
        if key in merged:
            yield f"its timestamps are in a time zone of their own ({key})"


def column_reasons(columns: Sequence[Column], keys: Sequence[Column]) -> Iterator[str]:
    if not columns:
        yield "it has no columns"
    key_names = {column.name.lower() for column in keys}
    names: set[str] = set()
    for column in (*columns, *keys):
        if column.name.lower() in names:
            other = "a partition key" if column.name.lower() in key_names else "another"
            yield f"its column {column.name} is named like {other}"
        names.add(column.name.lower())
        yield from name_reasons(column.name)
        yield from type_reasons(column.name, parse_type(column.type))
    for column in keys:
        kind = parse_type(column.type)
        if kind == Primitive("binary") or not isinstance(kind, Primitive | Decimal):
            yield f"its partition key {column.name} has the type {column.type}, of which readers make different values"


def name_reasons(name: str) -> Iterator[str]:
    if not name or REFUSED_IN_NAMES.search(name):
        yield f'its column "{name}" has a name that Delta refuses without column mapping'


def type_reasons(column: str, kind: HiveType) -> Iterator[str]:
    match kind:
        case Other(text):
            yield f"its column {column} has the type {text}, which Delta does not have"
        case Array(element):
            yield from type_reasons(column, element)
        case Map(key, value):
            yield from type_reasons(column, key)
            yield from type_reasons(column, value)
        case Struct(fields):
            names = [name.lower() for name, _ in fields]
            if len({*names}) < len(names):
                yield f"its column {column} has two fields whose names differ by case alone"
            for name, part in fields:
                yield from name_reasons(f"{column}.{name}")
                yield from type_reasons(f"{column}.{name}", part)


def is_doubtful(kind: HiveType, value: str) -> bool:
    """Tell whether Hive's versions and Delta's readers make different values of a partition's text, or one of them
    fails. Where none of them makes a value of it, as of `x` for an INT, it is NULL for all. delta-rs takes the fraction
    of a negative number for no number when it makes a data set for Arrow."""
    if value in ("", DEFAULT_PARTITION):
        return False
    match kind:
        case Decimal(precision, scale):
            if not FRACTION.fullmatch(value):
                return any(map(str.isdigit, value))
            number = Number(rounded(value, precision, scale) or 0)
            return number < 0 and number != number.to_integral_value()
        case Primitive(name) if name in WHOLE:
            return not re.fullmatch(r"[+-]?\d+(\.\d*)?", value, re.ASCII) and any(map(str.isdigit, value))
        case Primitive("float" | "double"):
            return not FRACTION.fullmatch(value)
        case Primitive("boolean" | "date" | "timestamp" as name):
            convert = converter(name)
            return convert is None or convert(value) is None or bool(NANOSECONDS.fullmatch(value.strip()))
    return False
