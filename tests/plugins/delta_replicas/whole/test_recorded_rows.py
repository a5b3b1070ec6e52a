"""The rows of a Delta replica are those that Hive read, with their row ids, in each state of the recorded history whose
files were left: from nothing, and from the state before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from calque.adapters.files.storage import FileStorage
from calque.core.acid.columns import ROW_ID, batches_of
from calque.core.acid.contents import content_at, flattened
from calque.core.acid.directories import everything_committed
from calque.core.formats.layout import full_paths, join
from calque.core.formats.readers import FileFormat
from calque.engine.sides.acid_looks import look_at
from calque.model.files import Listing
from calque.model.hive import Column
from calque.plugins.delta_replicas.adapters.row_files import RowsBefore, RowTable, RowWriter
from calque.plugins.delta_replicas.core.log import LoggedFile
from calque.plugins.delta_replicas.core.row_log import NewRows, tags_of
from support.judges.recorded_acid import (
    RecordedState,
    is_there,
    partitions_of,
    place_of,
    states,
    unpack_warehouse,
)

HIVE_TYPES = {pa.int32(): "int", pa.int64(): "bigint", pa.string(): "string", pa.float64(): "double"}


def listing_of(state: RecordedState, warehouse: Path, partition: str) -> Listing:
    location = str(place_of(state, warehouse) / partition)
    assert state.valid is not None
    look, known = look_at(FileStorage(), [location])[location], everything_committed
    found = content_at(look, state.valid, state.valid, known, known)
    assert found is not None
    return flattened(found)


def columns_of(listing: Listing) -> list[Column]:
    """Those of the file that has most, because a column was added."""
    found: list[Column] = []
    for place in full_paths(listing).values():
        for part in batches_of(Path(place.removeprefix("file:")).read_bytes(), FileFormat.ORC):
            kind = part.schema.field("row").type if "row" in part.column_names else part.schema
            columns = [Column(field.name, HIVE_TYPES[field.type]) for field in kind]
            found = max(found, columns, key=len)
    return found


def printed(root: str, rows: NewRows, columns: Sequence[Column], value: Sequence[str]) -> list[str]:
    lines = []
    for made in rows.added:
        for row in pq.read_table(join(root, made.path)).to_pylist():
            ids = [row[name] for name in ROW_ID]
            row_id = f'{{"writeid":{ids[0]},"bucketid":{ids[1]},"rowid":{ids[2]}}}'
            cells = ["NULL" if row.get(column.name) is None else str(row[column.name]) for column in columns]
            lines.append("\t".join([row_id, *cells, *value]))
    return lines


def with_all(before: RowsBefore, rows: NewRows) -> dict[str, LoggedFile]:
    made = {
        one.path: LoggedFile(one.path, "", one.size, one.modified_ns, {"tags": tags_of(one.write_ids)})
        for one in rows.added
    }
    return {path: file for path, file in before.files.items() if path in rows.kept} | made


def test_rows_and_row_ids_are_those_that_hive_read(tmp_path: Path) -> None:
    warehouse, compared, steps = unpack_warehouse(tmp_path / "source"), 0, 0
    shown: dict[tuple[str, str], RowsBefore] = {}
    for state in states():
        is_full = state.parameters.get("transactional") == "true" and not state.is_insert_only
        if not is_full or state.rows is None or not is_there(state, warehouse):
            continue
        lines, lines_of_step = list[str](), list[str]()
        for partition in partitions_of(state):
            listing, root = listing_of(state, warehouse, partition), str(tmp_path / "target" / state.table.table)
            table = RowTable(root, columns_of(listing), True)
            value = [partition.partition("=")[2]] if partition else []
            whole = RowWriter(FileStorage(), table, FileFormat.ORC, listing, RowsBefore()).rows({}, moves=False)
            lines += printed(root, whole, table.columns, value)
            before = shown.get((str(state.table), partition), RowsBefore())
            steps += bool(before.files)
            step = RowWriter(FileStorage(), table, FileFormat.ORC, listing, before).rows({}, moves=False)
            files = with_all(before, step)
            every = RowWriter(FileStorage(), table, FileFormat.ORC, listing, RowsBefore(listing.files, files))
            lines_of_step += printed(root, every.rows({}, moves=True), table.columns, value)
            shown[str(state.table), partition] = RowsBefore(listing.files, files)
        assert sorted(lines) == sorted(lines_of_step) == sorted(state.rows), f"{state.table} after {state.after}"
        compared += 1
    assert (compared, steps) == (7, 3)
