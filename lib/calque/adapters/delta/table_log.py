"""The versions of a Delta table whose rows have an integer key: the newest one, and the next.

The data files are known in memory with the least and greatest key in each (`snapshot`), kept up to date from the
commits that were added since (`_delta_log/N.json`): nothing is listed.

Each commit says which format the table's rows have, by the application transaction `format`. A table that does not say
it has format 1, and a table with a greater number than the reader knows is refused.

Log clean-up (`PROPERTIES`) keeps a commit at a few milliseconds; without it each commit costs more than the last. A
handle that fell behind the clean-up opens the table anew.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from calque.adapters.delta.data_files import DataFiles, local_path
from calque.adapters.delta.snapshot import (
    NOT_THERE,
    STATE,
    DataFile,
    Snapshot,
    SnapshotChange,
    advanced,
    after,
    agrees_in_files,
    agrees_in_marks,
    in_order,
    said_of_state,
    summary,
    without_statistics,
)
from calque.core.records.state_damage import damaged
from calque.core.records.state_formats import FIRST_FORMAT, require_known_format
from calque.errors import CalqueError, StateUnusable
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
"""The seconds that a file stays after it was merged away, for readers who have not noticed."""
ATTEMPTS = 30
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""delta-rs writes its errors for a terminal."""


class CommitConflict(Exception):
    """Another commit came first, so that the version on which the decision was made is not the newest one any more."""


