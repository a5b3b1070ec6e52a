"""Files of Iceberg tables that hold paths, one by one, and metadata files at another location."""

from __future__ import annotations

import gzip
import io
import json

import fastavro
import pytest
from pyiceberg.table.puffin import PuffinFile

from calque.core.formats.iceberg import PathMapping, metadata_file, moved_metadata, parse_metadata
from calque.core.formats.manifests import ListedFile, files_in, moved_deletes, recoded, records, rewritten_as
from calque.errors import Refused

PATHS = PathMapping.between("s3a://hq/wh/t", "file:///dr/t/")
SCHEMA = {
    "type": "record",
    "name": "file_path_pos",
    "fields": [
        {"name": "file_path", "type": "string", "field-id": 2147483546},
        {"name": "pos", "type": "long", "field-id": 2147483545},
        {"name": "on", "type": {"type": "int", "logicalType": "date"}},
    ],
}
BEYOND = 4_000_000
"""Days after 1970 that Python's dates do not reach."""


def avro(*paths: str, codec: str = "deflate") -> bytes:
    buffer = io.BytesIO()
    rows = [{"file_path": path, "pos": 1, "on": BEYOND} for path in paths]
    fastavro.writer(buffer, SCHEMA, rows, codec=codec, metadata={"delete-type": "position"})
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("path", "at"),
    [
        ("s3a://hq/wh/t", "file:/dr/t"),
        ("s3a://hq/wh/t/data/p=a%2Fb/f.parquet", "file:/dr/t/data/p=a%2Fb/f.parquet"),
        ("s3a://hq/wh/t//data/f", "file:/dr/t/data/f"),
    ],
)
def test_a_path_below_the_table_keeps_its_name_there(path: str, at: str) -> None:
    assert PATHS.at_target(path) == at


def test_paths_outside_of_the_table_never_meet() -> None:
    outside = ["s3a://hq/wh/t2/f", "s3a://other/wh/t/f", "file:/wh/t/f"]
    found = [PATHS.at_target(path) for path in outside]
    assert len(set(found)) == len(outside)
    assert all(path.startswith("file:/dr/t/elsewhere/") and path.endswith("/f") for path in found)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_an_avro_file_keeps_its_header_and_what_is_not_changed(codec: str) -> None:
    content = avro("s3a://hq/wh/t/data/f", codec=codec)
    moved = moved_deletes(ListedFile("d", "AVRO", 0, True, None), content, PATHS.at_target)
    assert records("d", moved) == [{"file_path": "file:/dr/t/data/f", "pos": 1, "on": BEYOND}]
    assert fastavro.reader(io.BytesIO(moved)).metadata == fastavro.reader(io.BytesIO(content)).metadata
    assert moved == moved_deletes(ListedFile("d", "AVRO", 0, True, None), content, PATHS.at_target)
    assert recoded("d", content, lambda row: row) == content
    bound = b"file:/dr/t/data/f"
    assert rewritten_as(ListedFile("d", "AVRO", 0, True, None), moved).bounds == (bound, bound)


def test_a_deletion_vector_stays_where_it_is_and_names_the_targets_file() -> None:
    vector = b"\x00\x01vector"
    blob = {
        "type": "deletion-vector-v1",
        "fields": [],
        "snapshot-id": 1,
        "sequence-number": 2,
        "offset": 4,
        "length": len(vector),
        "properties": {"referenced-data-file": "s3a://hq/wh/t/data/ü", "cardinality": "1"},
    }
    footer = json.dumps({"blobs": [blob], "properties": {"created-by": "x"}}).encode()
    content = b"PFA1" + vector + b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
    moved = moved_deletes(ListedFile("d", "PUFFIN", 0, True, None), content, PATHS.at_target)
    found = PuffinFile(moved)
    assert found.get_blob_payload(found.footer.blobs[0]) == vector
    assert found.footer.blobs[0].properties == {"referenced-data-file": "file:/dr/t/data/ü", "cardinality": "1"}
    assert rewritten_as(ListedFile("d", "PUFFIN", 0, True, None), moved).size == len(moved)


@pytest.mark.parametrize(
    ("format_", "content"),
    [("ORC", b"ORC"), ("PARQUET", b"PAR1"), ("PUFFIN", b"PFA1"), ("PUFFIN", b""), ("AVRO", b"Obj\x01"), ("AVRO", b"")],
)
def test_deletes_that_cannot_be_rewritten_are_refused_by_name(format_: str, content: bytes) -> None:
    with pytest.raises(Refused, match="s3a://hq/d"):
        moved_deletes(ListedFile("s3a://hq/d", format_, 0, True, None), content, PATHS.at_target)


def test_a_file_that_is_no_manifest_is_refused() -> None:
    for content in (b"", b"junk" * 9, avro("x")):
        with pytest.raises(Refused, match=r"m\.avro"):
            files_in("m.avro", content)


METADATA = {
    "format-version": 2,
    "location": "s3a://hq/wh/t",
    "current-snapshot-id": 3,
    "snapshots": [{"snapshot-id": n, "manifest-list": f"s3a://hq/wh/t/metadata/s{n}.avro"} for n in (1, 2, 3)],
    "refs": {"main": {"snapshot-id": 3}, "old": {"snapshot-id": 2}},
    "snapshot-log": [{"snapshot-id": n} for n in (1, 2, 3)],
    "metadata-log": [{"metadata-file": f"s3a://hq/wh/t/metadata/v{n}.json"} for n in (1, 2)],
    "statistics": [{"snapshot-id": n, "statistics-path": f"s3a://hq/wh/t/metadata/{n}.stats"} for n in (2, 3)],
    "properties": {"write.data.path": "s3a://hq/wh/t/d", "write.metadata.path": "s3a://hq/m", "k": "v"},
    "unknown": [1],
}


def test_metadata_names_only_what_is_at_the_target() -> None:
    statistics = {"file:/dr/t/metadata/2.stats", "file:/dr/t/metadata/3.stats"}
    log = {"file:/dr/t/metadata/v2.json"}
    assert moved_metadata(METADATA, PATHS, {1, 3}, statistics, log) == {
        "format-version": 2,
        "location": "file:/dr/t",
        "current-snapshot-id": 3,
        "snapshots": [{"snapshot-id": n, "manifest-list": f"file:/dr/t/metadata/s{n}.avro"} for n in (1, 3)],
        "refs": {"main": {"snapshot-id": 3}},
        "snapshot-log": [{"snapshot-id": 3}],
        "metadata-log": [{"metadata-file": "file:/dr/t/metadata/v2.json"}],
        "statistics": [{"snapshot-id": 3, "statistics-path": "file:/dr/t/metadata/3.stats"}],
        "properties": {"write.data.path": "file:/dr/t/d", "k": "v"},
        "unknown": [1],
    }


@pytest.mark.parametrize("name", ["1-x.metadata.json", "1-x.gz.metadata.json", "1-x.metadata.json.gz"])
def test_metadata_is_compressed_where_its_name_says_so(name: str) -> None:
    content = metadata_file(name, METADATA)
    assert (content[:2] == gzip.compress(b"")[:2]) == ("gz" in name)
    assert parse_metadata(name, content) == METADATA


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format-version": 4, "location": "/t"}',
        b'{"format-version": 2, "location": 1}',
        b'{"format-version": 1, "location": "/t", "snapshots": [{"snapshot-id": 1, "manifests": []}]}',
    ],
)
def test_metadata_that_calque_does_not_know_is_refused_by_name(content: bytes) -> None:
    with pytest.raises(Refused, match=r"v1\.metadata\.json"):
        parse_metadata("v1.metadata.json", content)
