"""The files of a Delta replica of an ACID table: they are made of the events in the source's files.

A state's rows are those of the state before, without rows that events delete, and with rows that events insert. So a
step costs what was written between the states, and each file of the replica that has a deleted row. Where rows may be
gone without an event, as after an INSERT OVERWRITE, the rows of both states are compared, by row ids, or as whole
directories where rows have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from xxhash import xxh3_128_hexdigest

from calque.core.acid.columns import (
    ROW_ID,
    ROW_ID_SCHEMA,
    FileOfDirectory,
    Misshapen,
    among,
    batches_of,
    deleted_in,
    files_read,
    rows_in,
    without,
    written_by,
)
from calque.core.acid.contents import directory_in
from calque.core.acid.directories import DirectoryKind
from calque.core.formats.layout import full_paths, join
from calque.core.formats.readers import FileFormat
from calque.errors import Unavailable
from calque.model.files import File, Listing
from calque.model.hive import Column
from calque.plugins.delta_replicas.core.log import LoggedFile
from calque.plugins.delta_replicas.core.parquet_statistics import file_statistics
from calque.plugins.delta_replicas.core.row_log import ROWS, NewRows, RowFile, WriteIds, write_ids_of
from calque.plugins.delta_replicas.core.row_steps import (
    Covered,
    RowStep,
    by_directory,
    lies_in,
    span_of,
)
from calque.ports import FileGone, FormatMisfit, Storage


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table whose rows are written: its root, its columns, and whether its rows have ids."""

    root: str
    columns: Sequence[Column]
    is_full: bool


@dataclass(frozen=True, slots=True)
class RowsBefore:
    """The state of a partition before: the source's files of its state, and its own files by path."""

    sources: Sequence[File] = ()
    files: Mapping[str, LoggedFile] = field(default_factory=dict)


