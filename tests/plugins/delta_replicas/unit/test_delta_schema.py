"""A Hive table's columns and partitions as a Delta log has them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from calque.core.formats.hive_types import (
    Array,
    Decimal,
    HiveType,
    Map,
    Other,
    Primitive,
    Struct,
    parse_type,
    type_text,
)
from calque.errors import Refused
from calque.model.hive import Column, Storage, Table
from calque.model.names import DEFAULT_PARTITION
from calque.plugins.delta_replicas.core.schema import (
    data_columns,
    partition_columns,
    partition_value,
    partition_values,
    schema_of,
    schema_text,
)
from support.sources.delta_logs import write_log


def table(columns: dict[str, str], keys: dict[str, str] | None = None, **parameters: str) -> Table:
    storage = Storage(tuple(Column(name, kind) for name, kind in columns.items()))
    key_columns = tuple(Column(name, kind) for name, kind in (keys or {}).items())
    named = {key.replace("__", "."): value for key, value in parameters.items()}
    return Table("t", "d", storage=storage, partition_keys=key_columns, parameters=named)


def spark_field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": False, "metadata": {}}


def spark_schema(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "struct", "fields": fields})


def names_in(schema: str) -> list[str]:
    return [one["name"] for one in json.loads(schema)["fields"]]


# Types

KINDS = st.recursive(
    st.sampled_from([Primitive("int"), Primitive("string"), Decimal(38, 0), Decimal(5, 2), Other("varchar(3)")]),
    lambda kinds: st.one_of(
        st.builds(Array, kinds),
        st.builds(Map, kinds, kinds),
        st.dictionaries(st.text("aB_é-", min_size=1), kinds, min_size=1, max_size=3).map(
            lambda fields: Struct(tuple(fields.items()))
        ),
    ),
    max_leaves=8,
)


@given(KINDS)
def test_a_type_that_is_written_is_parsed_again(kind: HiveType) -> None:
    assert parse_type(type_text(kind)) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (" INTEGER ", Primitive("int")),
        ("Double Precision", Primitive("double")),
        ("numeric", Decimal(10, 0)),
        ("decimal( 5 , 2 )", Decimal(5, 2)),
        ("MAP<string, ARRAY<Int>>", Map(Primitive("string"), Array(Primitive("int")))),
        ("struct<A:int, b : decimal(3,1)>", Struct((("A", Primitive("int")), ("b", Decimal(3, 1))))),
        ("array<int,int>", Other("array<int,int>")),
        ("decimal(2,3)", Other("decimal(2,3)")),
        ("", Other("")),
    ],
)
def test_types_are_parsed_as_hive_parses_them(text: str, kind: HiveType) -> None:
    assert parse_type(text) == kind


# Schemas


def test_columns_have_the_types_of_delta_may_be_null_and_keep_their_comments() -> None:
    columns = [
        Column("a", "integer", "what it is"),
        Column("b", "decimal", ""),
        Column("c", "map<string,array<struct<X:tinyint,y:smallint>>>"),
    ]
    struct = {
        "type": "struct",
        "fields": [
            {"name": "X", "type": "byte", "nullable": True, "metadata": {}},
            {"name": "y", "type": "short", "nullable": True, "metadata": {}},
        ],
    }
    array = {"type": "array", "elementType": struct, "containsNull": True}
    assert json.loads(schema_text(columns)) == {
        "type": "struct",
        "fields": [
            {"name": "a", "type": "integer", "nullable": True, "metadata": {"comment": "what it is"}},
            {"name": "b", "type": "decimal(10,0)", "nullable": True, "metadata": {}},
            {
                "name": "c",
                "type": {"type": "map", "keyType": "string", "valueType": array, "valueContainsNull": True},
                "nullable": True,
                "metadata": {},
            },
        ],
    }


def test_a_type_that_delta_does_not_have_is_refused() -> None:
    with pytest.raises(Refused, match=r"c can't be a column of a Delta table. It has the type char\(3\)"):
        schema_text([Column("c", "char(3)")])


HIVE = {"userid": "bigint", "place": "struct<cityname:string>"}
SPARK = (
    spark_field("userId", "long"),
    spark_field("Place", {"type": "struct", "fields": [spark_field("cityName", "string")]}),
    spark_field("DS", "date"),
)


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_names_are_those_of_sparks_schema(parts: int) -> None:
    text = spark_schema(*SPARK)
    step = -(-len(text) // max(parts, 1))
    parameters = {f"spark.sql.sources.schema.part.{n}": text[n * step : (n + 1) * step] for n in range(parts)}
    parameters |= {"spark.sql.sources.schema.numParts": str(parts)} if parts else {"spark.sql.sources.schema": text}
    one = table(HIVE, {"ds": "date"}, **parameters)
    assert names_in(schema_of(one)) == ["userId", "Place", "DS"]
    assert data_columns(one) == (Column("userId", "bigint"), Column("Place", "struct<cityName:string>"))
    assert partition_columns(one) == ("DS",)
    assert partition_values(one, ["2024-1-2"]) == {"DS": "2024-01-02"}


@pytest.mark.parametrize(
    "text",
    [
        spark_schema(spark_field("userId", "long")),
        spark_schema(*SPARK[:2], spark_field("DS", "string")),
        spark_schema(*SPARK[:2], spark_field("Day", "date")),
        spark_schema(SPARK[1], SPARK[0], SPARK[2]),
        spark_schema(*SPARK[:2], spark_field("DS", {"type": "udt"})),
        "{",
        "[]",
        '"date"',
    ],
    ids=["fewer", "other type", "other name", "other order", "unknown type", "broken", "list", "text"],
)
def test_names_are_hives_where_sparks_schema_is_another(text: str) -> None:
    one = table(HIVE, {"ds": "date"}, spark__sql__sources__schema=text)
    assert names_in(schema_of(one)) == ["userid", "place", "ds"]
    assert partition_columns(one) == ("ds",)


# Partition values


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        ("int", "01", "1"),
        ("int", "1.9", "1"),
        ("int", "-1.", "-1"),
        ("int", "x", None),
        ("tinyint", "128", None),
        ("bigint", "-9223372036854775808", "-9223372036854775808"),
        ("boolean", "TRUE", "true"),
        ("date", "2024-1-2", "2024-01-02"),
        ("date", "2024-02-30", None),
        ("timestamp", "2024-01-02 03:04:05.500", "2024-01-02 03:04:05.5"),
        ("timestamp", "2024-01-02 03:04:05.1234567", "2024-01-02 03:04:05.123456"),
        ("timestamp", "2024-01-02", "2024-01-02 00:00:00"),
        ("decimal(5,2)", "1.5", "1.50"),
        ("decimal(5,2)", "-1.235", "-1.24"),
        ("decimal(5,2)", "999.994", "999.99"),
        ("decimal(5,2)", "999.995", None),
        ("decimal(5,2)", "1000", None),
        ("decimal(5,2)", "1e2", "100.00"),
        ("decimal(5,2)", "1e999999999", None),
        ("decimal(5,2)", "1e-999999999", "0.00"),
        ("decimal(5,2)", "x", None),
        ("double", "1e7", "1.0E7"),
        ("double", "x", None),
        ("string", " a/b=c %41 ü", " a/b=c %41 ü"),
        ("string", "", None),
        *((kind, DEFAULT_PARTITION, None) for kind in ("string", "int", "date", "decimal(3,1)", "boolean")),
    ],
)
def test_a_partition_value_is_written_as_delta_has_it(kind: str, value: str, written: str | None) -> None:
    assert partition_value(parse_type(kind), value) == written


def test_delta_rs_reads_the_partition_values_of_a_log(tmp_path: Path) -> None:
    """Each kind is a key of its own; the files hold a number, by which they are known again."""
    rows: dict[str, list[Any]] = {
        "boolean": ["true", "FALSE"],
        "tinyint": ["-1", "007"],
        "int": ["2147483647", "1.5"],
        "bigint": ["-9223372036854775808", "x"],
        "float": ["0.1", "1e7"],
        "double": ["-1.5E-10", "12345678"],
        "string": ["a/b c=%41\n", "ü"],
        "date": ["2024-1-2", "0001-01-01"],
        "timestamp": ["2024-01-02 03:04:05.123456", "1969-12-31"],
        "decimal(20,3)": ["12345678901234567.125", "-1"],
    }
    one = table({"n": "bigint"}, {f"k{number}": kind for number, kind in enumerate(rows)})
    files = {}
    for number, values in enumerate([*zip(*rows.values(), strict=True), [DEFAULT_PARTITION] * len(rows)]):
        file = tmp_path / f"p={number}%20 x" / "f.parquet"
        file.parent.mkdir()
        pq.write_table(pa.table({"n": [number]}), file)
        files[file] = list(values)
    write_log(tmp_path, one, files)
    shown = DeltaTable(str(tmp_path)).to_pyarrow_table().sort_by("n")
    texts = [[None if value is None else str(value) for value in row.values()] for row in shown.to_pylist()]
    assert texts == [
        [
            "0",
            "True",
            "-1",
            "2147483647",
            "-9223372036854775808",
            "0.10000000149011612",
            "-1.5e-10",
            "a/b c=%41\n",
            "2024-01-02",
            "2024-01-02 03:04:05.123456+00:00",
            "12345678901234567.125",
        ],
        [
            "1",
            "False",
            "7",
            "1",
            None,
            "10000000.0",
            "12345678.0",
            "ü",
            "0001-01-01",
            "1969-12-31 00:00:00+00:00",
            "-1.000",
        ],
        ["2", *([None] * len(rows))],
    ]
    for row in shown.to_pylist():
        for key in partition_columns(one):
            if row[key] is not None:
                filtered = DeltaTable(str(tmp_path)).to_pyarrow_table(filters=[(key, "=", row[key])])
                assert filtered["n"].to_pylist() == [row["n"]], key


def test_a_column_that_older_files_do_not_have_is_null_there(tmp_path: Path) -> None:
    old, new = tmp_path / "old.parquet", tmp_path / "new.parquet"
    pq.write_table(pa.table({"a": [1], "dropped": ["x"]}), old)
    pq.write_table(pa.table({"b": ["y"], "a": [2]}), new)
    one = replace(table({"a": "bigint", "b": "string"}), partition_keys=None)
    write_log(tmp_path, one, {old: (), new: ()})
    shown = DeltaTable(str(tmp_path)).to_pyarrow_table().sort_by("a")
    assert shown.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "y"}]
    without = DeltaTable(str(tmp_path)).to_pyarrow_dataset().to_table(filter=pc.field("b").is_null())
    assert without.to_pylist() == [{"a": 1, "b": None}]
