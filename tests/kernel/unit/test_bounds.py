"""What comes from outside has bounds: in bytes after unpacking, in depth; and only regular files are read."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
from dataclasses import replace
from pathlib import Path

import fastavro
import pytest

from calque.adapters.files.storage import FileStorage
from calque.adapters.files.systems import FileSystemSet
from calque.core.events import decode
from calque.core.events.decode import Undecodable, bounded, fields, weight_of
from calque.core.events.keys import keys_of, why_unknown
from calque.core.formats.bounded import TooMuch, gunzip, parse_json
from calque.core.formats.deltalog import commit_actions, starts_with
from calque.core.formats.hive_types import Other, parse_type, type_text
from calque.core.formats.iceberg import parse_metadata
from calque.core.formats.manifests import header_length, records, unpacked_blocks
from calque.engine.apply.statistics import ACCURATE, calls_accurate
from calque.engine.sweep.directory_tree import node_of
from calque.errors import Refused
from calque.model.bounds import DEEPEST, MESSAGE
from calque.model.journal import Event, EventKind

DEEP = "[" * 20_000
ZEROS = 600 << 20


def packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content)).decode()


def event(message: str, message_format: str = "gzip(json-2.0)") -> Event:
    return Event(7, 0, "CREATE_TABLE", "hive", "d", "t", message_format, message)


# Statistics


@pytest.mark.parametrize("said", ['{"COLUMN_STATS": 5}', "null", DEEP, '{"COLUMN_STATS": [1]}', "5", "{", "[]", ""])
def test_a_server_that_says_anything_of_statistics_calls_no_column_accurate(said: str) -> None:
    assert not calls_accurate({ACCURATE: said}, ["x"])


def test_statistics_that_are_accurate_are_called_so() -> None:
    assert calls_accurate({ACCURATE: '{"BASIC_STATS": "true", "COLUMN_STATS": {"x": "true", "y": "true"}}'}, ["x"])
    assert not calls_accurate({}, ["x"])
    assert calls_accurate({}, [])


# Messages


def test_a_message_that_unpacks_to_too_much_is_never_unpacked() -> None:
    long = event(base64.b64encode(gzip.compress(b"{}")[:-4] + ZEROS.to_bytes(4, "little")).decode())
    assert weight_of(long) == ZEROS
    marked = bounded(long, MESSAGE)
    assert marked.message == long.message
    keys = keys_of(marked)
    assert (keys.kind, str(keys.table), keys.defect) == (EventKind.UNKNOWN, "d.t", "")
    assert "max_message" in why_unknown(marked)
    of_unknown_name = keys_of(replace(marked, event_type="ALTER_TABLE"))
    assert (of_unknown_name.kind, str(of_unknown_name.table)) == (EventKind.UNKNOWN, "d.t")
    assert "max_message" in of_unknown_name.defect


def test_a_message_that_unpacks_to_more_than_it_says_is_not_decoded() -> None:
    content = gzip.compress(b'{"a": 1}' + b" " * 10_000)
    lying = base64.b64encode(content[:-4] + (8).to_bytes(4, "little")).decode()
    with pytest.raises(Undecodable, match="more than it says"):
        fields(event(lying))


def test_a_message_behind_which_something_follows_is_not_decoded() -> None:
    twice = base64.b64encode(gzip.compress(b'{"a": 1}') + gzip.compress(b"x" * 1000)).decode()
    with pytest.raises(Undecodable, match="more than"):
        fields(event(twice))


@pytest.mark.parametrize("cut", [1, 4, 8, 12, 20])
def test_a_message_that_is_cut_off_is_not_decoded(cut: int) -> None:
    content = gzip.compress(json.dumps({"a": list(range(1000))}).encode())[:-cut]
    with pytest.raises(Undecodable):
        fields(event(base64.b64encode(content).decode()))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 6, 7, 100, 70_000])
def test_a_message_weighs_what_it_unpacks_to(size: int) -> None:
    text = json.dumps({"a": "x" * size})
    message = packed(text.encode())
    assert weight_of(event(message)) == max(len(text), len(message))
    assert weight_of(event(text, "json-0.2")) == len(text)
    assert fields(event(message)) == {"a": "x" * size}


def test_a_message_within_the_bound_stays_as_it_is() -> None:
    small = event(packed(b'{"a": 1}'))
    assert bounded(small, 1000) is small
    assert "too long" in bounded(replace(small, message="x" * 11, message_format="json-0.2"), 10).message_format


def test_a_message_nested_deeper_than_a_computer_counts_is_unknown() -> None:
    for depth in (900, 1_000, 1_020, 5_000, 100_000):
        for both in ({"7": {"rec": {"1": "*"}}}, {"3": "*"}):
            deep = json.dumps(both).replace('"*"', "[" * depth + "]" * depth)
            message = json.dumps({"tableObjBeforeJson": deep, "tableObjAfterJson": deep.replace("7", "7")})
            keys = keys_of(replace(event(message, ""), event_type="ALTER_TABLE"))
            assert keys.kind is EventKind.UNKNOWN


# Types and JSON


@pytest.mark.parametrize("depth", [1_500, 100_000])
@pytest.mark.parametrize("name", ["array<{}>", "map<int,{}>", "struct<a:{}>"])
def test_a_type_nested_too_deeply_is_none_of_hives(depth: int, name: str) -> None:
    before, after = name.split("{}")
    text = before * depth + "int" + after * depth
    assert parse_type(text) == Other(text)


def test_a_type_nested_as_deeply_as_may_be_is_parsed() -> None:
    text = "array<" * DEEPEST + "int" + ">" * DEEPEST
    kind = parse_type(text)
    assert type_text(kind) == text
    assert not isinstance(kind, Other)


def test_a_precision_of_thousands_of_digits_is_no_type() -> None:
    text = f"decimal({'9' * 5_000})"
    assert parse_type(text) == Other(text)


@pytest.mark.parametrize("text", [DEEP, "[" * 101 + "]" * 101, '{"a":' * 150 + "1" + "}" * 150, "9" * 5_000, "{"])
def test_json_that_is_too_deep_or_none_is_a_value_error_alone(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of which kind does not matter
        parse_json(text)


def test_json_as_deep_as_may_be_is_parsed_and_no_longer_than_may_be() -> None:
    assert parse_json("[" * DEEPEST + "]" * DEEPEST) is not None
    with pytest.raises(TooMuch):
        parse_json("[1, 2, 3]", most=8)


# Metadata of other formats


def test_what_a_gzip_file_unpacks_to_is_bounded_over_all_its_members() -> None:
    one = gzip.compress(b"x" * 600)
    assert gunzip(one + one, 1200) == b"x" * 1200
    with pytest.raises(TooMuch):
        gunzip(one + one, 1199)


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"5",
        b'{"format-version": [], "location": ""}',
        DEEP.encode(),
        gzip.compress(b"[", mtime=0),
        *(b'{"format-version": 2, "location": "x", "snapshots": %s}' % one for one in (b"5", b'["x"]', b"[5]")),
    ],
)
def test_metadata_that_is_none_refuses_its_table(content: bytes) -> None:
    with pytest.raises(Refused):
        parse_metadata("x.gz.metadata.json" if content[:2] == b"\x1f\x8b" else "x.metadata.json", content)


def manifest(codec: str, rows: int = 100) -> bytes:
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "string"}]}
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, ({"x": "y" * 1000} for _ in range(rows)), codec=codec, sync_interval=4_000)
    return buffer.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_blocks_of_each_codec_are_read_up_to_a_bound(codec: str) -> None:
    content = manifest(codec)
    assert records("x.avro", content) == [{"x": "y" * 1000}] * 100
    body = content[header_length(content) :]
    assert sum(map(len, unpacked_blocks(body, codec, 101_000))) > 100_000
    with pytest.raises(TooMuch):
        list(unpacked_blocks(body, codec, 99_000))


@pytest.mark.parametrize("codec", ["bzip2", "xz"])
def test_codecs_that_are_not_known_are_not_unpacked(codec: str) -> None:
    with pytest.raises(Refused, match=codec):
        records("x.avro", manifest(codec))


@pytest.mark.parametrize(
    "content", [b"5", b"[]", b'{"add": 5}', b'{"add": {"path": 5}}', b'{"protocol": 7}', DEEP.encode()]
)
def test_a_commit_that_is_none_refuses_its_table(content: bytes) -> None:
    with pytest.raises(Refused):
        commit_actions(content)
    assert not starts_with(DEEP.encode(), None)  # type: ignore[arg-type]  # it is not looked at


# Files


@pytest.mark.parametrize("path", ["/dev/zero", "pipe", "socket"])
def test_only_regular_files_are_read(tmp_path: Path, path: str) -> None:
    import socket

    if path == "pipe":
        os.mkfifo(tmp_path / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    location = f"file://{path if path.startswith('/') else tmp_path / path}"
    storage = FileStorage()
    for read in (
        lambda: storage.read(location),
        lambda: storage.checksums([location]),
        lambda: storage.tails([location], 10),
    ):
        with pytest.raises(Refused, match="regular file"):
            read()
    listener.close()


def test_a_file_that_is_read_whole_has_a_bound(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 11)
    with pytest.raises(Refused, match="max_message takes 10"):
        FileStorage(FileSystemSet(most_read=10)).read(f"file://{tmp_path}/f")
    assert FileStorage(FileSystemSet(most_read=11)).read(f"file://{tmp_path}/f") == b"x" * 11


def test_a_link_to_a_directory_above_ends_no_walk_through_directories(tmp_path: Path) -> None:
    (tmp_path / "t/p=1").mkdir(parents=True)
    (tmp_path / "t/p=1/f").write_bytes(b"x")
    (tmp_path / "t/p=1/self").symlink_to(".")
    (tmp_path / "t/above").symlink_to("..")
    tree = node_of(FileStorage(), f"file://{tmp_path}/t", 0)
    assert [child.location.rsplit("/", 1)[1] for child in tree.directories] == ["p=1"]
    assert tree.content()[1] == 1


def test_nothing_that_is_unpacked_is_longer_than_the_longest_message_whatever_it_says() -> None:
    says_much = base64.b64encode(gzip.compress(b"{}")[:-4] + b"\xff\xff\xff\xff").decode()
    assert decode.weight_of(event(says_much)) == decode.LONGEST_MESSAGE
    with pytest.raises(Undecodable):
        fields(event(says_much))
