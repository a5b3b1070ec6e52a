"""The files of a table, read with Arrow: formats, types, partition values."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from calque.adapters.files.systems import FileSystemSet
from calque.core.formats.definition import Definition, Format
from calque.core.formats.readers import TEXT_INPUT
from calque.errors import Refused
from calque.plugins.epoch_reader.api.arrow_dataset import dataset_of
from calque.plugins.epoch_reader.api.arrow_types import arrow_type
from calque.plugins.epoch_reader.api.files import Directory, TableFiles
from calque.plugins.epoch_reader.api.open_epoch import why_not_by_files

PARQUET = Format("parquet", "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe")
ORC = Format("orc", "org.apache.hadoop.hive.ql.io.orc.OrcSerde")
JSON = Format(TEXT_INPUT, "org.apache.hadoop.hive.serde2.JsonSerDe")
CSV = Format(TEXT_INPUT, "org.apache.hadoop.hive.serde2.OpenCSVSerde", {"separatorChar": ";"})
TEXT = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


def table(
    columns: dict[str, str],
    keys: dict[str, str],
    *directories: Directory,
    how: Format = PARQUET,
    **parameters: str,
) -> TableFiles:
    said = Definition("EXTERNAL_TABLE", tuple(columns.items()), tuple(keys.items()), parameters, how)
    return TableFiles("d.t", said, directories)


def rows(files: TableFiles) -> list[dict[str, object]]:
    found: list[dict[str, object]] = dataset_of(files, FileSystemSet()).to_table().to_pylist()
    return found


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({}, ""),
        ({"transactional": "TRUE"}, "the write ids of a reader say which of them count"),
        ({"calque.rows": "full"}, "the log of its replica has other files"),
    ],
)
def test_rows_of_acid_tables_do_not_lie_in_the_files_that_the_ledger_has(parameters: dict[str, str], why: str) -> None:
    assert why_not_by_files(table({}, {}, **parameters).definition) == why


def test_partition_keys_are_columns_with_their_types_and_awkward_values(tmp_path: Path) -> None:
    directories = []
    for number, values in enumerate((("2024-01-02", "a=b/c %25"), (None, None))):
        at = tmp_path / f"odd [dir] {number}"
        at.mkdir()
        pq.write_table(pa.table({"x": pa.array([number], pa.int32())}), at / "000000_0")
        directories.append(Directory(str(at), values, (f"file:{at}/000000_0",), PARQUET))
    found = rows(table({"x": "int"}, {"day": "date", "s": "string"}, *directories))
    assert sorted(found, key=str) == [
        {"x": 0, "day": datetime.date(2024, 1, 2), "s": "a=b/c %25"},
        {"x": 1, "day": None, "s": None},
    ]


def test_partitions_of_several_formats_are_one_table_and_late_columns_are_null(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([1], pa.int32())}), tmp_path / "p")
    orc.write_table(pa.table({"x": pa.array([2], pa.int32()), "y": ["new"]}), tmp_path / "o")
    (tmp_path / "j").write_text('{"x": 3, "y": "json"}\n')
    said = [("p", PARQUET), ("o", ORC), ("j", JSON)]
    parts = [Directory(str(tmp_path), (name,), (str(tmp_path / name),), how) for name, how in said]
    found = rows(table({"x": "int", "y": "string"}, {"p": "string"}, *parts, how=PARQUET))
    assert sorted((row["x"], row["y"], row["p"]) for row in found) == [
        (1, None, "p"),
        (2, "new", "o"),
        (3, "json", "j"),
    ]


def test_delimited_text_is_read_as_its_serde_says(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x|money|on\n1|2.50|true\n\\N|3.25|false\n")
    how = Format(TEXT_INPUT, TEXT, {"field.delim": "|"})
    columns = {"x": "int", "money": "decimal(10,2)", "on": "boolean"}
    part = Directory(str(tmp_path), (), (str(tmp_path / "f"),), how)
    found = rows(table(columns, {}, part, how=how, **{"skip.header.line.count": "1"}))
    assert found == [
        {"x": 1, "money": Decimal("2.50"), "on": True},
        {"x": None, "money": Decimal("3.25"), "on": False},
    ]


def test_quoted_text_has_strings_only(tmp_path: Path) -> None:
    (tmp_path / "f").write_text('1;"a;b"\n')
    part = Directory(str(tmp_path), (), (str(tmp_path / "f"),), CSV)
    assert rows(table({"x": "int", "s": "string"}, {}, part, how=CSV)) == [{"x": "1", "s": "a;b"}]


def test_a_table_without_files_has_its_columns() -> None:
    found = dataset_of(table({"x": "int"}, {"p": "bigint"}), FileSystemSet()).to_table()
    assert found.schema == pa.schema([("x", pa.int32()), ("p", pa.int64())])
    assert found.num_rows == 0


def test_a_serde_without_a_reader_is_named() -> None:
    how = Format("o.a.AvroContainerInputFormat", "org.apache.hadoop.hive.serde2.avro.AvroSerDe")
    with pytest.raises(Refused, match=r"no reader for .*AvroSerDe"):
        dataset_of(table({"x": "int"}, {}, how=how), FileSystemSet())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("array<struct<a:int,b:decimal(10,2)>>", pa.list_(pa.struct([("a", pa.int32()), ("b", pa.decimal128(10, 2))]))),
        ("map<string,array<bigint>>", pa.map_(pa.string(), pa.list_(pa.int64()))),
        ("STRUCT<userId:BIGINT>", pa.struct([("userId", pa.int64())])),
        ("map<string,Array<struct<userId:int>>>", pa.map_(pa.string(), pa.list_(pa.struct([("userId", pa.int32())])))),
        ("varchar(20)", pa.string()),
        ("decimal", pa.decimal128(10, 0)),
        ("TIMESTAMP", pa.timestamp("ns")),
    ],
)
def test_types_of_hive_are_types_of_arrow(kind: str, expected: pa.DataType) -> None:
    assert arrow_type("d.t.x", kind) == expected


def test_a_field_of_a_struct_is_read_whatever_the_case_of_its_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"s": [{"userId": 7}]}), tmp_path / "f")
    part = Directory(str(tmp_path), (), (str(tmp_path / "f"),), PARQUET)
    assert rows(table({"s": "struct<userId:bigint>"}, {}, part)) == [{"s": {"userId": 7}}]


def test_a_type_that_arrow_has_not_is_named() -> None:
    with pytest.raises(Refused, match="uniontype<int,string>"):
        arrow_type("d.t.x", "uniontype<int,string>")
