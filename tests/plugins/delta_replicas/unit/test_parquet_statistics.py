"""What a Parquet footer says for a Delta log: statistics that hide no row, and files that readers would misread."""

from __future__ import annotations

import io
import json
import operator
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calque.core.formats.parquet_footer import with_created_by
from calque.errors import Refused
from calque.model.hive import Column, Storage, Table
from calque.plugins.delta_replicas.core.parquet_columns import footer_length
from calque.plugins.delta_replicas.core.parquet_fit import why_misread
from calque.plugins.delta_replicas.core.parquet_statistics import file_statistics
from support.sources.delta_logs import write_log

OPERATORS = (operator.eq, operator.lt, operator.le, operator.gt, operator.ge)


def parquet(columns: Mapping[str, pa.Array], **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), sink, store_schema=False, **options)
    return sink.getvalue()


def tail_of(content: bytes) -> bytes:
    """As little of the file as its footer takes."""
    return content[-footer_length(content[-8:]) :]


def columns(**kinds: str) -> list[Column]:
    return [Column(name, kind) for name, kind in kinds.items()]


def statistics(content: bytes, **kinds: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(file_statistics(tail_of(content), columns(**kinds)), parse_float=Decimal)
    return parsed


def bounds(array: pa.Array, kind: str, **options: Any) -> tuple[Any, Any]:
    """Of a column."""
    found = statistics(parquet({"v": array}, **options), v=kind)
    return found.get("minValues", {}).get("v"), found.get("maxValues", {}).get("v")


# Bounds

D = Decimal
DAYS = [date(2020, 2, 29), date(1999, 12, 31)]
MOMENTS = [datetime(2020, 1, 1, 0, 0, 0, 123456), datetime(1999, 12, 31, 23, 59, 59, 1)]
MILLISECONDS = ("1999-12-31T23:59:59.000Z", "2020-01-01T00:00:00.124Z")


@pytest.mark.parametrize(
    ("array", "kind", "expected"),
    [
        (pa.array([3, None, -7], pa.int8()), "tinyint", (-7, 3)),
        (pa.array([3, None, -7], pa.int32()), "smallint", (-7, 3)),
        (pa.array([3, None, -7], pa.int32()), "bigint", (-7, 3)),
        (pa.array([2**63 - 1, -(2**63)], pa.int64()), "bigint", (-(2**63), 2**63 - 1)),
        (pa.array([1.5, -2.25], pa.float32()), "double", (D("-2.25"), None)),
        (pa.array([1.5, float("nan")]), "double", (D("1.5"), None)),
        (pa.array([0.0, 1.5]), "double", (D("-0.0"), None)),
        (pa.array([float("-inf"), 1.5]), "double", (None, None)),
        (pa.array([D("1.25"), D("-3.10")], pa.decimal128(5, 2)), "decimal(7,3)", (D("-3.10"), D("1.25"))),
        (pa.array([3, -7], pa.int32()), "decimal(12,2)", (-7, 3)),
        (
            pa.array([D("1234567890123456789012345678.0123456789"), D("-0.0000000001")], pa.decimal128(38, 10)),
            "decimal(38,10)",
            (D("-0.0000000001"), D("1234567890123456789012345678.0123456789")),
        ),
        (pa.array(DAYS), "date", ("1999-12-31", "2020-02-29")),
        (pa.array([date(1500, 1, 1), date(2020, 1, 1)]), "date", (None, "2020-01-01")),
        (pa.array(MOMENTS, pa.timestamp("us", "UTC")), "timestamp", MILLISECONDS),
        (pa.array(MOMENTS, pa.timestamp("us")), "timestamp", MILLISECONDS),
        (
            pa.array([datetime(1899, 1, 1), datetime(2020, 1, 1)], pa.timestamp("ms", "UTC")),
            "timestamp",
            (None, "2020-01-01T00:00:00.000Z"),
        ),
        (
            pa.array([2**60, 0], pa.int64()).view(pa.timestamp("us", "UTC")),
            "timestamp",
            ("1970-01-01T00:00:00.000Z", None),
        ),
        (pa.array(["b", "é", ""]), "string", ("", "é")),
        (pa.array([b"b", b"c"]), "string", ("b", "c")),
        (pa.array([b"b", b"\xff"]), "string", ("b", None)),
        (pa.array(["é" * 32]), "string", ("é" * 32, "é" * 32)),
        (pa.array(["é" * 40, "é" * 33]), "string", ("é" * 32, "é" * 32 + "\U0001ffff")),
        (pa.array(["a😀𠀀"]), "string", ("a😀", None)),
        (pa.array(["é" * 32 + "\U0001ffff"]), "string", ("é" * 32, None)),
        (pa.array([True, False]), "boolean", (False, True)),
        (pa.array([b"b"]), "binary", (None, None)),
        (pa.array([None, None], pa.int32()), "int", (None, None)),
        (pa.array([], pa.int32()), "int", (None, None)),
        (pa.array([3, 7], pa.int64()), "int", (None, None)),
        (pa.array(["3"]), "int", (None, None)),
    ],
)
def test_bounds_are_those_of_the_values_or_left_out(array: pa.Array, kind: str, expected: tuple[Any, Any]) -> None:
    assert bounds(array, kind) == expected


def test_decimals_that_lie_in_integers_have_the_same_bounds() -> None:
    array = pa.array([D("1.25"), D("-3.10")], pa.decimal128(9, 2))
    assert bounds(array, "decimal(9,2)", store_decimal_as_integer=True) == (D("-3.10"), D("1.25"))


def test_timestamps_of_96_bits_have_no_bounds() -> None:
    array = pa.array(MOMENTS, pa.timestamp("us"))
    assert bounds(array, "timestamp", use_deprecated_int96_timestamps=True) == (None, None)


@pytest.mark.parametrize(
    ("writer", "is_known"),
    [
        ("parquet-mr version 1.10.0 (build 031a6654009e3b82020012a18434c582bd74c73a)", True),
        ("parquet-mr version 1.8.1 (build 4aba4dae7bb0d4edbcf7923ae1339f28fd3f7fcf)", False),
        ("parquet-cpp version 1.3.0", False),
        ("another", False),
    ],
)
def test_bounds_of_decimals_in_bytes_are_taken_from_writers_that_order_them_as_numbers(
    writer: str, is_known: bool
) -> None:
    content = with_created_by(parquet({"v": pa.array([D("1.25"), D("-3.10")], pa.decimal128(20, 2))}), writer)
    found = statistics(content, v="decimal(20,2)")
    assert found.get("minValues", {}) == ({"v": D("-3.10")} if is_known else {})
    assert found["nullCount"] == {"v": 0}


def test_bounds_reach_over_all_row_groups_and_end_where_one_says_nothing() -> None:
    content = parquet({"v": pa.array([5, 6, None, None, -1, 2])}, row_group_size=2)
    found = statistics(content, v="bigint")
    assert found == {"numRecords": 6, "minValues": {"v": -1}, "maxValues": {"v": 6}, "nullCount": {"v": 2}}
    silent = parquet({"v": pa.array([5, 6, None])}, write_statistics=False)
    assert statistics(silent, v="bigint") == {"numRecords": 3, "nullCount": {}}


def test_columns_that_the_file_does_not_have_are_null_and_those_of_the_file_alone_are_left_out() -> None:
    content = parquet({"v": pa.array([5, 6]), "w": pa.array(["x", "y"])})
    assert statistics(content, v="bigint", x="string", y="struct<a:int,b:array<int>>") == {
        "numRecords": 2,
        "minValues": {"v": 5},
        "maxValues": {"v": 6},
        "nullCount": {"v": 0, "x": 2, "y": {"a": 2, "b": 2}},
    }


def test_structs_have_statistics_of_their_leaves_and_lists_and_maps_none() -> None:
    kind = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())])), ("l", pa.list_(pa.int32()))])
    rows = [{"a": 1, "b": {"c": "x"}, "l": [1]}, {"a": None, "b": None, "l": []}, None]
    content = parquet({"s": pa.array(rows, kind), "m": pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int32()))})
    assert statistics(content, s="struct<a:int,b:struct<c:string,d:int>,l:array<int>>", m="map<string,int>") == {
        "numRecords": 3,
        "minValues": {"s": {"a": 1, "b": {"c": "x"}}},
        "maxValues": {"s": {"a": 1, "b": {"c": "x"}}},
        "nullCount": {"s": {"a": 2, "b": {"c": 2, "d": 3}}},
    }


