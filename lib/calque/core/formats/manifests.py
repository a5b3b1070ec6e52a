"""Files of an Iceberg table that hold paths: manifest lists, manifests, position deletes, deletion vectors.

Avro files are written again block by block, under their own header: schema, codec, marker and all that a writer noted
stay as they are, so the same input gives the same bytes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from fastavro.read import HEADER_SCHEMA
from fastavro.schema import SchemaParseException

from calque.core.formats.bounded import RAW, TooMuch, inflate, parse_json, require_rows_fit
from calque.core.formats.iceberg import of_type, unreadable
from calque.errors import Refused
from calque.model.bounds import MESSAGE

DATA, POSITION_DELETES = 0, 1
DELETED = 2
"""The status of an entry whose file is no part of the snapshot any more."""
EXISTING = 0
FILE_PATH = 2147483546
"""The field of the data file's path in position deletes."""
PUFFIN_TAIL = 12
"""Bytes after the footer's text: its length, flags, and the magic again."""

MALFORMED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    EOFError,
    RecursionError,
    OverflowError,
    SchemaParseException,
)
"""Exceptions that libraries raise for content that is not of its format."""
SYNC = 16
"""Bytes of the marker behind each block of an Avro file."""

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file that a manifest lists. `rewritten` files hold paths, and get other bytes at a target. `added_by` is the
    snapshot that an entry was taken over from, None for a new entry."""

    path: str
    format: str
    size: int
    rewritten: bool
    added_by: int | None


@dataclass(frozen=True, slots=True)
class RewrittenDeleteFile:
    """A delete file at the target: its size in bytes, and in `bounds` the least and the greatest path in it, None where
    the manifest says none."""

    size: int
    bounds: tuple[bytes, bytes] | None = None


def manifests_in(path: str, content: bytes) -> list[Record]:
    """Return the rows of a manifest list, each with at least `manifest_path` and `manifest_length`. Raises `Refused`
    for a content that can't be read."""
    rows = records(path, content)
    try:
        for row in rows:
            of_type(str, row["manifest_path"], "manifest_path")
            of_type(int, row["manifest_length"], "manifest_length")
    except MALFORMED as error:
        raise unreadable(path, error) from error
    return rows


def files_in(path: str, content: bytes) -> list[ListedFile]:
    """Return the files of a manifest that a snapshot with it needs; deleted entries are left out. Raises `Refused` for
    a content that can't be read."""
    try:
        return [listed(entry) for entry in records(path, content) if entry["status"] != DELETED]
    except MALFORMED as error:
        raise unreadable(path, error) from error


def listed(entry: Record) -> ListedFile:
    file = entry["data_file"]
    added_by = entry["snapshot_id"] if entry["status"] == EXISTING else None
    rewritten = file.get("content", DATA) == POSITION_DELETES
    return ListedFile(
        of_type(str, file["file_path"], "file_path"),
        of_type(str, file["file_format"], "file_format").upper(),
        of_type(int, file["file_size_in_bytes"], "file_size_in_bytes"),
        rewritten,
        added_by if added_by is None else of_type(int, added_by, "snapshot_id"),
    )


def moved_list(path: str, content: bytes, lengths: Mapping[str, int], at_target: Callable[[str], str]) -> bytes:
    """Return the manifest list for the target. `lengths` are those of the manifests there, by their paths at the
    source."""

    def change(row: Record) -> Record:
        manifest = row["manifest_path"]
        return {**row, "manifest_path": at_target(manifest), "manifest_length": lengths[manifest]}

    return recoded(path, content, change)


def moved_manifest(
    path: str, content: bytes, rewritten: Mapping[str, RewrittenDeleteFile], at_target: Callable[[str], str]
) -> bytes:
    """Return the manifest for the target. `rewritten` are its delete files there, by their paths at the source."""

    def change(entry: Record) -> Record:
        file = dict(entry["data_file"])
        if (other := rewritten.get(file["file_path"])) is not None:
            file["file_size_in_bytes"] = other.size
            if file.get("split_offsets"):
                file["split_offsets"] = None
            if other.bounds is not None:
                for key, bound in zip(("lower_bounds", "upper_bounds"), other.bounds, strict=True):
                    if file.get(key):
                        file[key] = [{**one, "value": bound} if one["key"] == FILE_PATH else one for one in file[key]]
        file["file_path"] = at_target(file["file_path"])
        if file.get("referenced_data_file"):
            file["referenced_data_file"] = at_target(file["referenced_data_file"])
        return {**entry, "data_file": file}

    return recoded(path, content, change)


