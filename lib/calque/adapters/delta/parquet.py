"""Rows in and out of Parquet files: row groups of a useful size, and the selection of those that hold wanted keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from calque.adapters.delta.snapshot import Keys, any_between

GROUP_BYTES = 4 << 20
"""The uncompressed bytes of a row group, which is what fetching one row costs."""


def row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Give the rows of `tables` in tables of about `GROUP_BYTES`. None of them is empty, and none has twice as many
    bytes, unless a single row does."""
    waiting: list[pa.Table] = []
    size = 0
    for table in tables:
        step = max(1, GROUP_BYTES * table.num_rows // max(1, table.nbytes))
        for start in range(0, table.num_rows, step):
            for piece in halved(table.slice(start, step)):
                if waiting and size + piece.nbytes > GROUP_BYTES:
                    yield pa.concat_tables(waiting)
                    waiting, size = [], 0
                waiting.append(piece)
                size += piece.nbytes
    if waiting:
        yield pa.concat_tables(waiting)


def halved(rows: pa.Table) -> Iterator[pa.Table]:
    """Give the rows in pieces below twice `GROUP_BYTES`; a single row is never divided."""
    if rows.num_rows < 2 or rows.nbytes < 2 * GROUP_BYTES:
        yield rows
        return
    middle = rows.num_rows // 2
    yield from halved(rows.slice(0, middle))
    yield from halved(rows.slice(middle))


def groups_holding(metadata: pq.FileMetaData, keys: Keys | None) -> Iterator[int]:
    """Give the numbers of the row groups that may hold a wanted key; all of them where `keys` is None."""
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(0).statistics
        unbounded = keys is None or statistics is None or not statistics.has_min_max
        if unbounded or any_between(keys or (), statistics.min, statistics.max):
            yield number


def with_keys(rows: pa.Table, key: str, keys: Keys) -> pa.Table:
    """Return the rows whose value in the column `key` is one of `keys`."""
    column = rows[key]
    if isinstance(keys, range):
        low, high = key_range(rows, key)
        if keys.start <= low and high < keys.stop:
            return rows
        return rows.filter(pc.and_(pc.greater_equal(column, keys.start), pc.less(column, keys.stop)))
    return rows.filter(pc.is_in(column, pa.array(keys, pa.int64())))


def key_range(rows: pa.Table, key: str) -> tuple[int, int]:
    ends = pc.min_max(rows[key])
    return ends["min"].as_py(), ends["max"].as_py()
