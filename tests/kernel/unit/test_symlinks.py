"""What a symlink table's manifest says, and what it says at a target."""

from __future__ import annotations

import pytest

from calque.core.formats.definition import Format
from calque.core.formats.readers import kind_of
from calque.core.formats.symlinks import COPIES, Line, is_symlinks, lines_of, moved
from calque.core.small_files.combined_note import combination_of, note_of
from calque.errors import Refused
from calque.model.files import Combination, CombinedFile, File
from calque.model.hive import Partition, Storage, Table
from calque.plugins.dumps.core.event_contents import reason_against

MANIFEST = "hdfs://hq/w/t/manifest"
SYMLINKS = "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"


def paths(content: bytes, manifest: str = MANIFEST) -> list[str]:
    return [line.path for line in lines_of(manifest, content)]


def test_each_line_is_a_path_however_lines_end() -> None:
    assert paths(b"") == []
    assert paths(b"s3://b/a\ns3://b/c") == paths(b"s3://b/a\r\ns3://b/c\r") == ["s3://b/a", "s3://b/c"]
    assert [line.number for line in lines_of(MANIFEST, b"s3://b/a\ns3://b/c\n")] == [1, 2]


def test_names_stand_as_they_are() -> None:
    assert paths("s3://b/p=a%2Fb/ü d ".encode()) == ["s3://b/p=a%2Fb/ü d "]


def test_a_path_without_a_scheme_is_one_of_the_manifest_s_file_system() -> None:
    assert paths(b"/d/a") == ["hdfs://hq/d/a"]
    assert paths(b"/d/a", "/w/t/manifest") == paths(b"file:///d/a") == paths(b"file:/d/a") == ["file:/d/a"]


@pytest.mark.parametrize(
    ("content", "number"),
    [
        (b"\n", 1),
        (b"/a\n\n/b\n", 2),
        (b"a/b\n", 1),
        (b" /a\n", 1),
        ("\ufeff/a\n".encode(), 1),
        (b"/a\n/b/*\n", 2),
        (b"/a\r\n/b\r\n/c/[ab]\r\n", 3),
        (b"/b/{a,b}", 1),
        (b"/b/a?", 1),
        (b"/b/a\\*", 1),
        (b"/", 1),
        (b"s3://b\n", 1),
        (b"/a/b/", 1),
        (b"/a/../b", 1),
        (b"/a\x00b", 1),
        (b"/a\n/b\r/\xff", 3),
        (b"\x80", 1),
    ],
)
def test_a_line_that_names_no_file_is_refused_with_its_number(content: bytes, number: int) -> None:
    with pytest.raises(Refused, match=f"Line {number} of {MANIFEST}"):
        lines_of(MANIFEST, content)


def test_what_is_long_is_told_in_short() -> None:
    with pytest.raises(Refused) as error:
        lines_of(MANIFEST, b"x" * 100_000)
    assert len(str(error.value)) < 500


def test_a_copy_keeps_the_file_s_name_and_lies_where_no_reader_lists() -> None:
    [line] = lines_of(MANIFEST, b"s3://b/d/_part.snappy.parquet")
    assert line.copy.startswith(f"{COPIES}/")
    assert line.copy.endswith("/_part.snappy.parquet")
    assert COPIES.startswith("_")
    assert moved([line], "/target/t/") == f"file:/target/t/{line.copy}\n".encode()


def test_files_of_one_name_in_two_directories_have_two_copies_and_one_file_has_one() -> None:
    first, second, again = lines_of("/w/m", b"/a/f\n/b/f\nfile:///a//f\n")
    assert first.copy != second.copy
    assert first == Line(1, again.path, again.copy)


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (Table("t", "d", storage=Storage(input_format=SYMLINKS)), True),
        (Partition(("1",), "d", "t", storage=Storage(input_format=SYMLINKS.upper())), True),
        (Table("t", "d", storage=Storage(input_format="org.apache.hadoop.mapred.TextInputFormat")), False),
        (Table("t", "d", storage=Storage()), False),
        (Table("t", "d"), False),
        (Table("t", "d", storage=Storage(input_format=SYMLINKS), type="VIRTUAL_VIEW"), False),
        (Table("t", "d", storage=Storage(input_format=SYMLINKS), parameters={"table_type": "ICEBERG"}), False),
        (
            Table("t", "d", storage=Storage(input_format=SYMLINKS), parameters={"spark.sql.sources.provider": "delta"}),
            False,
        ),
    ],
)
def test_which_objects_are_read_by_manifests(thing: Table | Partition, expected: bool) -> None:
    assert is_symlinks(thing) is expected


@pytest.mark.parametrize("serde", ["parquet.serde.ParquetHiveSerDe", "orc.OrcSerde"])
def test_files_of_manifests_are_not_read_as_rows(serde: str) -> None:
    name = f"org.apache.hadoop.hive.ql.io.{serde}"
    assert kind_of("d.t", Format("org.apache.hadoop.hive.ql.io.SomeInputFormat", name))
    with pytest.raises(Refused, match="can't be read by its files"):
        kind_of("d.t", Format(SYMLINKS, name))


def test_a_dump_has_none() -> None:
    assert "symlink tables" in reason_against(Table("t", "d", storage=Storage(input_format=SYMLINKS)))
    assert reason_against(Table("t", "d", storage=Storage(input_format="text"))) == ""


def test_the_note_beside_manifests_says_what_they_are() -> None:
    combined = CombinedFile(File("calque-1-0001.txt", 9, 2), ("manifest",))
    combination = Combination(None, (File("manifest", 5, 1),), (combined,))
    assert combination_of(note_of(combination)) == combination
