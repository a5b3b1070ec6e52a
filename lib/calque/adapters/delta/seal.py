"""A checksum over the whole of a Parquet file, within the file. Readers check it first, because Arrow ends the process
for some files that are damaged.

The checksum stands among the key-value pairs of the file's footer, as eight hexadecimal digits, and counts as zeros
itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from calque.state_files import state_error, write_whole

KEY, ZEROS = "calque.crc32", b"00000000"
# Thrift's compact form: the key, the head of the next field, the length of the value.
SEAL = re.compile(re.escape(KEY.encode()) + rb"\x18\x08([0-9a-f]{8})", re.DOTALL)
END_BYTES, MAGIC = 8, b"PAR1"
CHUNK = 1 << 20


@contextmanager
def sealed_writer(stream: pa.NativeFile, schema: pa.Schema, **options: Any) -> Iterator[pq.ParquetWriter]:
    """Open a Parquet writer on `stream` whose file gets its checksum. The file is whole at the end of `with`."""
    sink = SealedSink(stream)
    with pq.ParquetWriter(sink, schema, **options) as writer:
        yield writer
        writer.add_key_value_metadata({KEY: ZEROS.decode()})
        sink.seal()
    sink.end()


def write_table(file: Path, rows: pa.Table) -> None:
    """Write or replace a sealed file of this machine, whole or not at all. Raises as `state_error` says."""
    stream = pa.BufferOutputStream()
    with sealed_writer(stream, rows.schema) as writer:
        writer.write_table(rows)
    try:
        write_whole(file, stream.getvalue().to_pybytes())
    except OSError as error:
        raise state_error(f"{file} can't be written", file.parent, str(error), error) from error


def read_table(file: Path) -> pa.Table:
    """Return the rows of a sealed file of this machine. Raises `OSError` where there is none, `ValueError` and
    `pa.ArrowInvalid` for one that is damaged."""
    with pa.OSFile(str(file)) as source:
        require_sealed(source)
        return pq.read_table(source)


class SealedSink:
    """The sink between a writer of Parquet and a stream, which computes the checksum. Call `seal` when all row groups
    are written, then close the writer, then call `end`."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream, self._crc, self._held = stream, 0, bytearray()
        self._is_held = False
        self.closed = False

    def write(self, data: bytes) -> int:
        view = memoryview(data)
        if self._is_held:
            self._held += view
        else:
            self._crc = crc32(view, self._crc)
            self._stream.write(data)
        return view.nbytes

    def tell(self) -> int:
        return int(self._stream.tell()) + len(self._held)

    def flush(self) -> None:
        """Write nothing: held bytes are written by `end`."""

    def close(self) -> None:
        """Leave the stream open: the code that opened it closes it."""

    def seal(self) -> None:
        """Hold all bytes from now on, which are the file's footer, in memory until `end` writes them."""
        self._is_held = True

    def end(self) -> None:
        """Put the checksum into the held footer, and write it."""
        footer = bytes(self._held)
        match = SEAL.search(footer)
        if match is not None:
            digits = f"{crc32(footer, self._crc):08x}".encode()
            footer = footer[: match.start(1)] + digits + footer[match.end(1) :]
        self._stream.write(footer)
        self._held.clear()


def require_sealed(source: pa.NativeFile) -> None:
    """Raise `ValueError` where a file's bytes are not those that its checksum is of, or are no Parquet file. A file of
    an older calque has no checksum, and passes."""
    size = source.size()
    end = source.read_at(END_BYTES, size - END_BYTES) if size >= END_BYTES else b""
    footer_size = int.from_bytes(end[:4], "little") + END_BYTES
    if end[4:] != MAGIC or footer_size > size:
        raise ValueError("It does not end as a Parquet file does")
    footer = source.read_at(footer_size, size - footer_size)
    match = SEAL.search(footer)
    if match is None:
        return
    crc = 0
    for chunk in chunks(source, size - footer_size):
        crc = crc32(chunk, crc)
    crc = crc32(footer[: match.start(1)] + ZEROS + footer[match.end(1) :], crc)
    if f"{crc:08x}".encode() != match[1]:
        raise ValueError("Its checksum is another one")


def chunks(source: pa.NativeFile, upto: int) -> Iterator[bytes]:
    """Give the bytes from the first up to `upto`, in pieces of at most `CHUNK` bytes."""
    for start in range(0, upto, CHUNK):
        yield source.read_at(min(CHUNK, upto - start), start)
