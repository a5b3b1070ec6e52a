"""The ranges of a column's values, from a Parquet footer: how many are null, and between which two the others lie."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq

from calque.plugins.delta_replicas.core.parquet_columns import Leaf


def null_count(metadata: pq.FileMetaData, leaf: Leaf) -> int | None:
    """Return the number of NULLs in the column; None where a row group does not say it."""
    if leaf.is_required:
        return 0
    total = 0
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(leaf.number).statistics
        if statistics is None or not statistics.has_null_count:
            return None
        total += statistics.null_count
    return total


def raw_bounds(metadata: pq.FileMetaData, leaf: Leaf) -> list[tuple[Any, Any]] | None:
    """Return the least and the greatest value of each row group that has values, as they are stored; None where one
    does not say them. Arrow itself leaves out bounds that are known to be wrong (PARQUET-251) or in no defined
    order."""
    bounds = []
    for number in range(metadata.num_row_groups):
        chunk = metadata.row_group(number).column(leaf.number)
        statistics = chunk.statistics
        if chunk.num_values == 0 or (
            statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values
        ):
            continue
        if statistics is None or not statistics.has_min_max:
            return None
        bounds.append((statistics.min_raw, statistics.max_raw))
    return bounds
