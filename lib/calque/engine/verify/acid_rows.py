"""The comparison of ACID tables by rows, where both sides have them in other files: a compaction changes files and no
row."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from calque.core.acid.directories import directory_of
from calque.core.acid.rows import AcidFile, rows_at
from calque.core.acid.write_ids import ValidWriteIds
from calque.core.formats.layout import full_paths
from calque.core.images.compare import TableSide, compare_files
from calque.core.images.table_layout import has_own_row_files
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.errors import Refused
from calque.model.files import Listing
from calque.model.hive import Table, is_full_acid, is_transactional
from calque.model.names import TableName
from calque.ports import Storage

MOST_BYTES = 1 << 30
"""Bytes of a partition's files beyond which rows are not compared: other files count as a difference then."""


def with_equal_rows(
    source: SourceSide, side: TargetSide, name: TableName, of_source: TableSide, at_target: TableSide
) -> TableSide:
    """Return the target's side of a table with the source's listing for each partition that has the same rows in other
    files."""
    table = of_source.table
    if table is None or at_target.table is None or not is_transactional(table):
        return at_target
    if has_own_row_files(at_target.table):
        return at_target
    listings = dict(at_target.listings)
    for partition, listing in of_source.listings.items():
        shown = listings.get(partition)
        if shown is None or not compare_files(name, partition, listing, shown):
            continue
        if listing.size + shown.size > MOST_BYTES:
            continue
        with suppress(Refused):
            # A file may be larger than what is read at once.
            if rows_of(source.storage, table, listing) == rows_of(side.storage, table, shown):
                listings[partition] = listing
    return replace(at_target, listings=listings)


def rows_of(storage: Storage, table: Table, listing: Listing) -> object:
    """Return the rows in the files of a state, in a form that is equal for equal rows: with their row ids where they
    have some."""
    files = list(contents_of(storage, table, listing))
    if not is_full_acid(table):
        return Counter(str(row) for file in files for row in file.content.to_pylist())
    high = max((file.directory.high for file in files if file.directory is not None), default=0)
    return {row_id: str(row) for row_id, row in rows_at(files, ValidWriteIds(high)).items()}


def contents_of(storage: Storage, table: Table, listing: Listing) -> Iterator[AcidFile]:
    for path, place in sorted(full_paths(listing).items()):
        directory, separator, name = path.partition("~")
        known = directory_of(directory) if separator else None
        if not name and known is not None:
            continue
        content = storage.read(place)
        if content is not None:
            yield AcidFile(known, (name if known is not None else path).rpartition("~")[2], read(table, content))


def read(table: Table, content: bytes) -> pa.Table:
    """Return the rows of one file in the format of the table; lines of any format that is not columnar."""
    written = ((table.storage.input_format if table.storage else None) or "").lower()
    if "orc" in written:
        from pyarrow import orc

        return orc.ORCFile(io.BytesIO(content)).read()
    if "parquet" in written:
        from pyarrow import parquet

        return parquet.read_table(io.BytesIO(content))
    return pa.table({"line": content.splitlines()})
