"""The logs of Delta tables, over any storage: read, continued by a commit, checkpointed and cleaned.

A commit is one new file, which is there whole or not at all. Of two writers that make the same version one fails.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from uuid import uuid4

from calque.core.formats.deltalog import LAST_CHECKPOINT, LOG, commit_path, log_of
from calque.core.formats.layout import COPYING, join
from calque.core.images.table_layout import has_own_row_files
from calque.errors import Refused
from calque.plugins.delta_replicas.core.checkpoint import checkpoint_of, rows_of_checkpoint
from calque.plugins.delta_replicas.core.log import (
    FEATURES,
    READER_VERSION,
    LogChange,
    LoggedTable,
    ShownVersion,
    actions_of,
    commit_text,
    rows_of,
)
from calque.plugins.delta_replicas.core.row_log import ROWS
from calque.ports import Conflict, Storage
from calque.ports.steady_clock import STEADY

CHECKPOINT_EVERY = 20
KEPT = 64
"""The most tables whose logs are held in memory."""


class ReplicaLogs:
    """A reader and writer of the logs of a target's Delta tables, safe from several threads. Commits that a checkpoint
    stands for are kept for `grace` seconds more. Every `checkpoint_every` versions there is a checkpoint."""

    def __init__(
        self,
        storage: Storage,
        grace: float,
        now_ms: Callable[[], int] = lambda: STEADY.now_ns() // 10**6,
        checkpoint_every: int = CHECKPOINT_EVERY,
    ) -> None:
        self.storage, self.grace, self.now_ms, self.checkpoint_every = storage, grace, now_ms, checkpoint_every
        self._lock = Lock()
        self._locks: dict[str, Lock] = {}
        self._tables: OrderedDict[str, LoggedTable] = OrderedDict()

    def read(self, root: str) -> LoggedTable:
        """Return what the log at `root` says now, at version -1 where there is none. Raises `Refused` where another
        writer raised its protocol."""
        with self._alone(root):
            return self._newest(root)

    def begin(self, root: str) -> LoggedTable:
        """Return what the log at `root` says, for a table that is to be made there. The log of a replica whose protocol
        another writer raised is removed first, because by its name that table is gone."""
        try:
            return self.read(root)
        except Refused:
            if not self._advanced(self._loaded(root)).definition:
                raise
            self.storage.remove([join(root, LOG)])
            self.forget(root)
            return LoggedTable(root)

    def commit(self, root: str, change: LogChange, shown: ShownVersion, source: str) -> bool:
        """Write the change as the next version. Return False where it would change nothing. Raises `Conflict` where
        another writer made that version, or one since the change's rows were made."""
        with self._alone(root):
            logged, now_ms = self._newest(root), self.now_ms()
            if change.since not in (None, logged.version):
                raise Conflict(f"{root} has version {logged.version} by now, and the rows are those after another one")
            actions = actions_of(logged, change, str(uuid4()), now_ms)
            if not actions:
                return False
            text = commit_text(actions, shown, source, now_ms)
            path = join(root, commit_path(logged.version + 1))
            staged = join(root, f"{LOG}/{COPYING}{uuid4().hex}")
            if self.storage.exists(path):
                raise Conflict(f"{path} was written by another")
            self.storage.write(staged, text.encode())
            try:
                self.storage.publish([(staged, path)])
            except Refused as refused:
                self.storage.remove([staged])
                raise Conflict(f"{path} was written by another") from refused
            logged = logged.after(rows_of(text.encode()))
            if logged.version % self.checkpoint_every == 0 and logged.version:
                logged = self._checkpoint(logged)
            self._keep(logged)
            return True

    def forget(self, root: str) -> None:
        """Forget what is held in memory of the table at `root`."""
        with self._lock:
            self._tables.pop(root, None)

    @contextmanager
    def _alone(self, root: str) -> Iterator[None]:
        """Let one thread at a time work on the log at `root`."""
        with self._lock:
            lock = self._locks.setdefault(root, Lock())
        with lock:
            yield

    def _keep(self, logged: LoggedTable) -> None:
        with self._lock:
            self._tables[logged.root] = logged
            self._tables.move_to_end(logged.root)
            while len(self._tables) > KEPT:
                self._tables.popitem(last=False)

    def _newest(self, root: str) -> LoggedTable:
        with self._lock:
            logged = self._tables.get(root)
        if logged is None or logged.version < 0:
            logged = self._loaded(root)
        newest = self._advanced(logged)
        if (
            newest is logged
            and logged.version >= 0
            and not self.storage.exists(join(root, commit_path(newest.version)))
        ):
            # The newest commit is never removed. So another process made newer versions and removed those between.
            newest = self._advanced(self._loaded(root))
        require_own_protocol(newest)
        self._keep(newest)
        return newest

    def _advanced(self, logged: LoggedTable) -> LoggedTable:
        while (content := self.storage.read(join(logged.root, commit_path(logged.version + 1)))) is not None:
            logged = logged.after(rows_of(content))
        return logged

    def _loaded(self, root: str) -> LoggedTable:
        """Return the state of the newest checkpoint. Where that one goes while it is read, because a newer one replaced
        it, the newer one is read."""
        while True:
            log = log_of(self.storage.children(join(root, LOG)))
            if not log.checkpoints:
                return LoggedTable(root)
            checkpoint = log.checkpoints[-1]
            contents = [self.storage.read(join(root, path)) for path in checkpoint.files]
            if None not in contents:
                logged = LoggedTable(root, checkpoint.version)
                for content in contents:
                    logged.play(rows_of_checkpoint(content or b""))
                return logged

    def _checkpoint(self, logged: LoggedTable) -> LoggedTable:
        """Write a checkpoint of the version, then remove the files of older versions that are older than the grace.
        Return the version without its records of removed files that are older than the grace."""
        directory = join(logged.root, LOG)
        entries = self.storage.entries(directory)
        # The newest commit was written just now: its time is the storage's clock, which ours may be ahead of.
        newest_ms = max((entry.modified_ns for entry in entries), default=0) // 10**6
        cutoff_ms = min(self.now_ms(), newest_ms or self.now_ms()) - int(self.grace * 1000)
        tombstones = logged.removed.items()
        recent = {path: row for path, row in tombstones if row.get("deletionTimestamp", 0) >= cutoff_ms}
        logged = replace(logged, removed=recent)
        content, size = checkpoint_of(logged)
        name = f"{logged.version:020}.checkpoint.parquet"
        self.storage.write(join(logged.root, f"{LOG}/{name}"), content)
        pointer = json.dumps({"version": logged.version, "size": size})
        self.storage.write(join(logged.root, LAST_CHECKPOINT), pointer.encode())
        old = [
            join(directory, entry.name)
            for entry in entries
            if entry.name[:20].isdigit()
            and int(entry.name[:20]) < logged.version
            and 0 < entry.modified_ns < cutoff_ms * 10**6
        ]
        old += self._old_rows(logged, cutoff_ms)
        if old:
            self.storage.remove(old)
        return logged

    def _old_rows(self, logged: LoggedTable, cutoff_ms: int) -> list[str]:
        """Return the files with rows of an ACID table that no version needs which a reader may have, and those that a
        death left."""
        if not has_own_row_files(logged.table):
            return []
        directory = join(logged.root, ROWS)
        needed = {
            join(logged.root, path) for path in (*logged.removed, *(p for one in logged.files.values() for p in one))
        }
        entries = ((join(directory, entry.name), entry.modified_ns) for entry in self.storage.entries(directory))
        return [path for path, modified_ns in entries if path not in needed and modified_ns < cutoff_ms * 10**6]


def require_own_protocol(logged: LoggedTable) -> None:
    """Check that the log asks only for what calque knows of the Delta protocol. Raises `Refused` where another writer
    raised it, because a writer that does not know a feature may neither write to the table nor say what its rows
    are."""
    protocol = logged.protocol or {}
    features = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    unknown = sorted(features - FEATURES)
    if protocol.get("minReaderVersion", 1) > READER_VERSION or unknown:
        asked = ", ".join(unknown) or f"version {protocol['minReaderVersion']} of readers"
        raise Refused(
            f"The Delta log at {logged.root} has another protocol than calque gave it",
            f"Another writer had it ask for {asked}",
            "Find out who wrote it; drop the table at the target and release it, and it is made anew",
        )
