"""Digests of rows: equal for the same rows in the same order with the same types, however they are cut into files, row
groups and pages.

The digest of text is xxh3-128 of all lines, each with its end; a last line without an end gets one. For Parquet, each
leaf of the schema has three streams of bytes: the presence of each value, the lengths of lists and texts, and the bytes
of the values. The checksums of the streams and the schema make the digest. Floating point numbers count by their bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_128

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Undigestible(Exception):
    """The error for rows of a type that has no digest."""


def ended(content: bytes) -> bytes:
    r"""Return the bytes to append to a text file so that another may follow it: a line's end, or none. Readers take
    `\n`, `\r` and `\r\n` for one end each, so a `\n` behind a `\r` changes no line."""
    return b"" if not content or content.endswith(b"\n") else b"\n"


def text_digest(contents: Iterable[bytes]) -> str:
    """Return the digest of the lines of text files, one behind the other."""
    digest = xxh3_128()
    for content in contents:
        digest.update(content)
        digest.update(ended(content))
    return digest.hexdigest()


class RowDigest:
    """A digest that grows by batches of rows of one schema, in order."""

    def __init__(self) -> None:
        self._rows = 0
        self._streams: dict[str, xxh3_128] = {}

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the next rows. Raises `Undigestible`."""
        self._rows += batch.num_rows
        for number, column in enumerate(batch.columns):
            for path, content in streams(str(number), column):
                stream = self._streams.get(path)
                if stream is None:
                    stream = self._streams[path] = xxh3_128()
                stream.update(content)

    def hexdigest(self, schema: str) -> str:
        """Return the digest of all rows so far, under the text of their schema."""
        digest = xxh3_128(f"{self._rows}\n{schema}\n".encode())
        for path in sorted(self._streams):
            digest.update(path.encode() + self._streams[path].digest())
        return digest.hexdigest()


def streams(path: str, array: pa.Array) -> Iterator[tuple[str, bytes | memoryview]]:
    """Yield the bytes that an array adds to each stream of its leaves, by the stream's name. Raises `Undigestible`."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from streams(path, array.storage)
        return
    if pa.types.is_dictionary(kind):
        yield from streams(path, array.dictionary_decode())
        return
    yield f"{path}?", values_of(array.is_valid().cast(pa.uint8()), 1)
    if pa.types.is_null(kind):
        return
    if pa.types.is_struct(kind):
        for number, child in enumerate(array.flatten()):
            yield from streams(f"{path}.{number}", child)
        return
    present = array.drop_null()
    if pa.types.is_map(kind):
        present = present.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield f"{path}#", values_of(pc.list_value_length(present).cast(pa.int64()), 8)
        yield from streams(f"{path}[]", present.flatten())
    elif is_binary(kind):
        present = present.cast(pa.large_binary())
        yield f"{path}#", values_of(pc.binary_length(present).cast(pa.int64()), 8)
        yield f"{path}=", bytes_of(present)
    elif pa.types.is_boolean(kind):
        yield f"{path}=", values_of(present.cast(pa.uint8()), 1)
    elif pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        yield f"{path}=", values_of(present, kind.bit_width // 8)
    else:
        raise Undigestible(str(kind))


def is_binary(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def values_of(array: pa.Array, width: int) -> memoryview:
    """Return the bytes of an array of fixed width without nulls; `width` is in bytes."""
    values = array.buffers()[1]
    if values is None:
        return memoryview(b"")
    return memoryview(values)[array.offset * width : (array.offset + len(array)) * width]


def bytes_of(array: pa.LargeBinaryArray) -> memoryview:
    """Return the bytes of all values of an array without nulls, one behind the other."""
    _, offsets, values = array.buffers()
    if values is None or not len(array):
        return memoryview(b"")
    bounds = memoryview(offsets).cast("B")[: (array.offset + len(array) + 1) * 8].cast("q")
    return memoryview(values)[bounds[array.offset] : bounds[array.offset + len(array)]]
