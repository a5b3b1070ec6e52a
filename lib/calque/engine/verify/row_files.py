"""The comparison of ACID tables whose replica has files of its own with their rows: by rows, and row ids where there
are some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from calque.core.acid.columns import (
    ROW_ID,
    ROW_ID_SCHEMA,
    batches_of,
    deleted_in,
    files_read,
    format_of,
    rows_in,
    shaped,
    with_ids,
    without,
)
from calque.core.formats.layout import full_paths
from calque.core.formats.readers import FileFormat
from calque.core.images.compare import Difference, DifferenceKind, TableSide, compare_files, some
from calque.core.images.table_layout import has_own_row_files
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.source.exact_read import TableIsTooBusy
from calque.engine.target.observe import lost_row_files
from calque.engine.verify.acid_rows import MOST_BYTES
from calque.model.files import Listing
from calque.model.hive import Column, Table, is_full_acid
from calque.model.names import TableName
from calque.ports import Storage


def compare_row_files(
    source: SourceSide, side: TargetSide, name: TableName, of_source: TableSide, at_target: TableSide, data: str
) -> tuple[TableSide, list[Difference]]:
    """Return the target's side of a table with the source's listing for each partition that has the source's rows, and
    the differences in rows. The rows are read where `data` is `checksum`, and where the replica was made of other files
    than the source has now, of which a compaction may be the cause."""
    table = of_source.table
    if table is None or at_target.table is None or not has_own_row_files(at_target.table):
        return at_target, []
    listings, differences = dict(at_target.listings), list[Difference]()
    for partition, listing in of_source.listings.items():
        shown = listings.get(partition)
        if shown is None:
            continue
        if lost := sorted(file.path for file in lost_row_files(side.storage, shown, with_times=False)):
            what = f"missing or of another size: {some(lost)}"
            differences.append(Difference(name, partition, DifferenceKind.FILES, what))
        elif listing.size > MOST_BYTES:
            if compare_files(name, partition, listing, shown):
                continue
        elif data == "checksum" or compare_files(name, partition, listing, shown):
            own = of_source.partitions.get(partition)
            file_format = format_of((own or table).storage)
            if file_format is None or counted(rows_at_source(source.storage, table, file_format, listing)) != counted(
                rows_here(side.storage, table, shown)
            ):
                what = "rows that are not the source's"
                differences.append(Difference(name, partition, DifferenceKind.CONTENT, what))
        listings[partition] = listing
    return replace(at_target, listings=listings), differences


def counted(parts: Iterator[pa.Table]) -> Counter[str]:
    """Return how often each row is there, in any order of rows."""
    return Counter(str(row) for part in parts for row in part.to_pylist())


def rows_at_source(storage: Storage, table: Table, file_format: FileFormat, listing: Listing) -> Iterator[pa.Table]:
    columns, is_full, places = columns_of(table), is_full_acid(table), full_paths(listing)
    files = list(files_read(places, lambda name: parts_of(storage, places[name], file_format)))
    deletes = [deleted_in(part) for file, parts in files if file.has_deletes for part in parts]
    deleted = pa.concat_tables([ROW_ID_SCHEMA.empty_table(), *deletes])
    for file, parts in files:
        for part in () if file.has_deletes else parts:
            rows = rows_in(part, columns, file if is_full else None)
            yield without(rows, deleted) if is_full else rows


def rows_here(storage: Storage, table: Table, shown: Listing) -> Iterator[pa.Table]:
    for file in shown.row_files:
        for part in parts_of(storage, file.path, FileFormat.PARQUET):
            rows = shaped(part, columns_of(table))
            has_ids = is_full_acid(table) and {*ROW_ID} <= {*part.column_names}
            yield with_ids(rows, part.select(ROW_ID)) if has_ids else rows


def parts_of(storage: Storage, place: str, file_format: FileFormat) -> Sequence[pa.Table]:
    """Return the content of a file part by part. Raises `TableIsTooBusy` where it is gone by now."""
    content = storage.tails([place], MOST_BYTES).get(place)
    if content is None:
        raise TableIsTooBusy(f"{place} is gone")
    return list(batches_of(content, file_format))


def columns_of(table: Table) -> Sequence[Column]:
    return (table.storage.columns if table.storage is not None else None) or ()