def test_a_name_in_another_case_has_no_statistics() -> None:
    content = parquet({"V": pa.array([5]), "s": pa.array([{"A": 1}]), "x": pa.array([1]), "X": pa.array([2])})
    assert statistics(content, v="bigint", s="struct<a:bigint>", x="bigint")["nullCount"] == {}


def test_the_first_100_leaves_have_statistics_and_a_table_of_more_has_no_bounds() -> None:
    content = parquet({f"c{number}": pa.array([number]) for number in range(120)})
    kinds = {"s": "struct<a:int,b:int>", **{f"c{number}": "bigint" for number in range(120)}}
    found = statistics(content, **kinds)
    assert [*found] == ["numRecords", "nullCount"]
    assert [*found["nullCount"]] == ["s", *(f"c{number}" for number in range(98))]
    few = statistics(content, **dict([*kinds.items()][:99]))
    assert [*few["minValues"]] == [f"c{number}" for number in range(98)]


@pytest.mark.parametrize(
    ("other", "kind", "has_bounds"),
    [
        (pa.array([1.5]), "double", (True, False)),
        (pa.array([MOMENTS[0]], pa.timestamp("ns")), "timestamp", (False, False)),
        (pa.array([b"x"]), "binary", (True, True)),
        (pa.array([[1]]), "array<bigint>", (True, True)),
        (pa.array([{"a": 1}]), "struct<a:int>", (True, True)),
        (pa.nulls(1, pa.float64()), "double", (True, True)),
    ],
)
def test_bounds_are_left_out_where_a_column_has_none(other: pa.Array, kind: str, has_bounds: tuple[bool, bool]) -> None:
    content = parquet({"v": pa.array([1]), "w": other}, use_deprecated_int96_timestamps=True)
    found = statistics(content, v="bigint", w=kind, missing="int")
    assert ("minValues" in found, "maxValues" in found) == has_bounds
    assert found["nullCount"].keys() >= {"v", "missing"}


