"""A Delta table that grows by small commits and is read by ranges of one integer column, its key.

The data files are known in memory with the least and greatest key in each (`snapshot`), kept up to date from the
commits that were added since (`_delta_log/N.json`): nothing is listed, and a span is read from the few files that hold
it.

Every commit is compare-and-swap on the table's version: it lands directly on the state it was decided on, or the
decision is made again. (delta-rs by itself lets two rewrites of the same files pass one after the other, which would
double their rows.)

Each commit says which format the table's rows have, by the application transaction `format`: a table that does not say
it has format 1, and one with a greater number than the reader knows is refused.

Log clean-up (`PROPERTIES`) keeps a commit at a few milliseconds; without it each one costs more than the last. A
handle that fell behind the clean-up, and a data file that was merged away, are met by opening the table anew.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from calque.adapters.delta.data_files import DataFiles
from calque.adapters.delta.snapshot import (
    NOT_THERE,
    NOTHING,
    STATE,
    Change,
    DataFile,
    Keys,
    Snapshot,
    advanced,
    after,
    agrees_in_files,
    agrees_in_marks,
    in_order,
    said_of_state,
    small_run,
    summary,
    without_statistics,
)
from calque.core.records.state_damage import damaged
from calque.core.records.state_formats import FIRST_FORMAT, require_known_format
from calque.errors import CalqueError, StateUnusable, Unavailable
from calque.model.secrets import Options, outdated, revealed, versions
from calque.ports.steady_clock import STEADY
from calque.state_files import make_folder, require_there, restrict_below, state_error

LOG = logging.getLogger(__name__)

PROPERTIES = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 5 seconds",
    "delta.enableExpiredLogCleanup": "true",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}
FORMAT = "format"
HOUR_NS = 3600 * 10**9
LINGER_SECONDS = 600
"""So long a file that was merged away stays for readers who have not noticed."""
ATTEMPTS = 30
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""delta-rs writes its errors for a terminal."""

T = TypeVar("T")


class CommitConflict(Exception):
    """Another commit came first; never leaves this module."""


