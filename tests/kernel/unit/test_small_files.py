"""Which files are combined, what is made of their rows, and the digest over rows."""

from __future__ import annotations

import datetime
import decimal
import io
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calque.core.policy.admit import rules_of
from calque.core.small_files.combine_rows import combine, digest_of_rows
from calque.core.small_files.combined_note import as_stored, combination_of, combined_name, note_of, understood
from calque.core.small_files.grouping import PARQUET_INPUT, TEXT_INPUT, Unfit, group_files, layout_of
from calque.model.files import Combination, CombinedFile, File, Listing, RowLayout
from calque.model.hive import Partition, SerDe, Skew, Storage, Table
from calque.model.names import TableName
from calque.model.policy import SmallFilesRule

TEXT, PARQUET = RowLayout.TEXT, RowLayout.PARQUET
STORED = Storage(input_format=TEXT_INPUT)
TABLE, PARTITION = Table("t", "d", storage=STORED), Partition(("1",), "d", "t", storage=STORED)
RULE = SmallFilesRule(files=3, below=100)


def sized(*sizes: int, name: str = "part-{:05}") -> list[File]:
    return [File(name.format(number), size, number) for number, size in enumerate(sizes)]


def grouped(files: Sequence[File], layout: RowLayout = TEXT) -> list[list[int]] | None:
    found = group_files(RULE, layout, files)
    return None if found is None else [[file.size for file in group] for group in found.groups]


# Which files


def test_small_files_are_grouped_by_name_up_to_the_size_of_a_file() -> None:
    assert grouped(sized(40, 50, 20, 0, 10, 60, 40)) == [[40, 50], [20, 0, 10, 60], [40]]


def test_few_files_large_ones_and_those_that_hardly_become_fewer_are_left() -> None:
    assert grouped(sized(1, 1)) is None
    assert grouped(sized(100, 200, 300, 400)) is None
    assert grouped(sized(90, 90, 90, 90)) is None
    assert grouped([]) is None


def test_large_files_are_copied_beside_groups() -> None:
    assert grouped(sized(10, 500, 10, 10, 10, 10)) == [[10, 10, 10, 10, 10], [500]]


def test_files_in_directories_of_their_own_and_names_of_compressed_text_are_left() -> None:
    assert grouped([*sized(1, 1, 1, 1), File("HIVE_UNION_SUBDIR_1/000000_0", 1, 1)]) is None
    for name in ("part-{}.gz", "part-{}.bz2", "{}.snappy", "{}.zst", "{}.lzo_deflate", "{}.unheard"):
        assert grouped(sized(1, 1, 1, 1, name=name)) is None
        assert grouped(sized(1, 1, 1, 1, name=name), PARQUET) == [[1, 1, 1, 1]]
    for name in ("00000{}_0", "part-{}-c000", "{}.csv", "{}.c000.TXT", "FlumeData.{}"):
        assert grouped(sized(1, 1, 1, 1, name=name)) == [[1, 1, 1, 1]]


@pytest.mark.parametrize(
    ("table", "partition", "layout"),
    [
        (TABLE, PARTITION, TEXT),
        (TABLE, replace(PARTITION, storage=replace(STORED, input_format=PARQUET_INPUT)), PARQUET),
        (TABLE, replace(PARTITION, storage=None), None),
        (TABLE, replace(PARTITION, storage=replace(STORED, input_format="org.apache.hadoop.hive.ql.io.orc")), None),
        (TABLE, replace(PARTITION, storage=replace(STORED, buckets=4)), None),
        (replace(TABLE, storage=replace(STORED, buckets=4)), PARTITION, None),
        (TABLE, replace(PARTITION, storage=replace(STORED, buckets=-1)), TEXT),
        (TABLE, replace(PARTITION, storage=replace(STORED, skew=Skew(("a",)))), None),
        (TABLE, replace(PARTITION, storage=replace(STORED, skew=Skew())), TEXT),
        (replace(TABLE, parameters={"spark.sql.sources.schema.numBuckets": "8"}), PARTITION, None),
        (replace(TABLE, parameters={"skip.header.line.count": "1"}), PARTITION, None),
        (replace(TABLE, parameters={"skip.header.line.count": "0"}), PARTITION, TEXT),
        (TABLE, replace(PARTITION, parameters={"skip.footer.line.count": "2"}), None),
        (TABLE, replace(PARTITION, storage=replace(STORED, serde=SerDe(parameters={"line.delim": "\n"}))), TEXT),
        (TABLE, replace(PARTITION, storage=replace(STORED, serde=SerDe(parameters={"line.delim": "|"}))), None),
        (
            TABLE,
            replace(PARTITION, storage=replace(STORED, serde=SerDe(parameters={"serialization.encoding": "UTF-16"}))),
            None,
        ),
        (replace(TABLE, parameters={"textinputformat.record.delimiter": "\x01"}), PARTITION, None),
        (replace(TABLE, parameters={"spark.sql.sources.provider": "csv"}), PARTITION, None),
    ],
)
def test_a_format_is_known_where_a_file_means_no_more_than_its_rows(
    table: Table, partition: Partition, layout: RowLayout | None
) -> None:
    assert layout_of(table, partition) is layout