# Deletes


def moved_deletes(file: ListedFile, content: bytes, at_target: Callable[[str], str]) -> bytes:
    """Return the content of a delete file with the paths that its data files have at the target. Raises `Refused` for a
    format in which paths can't be rewritten, and for a file that can't be read."""
    try:
        return moved_as(file, content, at_target)
    except (*MALFORMED, pa.ArrowException) as error:
        raise unreadable(file.path, error) from error


def moved_as(file: ListedFile, content: bytes, at_target: Callable[[str], str]) -> bytes:
    match file.format:
        case "PARQUET":
            return moved_parquet(file.path, content, at_target)
        case "PUFFIN":
            return moved_puffin(file.path, content, at_target)
        case "AVRO":
            return recoded(file.path, content, lambda row: {**row, "file_path": at_target(row["file_path"])})
        case _:
            raise Refused(
                f"{file.path} holds position deletes in {file.format}",
                "Paths in it can't be rewritten",
                "Rewrite the table's position deletes as Parquet, or compact it",
            )


def rewritten_as(file: ListedFile, content: bytes) -> RewrittenDeleteFile:
    """Return the delete file at the target, with this content, in the form in which a manifest describes it."""
    if file.format == "PUFFIN":
        return RewrittenDeleteFile(len(content))
    if file.format == "PARQUET":
        paths = parquet(file.path, content).column("file_path")
    else:
        paths = pa.chunked_array([[row["file_path"] for row in records(file.path, content)]], pa.string())
    bounds = pc.min_max(paths.cast(pa.string())).as_py()
    if bounds["min"] is None:
        return RewrittenDeleteFile(len(content))
    return RewrittenDeleteFile(len(content), (bounds["min"].encode(), bounds["max"].encode()))


def moved_parquet(path: str, content: bytes, at_target: Callable[[str], str]) -> bytes:
    """Return position deletes in Parquet with the paths at the target. Rows are sorted by path and position, as the
    specification demands."""
    table = parquet(path, content)
    column_index = table.schema.get_field_index("file_path")
    paths = table.column(column_index).cast(pa.string()).combine_chunks().dictionary_encode()
    names = pa.array([at_target(name) for name in paths.dictionary.to_pylist()], pa.string())
    column = names.take(paths.indices).cast(table.schema.field(column_index).type)
    order = [("file_path", "ascending"), ("pos", "ascending")]
    moved_table = table.set_column(column_index, table.schema.field(column_index), column).sort_by(order)
    codec = parquet_codec(content)
    buffer = io.BytesIO()
    pq.write_table(moved_table, buffer, compression=codec, store_schema=False)
    return buffer.getvalue()


def parquet(path: str, content: bytes) -> pa.Table:
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        require_rows_fit(file.metadata)
        return file.read()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(path, error) from error


def parquet_codec(content: bytes) -> str:
    facts = pq.ParquetFile(io.BytesIO(content)).metadata
    codec = facts.row_group(0).column(0).compression if facts.num_row_groups else "SNAPPY"
    return "NONE" if codec == "UNCOMPRESSED" else codec


def moved_puffin(path: str, content: bytes, at_target: Callable[[str], str]) -> bytes:
    """Return a Puffin file whose footer names the data files at the target. Deletion vectors stay at their offsets,
    because the footer follows them."""
    size = int.from_bytes(content[-PUFFIN_TAIL:-8], "little", signed=True)
    start = len(content) - PUFFIN_TAIL - size
    try:
        if content[-8] & 1:
            raise ValueError("its footer is compressed")
        footer = parse_json(content[start:-PUFFIN_TAIL])
        for blob in footer["blobs"]:
            properties = blob.get("properties") or {}
            if "referenced-data-file" in properties:
                properties["referenced-data-file"] = at_target(properties["referenced-data-file"])
    except MALFORMED as error:
        raise unreadable(path, error) from error
    text = json.dumps(footer, ensure_ascii=False).encode()
    return content[:start] + text + len(text).to_bytes(4, "little", signed=True) + content[-8:]


# Avro


