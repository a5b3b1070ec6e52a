"""The words of the log of a replica of an ACID table that other replicas' logs don't have: of which files of the
source it has the rows, and in which files of its own.

The source's files are a table's state for calque, as those of a plain table are, and each partition says in a domain of
its own which they are (`ROWS_DOMAIN`). The log's files have the rows in another form: a row has its row id in columns
that the schema does not name, and a file has as a tag the write ids of its rows (`WRITE_IDS_TAG`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calque.model.files import File

ROWS_DOMAIN = "calque.rows/"
"""With the name of a partition (`""`: the table) the domain that says of which files of the source it has the rows."""
WRITE_IDS_TAG = "calque.write_ids"
ROWS = "_calque/rows"
"""The directory below a table's root with the files of all partitions. Readers of the directory pass it over."""
WriteIds = tuple[int, int]
"""The lowest and the highest write id of the inserts of some rows."""
NOT_OURS = File("files that calque did not write", 0, 0)
"""A file that equals none of a source's. It stands for files that another writer put into the log, or took from it."""


@dataclass(frozen=True, slots=True)
class RowSources:
    """The files of the source (`files`) whose rows a partition has, and the number of its own files (`rows`)."""

    files: tuple[File, ...] = ()
    rows: int = 0


@dataclass(frozen=True, slots=True)
class RowFile:
    """A file with rows of an ACID table, by its path below the table's root."""

    path: str
    size: int
    modified_ns: int
    statistics: str
    write_ids: WriteIds


@dataclass(frozen=True, slots=True)
class NewRows:
    """The rows that a partition (`""`: the table) is to have: those of the source's `files`. They lie in the files with
    the paths `kept`, which the partition has, and in `added` ones. `values` are the partition's values in Delta's
    form."""

    files: Sequence[File]
    values: Mapping[str, str | None]
    kept: frozenset[str] = frozenset()
    added: Sequence[RowFile] = ()

    def text(self) -> str:
        """Return what the partition's domain says."""
        files = [[file.path, file.size, file.modified_ns] for file in sorted(self.files)]
        record = {"files": files, "rows": len(self.kept) + len(self.added)}
        return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def row_sources(text: str) -> RowSources:
    """Return what a partition's domain says; nothing for an empty text."""
    if not text:
        return RowSources()
    record = json.loads(text)
    return RowSources(tuple(File(*one) for one in record["files"]), record["rows"])


def write_ids_of(record: Mapping[str, Any]) -> WriteIds | None:
    """Return the write ids that an add action says; None for a file that was not written for an ACID table."""
    low, separator, high = dict(record.get("tags") or {}).get(WRITE_IDS_TAG, "").partition("-")
    return (int(low), int(high)) if separator else None


def tags_of(write_ids: WriteIds) -> dict[str, str]:
    return {WRITE_IDS_TAG: f"{write_ids[0]}-{write_ids[1]}"}