def test_writers_that_pass_over_nan_are_known() -> None:
    content = parquet({"v": pa.array([1.5, -0.0, float("nan")])})
    assert "maxValues" not in statistics(content, v="double")
    others = with_created_by(parquet({"v": pa.array([1.5, 0.0])}), "parquet-mr version 1.13.1 (build x)")
    assert statistics(others, v="double")["maxValues"] == {"v": D("1.5")}
    newest = with_created_by(parquet({"v": pa.array([1.5, 0.0])}), "parquet-mr version 1.18.0 (build x)")
    assert "maxValues" not in statistics(newest, v="double")


# Footers


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (b"", "no Parquet file"),
        (b"PAR1", "no Parquet file"),
        (b"some text that is longer", "no Parquet file"),
        (struct.pack("<I", 9) + b"PARE", "encrypted"),
        (struct.pack("<I", 9) + b"PAR1", "It has 17 bytes, of which 8 are there"),
        (b"\xff" * 30 + struct.pack("<I", 30) + b"PAR1", "Couldn't deserialize thrift"),
    ],
)
def test_what_has_no_footer_that_can_be_read_is_refused(tail: bytes, why: str) -> None:
    with pytest.raises(Refused, match=why):
        file_statistics(tail, columns(v="int"))
    with pytest.raises(Refused, match=why):
        why_misread(tail, columns(v="int"))