def records(path: str, content: bytes) -> list[Record]:
    """Return all records of an Avro file with the values as they are stored: dates beyond Python's are plain numbers
    here."""
    return list(rows_of(path, *taken_apart(path, content)))


def recoded(path: str, content: bytes, change: Callable[[Record], Record]) -> bytes:
    """Return the Avro file with `change` applied to each record, under its own header."""
    header, meta, body = taken_apart(path, content)
    buffer = io.BytesIO()
    try:
        fastavro.writer(
            buffer,
            plain_schema(meta),
            (change(row) for row in rows_of(path, header, meta, body)),
            codec=meta.get("avro.codec", b"null").decode(),
            sync_marker=header[-16:],
        )
    except MALFORMED as error:
        raise unreadable(path, error) from error
    written = buffer.getvalue()
    return header + written[header_length(written) :]


def rows_of(path: str, header: bytes, meta: Mapping[str, bytes], body: bytes) -> Iterable[Record]:
    buffer = io.BytesIO()
    try:
        plain = {**meta, "avro.schema": json.dumps(plain_schema(meta)).encode(), "avro.codec": b"null"}
        fastavro.schemaless_writer(buffer, HEADER_SCHEMA, {"magic": b"Obj\x01", "meta": plain, "sync": header[-16:]})
        unpacked = b"".join(unpacked_blocks(body, meta.get("avro.codec", b"null").decode()))
        for row in fastavro.reader(io.BytesIO(buffer.getvalue() + unpacked)):
            if not isinstance(row, dict):
                raise TypeError("its rows are no records")
            yield row
    except MALFORMED as error:
        raise unreadable(path, error) from error


def unpacked_blocks(body: bytes, codec: str, most: int = MESSAGE) -> Iterator[bytes]:
    """Yield the blocks of an Avro file as the codec `null` writes them. Raises `ValueError` for bytes that are no
    block, for a codec that is not known here, and beyond `most` bytes."""
    start = 0
    while start < len(body):
        count, start = avro_long(body, start)
        size, start = avro_long(body, start)
        end = start + size
        if size < 0 or end + SYNC > len(body):
            raise ValueError("a block is cut off")
        content = unpacked_block(body[start:end], codec, most)
        most -= len(content)
        yield as_avro_long(count) + as_avro_long(len(content)) + content + body[end : end + SYNC]
        start = end + SYNC


def unpacked_block(packed: bytes, codec: str, most: int) -> bytes:
    match codec:
        case "null":
            content = packed
        case "deflate":
            content = inflate(packed, RAW, most)[0]
        case _:
            raise ValueError(f"its codec is {codec[:40]}")
    if len(content) > most:
        raise TooMuch(f"its blocks unpack to more than {MESSAGE} bytes")
    return content


def avro_long(content: bytes, start: int) -> tuple[int, int]:
    """Decode the number at `start`: return it, and the position behind it."""
    value = 0
    for place in range(10):
        if start + place >= len(content):
            break
        byte = content[start + place]
        value |= (byte & 0x7F) << 7 * place
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), start + place + 1
    raise ValueError("a number is cut off")


def as_avro_long(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])


def taken_apart(path: str, content: bytes) -> tuple[bytes, Mapping[str, bytes], bytes]:
    """Split an Avro file: return the bytes of its header, the header's metadata, and the bytes of its blocks. Raises
    `Refused`, which names `path`, where `content` is no Avro file."""
    try:
        length = header_length(content)
        header = fastavro.schemaless_reader(io.BytesIO(content), HEADER_SCHEMA, None)
        assert isinstance(header, dict)
        if header["magic"] != b"Obj\x01":
            raise ValueError("it is no Avro file")
        parse_json(header["meta"]["avro.schema"])
    except MALFORMED as error:
        raise unreadable(path, error) from error
    return content[:length], header["meta"], content[length:]


def header_length(content: bytes) -> int:
    buffer = io.BytesIO(content)
    fastavro.schemaless_reader(buffer, HEADER_SCHEMA, None)
    return buffer.tell()


def plain_schema(meta: Mapping[str, bytes]) -> Any:
    """Return the writer's schema without logical types and defaults."""
    return without_logical(parse_json(meta["avro.schema"]))


def without_logical(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: without_logical(value) for key, value in schema.items() if key not in ("logicalType", "default")}
    return [without_logical(item) for item in schema] if isinstance(schema, list) else schema
