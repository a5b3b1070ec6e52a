"""Which Hive tables and partitions can be shown as Delta tables, and why others can't."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from calque.core.small_files.grouping import PARQUET_INPUT, TEXT_INPUT
from calque.model.hive import Column, Partition, SerDe, Skew, SortColumn, Storage, Table
from calque.model.names import DEFAULT_PARTITION
from calque.plugins.delta_replicas.core.fit import why_partition_plain, why_plain

PARQUET_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
STORAGE = Storage((Column("a", "int"),), "file:/t", PARQUET_INPUT, serde=SerDe(class_name=PARQUET_SERDE))
TABLE = Table("t", "d", storage=STORAGE, parameters={}, type="MANAGED_TABLE")


def with_columns(*columns: tuple[str, str], keys: tuple[tuple[str, str], ...] = ()) -> Table:
    storage = replace(STORAGE, columns=tuple(Column(*column) for column in columns))
    return replace(TABLE, storage=storage, partition_keys=tuple(Column(*key) for key in keys))


def with_storage(**changes: Any) -> Table:
    return replace(TABLE, storage=replace(STORAGE, **changes))


def with_parameters(**parameters: str) -> Table:
    return replace(TABLE, parameters={key.replace("__", "."): value for key, value in parameters.items()})


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        replace(TABLE, type="EXTERNAL_TABLE"),
        with_columns(
            ("b", "boolean"),
            ("i1", "tinyint"),
            ("i2", "smallint"),
            ("i4", "integer"),
            ("i8", "bigint"),
            ("f", "float"),
            ("d", "double precision"),
            ("n", "decimal(38,38)"),
            ("s", "string"),
            ("y", "binary"),
            ("da", "date"),
            ("ts", "timestamp"),
            ("x", "array<map<string,struct<a:int,b:decimal(3,1)>>>"),
            keys=(("p", "date"), ("q", "decimal"), ("r", "timestamp"), ("s2", "boolean")),
        ),
        with_columns(("a.b", "int"), ("$ü", "int"), ("a-b", "int")),
        with_storage(buckets=4, bucket_columns=("a",), sort_columns=(SortColumn("a"),), skew=Skew(("a",))),
        with_parameters(spark__sql__sources__provider="parquet", skip__header__line__count="0"),
        with_parameters(parquet__column__index__access="false", parquet__compression="SNAPPY"),
    ],
    ids=["plain", "external", "types", "names", "buckets", "spark", "parameters"],
)
def test_a_parquet_table_of_types_that_delta_has_can_be_shown(table: Table) -> None:
    assert why_plain(table) == ""


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (replace(TABLE, type="VIRTUAL_VIEW"), "it is a view"),
        (with_parameters(spark__sql__sources__provider="delta"), "it is a Delta table already"),
        (with_parameters(table_type="ICEBERG"), "it is an Iceberg table"),
        (with_parameters(storage_handler="x.Y"), "it belongs to tables of a storage handler"),
        (with_parameters(hoodie__table__name="t"), "it belongs to Hudi tables"),
        (replace(TABLE, storage=None), "its SerDe is not Parquet's: there is none"),
        (with_storage(serde=SerDe(class_name="x.OrcSerde")), "its SerDe is not Parquet's: x.OrcSerde"),
        (with_storage(input_format=TEXT_INPUT), f"its input format is not Parquet's: {TEXT_INPUT}"),
        (
            with_storage(serde=SerDe(class_name=PARQUET_SERDE, parameters={"parquet.column.index.access": "TRUE"})),
            "its columns are read by their place in the file (parquet.column.index.access)",
        ),
        (
            with_parameters(parquet__column__index__access="true"),
            "its columns are read by their place in the file (parquet.column.index.access)",
        ),
        (with_parameters(skip__header__line__count="1"), "its rows are not all shown (skip.header.line.count)"),
        (
            with_parameters(parquet__mr__int96__write__zone="UTC"),
            "its timestamps are in a time zone of their own (parquet.mr.int96.write.zone)",
        ),
        (with_parameters(spark__sql__sources__provider="csv"), "Spark reads it as csv (spark.sql.sources.provider)"),
        (with_columns(), "it has no columns"),
        (with_columns(("a", "int"), ("A", "int")), "its column A is named like another"),
        (with_columns(("a", "int"), keys=(("a", "int"),)), "its column a is named like a partition key"),
        *(
            (
                with_columns((f"x{character}y", "int")),
                f'its column "x{character}y" has a name that Delta refuses without column mapping',
            )
            for character in " ,;{}()\n\t="
        ),
        *(
            (with_columns(("c", kind)), f"its column c has the type {kind}, which Delta does not have")
            for kind in (
                "char(3)",
                "varchar(5)",
                "void",
                "interval_day_time",
                "uniontype<int,string>",
                "decimal(39,2)",
                "timestamp with local time zone",
                "timestamplocaltz",
                "unknown<int>",
                "struct<>",
                "map<int>",
            )
        ),
        (
            with_columns(("c", "array<struct<x:map<string,varchar(3)>>>")),
            "its column c.x has the type varchar(3), which Delta does not have",
        ),
        (
            with_columns(("c", "struct<a b:int>")),
            'its column "c.a b" has a name that Delta refuses without column mapping',
        ),
        (with_columns(("c", "struct<a:int,A:int>")), "its column c has two fields whose names differ by case alone"),
        (
            with_columns(("a", "int"), keys=(("p", "char(1)"),)),
            "its column p has the type char(1), which Delta does not have",
        ),
        (
            with_columns(("a", "int"), keys=(("p", "binary"),)),
            "its partition key p has the type binary, of which readers make different values",
        ),
        (
            with_columns(("a", "int"), keys=(("p", "array<int>"),)),
            "its partition key p has the type array<int>, of which readers make different values",
        ),
    ],
)
def test_other_tables_are_kept_plain_with_the_reason(table: Table, why: str) -> None:
    assert why_plain(table) == why


def test_a_timestamp_without_time_zone_of_spark_is_no_timestamp_of_delta() -> None:
    schema = {"type": "struct", "fields": [{"name": "a", "type": "timestamp_ntz", "nullable": True, "metadata": {}}]}
    table = replace(with_columns(("a", "timestamp")), parameters={"spark.sql.sources.schema": json.dumps(schema)})
    assert why_plain(table) == "its column a is a TIMESTAMP_NTZ for Spark and a TIMESTAMP for Hive"


INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}
AT_TARGET = {"calque.rows": "insert_only"}
ORC_SERDE = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
ORC = SerDe(class_name=ORC_SERDE)


@pytest.mark.parametrize(
    "table",
    [
        replace(with_storage(serde=ORC, input_format="x.Orc"), parameters={"transactional": "true"}),
        replace(with_storage(serde=ORC, input_format="x.Orc"), parameters={"calque.rows": "full"}),
        replace(with_storage(serde=ORC), parameters=INSERT_ONLY),
        replace(TABLE, parameters=INSERT_ONLY),
        replace(TABLE, parameters=AT_TARGET),
    ],
    ids=["full", "full, at the target", "insert-only in ORC", "in Parquet", "at the target"],
)
def test_acid_tables_whose_rows_are_read_can_be_shown(table: Table) -> None:
    assert why_plain(table) == ""
    assert why_partition_plain(table, Partition((), storage=table.storage)) == ""


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (
            replace(with_storage(serde=SerDe(class_name="x.Text")), parameters=INSERT_ONLY),
            "calque reads rows of ORC and Parquet files, and its SerDe is another: x.Text",
        ),
        (
            replace(TABLE, parameters={"transactional": "true"}),
            f"it is a full ACID table with another SerDe than ORC's: {PARQUET_SERDE}",
        ),
        (
            replace(with_storage(serde=ORC, columns=(Column("c", "char(3)"),)), parameters={"transactional": "true"}),
            "its column c has the type char(3), which Delta does not have",
        ),
        (
            replace(with_columns(("_calque_Row", "int")), parameters=INSERT_ONLY),
            "its column _calque_Row has the name of a row id's column",
        ),
        (
            replace(TABLE, parameters=INSERT_ONLY, type="MATERIALIZED_VIEW"),
            "it belongs to materialised views",
        ),
    ],
)
def test_other_acid_tables_are_set_aside_with_the_reason(table: Table, why: str) -> None:
    assert why_plain(table) == why


def test_a_partition_of_an_acid_table_has_its_own_format() -> None:
    table = replace(with_storage(serde=ORC), parameters={"transactional": "true"})
    assert why_partition_plain(table, Partition((), storage=replace(STORAGE, serde=ORC))) == ""
    assert "another SerDe than ORC's" in why_partition_plain(table, Partition((), storage=STORAGE))


KEYED = with_columns(
    ("a", "int"), ("b", "struct<x:int>"), keys=(("p", "string"), ("n", "int"), ("d", "date"), ("f", "double"))
)


def partition(values: tuple[str, ...] = ("x", "1", "2024-01-02", "1.5"), **changes: Any) -> Partition:
    assert KEYED.storage is not None
    return Partition(values, "d", "t", storage=replace(KEYED.storage, **changes))


@pytest.mark.parametrize(
    "one",
    [
        partition(),
        partition(columns=None),
        partition(columns=(Column("A", "integer", "other"), Column("b", "STRUCT<X:int>"))),
        partition(("", DEFAULT_PARTITION, DEFAULT_PARTITION, DEFAULT_PARTITION)),
        partition(("ü =/", "x", "2024-1-2", "-1e3")),
        partition(("1", "2.5", "0001-01-01", "7.")),
    ],
    ids=["same", "none", "case and comments", "default", "converted", "cut"],
)
def test_a_partition_with_the_columns_of_its_table_can_be_shown(one: Partition) -> None:
    assert why_partition_plain(KEYED, one) == ""


OTHER_COLUMNS = "the partition has other columns than the table"


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (partition(columns=(Column("a", "int"),)), OTHER_COLUMNS),
        (partition(columns=(Column("b", "struct<x:int>"), Column("a", "int"))), OTHER_COLUMNS),
        (
            partition(columns=(Column("a", "bigint"), Column("b", "struct<x:int>"))),
            "the partition's column a has the type bigint, the table's int",
        ),
        (
            partition(columns=(Column("a", "int"), Column("b", "struct<x:int,y:int>"))),
            "the partition's column b has the type struct<x:int,y:int>, the table's struct<x:int>",
        ),
        (partition(serde=SerDe(class_name="x.OrcSerde")), "the partition's SerDe is not Parquet's: x.OrcSerde"),
        (partition(input_format="x.Y"), "the partition's input format is not Parquet's: x.Y"),
        (
            partition(serde=SerDe(class_name=PARQUET_SERDE, parameters={"parquet.column.index.access": "true"})),
            "the partition's columns are read by their place in the file (parquet.column.index.access)",
        ),
        (partition(("x",)), "the partition has not one value for each partition key"),
        *(
            (
                partition(values),
                f'the partition\'s value "{text}" of a {kind} is not read equally by all readers',
            )
            for values, text, kind in (
                (("x", " 1", "2024-01-02", "1"), " 1", "int"),
                (("x", "1e3", "2024-01-02", "1"), "1e3", "int"),
                (("x", "1", "2024-02-30", "1"), "2024-02-30", "date"),
                (("x", "1", "2024-01-02", "NaN"), "NaN", "double"),
            )
        ),
    ],
)
def test_other_partitions_keep_their_table_plain_with_the_reason(one: Partition, why: str) -> None:
    assert why_partition_plain(KEYED, one) == why


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("boolean", {"true": False, "FALSE": False, "yes": True, "0": True}),
        ("timestamp", {"2024-01-02 03:04:05.123456000": False, "2024-01-02 03:04:05.1234567": True, "now": True}),
        ("decimal(5,2)", {"1.239": False, "-1": False, "x": False, "1,5": True, " 1": True, "-0.5": True}),
    ],
)
def test_values_of_which_readers_make_different_ones_are_known(kind: str, values: Mapping[str, bool]) -> None:
    table = with_columns(("a", "int"), keys=(("k", kind),))
    found = {value: bool(why_partition_plain(table, Partition((value,), storage=STORAGE))) for value in values}
    assert found == values