def test_the_longest_pattern_decides() -> None:
    other = SmallFilesRule(5, 10)
    rule_of = rules_of({"logs.*": RULE, "logs.web": other})
    assert (rule_of(TableName("logs", "a")), rule_of(TableName("logs", "web"))) == (RULE, other)
    assert rule_of(TableName("sales", "a")) is None
    assert rules_of({})(TableName("logs", "a")) is None


# Text


@pytest.mark.parametrize(
    "contents",
    [
        [b"a\n", b"b\n"],
        [b"a", b"b"],
        [b"a\r", b"\nb"],
        [b"a\r\n", b"", b"\r", b"b\n\n"],
        [b"\x00\xff", b"\xfe\r\r", b"\n"],
    ],
)
def test_text_keeps_its_lines_in_order_and_their_digest(contents: list[bytes]) -> None:
    made, digest = combine(TEXT, contents)
    assert made.splitlines() == [line for content in contents for line in content.splitlines()]
    assert digest == digest_of_rows(TEXT, [made]) == digest_of_rows(TEXT, contents)
    assert digest != digest_of_rows(TEXT, [*contents[::-1], b"more"])


def test_text_with_a_byte_order_mark_is_unfit() -> None:
    with pytest.raises(Unfit, match="byte order mark"):
        combine(TEXT, [b"a", b"\xef\xbb\xbfb"])


# Parquet


NESTED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata={b"PARQUET:field_id": b"7"}),
        pa.field("name", pa.string()),
        pa.field("price", pa.decimal128(7, 2)),
        pa.field("wide", pa.decimal128(38, 9)),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("day", pa.date32()),
        pa.field("tags", pa.list_(pa.field("element", pa.string()))),
        pa.field("counts", pa.map_(pa.string(), pa.list_(pa.field("element", pa.int32())))),
        pa.field("inner", pa.struct([pa.field("x", pa.float64()), pa.field("flag", pa.bool_())])),
        pa.field("small", pa.int8()),
        pa.field("bytes", pa.binary()),
    ]
)


def row(number: int) -> dict[str, object]:
    if number % 5 == 0:
        return {"id": number}
    return {
        "id": number,
        "name": "ä" * (number % 7),
        "price": decimal.Decimal(number) / 4,
        "wide": decimal.Decimal(number).scaleb(20),
        "at": datetime.datetime(1955, 1, 1, 1, 1, 1, number, tzinfo=datetime.UTC),
        "local": datetime.datetime(2024, 1, 1, 0, 0, 0, number),
        "day": datetime.date(1500, 1, 1 + number % 27),
        "tags": [None, "x", ""][: number % 4],
        "counts": {"k": [1, None], "": []} if number % 3 else None,
        "inner": {"x": float("nan") if number % 2 else -0.0, "flag": None},
        "small": -number % 100,
        "bytes": bytes([number % 256, 0]),
    }


def parquet(numbers: Sequence[int], schema: pa.Schema = NESTED, **options: object) -> bytes:
    table = pa.Table.from_pylist([row(number) for number in numbers], schema)
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def rows_of(*contents: bytes) -> list[str]:
    return [repr(each) for content in contents for each in pq.ParquetFile(io.BytesIO(content)).read().to_pylist()]


@pytest.mark.parametrize("options", [{}, {"store_decimal_as_integer": True}, {"version": "1.0", "compression": "zstd"}])
def test_parquet_keeps_rows_types_metadata_codecs_and_its_writer(options: dict[str, object]) -> None:
    schema = NESTED.with_metadata({b"made.by": "löve".encode()})
    contents = [parquet(range(10 * n, 10 * n + 7), schema, **options) for n in range(20)]
    contents.append(parquet([], schema, **options))
    made, digest = combine(PARQUET, contents)
    first, now = (pq.ParquetFile(io.BytesIO(content)) for content in (contents[0], made))
    assert rows_of(made) == rows_of(*contents)
    assert now.schema.equals(first.schema)
    assert now.schema_arrow.equals(first.schema_arrow, check_metadata=True)
    assert now.metadata.metadata == first.metadata.metadata
    assert (now.metadata.created_by, now.metadata.num_row_groups) == (first.metadata.created_by, 1)
    assert [now.metadata.row_group(0).column(n).compression for n in range(3)] == [
        first.metadata.row_group(0).column(n).compression for n in range(3)
    ]
    assert digest == digest_of_rows(PARQUET, [made]) == digest_of_rows(PARQUET, contents)


