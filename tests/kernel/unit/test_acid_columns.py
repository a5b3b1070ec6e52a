"""Rows of ACID tables' files with the columns that the table has."""

from __future__ import annotations

import datetime
import io
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from calque.core.acid.columns import (
    ROW_ID,
    FileOfDirectory,
    Misshapen,
    among,
    batches_of,
    deleted_in,
    files_read,
    rows_in,
    without,
)
from calque.core.acid.directories import directory_of
from calque.core.acid.rows import CODEC_VERSION
from calque.core.formats.readers import FileFormat
from calque.model.hive import Column
from support.sources.acid_files import RowEvent, events_file

COLUMNS = (Column("id", "int"), Column("v", "string"))
DELTA = FileOfDirectory(directory_of("delta_0000004_0000004_0001"), "bucket_00002")


def orc_of(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    orc.write_table(rows, sink)
    return sink.getvalue()


def read(content: bytes, columns: Sequence[Column], file: FileOfDirectory | None = None) -> list[dict[str, Any]]:
    return [row for part in batches_of(content, FileFormat.ORC) for row in rows_in(part, columns, file).to_pylist()]


def test_inserts_have_their_ids_and_deletes_are_apart() -> None:
    events = [RowEvent((4, 7, 0), 4, (1, "a")), RowEvent((2, 7, 5), 4, None), RowEvent((4, 7, 1), 4, (2, None))]
    content = events_file(events, COLUMNS)
    assert read(content, COLUMNS, DELTA) == [
        {"id": 1, "v": "a", "_calque_write_id": 4, "_calque_bucket": 7, "_calque_row": 0},
        {"id": 2, "v": None, "_calque_write_id": 4, "_calque_bucket": 7, "_calque_row": 1},
    ]
    [part] = batches_of(content, FileFormat.ORC)
    assert [tuple(row.values()) for row in deleted_in(part).to_pylist()] == [(2, 7, 5)]


def test_rows_without_ids_are_numbered_by_directory_and_bucket() -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["a", "b"]})
    names = [
        "000000_0",
        "delta_0000004_0000004_0001~000000_0",
        "delta_0000004_0000004_0001~000000_0_copy_1",
        "delta_0000004_0000004_0001~000001_0",
    ]
    found = {
        name: rows_in(parts[0], COLUMNS, file).select(ROW_ID).to_pylist()[0].values()
        for name, (file, parts) in zip(names, files_read(names, lambda _: [rows]), strict=True)
    }
    bucket = CODEC_VERSION | 1
    assert [tuple(one) for one in found.values()] == [
        (0, CODEC_VERSION, 0),
        (4, bucket, 0),
        (4, bucket, 2),
        (4, bucket | 1 << 16, 0),
    ]


@pytest.mark.parametrize(
    ("kind", "values", "shown"),
    [
        ("bigint", pa.array([1], pa.int32()), 1),
        ("decimal(5,2)", pa.array([Decimal("1.5")], pa.decimal128(38, 10)), Decimal("1.50")),
        ("date", pa.array([datetime.date(1500, 1, 2)]), datetime.date(1500, 1, 2)),
        ("array<int>", pa.array([[1, None]], pa.list_(pa.int32())), [1, None]),
        ("map<string,int>", pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), [("k", 1)]),
        ("binary", pa.array([b"\xff"]), b"\xff"),
        (
            "struct<b:bigint,c:string,a:int>",
            pa.array([{"a": 1, "b": 2}], pa.struct([("a", pa.int32()), ("b", pa.int32())])),
            {"a": 1, "b": 2, "c": None},
        ),
        (
            "timestamp",
            pa.array([datetime.datetime(2020, 1, 2, 3, 4, 5, 678)], pa.timestamp("us")),
            datetime.datetime(2020, 1, 2, 3, 4, 5, 678, datetime.UTC),
        ),
    ],
)
def test_values_have_the_types_of_the_table(kind: str, values: pa.Array, shown: object) -> None:
    (row,) = read(orc_of(pa.table({"C": values})), [Column("c", kind), Column("new", "string")])
    expected = dict(shown) if isinstance(shown, dict) else shown
    assert row == {"c": expected, "new": None}


def test_columns_without_names_are_found_by_their_places() -> None:
    rows = pa.table({"_col0": pa.array([1], pa.int32()), "_col1": ["a"]})
    assert read(orc_of(rows), [*COLUMNS, Column("w", "int")]) == [{"id": 1, "v": "a", "w": None}]


def test_what_has_no_place_in_a_column_is_said() -> None:
    with pytest.raises(Misshapen, match="values of its column id are no int32"):
        read(orc_of(pa.table({"id": ["a"]})), COLUMNS)
    with pytest.raises(Misshapen, match="it can't be read"):
        read(b"no ORC", COLUMNS)
    with pytest.raises(Misshapen, match="out of range"):
        read(orc_of(pa.table({"id": pa.array([datetime.datetime(3000, 1, 1)], pa.timestamp("us"))})), COLUMNS)


def test_rows_are_chosen_by_their_ids_in_their_order() -> None:
    rows = pa.table(
        {ROW_ID[0]: [1, 1, 2], ROW_ID[1]: pa.array([0, 0, 0], pa.int32()), ROW_ID[2]: [5, 6, 5], "v": list("abc")}
    )
    ids = rows.slice(1, 1).append_column("other", pa.array([0]))
    assert among(rows, ids)["v"].to_pylist() == ["b"]
    assert without(rows, ids)["v"].to_pylist() == ["a", "c"]
    assert without(rows, ids.slice(0, 0))["v"].to_pylist() == ["a", "b", "c"]
