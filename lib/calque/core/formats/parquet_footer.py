"""The writer's name (`created_by`) in a Parquet file's footer, replaced, because pyarrow reads the name and can't write
it."""

from __future__ import annotations

from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

MAGIC = b"PAR1"
LENGTH = 4
CREATED_BY = 6
"""The number of the field `created_by` of `FileMetaData` in parquet.thrift."""


def with_created_by(content: bytes, created_by: str) -> bytes:
    """Return the content of the same Parquet file with another writer's name."""
    end = len(content) - LENGTH - len(MAGIC)
    footer = content[end - int.from_bytes(content[end : end + LENGTH], "little") : end]
    begins, ends = span_of_created_by(footer)
    text = created_by.encode()
    new_footer = footer[:begins] + varint(len(text)) + text + footer[ends:]
    return content[: end - len(footer)] + new_footer + len(new_footer).to_bytes(LENGTH, "little") + MAGIC


def span_of_created_by(footer: bytes) -> tuple[int, int]:
    """Return the begin and the end of the writer's name in the footer, its length's bytes included. Raises `ValueError`
    where there is none."""
    transport = TMemoryBuffer(footer)
    protocol = TCompactProtocol(transport)
    # Statistics are bytes and no text; what is skipped is read as text otherwise.
    protocol.readString = protocol.readBinary
    protocol.readStructBegin()
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            raise ValueError("The footer names no writer")
        begins = transport.cstringio_buf.tell()
        protocol.skip(kind)
        if number == CREATED_BY:
            return begins, transport.cstringio_buf.tell()
        protocol.readFieldEnd()


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