@dataclass(slots=True)
class RowWriter:
    """The making of one partition's next state, that of `listing`, in `table`."""

    storage: Storage
    table: RowTable
    file_format: FileFormat
    listing: Listing
    before: RowsBefore
    step: RowStep = field(init=False)
    places: Mapping[str, str] = field(init=False)
    """The full paths of the source's files."""
    times: Mapping[str, int] = field(init=False)
    """The times of those that are kept elsewhere."""
    kept: set[str] = field(default_factory=set)
    added: list[RowFile] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.step = RowStep(by_directory(self.before.sources), by_directory(self.listing.files))
        self.places = full_paths(self.listing)
        self.times = {kept.path: kept.modified_ns for kept in self.listing.kept}
        self.kept = {path for path, file in self.before.files.items() if write_ids_of(file.record) is not None}

    def rows(self, values: Mapping[str, str | None], *, moves: bool) -> NewRows:
        """Write the files that the state needs, and return the partition's rows. `moves`: it had another name before.
        Raises `FileGone` and `FormatMisfit`."""
        try:
            if self.table.is_full:
                self.write_events()
            else:
                self.write_directories()
        except Misshapen as misshapen:
            raise FormatMisfit(f"of a file in {self.listing.location} {misshapen}") from misshapen
        if moves:
            self.added += [row_file(self.before.files[path]) for path in sorted(self.kept)]
            self.kept.clear()
        return NewRows(self.listing.files, values, frozenset(self.kept), tuple(self.added))

    # Full ACID tables

    def write_events(self) -> None:
        if self.step.is_whole:
            self.write_whole()
            return
        known, deleted = self.step.known, self.deleted(self.step.unknown, self.step.known)
        for file, parts in self.contents(self.step.unknown):
            self.write([without(self.inserted(part, known, file), deleted) for part in parts])
        self.rewrite(lambda rows: without(rows, deleted), written_in(deleted))

    def write_whole(self) -> None:
        nothing, directories = Covered([]), sorted(self.step.after)
        deleted = self.deleted(directories, nothing)
        here, shown = joined(self.ids_of(path) for path in sorted(self.kept)), []
        for file, parts in self.contents(directories):
            rows = [without(self.inserted(part, nothing, file), deleted) for part in parts]
            shown += [part.select(ROW_ID) for part in rows]
            self.write([without(part, here) for part in rows])
        ids = joined(shown)
        self.rewrite(lambda rows: among(rows, ids), None)

    def inserted(self, part: pa.Table, known: Covered, file: FileOfDirectory) -> pa.Table:
        return rows_in(unknown_events(part, known), self.table.columns, file)

    def deleted(self, directories: Sequence[str], known: Covered) -> pa.Table:
        contents = self.contents(directories, deletes=True)
        return joined(deleted_in(unknown_events(part, known)) for _, parts in contents for part in parts)

    def ids_of(self, path: str) -> pa.Table:
        return self.own_rows(path, list(ROW_ID)).cast(ROW_ID_SCHEMA)

    def rewrite(self, left: Callable[[pa.Table], pa.Table], write_ids: WriteIds | None) -> None:
        """Write each kept file anew of which not all rows are `left`. Files without rows of these `write_ids` (None: of
        any) stay as they are."""
        for path in sorted(self.kept):
            low, high = write_ids_of(self.before.files[path].record) or (0, 0)
            if write_ids is not None and (high < write_ids[0] or write_ids[1] < low):
                continue
            rows = self.own_rows(path)
            rows_left = left(rows)
            if rows_left.num_rows < rows.num_rows:
                self.kept.discard(path)
                self.write([rows_left])

    # Insert-only tables

    def write_directories(self) -> None:
        compactions = self.step.compactions
        for name in self.step.gone:
            if not any(lies_in(span_of(name), span_of(made)) for made in compactions):
                self.leave(span_of(name))
        for name in self.step.unknown:
            span = span_of(name)
            if name in compactions:
                count = sum(part.num_rows for _, parts in self.contents([name]) for part in parts)
                if count == self.count_in(span):
                    continue
                self.leave(span)
            for _, parts in self.contents([name]):
                self.write([rows_in(part, self.table.columns) for part in parts], span)

    def leave(self, span: WriteIds) -> None:
        """Leave the files with rows of these write ids out of the state."""
        self.kept -= set(self.files_in(span))

    def files_in(self, span: WriteIds) -> list[str]:
        files = self.before.files
        return [path for path in self.kept if lies_in(write_ids_of(files[path].record) or (0, 0), span)]

    def count_in(self, span: WriteIds) -> int:
        return sum(self.own_rows(path, []).num_rows for path in self.files_in(span))

    # Files

    def contents(
        self, directories: Iterable[str], *, deletes: bool = False
    ) -> Iterator[tuple[FileOfDirectory, Sequence[pa.Table]]]:
        """Yield the files of those of the source's directories that have deletes, or inserts, with the parts of their
        contents."""
        files = {file.path: file for name in directories for file in self.step.after[name]}
        chosen = [path for path in files if has_deletes(path) is deletes]
        yield from files_read(chosen, lambda path: list(self.parts(files[path])))

    def parts(self, file: File) -> Iterator[pa.Table]:
        """Yield the content of a file of the source part by part. Raises `FileGone` where another file lies there, also
        one of a partition that has taken the place."""
        path, modified_ns = self.places[file.path], self.times.get(file.path, file.modified_ns)
        content = self.storage.tails([path], max(file.size, 1)).get(path)
        there = self.storage.files([path]).get(path)
        if content is None or there is None or (there.size, there.modified_ns) != (file.size, modified_ns):
            raise FileGone(path, file.size, modified_ns)
        try:
            yield from batches_of(content, self.file_format)
        except Misshapen as misshapen:
            raise FormatMisfit(f"of {path} {misshapen}") from misshapen

    def own_rows(self, path: str, columns: list[str] | None = None) -> pa.Table:
        """Return the rows of one of the partition's own files, in these `columns` (None: in all)."""
        place, size = join(self.table.root, path), self.before.files[path].size
        content = self.storage.tails([place], size).get(place)
        try:
            return pq.read_table(pa.BufferReader(content or b""), columns=columns)
        except (pa.ArrowException, OSError) as error:
            raise FormatMisfit(f"its file {place} is gone, or not what calque wrote: {error}") from error

    def write(self, parts: Iterable[pa.Table], span: WriteIds | None = None) -> None:
        """Write a file with these rows, unless there are none. Rows without ids are of the write ids `span`."""
        sink, writer, write_ids = pa.BufferOutputStream(), None, span
        for part in parts:
            if not part.num_rows:
                continue
            if span is None:
                write_ids = wider(write_ids, written_in(part))
            writer = writer or pq.ParquetWriter(sink, part.schema)
            writer.write_table(part)
        if writer is None or write_ids is None:
            return
        writer.close()
        content = sink.getvalue().to_pybytes()
        path = f"{ROWS}/{uuid4().hex}.parquet"
        place = join(self.table.root, path)
        self.storage.write(place, content)
        if self.storage.checksums([place]).get(place) != xxh3_128_hexdigest(content):
            why = "Its storage, or the way to it, is faulty"
            raise Unavailable(f"{place} isn't read back as it was written", why)
        made = self.storage.files([place])[place]
        statistics = file_statistics(content, self.table.columns)
        self.added.append(RowFile(path, made.size, made.modified_ns, statistics, write_ids))


def row_file(file: LoggedFile) -> RowFile:
    """Return the file of a partition as one that another partition has."""
    statistics, write_ids = file.record.get("stats") or "", write_ids_of(file.record)
    return RowFile(file.path, file.size, file.modified_ns, statistics, write_ids or (0, 0))


def unknown_events(part: pa.Table, known: Covered) -> pa.Table:
    """Return the events of the part that are not of `known` write ids; all rows of a file that has no events."""
    written = written_by(part)
    if written is None or not known.joined:
        return part
    is_known = pa.scalar(False)
    for low, high in known.joined:
        is_known = pc.or_(is_known, pc.and_(pc.greater_equal(written, low), pc.less_equal(written, high)))
    return part.filter(pc.invert(is_known))


def joined(parts: Iterable[pa.Table]) -> pa.Table:
    """Return the row ids of all parts."""
    return pa.concat_tables([ROW_ID_SCHEMA.empty_table(), *(part.select(ROW_ID) for part in parts)])


def written_in(rows: pa.Table) -> WriteIds:
    """Return the lowest and the highest write id of the rows' inserts; a span without any where there are no rows."""
    if not rows.num_rows:
        return (1, 0)
    ends = pc.min_max(rows[ROW_ID[0]])
    return (ends["min"].as_py(), ends["max"].as_py())


def wider(one: WriteIds | None, other: WriteIds) -> WriteIds:
    return other if one is None else (min(one[0], other[0]), max(one[1], other[1]))


def has_deletes(path: str) -> bool:
    directory = directory_in(path)
    return directory is not None and directory.kind is DirectoryKind.DELETE_DELTA