class RangedTable:
    """`location` is a path or URI; `schema`'s first column is the key, a 64-bit integer; `marks` are the application
    names whose numbers `Snapshot.marks` shows; `table_format` is the newest format of rows that is known here, and the
    one that is written; `oldest_format` the oldest that is read, without it the one before; `held_bytes` as in
    `DataFiles`. Opened at the first use, created at the first commit, and closed when pickled. Safe from several
    threads.

    Every method may raise `Unavailable`, after which it is unknown of a commit whether it was made; `StateUnusable`
    where the table is damaged, or may not be read or written; and `Refused` where a newer calque has written it, or one
    that is older by two formats."""

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
        self.location = location
        self.schema = schema
        self.key = schema.names[0]
        self._marks = (*marks, FORMAT)
        self._format = table_format
        self._oldest_format = oldest_format
        self._held_bytes = held_bytes
        self._options = dict(storage_options or {})
        self._start()

    def __getstate__(self) -> dict[str, object]:
        attributes = ("location", "schema", "key", "_marks", "_format", "_oldest_format", "_held_bytes", "_options")
        return {name: getattr(self, name) for name in attributes}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._start()

    def _start(self) -> None:
        self._lock = threading.RLock()
        self._snapshot = NOT_THERE
        self._handle: DeltaTable | None = None
        self._options_version: tuple[object, ...] = ()
        self.files = DataFiles(self.location, self.schema, self._options, self._held_bytes)
        self._merged_away: deque[tuple[float, str]] = deque()
        self._delta_schema = Schema.from_arrow(self.schema)

    def snapshot(self) -> Snapshot:
        """The newest version; `NOT_THERE` before the first commit. Two look-ups of a name when nothing changed."""
        with self._lock:
            try:
                self._catch_up()
            except (DeltaError, OSError) as error:
                raise self._unavailable("read", error) from error
            self._require_known_format(self._snapshot)
            return self._snapshot

    def _require_known_format(self, snapshot: Snapshot) -> None:
        # One that was made and has no commit yet says nothing.
        if snapshot.files or FORMAT in snapshot.marks:
            require_known_format(f"The table {self.location}", format_of(snapshot), self._format, self._oldest_format)

    def commit(self, decide: Callable[[Snapshot], Change | None]) -> Snapshot:
        """Apply what `decide` makes of the newest version, atomically and on exactly that version. `decide` is called
        again when another commit came between, and may raise. None changes nothing."""
        for attempt in range(ATTEMPTS):
            with self._lock:
                base = self.snapshot()
                change = decide(base)
                if change is None:
                    return base
                try:
                    self._commit_on(base, change)
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

    def widen(self) -> None:
        """Give a table that an older version made the columns that it lacks, which are null in its rows."""
        for _ in range(ATTEMPTS):
            with self._lock:
                version = self.snapshot().version
                if version < 0:
                    return
                try:
                    handle = self._handle_at(version)
                    existing_names = {field.name for field in handle.schema().fields}
                    missing_fields = [field for field in self._delta_schema.fields if field.name not in existing_names]
                    if missing_fields:
                        handle.alter.add_columns(missing_fields)
                except CommitConflict:
                    continue
                except (DeltaError, OSError) as error:
                    self._handle = None
                    if self.snapshot().version == version:
                        raise self._unavailable("widened", error) from error
                else:
                    return

    def write(self, rows: Iterable[pa.Table]) -> tuple[DataFile, ...]:
        """Write the rows to one data file that nothing refers to yet; no file when there are no rows."""
        try:
            return self.files.write(rows)
        except OSError as error:
            raise self._unavailable("written", error) from error

    def discard(self, files: Iterable[DataFile]) -> None:
        """Delete data files that were written and are certainly not committed."""
        for file in files:
            self._delete(file.path)

    def read(self, keys: Keys, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with those keys, files in order of key, rows as written; `columns` begin with the key."""
        return self.consistently(lambda snapshot: self.files.read(snapshot.holding(keys), keys, columns))

    def dataset(self, snapshot: Snapshot) -> ds.Dataset:
        """The rows of that version, for an engine that reads what it needs of them; columns that an older file lacks
        are null. Files of a version that was superseded stay for `LINGER_SECONDS`."""
        if not snapshot.files:
            return ds.dataset(self.schema.empty_table())
        paths = [file.path for file in snapshot.files]
        return ds.dataset(paths, self.schema, format="parquet", filesystem=self.files.file_system())

    def consistently(self, read: Callable[[Snapshot], T]) -> T:
        """What `read` returns on the newest version; done again when its files were merged away meanwhile."""
        for _ in range(3):
            try:
                return read(self.snapshot())
            except FileNotFoundError:
                self._require_folder()
                self._reopen()
            except OSError as error:
                raise self._unavailable("read", error) from error
        raise damaged(self.location, "Data files that its log names are missing")

    def compact(self, below: int | None = None) -> int:
        """Merge small files when there are many, so that the number of files stays small however many commits there
        were; only files whose keys are at most `below`. How many files were merged."""
        run = small_run(self.snapshot().files, below)
        return self.merge(run) if run else 0

    def merge(self, run: Sequence[DataFile], keep: Callable[[pa.Table], pa.Table] | None = None) -> int:
        """Write the rows of these files, or what `keep` leaves of them, to one file in their place, unless one of them
        has gone meanwhile. How many files were merged."""
        rows = (piece for file in run for piece in self.files.pieces(file, None, self.schema.names))
        try:
            merged = self.write(rows if keep is None else map(keep, rows))
        except FileNotFoundError:
            return 0
        is_merged = False

        def decide(snapshot: Snapshot) -> Change | None:
            nonlocal is_merged
            is_merged = set(run) <= set(snapshot.files)
            return Change(add=merged, remove=tuple(run), rearranges=keep is None) if is_merged else None

        self.commit(decide)
        if is_merged:
            return len(run)
        self.discard(merged)
        return 0

    def forget(self, upto: int) -> int:
        """Remove the rows with keys at or below `upto`: whole files, and the beginning of a file at the edge. How many
        rows went."""
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
        with `marks`; a file of which it leaves all at once stays. How many rows went. Then delete data files that
        nothing has needed for long."""
        replacements: dict[DataFile, tuple[DataFile, ...]] = {}
        removed_rows = 0

        def decide(snapshot: Snapshot) -> Change | None:
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
            return Change(add, remove, marks) if remove or marks else None

        def prepare_then_commit(snapshot: Snapshot) -> None:
            decide(snapshot)
            self.commit(decide)

        self.consistently(prepare_then_commit)
        self.vacuum()
        return removed_rows

    def vacuum(self) -> None:
        """Delete data files that were removed, or written and never committed, more than an hour ago, as far as the
        machine's clock is to be believed: others may have written some just now."""
        with self._lock:
            version = self.snapshot().version
            if version < 0:
                return
            try:
                hours = 1 + self._hours_ahead(version)
                self._handle_at(version).vacuum(retention_hours=hours, dry_run=False, full=True)
            except (CommitConflict, DeltaError, OSError):
                self._handle = None

    def _hours_ahead(self, version: int) -> int:
        """How far the machine's clock is ahead of what it was in this process, and of the storage's at the newest
        commit. A store refuses requests of a machine whose clock is wrong."""
        now = time.time_ns()
        ahead = now - STEADY.now_ns()
        if (folder := local_path(self.location)) is not None:
            try:
                ahead = max(ahead, now - (folder / commit_path(version)).stat().st_mtime_ns)
            except OSError:
                LOG.debug("the newest commit of %s can't be looked at", self.location)
        return -(-max(ahead, 0) // HOUR_NS)

    def _catch_up(self) -> None:
        if self._snapshot is NOT_THERE:
            self._open()
            return
        snapshot = self._snapshot
        try:
            while (text := self.files.text(commit_path(snapshot.version + 1))) is not None:
                snapshot = advanced(snapshot, text, self.key, self.location)
        except (ValueError, TypeError, StateUnusable):
            # It is damaged, or half written: that is told when the table is opened anew.
            self._reopen()
            return
        self._snapshot = snapshot
        # No next commit is no news only while this version's own commit is there: the clean-up removes the oldest.
        if not self.files.exists(commit_path(snapshot.version)):
            self._reopen()

    def _reopen(self) -> None:
        with self._lock:
            self._snapshot, self._handle = NOT_THERE, None
            self._open()

    def _open(self) -> None:
        """Load the newest version as a whole. A commit's clean-up may remove what is being read: hence attempts."""
        if not self.files.exists("_delta_log"):
            return
        problem: Exception | None = None
        for attempt in range(ATTEMPTS):
            try:
                handle = self._opened()
                adds = pa.table(handle.get_add_actions(flatten=True)).to_pylist()
                marks = {name: handle.transaction_version(name) for name in self._marks}
            except TableNotFoundError:
                return
            except (DeltaError, OSError) as error:
                problem = error
                time.sleep(0.005 * attempt)
            else:
                known_marks = {name: number for name, number in marks.items() if number is not None}
                said = self._said_of_state(handle.version())
                if said and not agrees_in_marks(known_marks, said, self._marks):
                    raise self._unlike_its_log()
                self._require_known_format(Snapshot(handle.version(), (), known_marks))
                snapshot = Snapshot(handle.version(), in_order(self._known(row) for row in adds), known_marks)
                if said and not agrees_in_files(snapshot, said):
                    raise self._unlike_its_log()
                self._snapshot, self._handle = snapshot, handle
                return
        self._require_readable_log(problem)
        raise self._unavailable("opened", problem) from problem

    def _said_of_state(self, version: int) -> str | None:
        """What the commit of that version says of all that it made; or the one before, where it changed nothing, as one
        that a machine left when it lost its power. None where none says anything: an older calque made it."""
        for number in range(version, -1, -1):
            text = self.files.text(commit_path(number))
            try:
                said = None if text is None else said_of_state(text)
            except ValueError:
                return None
            if said or said is None:
                return said
        return None

    def _unlike_its_log(self) -> StateUnusable:
        return damaged(self.location, "Its log does not give what its newest commit says of it")

    def _require_readable_log(self, problem: Exception | None) -> None:
        """Raises where the bytes of the table's log can be had, though nothing can be made of them."""
        if isinstance(problem, OSError):
            return
        try:
            for path in self.files.log_files():
                self.files.require_bytes(path)
        except OSError:
            return
        raise damaged(self.location, plain(problem)) from problem

    def _require_folder(self) -> None:
        if self.files.is_local and not self.files.exists(""):
            require_there(Path(self.files.uri))

    def _known(self, add: Mapping[str, object]) -> DataFile:
        path = unquote(str(add["path"]))
        match add:
            case {"size_bytes": int(size), "num_records": int(rows)}:
                low, high = add.get(f"min.{self.key}"), add.get(f"max.{self.key}")
                if isinstance(low, int) and isinstance(high, int):
                    return DataFile(path, size, rows, low, high)
        raise without_statistics(path, self.key, self.location)

    def _commit_on(self, base: Snapshot, change: Change) -> None:
        """One commit directly on `base`; `CommitConflict` when it is not the newest version any more."""
        handle = self._handle_at(base.version) if base.version >= 0 else self._created()
        token = uuid.uuid4().hex
        marks = {**change.marks, **({FORMAT: self._format} if base.marks.get(FORMAT) != self._format else {})}
        known_marks = {name: number for name, number in base.marks.items() if name in self._marks}
        state = summary(after(Snapshot(base.version, base.files, known_marks), change, marks), self._marks)
        properties = CommitProperties(
            custom_metadata={"calque": token, STATE: state},
            max_commit_retries=0,
            app_transactions=[Transaction(name, number) for name, number in marks.items()],
        )
        try:
            handle.create_write_transaction(
                self._actions(change), "append", self._delta_schema, commit_properties=properties
            )
        except (DeltaError, OSError) as error:
            self._handle = None
            # What comes after a commit (checkpoint, clean-up) can fail too.
            if token not in (self.files.text(commit_path(base.version + 1)) or ""):
                if self.snapshot().version > base.version:
                    raise CommitConflict from error
                raise self._unavailable("written", error) from error
        if self.files.is_local:
            restrict_below(Path(self.files.uri, "_delta_log"), ())
        self._bury(change.remove)

    def _actions(self, change: Change) -> list[AddAction | RemoveAction]:
        now = time.time_ns() // 1_000_000
        adds = [
            AddAction(file.path, file.size, {}, now, not change.rearranges, statistics(file, self.key))
            for file in change.add
        ]
        removes = [RemoveAction(file.path, not change.rearranges, now, file.size, {}) for file in change.remove]
        return [*adds, *removes]

    def _handle_at(self, version: int) -> DeltaTable:
        """The open handle, at that version; `CommitConflict` when the table has gone on."""
        if outdated(self._options, self._options_version):
            self._handle = None
        try:
            if self._handle is not None and self._handle.version() != version:
                self._handle.update_incremental()
        except (DeltaError, OSError):
            self._handle = None
        try:
            handle = self._handle or self._opened()
        except (DeltaError, OSError) as error:
            raise self._unavailable("opened", error) from error
        self._handle = handle
        if handle.version() != version:
            raise CommitConflict
        return handle

    def _opened(self) -> DeltaTable:
        self._options_version = versions(self._options)
        return DeltaTable(self.files.uri, storage_options=revealed(self._options))

    def _created(self) -> DeltaTable:
        """Create the table, unless another does; always `CommitConflict`, so that the decision is made on what is
        there then."""
        configuration = {**PROPERTIES, "delta.dataSkippingStatsColumns": self.key}
        try:
            if self.files.is_local:
                make_folder(Path(self.files.uri, "_delta_log"))
            DeltaTable.create(
                self.files.uri,
                self._delta_schema,
                "ignore",
                configuration=configuration,
                storage_options=revealed(self._options),
            )
        except (DeltaError, OSError) as error:
            if self.snapshot() is NOT_THERE:
                raise self._unavailable("created", error) from error
        if self.files.is_local:
            restrict_below(Path(self.files.uri), ())
        raise CommitConflict

    def _bury(self, removed: Iterable[DataFile]) -> None:
        now = time.monotonic()
        self._merged_away.extend((now, file.path) for file in removed)
        while self._merged_away and self._merged_away[0][0] < now - LINGER_SECONDS:
            self._delete(self._merged_away.popleft()[1])

    def _delete(self, path: str) -> None:
        try:
            self.files.delete(path)
        except OSError as error:
            raise self._unavailable("tidied", error) from error

    def _unavailable(self, verb: str, error: Exception | None) -> CalqueError:
        return state_error(f"The table {self.location} could not be {verb}", self.location, plain(error), error)


def plain(error: Exception | None) -> str:
    """Its text without what is for a terminal, and without lines that repeat what was read."""
    return next(iter(COLOURS.sub("", str(error)).splitlines()), "")


def format_of(snapshot: Snapshot) -> int:
    """The format of the table's rows; the first one where it is not said."""
    return snapshot.marks.get(FORMAT, FIRST_FORMAT)


def local_path(location: str) -> Path | None:
    """None where it is no directory of this machine's file systems."""
    if "://" in location and not location.startswith("file://"):
        return None
    return Path(location.removeprefix("file://") if location.startswith("file://") else location.removeprefix("file:"))


def commit_path(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def statistics(file: DataFile, key: str) -> str:
    return json.dumps(
        {"numRecords": file.rows, "minValues": {key: file.low}, "maxValues": {key: file.high}, "nullCount": {key: 0}}
    )
