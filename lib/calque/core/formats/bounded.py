"""Unpacking and parsing of what comes from outside, within bounds (`model.bounds`).

Nothing here raises anything but `ValueError`, whatever it is given.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, Protocol

from calque.model.bounds import DEEPEST, MESSAGE, SCHEMA

MOST_DIGITS = 19
"""Of a number: more has no 64-bit integer."""
GZIP, RAW = 31, -15
"""`wbits` of zlib: a gzip header and the largest window, or no header."""


class RowGroup(Protocol):
    total_byte_size: int


class ParquetMetadata(Protocol):
    """As pyarrow reads it from a footer."""

    num_row_groups: int

    def row_group(self, i: int, /) -> RowGroup: ...


class TooMuch(ValueError):
    """It is more than is taken."""


def gunzip(packed: bytes, most: int = MESSAGE) -> bytes:
    """The content of a gzip file, of all its members. Raises `TooMuch` beyond `most` bytes, having unpacked no more."""
    content, rest = b"", packed
    while rest:
        member, rest = inflate(rest, GZIP, most - len(content))
        content = content + member if content else member
    if not packed:
        raise ValueError("it is empty")
    return content


def inflate(packed: bytes, wbits: int, most: int = MESSAGE) -> tuple[bytes, bytes]:
    """What one stream unpacks to, and what is behind it. Raises `TooMuch` as `gunzip`."""
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
    """The JSON value in a text of at most `most` characters and so many levels."""
    if len(text) > most:
        raise TooMuch(f"it has more than {most} characters")
    try:
        value = json.loads(text)
    except RecursionError:
        raise TooMuch("it is nested too deeply") from None
    require_shallow(value, deepest)
    return value


def number_of(text: str, otherwise: int = 0) -> int:
    """The number that digits make, of no more digits than an event id may have; `otherwise` for any other text. What
    `str.isdigit` takes for digits, `int` may not, and it refuses thousands of them."""
    return int(text) if len(text) <= MOST_DIGITS and text.isascii() and text.isdecimal() else otherwise


def require_shallow(value: object, deepest: int = DEEPEST) -> None:
    """Raise `TooMuch` where lists and objects lie in one another more than so many levels deep."""
    level = [value] if type(value) in CONTAINERS else []
    for _ in range(deepest):
        if not level:
            return
        level = [item for one in level for item in items_of(one) if type(item) in CONTAINERS]
    if level:
        raise TooMuch(f"it is nested more than {deepest} levels deep")


def require_rows_fit(metadata: ParquetMetadata, most: int = MESSAGE) -> None:
    """Raise `TooMuch` where the footer of a Parquet file says of its columns that they unpack to more."""
    size = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    if size > most:
        raise TooMuch(f"it unpacks to {size} bytes, which are more than {most}")


CONTAINERS = (dict, list)


def items_of(container: Any) -> Iterable[Any]:
    return container.values() if type(container) is dict else container