def test_a_digest_says_rows_and_their_order_and_not_how_they_are_cut() -> None:
    numbers = list(range(40))
    whole = digest_of_rows(PARQUET, [parquet(numbers)])
    assert whole == digest_of_rows(PARQUET, [parquet(numbers, row_group_size=3, compression="none")])
    assert whole == digest_of_rows(PARQUET, [parquet(numbers[:9]), parquet(numbers[9:])])
    assert whole == digest_of_rows(PARQUET, [parquet(numbers, use_dictionary=False, data_page_version="2.0")])
    assert whole != digest_of_rows(PARQUET, [parquet([1, 0, *numbers[2:]])])
    assert whole != digest_of_rows(PARQUET, [parquet(numbers[:-1])])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"t": [None, [], [None], ["a", "b"]]}, {"t": [[], None, [None], ["a", "b"]]}),
        ({"t": [["a"], ["b"]]}, {"t": [["a", "b"], []]}),
        ({"t": ["ab", "c"]}, {"t": ["a", "bc"]}),
        ({"t": [{"x": None}, None]}, {"t": [None, {"x": None}]}),
        ({"t": [1, None]}, {"t": [1, 0]}),
        ({"t": [0.0]}, {"t": [-0.0]}),
        ({"t": [True, None]}, {"t": [None, True]}),
    ],
)
def test_digests_of_unlike_rows_differ(one: dict[str, list[object]], other: dict[str, list[object]]) -> None:
    def digest(columns: dict[str, list[object]]) -> str:
        kind = pa.array(one["t"]).type
        if kind == pa.struct([("x", pa.null())]):
            kind = pa.struct([("x", pa.int32())])
        sink = io.BytesIO()
        pq.write_table(pa.table({"t": pa.array(columns["t"], kind)}), sink)
        return digest_of_rows(PARQUET, [sink.getvalue()])

    assert digest(one) == digest(one)
    assert digest(one) != digest(other)


def timestamps(*texts: str) -> bytes:
    stamps = [datetime.datetime.fromisoformat(text) for text in texts]
    sink = io.BytesIO()
    pq.write_table(pa.table({"t": pa.array(stamps, pa.timestamp("us"))}), sink, use_deprecated_int96_timestamps=True)
    return sink.getvalue()


def test_int96_timestamps_stay_int96_and_those_beyond_nanoseconds_are_told_by_the_digest() -> None:
    near = [timestamps("1900-01-01T00:00:00.000001"), timestamps("2200-06-01T12:00:00")]
    made, digest = combine(PARQUET, near)
    assert pq.ParquetFile(io.BytesIO(made)).schema.column(0).physical_type == "INT96"
    assert digest == digest_of_rows(PARQUET, [made])
    made, digest = combine(PARQUET, [*near, far_timestamp()])
    assert digest != digest_of_rows(PARQUET, [made])


def far_timestamp() -> bytes:
    """A file with an INT96 of the year 9999, which pyarrow doesn't write: the day of one of 1970 is exchanged."""
    content = timestamps("1970-01-01T00:00:00")
    day, far_day = (2440588).to_bytes(4, "little"), (5373484).to_bytes(4, "little")
    assert content.count(bytes(8) + day)
    return content.replace(bytes(8) + day, bytes(8) + far_day)


def test_parquet_files_that_differ_or_would_be_written_another_way_are_unfit() -> None:
    first = parquet([1, 2])
    bag = pa.schema([pa.field("tags", pa.list_(pa.field("array_element", pa.string())))])
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([{"tags": ["a"]}], bag), sink, use_compliant_nested_type=False)
    for contents in (
        [first, parquet([3], NESTED.with_metadata({b"other": b"metadata"}))],
        [first, parquet([3], pa.schema([pa.field("id", pa.int32())]))],
        [first, parquet([3], pa.schema([*NESTED][::-1]))],
        [first, parquet([3], compression="gzip")],
        [first, b"no Parquet file"],
        [first, first[:-20]],
        [sink.getvalue()] * 2,
        [parquet([1], compression="lz4")] * 2,
        [],
    ):
        with pytest.raises(Unfit):
            combine(PARQUET, contents)


# Notes


def test_a_note_is_believed_as_long_as_its_files_lie_there() -> None:
    sources = tuple(sized(5, 6, 7))
    name = combined_name("0" * 24, 1, TEXT)
    made = CombinedFile(File(name, 11, 99, "c"), ("part-00000", "part-00001"), "d")
    copied = CombinedFile(File("part-00002", 7, 2, "e"), ("part-00002",))
    combination = Combination(TEXT, sources, (made, copied))
    note = note_of(combination)
    lying = Listing("/t", (File(name, 11, 99), File("part-00002", 7, 2)))
    assert combination_of(note) == combination
    found = understood(lying, note)
    assert found.fingerprint() == Listing("/s", sources).fingerprint()
    assert [file.path for file in found.stored] == [name, "part-00002"]
    assert [file.path for file in as_stored(found).files] == [name, "part-00002"]
    for other in (
        replace(lying, files=lying.files[:1]),
        replace(lying, files=(replace(lying.files[0], modified_ns=98), lying.files[1])),
        replace(lying, files=(*lying.files, File("z", 1, 1))),
    ):
        assert understood(other, note) == other
    for damaged in (None, b"", b"{}", note.replace(b'"format":1', b'"format":2'), b"[1]"):
        assert understood(lying, damaged) == lying
