"""The statistics of data files for a Delta log, from the files' Parquet footers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from calque.errors import Refused
from calque.model.hive import Column
from calque.plugins.delta_replicas.core.parquet_columns import footer_length
from calque.plugins.delta_replicas.core.parquet_fit import why_misread
from calque.plugins.delta_replicas.core.parquet_statistics import file_statistics
from calque.ports import FormatMisfit, Storage

TAIL = 1 << 16
"""Bytes at the end of a file that are read for its footer; a longer footer takes a second call."""

DescribeFiles = Callable[[Storage, Sequence[str], Sequence[Column]], Mapping[str, str]]
"""A function that returns what a log says of the files at these full paths, in a table with these columns: the text of
`stats`, by path. It raises `FormatMisfit` for a file that readers of Delta would misread."""


def describe_parquet(storage: Storage, paths: Sequence[str], columns: Sequence[Column]) -> dict[str, str]:
    """Return the text of `stats` for each of the files, by path; files that are not there are left out. Raises
    `FormatMisfit` for a file that readers of Delta would misread."""
    statistics = {}
    for path, tail in footers(storage, paths).items():
        if why := why_misread(tail, columns):
            raise FormatMisfit(f"of {path} {why}")
        statistics[path] = file_statistics(tail, columns)
    return statistics


def footers(storage: Storage, paths: Sequence[str]) -> Mapping[str, bytes]:
    """Return the end of each file, by path, with at least its whole footer. Raises `FormatMisfit` for a file without
    one."""
    tails = dict(storage.tails(paths, TAIL))
    longer: dict[str, int] = {}
    for path, tail in tails.items():
        try:
            length = footer_length(tail)
        except Refused as refused:
            raise FormatMisfit(f"{path} is no readable Parquet file: {refused}") from refused
        if length > len(tail):
            longer[path] = length
    for length in set(longer.values()):
        tails |= storage.tails([path for path, one in longer.items() if one == length], length)
    return tails
