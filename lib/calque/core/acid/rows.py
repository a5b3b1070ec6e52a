"""The rows of an ACID table at a state, with their row ids, from the contents of its readable directories.

A full ACID table's file has a row for each event: `operation` (0 insert, 2 delete), the row id (`originalTransaction`,
`bucket`, `rowId`), the write id of the event (`currentTransaction`), and the columns (`row`). Files that were loaded,
or lie there from before the table became transactional, have the columns alone: their row ids follow from the write id
of the directory, the file's name, and the place of the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from calque.core.acid.directories import AcidDirectory
from calque.core.acid.write_ids import ValidWriteIds

EVENT_COLUMN, DELETE = "originalTransaction", 2
BUCKET = re.compile(r"(?:bucket_)?(\d+)")
CODEC_VERSION = 1 << 29
"""The version that the number of a bucket carries in its highest bits."""
RowId = tuple[int, int, int]
"""The write id of the insert, the bucket with its statement, and the row's number there."""


@dataclass(frozen=True, slots=True)
class AcidFile:
    """A file of a readable directory; `directory` is None for one from before the table became transactional. `name` is
    its own name, without the directory's."""

    directory: AcidDirectory | None
    name: str
    content: pa.Table


def rows_at(files: Iterable[AcidFile], valid: ValidWriteIds) -> dict[RowId, Mapping[str, Any]]:
    """Return the rows of a state by their row ids. `files` are all files of the readable directories, those of one
    directory in the order of their names."""
    rows: dict[RowId, Mapping[str, Any]] = {}
    deleted: set[RowId] = set()
    counters: dict[tuple[str, int], int] = {}
    for file in files:
        if EVENT_COLUMN in file.content.column_names:
            for event in file.content.to_pylist():
                row_id = (event["originalTransaction"], event["bucket"], event["rowId"])
                # A delta may be wider than what is valid of it, after a compaction or with an aborted write id.
                if event["currentTransaction"] and not valid.holds(event["currentTransaction"]):
                    continue
                if event["operation"] == DELETE:
                    deleted.add(row_id)
                else:
                    rows[row_id] = event["row"]
        else:
            rows |= numbered(file, counters)
    return {row_id: row for row_id, row in rows.items() if row_id not in deleted}


def numbered(file: AcidFile, counters: dict[tuple[str, int], int]) -> dict[RowId, Mapping[str, Any]]:
    """Return the rows of a file that has no row ids. `counters` has how many rows each bucket of a directory had before
    this file."""
    directory = file.directory
    write_id = directory.high if directory is not None else 0
    bucket = bucket_of(file.name, (directory.statement or 0) if directory is not None else 0)
    place = (directory.name if directory is not None else "", bucket)
    first = counters.get(place, 0)
    counters[place] = first + file.content.num_rows
    return {(write_id, bucket, first + number): row for number, row in enumerate(file.content.to_pylist())}


def bucket_of(name: str, statement: int) -> int:
    """Return the number by which row ids name the bucket of a file: version, bucket and statement in one integer."""
    found = BUCKET.match(name)
    return CODEC_VERSION | (int(found[1]) if found else 0) << 16 | statement
