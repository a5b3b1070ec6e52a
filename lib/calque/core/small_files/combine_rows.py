"""Combining of small files into one with the same rows, in the order of the files (`combine`), and the digest of the
rows of files (`digest_of_rows`). Functions take and return contents as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from calque.core.small_files import combine_parquet
from calque.core.small_files.grouping import Unfit
from calque.core.small_files.row_digest import BYTE_ORDER_MARK, ended, text_digest
from calque.model.files import RowLayout


def combine(layout: RowLayout, contents: Iterable[bytes]) -> tuple[bytes, str]:
    """Return the content of the combined file, and the digest of the rows that went into it. Raises `Unfit` where the
    files can't be combined so that every reader finds the same rows."""
    match layout:
        case RowLayout.PARQUET:
            return combine_parquet.combine(contents)
        case RowLayout.TEXT:
            return combine_text(contents)
        case other:
            assert_never(other)


def digest_of_rows(layout: RowLayout, contents: Iterable[bytes]) -> str:
    """Return the digest of the rows of files, one behind the other. Raises `Unfit` for Parquet files whose rows have no
    digest."""
    match layout:
        case RowLayout.PARQUET:
            return combine_parquet.digest_of(contents)
        case RowLayout.TEXT:
            return text_digest(contents)
        case other:
            assert_never(other)


def combine_text(contents: Iterable[bytes]) -> tuple[bytes, str]:
    pieces: list[bytes] = []
    for content in contents:
        if content.startswith(BYTE_ORDER_MARK):
            raise Unfit("a file begins with a byte order mark, which readers only pass over there")
        pieces += [content, ended(content)]
    return b"".join(pieces), text_digest(pieces[::2])
