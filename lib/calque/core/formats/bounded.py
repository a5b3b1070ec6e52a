"""Unpacking and parsing, within bounds (`model.bounds`), of texts and bytes that come from outside.

Functions here raise no exception but `ValueError`, for any input.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, Protocol

from calque.model.bounds import DEEPEST, MESSAGE, SCHEMA

MOST_DIGITS = 19
"""Digits of a number: no 64-bit integer has more."""
GZIP, RAW = 31, -15
"""`wbits` of zlib: a gzip header and the largest window, or no header."""


class RowGroup(Protocol):
    total_byte_size: int


class ParquetMetadata(Protocol):
    """The metadata in a Parquet file's footer, as pyarrow gives it."""

    num_row_groups: int

    def row_group(self, i: int, /) -> RowGroup: ...


class TooMuch(ValueError):
    """The error for input that is larger or deeper than is taken."""


def gunzip(packed: bytes, most: int = MESSAGE) -> bytes:
    """Return the content of a gzip file, of all its members. Raises `TooMuch` beyond `most` bytes, having unpacked no
    more, and `ValueError` for bytes that are no gzip file."""
    content, rest = b"", packed
    while rest:
        member, rest = inflate(rest, GZIP, most - len(content))
        content = content + member if content else member
    if not packed:
        raise ValueError("it is empty")
    return content


def inflate(packed: bytes, wbits: int, most: int = MESSAGE) -> tuple[bytes, bytes]:
    """Unpack one zlib stream: return its content, and the bytes of `packed` behind the stream. Raises `TooMuch` and
    `ValueError` as `gunzip` does."""
    stream = zlib.decompressobj(wbits)
    try:
        content = stream.decompress(packed, max(most, 0) + 1)
        if len(content) > most:
            raise TooMuch(f"it unpacks to more than {most} bytes")
        if not stream.eof:
            # What is left is the end of the stream: all of the content has come.
            content += stream.decompress(stream.unconsumed_tail, 1)
            if len(content) > most:
                raise TooMuch(f"it unpacks to more than {most} bytes")
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not stream.eof:
        raise ValueError("it is cut off")
    return content, stream.unused_data


def parse_json(text: str | bytes, most: int = SCHEMA, deepest: int = DEEPEST) -> Any:
    """Parse the JSON value in a text. Raises `TooMuch` for more than `most` characters or `deepest` levels, and
    `ValueError` for a text that is no JSON."""
    if len(text) > most:
        raise TooMuch(f"it has more than {most} characters")
    try:
        value = json.loads(text)
    except RecursionError:
        raise TooMuch("it is nested too deeply") from None
    require_shallow(value, deepest)
    return value


def number_of(text: str, otherwise: int = 0) -> int:
    """Return the number that `text` writes in at most `MOST_DIGITS` ASCII digits; `otherwise` for any other text. Some
    characters that `str.isdigit` calls digits `int` refuses, and it refuses thousands of digits."""
    return int(text) if len(text) <= MOST_DIGITS and text.isascii() and text.isdecimal() else otherwise


def require_shallow(value: object, deepest: int = DEEPEST) -> None:
    """Raise `TooMuch` where lists and objects lie in one another more than `deepest` levels deep."""
    level = [value] if type(value) in CONTAINERS else []
    for _ in range(deepest):
        if not level:
            return
        level = [item for one in level for item in items_of(one) if type(item) in CONTAINERS]
    if level:
        raise TooMuch(f"it is nested more than {deepest} levels deep")


def require_rows_fit(metadata: ParquetMetadata, most: int = MESSAGE) -> None:
    """Raise `TooMuch` where the footer of a Parquet file says that its columns unpack to more than `most` bytes."""
    size = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    if size > most:
        raise TooMuch(f"it unpacks to {size} bytes, which are more than {most}")


CONTAINERS = (dict, list)


def items_of(container: Any) -> Iterable[Any]:
    return container.values() if type(container) is dict else container
