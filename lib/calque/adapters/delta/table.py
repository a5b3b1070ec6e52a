"""A Delta table that grows by small commits and is read by ranges of one integer column, its key.

A span is read from the few files that hold it (`table_log`). Every commit is compare-and-swap on the table's version:
it lands directly on the version on which it was decided, or the decision is made again. (delta-rs by itself lets two
rewrites of the same files pass one after the other, which would double their rows.) A reader that meets a data file
that was merged away opens the table anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from calque.adapters.delta.data_files import DataFiles
from calque.adapters.delta.snapshot import (
    NOTHING,
    DataFile,
    Keys,
    Snapshot,
    SnapshotChange,
    small_run,
)
from calque.adapters.delta.table_log import ATTEMPTS, CommitConflict, TableLog
from calque.core.records.state_damage import damaged
from calque.core.records.state_formats import FIRST_FORMAT
from calque.errors import Unavailable
from calque.model.secrets import Options

if TYPE_CHECKING:
    import pyarrow.dataset as ds


T = TypeVar("T")


class RangedTable:
    """A Delta table at `location`, a path or URI. The first column of `schema` is the key, a 64-bit integer. `marks`
    are the application names whose numbers `Snapshot.marks` shows. `table_format` is the newest format of rows that
    this code knows, and the one that it writes; `oldest_format` is the oldest that it reads, None for the one before
    `table_format`. `held_bytes` is as in `DataFiles`.

    The table is opened at the first use, created at the first commit, and closed when pickled. Safe from several
    threads.

    Every method may raise `Unavailable`, after which it is unknown of a commit whether it was made; `StateUnusable`
    where the table is damaged, or may not be read or written; and `Refused` where a newer calque has written it, or one
    that is older by two formats.
    """

    def __init__(
        self,
        location: str,
        schema: pa.Schema,
        marks: Sequence[str] = (),
        storage_options: Options | None = None,
        table_format: int = FIRST_FORMAT,
        oldest_format: int | None = None,
        held_bytes: int = 0,
    ) -> None:
        self.location, self.schema, self.key = location, schema, schema.names[0]
        self._log = TableLog(location, schema, marks, storage_options, table_format, oldest_format, held_bytes)

    @property
    def files(self) -> DataFiles:
        return self._log.files

    def snapshot(self) -> Snapshot:
        """Return the newest version; `NOT_THERE` before the first commit. It takes two look-ups of a name when nothing
        changed."""
        return self._log.snapshot()

    def widen(self) -> None:
        """Give a table that an older version of calque made the columns that it lacks, which are null in its rows."""
        self._log.widen()

    def vacuum(self) -> None:
        """Delete data files that nothing has needed for more than an hour."""
        self._log.vacuum()

    def commit(self, decide: Callable[[Snapshot], SnapshotChange | None]) -> Snapshot:
        """Apply the change that `decide` makes of the newest version, atomically and on exactly that version; return
        the version then. `decide` is called again when another commit came between, and may raise. Where it returns
        None nothing is changed. Raises `Unavailable` where others came first too often."""
        for attempt in range(ATTEMPTS):
            with self._log.lock:
                base = self.snapshot()
                change = decide(base)
                if change is None:
                    return base
                try:
                    self._log.commit_on(base, change)
                except CommitConflict:
                    pass
                else:
                    return self.snapshot()
            time.sleep(0.002 * attempt)
        raise Unavailable(
            f"The table {self.location} could not be written",
            f"Other writers came first {ATTEMPTS} times in a row",
            "Look for another calque that uses the same state folder",
        )

    def write(self, rows: Iterable[pa.Table]) -> tuple[DataFile, ...]:
        """Write the rows to one data file that nothing refers to yet, and return it; write no file when there are no
        rows."""
        try:
            return self.files.write(rows)
        except OSError as error:
            raise self._log.unavailable("written", error) from error

    def discard(self, files: Iterable[DataFile]) -> None:
        """Delete data files that were written and are certainly not committed."""
        for file in files:
            self._log.delete(file.path)

    def read(self, keys: Keys, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows with those keys, files in order of key, rows as written. `columns`, where given, begin with
        the key."""
        return self.consistently(lambda snapshot: self.files.read(snapshot.holding(keys), keys, columns))

    def dataset(self, snapshot: Snapshot) -> ds.Dataset:
        """Return the rows of that version as a dataset, for a query engine that reads what it needs of them. Columns
        that an older file lacks are null. Files of a superseded version stay for `LINGER_SECONDS`."""
        import pyarrow.dataset as ds

        if not snapshot.files:
            return ds.dataset(self.schema.empty_table())
        paths = [file.path for file in snapshot.files]
        return ds.dataset(paths, self.schema, format="parquet", filesystem=self.files.file_system())

    def consistently(self, read: Callable[[Snapshot], T]) -> T:
        """Call `read` with the newest version and return its result. `read` is called again when data files were merged
        away meanwhile. Raises `StateUnusable` where files that the log names stay missing."""
        for _ in range(3):
            try:
                return read(self.snapshot())
            except FileNotFoundError:
                self._log.require_folder()
                self._log.reopen()
            except OSError as error:
                raise self._log.unavailable("read", error) from error
        raise damaged(self.location, "Data files that its log names are missing")

    def compact(self, below: int | None = None) -> int:
        """Merge small files with keys up to `below` when there are many, so that their number stays small after any
        number of commits. Returns how many files were merged."""
        run = small_run(self.snapshot().files, below)
        return self.merge(run) if run else 0

    def merge(self, run: Sequence[DataFile], keep: Callable[[pa.Table], pa.Table] | None = None) -> int:
        """Write the rows of these files, or what `keep` leaves of them, to one file in their place, unless one of them
        has gone meanwhile. Returns how many files were merged."""
        rows = (piece for file in run for piece in self.files.pieces(file, None, self.schema.names))
        try:
            merged = self.write(rows if keep is None else map(keep, rows))
        except FileNotFoundError:
            return 0
        is_merged = False

        def decide(snapshot: Snapshot) -> SnapshotChange | None:
            nonlocal is_merged
            is_merged = set(run) <= set(snapshot.files)
            return SnapshotChange(add=merged, remove=tuple(run), rearranges=keep is None) if is_merged else None

        self.commit(decide)
        if is_merged:
            return len(run)
        self.discard(merged)
        return 0

    def forget(self, upto: int) -> int:
        """Remove the rows with keys at or below `upto`: whole files, and the beginning of a file at the edge. Returns
        how many rows were removed."""
        names, pieces = self.schema.names, self.files.pieces
        return self.rewrite(
            lambda snapshot: [file for file in snapshot.files if file.low <= upto],
            lambda file: pieces(file, range(upto + 1, file.high + 1), names) if file.high > upto else iter(()),
        )

    def rewrite(
        self,
        choose: Callable[[Snapshot], Iterable[DataFile]],
        keep: Callable[[DataFile], pa.Table | Iterator[pa.Table]],
        marks: Mapping[str, int] = NOTHING,
    ) -> int:
        """Put in the place of each chosen file the rows that `keep` leaves of it, at once or in pieces, in one commit
        with `marks`. A file of which `keep` leaves all rows at once stays. Then `vacuum`. Returns how many rows were
        removed. Raises `Unavailable` where others commit first too often."""
        replacements: dict[DataFile, tuple[DataFile, ...]] = {}
        removed_rows = 0

        def decide(snapshot: Snapshot) -> SnapshotChange | None:
            nonlocal removed_rows
            chosen = tuple(choose(snapshot))
            for file in chosen:
                if file not in replacements:
                    rows = keep(file)
                    if not isinstance(rows, pa.Table):
                        replacements[file] = self.write(rows)
                    else:
                        replacements[file] = (file,) if rows.num_rows == file.rows else self.write([rows])
            remove = tuple(file for file in chosen if replacements[file] != (file,))
            add = tuple(new for file in remove for new in replacements[file])
            removed_rows = sum(file.rows for file in remove) - sum(file.rows for file in add)
            return SnapshotChange(add, remove, marks) if remove or marks else None

        def prepare_then_commit(snapshot: Snapshot) -> None:
            decide(snapshot)
            self.commit(decide)

        self.consistently(prepare_then_commit)
        self.vacuum()
        return removed_rows