class TableLog:
    """The log of a table. The arguments are those of `table.RangedTable`. It is opened at the first use, and closed
    when pickled. A caller that reads a version and commits on it holds `lock` meanwhile."""

    def __init__(
        self,
        location: str,
        schema: pa.Schema,
        marks: Sequence[str],
        storage_options: Options | None,
        table_format: int,
        oldest_format: int | None,
        held_bytes: int,
    ) -> None:
        self.location, self._schema, self._key = location, schema, schema.names[0]
        self._marks = (*marks, FORMAT)
        self._format, self._oldest_format = table_format, oldest_format
        self._held_bytes = held_bytes
        self._options = dict(storage_options or {})
        self._start()

    def __getstate__(self) -> dict[str, object]:
        attributes = ("location", "_schema", "_key", "_marks", "_format", "_oldest_format", "_held_bytes", "_options")
        return {name: getattr(self, name) for name in attributes}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._start()

    def _start(self) -> None:
        self.lock = threading.RLock()
        self._snapshot = NOT_THERE
        self._handle: DeltaTable | None = None
        self._options_version: tuple[object, ...] = ()
        self.files = DataFiles(self.location, self._schema, self._options, self._held_bytes)
        self._merged_away: deque[tuple[float, str]] = deque()
        self._delta_schema = Schema.from_arrow(self._schema)

    def snapshot(self) -> Snapshot:
        """Return the newest version; `NOT_THERE` before the first commit. It takes two look-ups of a name when nothing
        changed."""
        with self.lock:
            try:
                self._catch_up()
            except (DeltaError, OSError) as error:
                raise self.unavailable("read", error) from error
            self._require_known_format(self._snapshot)
            return self._snapshot

    def _require_known_format(self, snapshot: Snapshot) -> None:
        # A table that was made and has no commit of calque's yet says no format.
        if snapshot.files or FORMAT in snapshot.marks:
            require_known_format(f"The table {self.location}", format_of(snapshot), self._format, self._oldest_format)

    def commit_on(self, base: Snapshot, change: SnapshotChange) -> None:
        """Commit `change` directly on the version `base`. Raises `CommitConflict` when that is not the newest version
        any more."""
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
            # The commit may be there all the same: its checkpoint or clean-up can fail after it.
            if token not in (self.files.text(commit_path(base.version + 1)) or ""):
                if self.snapshot().version > base.version:
                    raise CommitConflict from error
                raise self.unavailable("written", error) from error
        if self.files.is_local:
            restrict_below(Path(self.files.uri, "_delta_log"), ())
        self._bury(change.remove)

    def widen(self) -> None:
        """Give a table that an older version of calque made the columns that it lacks, which are null in its rows."""
        for _ in range(ATTEMPTS):
            with self.lock:
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
                        raise self.unavailable("widened", error) from error
                else:
                    return

    def vacuum(self) -> None:
        """Delete data files that were removed, or written and never committed, more than an hour ago. The hour is
        lengthened by what the machine's clock may be ahead, because other processes may have written files just now."""
        with self.lock:
            version = self.snapshot().version
            if version < 0:
                return
            try:
                hours = 1 + self._hours_ahead(version)
                self._handle_at(version).vacuum(retention_hours=hours, dry_run=False, full=True)
            except (CommitConflict, DeltaError, OSError):
                self._handle = None

    def _hours_ahead(self, version: int) -> int:
        """Return by how many hours, rounded up, the machine's clock is ahead of the steady clock of this process, or of
        the storage's clock at the newest commit. A store needs no such look, because it refuses requests of a machine
        whose clock is wrong."""
        now = time.time_ns()
        ahead = now - STEADY.now_ns()
        if (path := local_path(self.location)) is not None:
            try:
                ahead = max(ahead, now - Path(path, commit_path(version)).stat().st_mtime_ns)
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
                snapshot = advanced(snapshot, text, self._key, self.location)
        except (ValueError, TypeError, StateUnusable):
            # The commit is damaged, or half written: opening the table anew tells which.
            self.reopen()
            return
        self._snapshot = snapshot
        # A missing next commit means no news only while this version's own commit is there, because the clean-up
        # removes the oldest commits first.
        if not self.files.exists(commit_path(snapshot.version)):
            self.reopen()

    def reopen(self) -> None:
        with self.lock:
            self._snapshot, self._handle = NOT_THERE, None
            self._open()

    def _open(self) -> None:
        """Load the newest version as a whole. The clean-up of another commit may remove what is being read, therefore
        it tries up to `ATTEMPTS` times."""
        if not self.files.exists("_delta_log"):
            return
        problem: Exception | None = None
        for attempt in range(ATTEMPTS):
            try:
                handle = self._opened()
                adds = pa.RecordBatchReader.from_stream(handle.get_add_actions(flatten=True)).read_all().to_pylist()
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
        raise self.unavailable("opened", problem) from problem

    def _said_of_state(self, version: int) -> str | None:
        """Return the `summary` that the commit of `version` has. A commit that changed nothing, such as a machine
        leaves that lost its power, is passed over for the one before. None where no commit has one, because an older
        calque made it."""
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
        """Raise `StateUnusable` where the bytes of the table's log can be read, though they make no log."""
        if isinstance(problem, OSError):
            return
        try:
            for path in self.files.log_files():
                self.files.require_bytes(path)
        except OSError:
            return
        raise damaged(self.location, plain(problem)) from problem

    def require_folder(self) -> None:
        if self.files.is_local and not self.files.exists(""):
            require_there(Path(self.files.uri))

    def _known(self, add: Mapping[str, object]) -> DataFile:
        path = unquote(str(add["path"]))
        match add:
            case {"size_bytes": int(size), "num_records": int(rows)}:
                low, high = add.get(f"min.{self._key}"), add.get(f"max.{self._key}")
                if isinstance(low, int) and isinstance(high, int):
                    return DataFile(path, size, rows, low, high)
        raise without_statistics(path, self._key, self.location)

    def _actions(self, change: SnapshotChange) -> list[AddAction | RemoveAction]:
        now = time.time_ns() // 1_000_000
        adds = [
            AddAction(file.path, file.size, {}, now, not change.rearranges, statistics(file, self._key))
            for file in change.add
        ]
        removes = [RemoveAction(file.path, not change.rearranges, now, file.size, {}) for file in change.remove]
        return [*adds, *removes]

    def _handle_at(self, version: int) -> DeltaTable:
        """Return the open handle, brought to `version`. Raises `CommitConflict` when the table has gone on."""
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
            raise self.unavailable("opened", error) from error
        self._handle = handle
        if handle.version() != version:
            raise CommitConflict
        return handle

    def _opened(self) -> DeltaTable:
        self._options_version = versions(self._options)
        return DeltaTable(self.files.uri, storage_options=revealed(self._options))

    def _created(self) -> DeltaTable:
        """Create the table, unless another process does. Always raises `CommitConflict`, so that the decision is made
        again on the version that is there then."""
        configuration = {**PROPERTIES, "delta.dataSkippingStatsColumns": self._key}
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
                raise self.unavailable("created", error) from error
        if self.files.is_local:
            restrict_below(Path(self.files.uri), ())
        raise CommitConflict

    def _bury(self, removed: Iterable[DataFile]) -> None:
        now = time.monotonic()
        self._merged_away.extend((now, file.path) for file in removed)
        while self._merged_away and self._merged_away[0][0] < now - LINGER_SECONDS:
            self.delete(self._merged_away.popleft()[1])

    def delete(self, path: str) -> None:
        try:
            self.files.delete(path)
        except OSError as error:
            raise self.unavailable("tidied", error) from error

    def unavailable(self, verb: str, error: Exception | None) -> CalqueError:
        return state_error(f"The table {self.location} could not be {verb}", self.location, plain(error), error)


def plain(error: Exception | None) -> str:
    """Return the first line of the error's text, without codes for a terminal. The lines after it repeat what was
    read."""
    return next(iter(COLOURS.sub("", str(error)).splitlines()), "")


def format_of(snapshot: Snapshot) -> int:
    """Return the number of the format of the table's rows; 1 (`FIRST_FORMAT`) where no commit says a number."""
    return snapshot.marks.get(FORMAT, FIRST_FORMAT)


def commit_path(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def statistics(file: DataFile, key: str) -> str:
    return json.dumps(
        {"numRecords": file.rows, "minValues": {key: file.low}, "maxValues": {key: file.high}, "nullCount": {key: 0}}
    )
