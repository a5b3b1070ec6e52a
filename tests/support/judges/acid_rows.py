"""The rows of ACID tables by their files, as `core.acid` reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from calque.core.acid.directories import AcidDirectory, directory_of, everything_committed, readable
from calque.core.acid.rows import AcidFile, rows_at
from calque.core.acid.write_ids import ValidWriteIds
from calque.core.formats.layout import is_data, join
from calque.model.hive import Column
from calque.ports import Storage
from support.sources.acid_files import NOTE, Row, content_of

TableRow = tuple[object, ...]
"""The row's id, empty in an insert-only table, and the values of its columns."""


def directories(storage: Storage, location: str) -> list[AcidDirectory]:
    """Those of a table without partitions, or of a partition."""
    names = storage.children(location)
    return [
        one
        for name in names
        if (one := directory_of(name, frozenset([name]) if is_noted(storage, location, name) else frozenset()))
    ]


def is_noted(storage: Storage, location: str, name: str) -> bool:
    """Whether the directory has the note by which Hive 3 says that a compaction made it."""
    content = storage.read(join(location, f"{name}/{NOTE}"))
    return content is not None and json.loads(content)["dataFormat"] == "compacted"


def files_read(
    storage: Storage,
    location: str,
    valid: ValidWriteIds,
    layout: tuple[Sequence[Column], str],
    is_committed: Callable[[int], bool] = everything_committed,
) -> Iterator[AcidFile]:
    """The files that a reader opens, in its order. `layout`: the columns, and the format of the files."""
    found = readable(directories(storage, location), valid, is_committed)
    for one in found.all():
        place = join(location, one.name)
        for name in sorted(filter(is_data, storage.children(place))):
            yield AcidFile(one, name, content_of(storage.read(join(place, name)) or b"", *layout))
    if found.reads_originals:
        for entry in storage.entries(location):
            if is_data(entry.name) and not entry.directory:
                yield AcidFile(None, entry.name, content_of(storage.read(join(location, entry.name)) or b"", *layout))


def rows_read(
    storage: Storage,
    location: str,
    valid: ValidWriteIds,
    layout: tuple[Sequence[Column], str],
    *,
    is_full: bool,
    is_committed: Callable[[int], bool] = everything_committed,
) -> list[TableRow]:
    """The rows of a table without partitions, or of a partition, sorted."""
    names = [column.name for column in layout[0]]
    files = list(files_read(storage, location, valid, layout, is_committed))
    if is_full:
        rows: list[tuple[object, Row]] = [
            (row_id, tuple(row.get(name) for name in names)) for row_id, row in rows_at(files, valid).items()
        ]
    else:
        rows = [((), tuple(row.get(name) for name in names)) for file in files for row in file.content.to_pylist()]
    return sorted(((row_id, *row) for row_id, row in rows), key=repr)