def test_bytes_before_the_footer_change_nothing() -> None:
    content = parquet({"v": pa.array([5])})
    tail = tail_of(content)
    assert len(tail) < len(content)
    for more in (content, content[4:], b"x" * 1000 + tail, tail):
        assert file_statistics(more, columns(v="bigint")) == file_statistics(tail, columns(v="bigint"))


# Files that readers would misread

STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([300, -5], pa.int32()), "smallint"),
        (pa.array([1], pa.int16()), "int"),
        (pa.array([1], pa.int32()), "double"),
        (pa.array([1.5], pa.float32()), "double"),
        (pa.array([D("1.5")], pa.decimal128(5, 2)), "decimal(20,4)"),
        (pa.array(["x"]), "binary"),
        (pa.array([b"x"]), "string"),
        (pa.array([b"xy"], pa.binary(2)), "binary"),
        (pa.array(MOMENTS, pa.timestamp("ms")), "timestamp"),
        (pa.array([{"a": 1, "b": "x"}], STRUCT), "struct<b:string,a:bigint,c:int>"),
        (pa.array([[{"a": 1, "b": "x"}]], pa.list_(STRUCT)), "array<struct<a:int>>"),
        (pa.array([[("k", [1])]], pa.map_(pa.string(), pa.list_(pa.int8()))), "map<string,array<int>>"),
        (pa.array([["x"]], pa.large_list(pa.large_string())), "array<string>"),
        (pa.array(["x"]).dictionary_encode(), "string"),
    ],
)
def test_a_type_that_all_readers_widen_equally_is_no_reason(array: pa.Array, kind: str) -> None:
    content = parquet({"v": array, "only_here": pa.array([1] * len(array))})
    assert why_misread(tail_of(content), columns(v=kind, only_there="string")) == ""


@pytest.mark.parametrize(
    ("array", "kind", "why"),
    [
        (pa.array([300]), "int", "the file's column v is INT64, the table's int"),
        (pa.array([300], pa.int32()), "tinyint", "the file's column v is INT32, the table's tinyint"),
        (pa.array([3], pa.uint32()), "bigint", "the file's column v is INT32 (UINT_32), the table's bigint"),
        (pa.array([3]), "double", "the file's column v is INT64, the table's double"),
        (pa.array([3], pa.int32()), "decimal(11,2)", "the file's column v is INT32, the table's decimal(11,2)"),
        (pa.array([3]), "string", "the file's column v is INT64, the table's string"),
        (pa.array(["3"]), "int", "the file's column v is BYTE_ARRAY (STRING), the table's int"),
        (pa.array([1.5]), "float", "the file's column v is DOUBLE, the table's float"),
        (
            pa.array([D("1.5")], pa.decimal128(20, 2)),
            "decimal(20,4)",
            "the file's column v is FIXED_LEN_BYTE_ARRAY (DECIMAL 20,2), the table's decimal(20,4)",
        ),
        (pa.array([date(2020, 1, 1)]), "timestamp", "the file's column v is INT32 (DATE), the table's timestamp"),
        (
            pa.array([1]).cast(pa.timestamp("ns")),
            "timestamp",
            "the file's column v is INT64 (TIMESTAMP in nanoseconds), the table's timestamp",
        ),
        (pa.nulls(1), "string", "the file's column v is INT32 (UNKNOWN), the table's string"),
        (pa.array([[1]]), "bigint", "the file's column v is nested in another way than the table's bigint"),
        (pa.array([1]), "array<bigint>", "the file's column v is INT64, the table's array<bigint>"),
        (
            pa.array([{"a": 1, "b": "x"}], STRUCT),
            "struct<A:int,b:string>",
            "the file's column v has fields that differ from A by case alone",
        ),
        (
            pa.array([{"a": 1, "b": "x"}], STRUCT),
            "struct<c:int>",
            "the file's column v has other fields than the table's",
        ),
        (
            pa.array([[("k", {"a": 1, "b": "x"})]], pa.map_(pa.string(), STRUCT)),
            "map<string,struct<a:int,b:string,c:int>>",
            "the file's column v.value has other fields than the table's",
        ),
        (pa.array([[1]]), "array<int>", "the file's column v.element is INT64, the table's int"),
    ],
)
def test_a_type_that_readers_read_in_different_ways_is_a_reason(array: pa.Array, kind: str, why: str) -> None:
    assert why_misread(tail_of(parquet({"v": array})), columns(v=kind)) == why


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("V",), "the file has the column V, the table v: not all readers find it"),
        (("v", "V"), "the file has several columns v whose names differ by case alone"),
        (("w", "W"), ""),
    ],
)
def test_names_that_differ_by_case_alone_are_a_reason(names: Sequence[str], why: str) -> None:
    content = parquet({name: pa.array([1]) for name in names})
    assert why_misread(tail_of(content), columns(v="bigint")) == why


