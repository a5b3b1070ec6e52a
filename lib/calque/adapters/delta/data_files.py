"""The data files of a Delta table of calque's own: Parquet that is written whole, and read by ranges of one integer
column."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from itertools import chain
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler

from calque.adapters.delta.held_reads import HeldReads
from calque.adapters.delta.parquet import groups_holding, key_range, row_groups, with_keys
from calque.adapters.delta.seal import require_sealed, sealed_writer
from calque.adapters.delta.snapshot import DataFile, Keys
from calque.core.records.state_damage import damaged
from calque.model.secrets import Options, outdated, revealed, versions
from calque.state_files import make_folder, restrict

CHUNK = 1 << 20
UNREADABLE = (OSError, pa.ArrowException, ValueError, TypeError)
"""The errors that Arrow raises for a file that is not what it was, and for a file system that does not give it."""
SMALL_BYTES = 1 << 20
"""The size of a file below which one thread reads it faster than several."""


class DataFiles:
    """The data files at `location`, a path or URI, with rows of `schema`, whose first column is the key.

    A reader gets all its columns: columns that an older file lacks are null. What is read by keys is held in memory, up
    to `held_bytes` of it, for later reads of the same files. Every method but `uri` may raise OSError. Methods that
    read files raise `StateUnusable` where a file has bytes and they are not what was written.
    """

    def __init__(self, location: str, schema: pa.Schema, storage_options: Options, held_bytes: int = 0) -> None:
        self.schema, self.options = schema, storage_options
        self.key = schema.names[0]
        path = local_path(location)
        self.is_local = path is not None
        self.uri = path or location
        self._held = HeldReads(held_bytes)
        self._sealed: set[str] = set()
        """The files whose checksum was found right."""
        self._lock = threading.Lock()
        self._file_system: pafs.FileSystem | None = None
        self._options_version: tuple[object, ...] = ()

    def write(self, rows: Iterable[pa.Table]) -> tuple[DataFile, ...]:
        """Write the rows to one file that nothing refers to yet, and return it; write no file when there are no
        rows."""
        groups = row_groups(rows)
        first = next(groups, None)
        return () if first is None else (self._written(chain([first], groups)),)

    def read(
        self, files: Iterable[DataFile], keys: Keys | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return the rows of these files, or those with the wanted keys; all columns, or `columns`."""
        names = list(columns or self.schema.names)
        pieces = [piece for file in files for piece in self.pieces(file, keys, names)]
        if not pieces:
            return pa.Table.from_batches([], pa.schema([self.schema.field(name) for name in names]))
        return pa.concat_tables(pieces)

    def matching(
        self,
        files: Iterable[DataFile],
        keys: Keys,
        columns: Sequence[str],
        match: Callable[[pa.Table], pa.ChunkedArray],
    ) -> pa.Table:
        """Return the whole rows with wanted keys for which `match`, a mask over `columns`, is true. Other columns are
        read only from row groups with a match."""
        pieces = [self.schema.empty_table()]
        for file in files:
            with self._opened(file) as parquet:
                for number in groups_holding(parquet.metadata, keys):
                    mask = match(parquet.read_row_group(number, columns=list(columns)))
                    if pc.any(mask).as_py():
                        rows = filled(parquet.read_row_group(number).filter(mask), self.schema, self.schema.names)
                        pieces.append(with_keys(rows, self.key, keys).cast(self.schema))
        return pa.concat_tables(pieces)

    def pieces(self, file: DataFile, keys: Keys | None, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Give the rows of one file with the wanted keys, row group by row group, without reading the groups that can't
        hold one."""
        names, threads = list(columns), file.size > SMALL_BYTES
        with ExitStack() as stack:
            opened = cache(lambda: stack.enter_context(self._opened(file)))

            def read(number: int) -> pa.Table:
                return filled(opened().read_row_group(number, columns=names, use_threads=threads), self.schema, names)

            if keys is None:
                yield from map(read, groups_holding(opened().metadata, None))
                return
            metadata = self._held.get(file.path, lambda: opened().metadata, lambda footer: footer.serialized_size)
            for number in groups_holding(metadata, keys):
                rows = self._held.get((file.path, number, *names), partial(read, number), lambda group: group.nbytes)
                yield with_keys(rows, self.key, keys)

    def delete(self, path: str) -> None:
        """Delete the file, if it is there."""
        with suppress(FileNotFoundError):
            self.file_system().delete_file(path)

    def exists(self, path: str) -> bool:
        return bool(self.file_system().get_file_info(path).type != pafs.FileType.NotFound)

    def text(self, path: str) -> str | None:
        """Return the file's content as text; None where there is no such file."""
        if not self.exists(path):
            return None
        try:
            with self.file_system().open_input_stream(path) as source:
                return bytes(source.read()).decode(errors="replace")
        except FileNotFoundError:
            return None

    def file_system(self) -> pafs.FileSystem:
        """Return Arrow's file system with its root at the location, made anew after a secret of the options was
        written."""
        with self._lock:
            if self._file_system is None or outdated(self.options, self._options_version):
                self._options_version = versions(self.options)
                if self.is_local:
                    self._file_system = pafs.SubTreeFileSystem(self.uri, pafs.LocalFileSystem())
                else:
                    self._file_system = pafs.PyFileSystem(DeltaStorageHandler(self.uri, revealed(self.options)))
            return self._file_system

    @contextmanager
    def _opened(self, file: DataFile) -> Iterator[pq.ParquetFile]:
        try:
            with self.file_system().open_input_file(file.path) as source:
                if self.is_local and file.path not in self._sealed:
                    require_sealed(source)
                    self._sealed.add(file.path)
                with pq.ParquetFile(source) as parquet:
                    require_as_written(file, parquet.metadata)
                    yield parquet
        except UNREADABLE as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            self.require_bytes(file.path)
            raise damaged(self.uri, f"{file.path}: {error}") from error

    def require_bytes(self, path: str) -> None:
        """Raise `OSError` where the file's bytes can't be read. What the bytes are is not looked at."""
        with self.file_system().open_input_stream(path) as source:
            while source.read(CHUNK):
                pass

    def log_files(self) -> Sequence[str]:
        """Return the paths of the files of the table's log, sorted."""
        found = self.file_system().get_file_info(pafs.FileSelector("_delta_log", allow_not_found=True))
        return sorted(info.path for info in found if info.type is pafs.FileType.File)

    def _written(self, groups: Iterable[pa.Table]) -> DataFile:
        if self.is_local:
            make_folder(Path(self.uri))
        path = f"{uuid.uuid4().hex}.parquet"
        ranges: list[tuple[int, int]] = []
        count = 0
        with self.file_system().open_output_stream(path) as stream:
            options = {"compression": "zstd", "write_statistics": [self.key], "store_schema": False}
            # A store has checksums of its own.
            opened = sealed_writer if self.is_local else pq.ParquetWriter
            with opened(stream, self.schema, **options) as writer:
                for group in groups:
                    writer.write_table(group.cast(self.schema))
                    ranges.append(key_range(group, self.key))
                    count += group.num_rows
            size = stream.tell()
        if self.is_local:
            restrict(Path(self.uri, path))
        return DataFile(path, size, count, min(low for low, _ in ranges), max(high for _, high in ranges))


def require_as_written(file: DataFile, metadata: pq.FileMetaData) -> None:
    """Raise `ValueError` where the file's footer has another number of rows, or other keys, than the table's log has
    for it."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    if not rows == metadata.num_rows == file.rows:
        raise ValueError(f"It has {rows} rows, not {file.rows}")
    statistics = [group.column(0).statistics for group in groups]
    if all(each is not None and each.has_min_max for each in statistics):
        low, high = min(each.min for each in statistics), max(each.max for each in statistics)
        if (low, high) != (file.low, file.high):
            raise ValueError(f"It has keys from {low} to {high}, not from {file.low} to {file.high}")


def filled(rows: pa.Table, schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """Return the rows with these columns. A column that an older file lacks is null."""
    for name in columns:
        if name not in rows.column_names:
            rows = rows.append_column(schema.field(name), pa.nulls(rows.num_rows, schema.field(name).type))
    return rows.select(list(columns))


def local_path(location: str) -> str | None:
    """Return the path of a plain path or `file:` URI; None for other schemes."""
    parts = urlsplit(location)
    if len(parts.scheme) > 1 and parts.scheme != "file":
        return None
    return str(Path(unquote(parts.path) if parts.scheme == "file" else location).absolute())