# Readers

VALUES: Mapping[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "decimal(38,6)": (pa.decimal128(38, 6), st.decimals(-(10**31), 10**31, places=6)),
    "decimal(9,2)": (pa.decimal128(9, 2), st.decimals(-(10**6), 10**6, places=2)),
    "string": (pa.string(), st.text(st.sampled_from("aé\x7f\U0010ffff"), max_size=40)),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
}


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_readers_that_skip_files_show_the_same_rows(
    kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Beside another column, which may have no bounds."""
    kinds = {"v": kind, "w": data.draw(st.sampled_from([*VALUES]))}
    row = st.fixed_dictionaries({name: VALUES[of][1] | st.none() for name, of in kinds.items()})
    parts = data.draw(st.lists(st.lists(row, min_size=1, max_size=4), min_size=1, max_size=3))
    schema = pa.schema([(name, VALUES[of][0]) for name, of in kinds.items()])
    root = tmp_path_factory.mktemp("table")
    files: dict[Path, Sequence[str]] = {root / f"{number}.parquet": () for number in range(len(parts))}
    tables = [pa.Table.from_pylist(part, schema) for part in parts]
    for file, part in zip(files, tables, strict=True):
        file.write_bytes(parquet(dict(zip(part.column_names, part.columns, strict=True)), row_group_size=2))
    write_log(root, Table("t", "d", storage=Storage(tuple(columns(**kinds)))), files)
    everything, shown = pa.concat_tables(tables), DeltaTable(str(root)).to_pyarrow_dataset()
    conditions = [pc.field("v").is_null(), ~pc.field("w").is_null()]
    for name, arrow in zip(schema.names, schema.types, strict=True):
        known = st.sampled_from([value for value in everything[name].to_pylist() if value is not None] or [None])
        value = pa.scalar(data.draw(known | VALUES[kinds[name]][1]), arrow)
        conditions += [compare(pc.field(name), value) for compare in OPERATORS if value.is_valid]
    for condition in conditions:
        assert counted(shown.to_table(filter=condition)) == counted(everything.filter(condition)), str(condition)


def test_a_reader_opens_no_file_that_statistics_exclude(tmp_path: Path) -> None:
    table = Table("t", "d", storage=Storage((Column("v", "bigint"), Column("s", "string"))))
    low, high = tmp_path / "low.parquet", tmp_path / "high.parquet"
    for file, value in ((low, 1), (high, 100)):
        file.write_bytes(parquet({"v": pa.array([value]), "s": pa.array([str(value) * 40])}))
    write_log(tmp_path, table, {low: (), high: ()})
    high.unlink()
    shown = DeltaTable(str(tmp_path))
    assert shown.to_pyarrow_table(filters=[("v", "<", 50)])["v"].to_pylist() == [1]
    engine = QueryBuilder().register("t", shown)
    assert pa.table(engine.execute("SELECT s FROM t WHERE v = 1").read_all())["s"].to_pylist() == ["1" * 40]
    assert pa.table(engine.execute("SELECT max(s) AS s FROM t WHERE v < 2").read_all())["s"].to_pylist() == ["1" * 40]


def counted(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))
