"""Small records in the state folder by which processes talk to each other: pause, reload, wake counters, status.

A record is one JSON file, written to a hidden name, flushed to the disk, and renamed: a reader sees the old record or
the new one, never a part. Names are words joined by `/` (`pause/dr`); each word is letters, digits, `-`, `_` and `.`,
and does not begin with a dot.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zlib import crc32

from calque.core.records.continuity import next_gap, settled_by
from calque.core.records.state_damage import damaged, does_without
from calque.errors import Refused
from calque.model.gaps import Gap, GapCause
from calque.ports.forwarding import Interceptor, direct
from calque.ports.records import MISSING, Json, Stamp
from calque.state_files import open_private, reaching, require_own, write_whole

WORD = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
SUFFIX, CHECKSUM = ".json", "checksum"
LOG = logging.getLogger(__name__)


class ControlStore:
    """The records below the folder `path`, on a file system with atomic rename (port `Records`). Nothing is held open:
    the store is safe from several threads and processes, and can be pickled. Every method may raise `Unavailable`.
    Changes of records go through `intercept`."""

    def __init__(self, path: str | Path, intercept: Interceptor = direct) -> None:
        self._folder, self._intercept = Path(path), intercept
        self._told: set[str] = set()

    def put(self, name: str, record: Mapping[str, Json]) -> None:
        """Write or replace a record. It is on the disk when this returns. Raises `StateUnusable` in another user's
        folder."""
        self._intercept("put", self._put, name, record)

    def _put(self, name: str, record: Mapping[str, Json]) -> None:
        with unavailable(name, self._folder):
            if self._folder.exists():
                require_own(self._folder)
            write_whole(self._file(name), text_of({**record, CHECKSUM: checksum(record)}))

    def read(self, name: str) -> Mapping[str, Json] | None:
        """Return the record, None without one. A damaged record is None too where calque can do without it
        (`does_without`); any other damaged record raises `StateUnusable`."""
        with unavailable(name, self._folder):
            try:
                data = self._file(name).read_bytes()
            except FileNotFoundError:
                return None
        try:
            return record_of(data)
        except ValueError as error:
            problem = damaged(str(self._file(name)), str(error))
            if not does_without(name):
                raise problem from error
            if name not in self._told:
                self._told.add(name)
                LOG.warning("%s is damaged, and calque does without it: %s", self._file(name), error)
            return None

    def names(self, prefix: str = "") -> Sequence[str]:
        """Return the names that begin with `prefix`, sorted."""
        with unavailable(prefix or "all", self._folder):
            paths = (path.relative_to(self._folder) for path in self._folder.rglob(f"*{SUFFIX}"))
            names = (path.as_posix().removesuffix(SUFFIX) for path in paths if not hidden(path))
            return sorted(name for name in names if name.startswith(prefix))

    def remove(self, name: str) -> None:
        """Remove a record; a missing one is fine."""
        self._intercept("remove", self._remove, name)

    def _remove(self, name: str) -> None:
        with unavailable(name, self._folder):
            self._file(name).unlink(missing_ok=True)

    def bump(self, name: str) -> int:
        """Add one to the counter of that name and return it. Counters start at 0 and never go back, and no two callers
        get the same number, also in different processes."""
        with unavailable(name, self._folder), locked(self._file(name).with_name(f".{self._file(name).name}.lock")):
            number = self.count(name) + 1
            self.put(name, {"count": number})
            return number

    def count(self, name: str) -> int:
        """Return the counter's number; 0 before the first `bump`. Raises `StateUnusable` where the record is no
        counter."""
        record = self.read(name)
        match record:
            case None:
                return 0
            case {"count": int(number)}:
                return number
        raise damaged(str(self._file(name)), "It is no counter")

    def stamp(self, name: str) -> Stamp:
        """Return a stamp that tells this writing of the record from any other; `MISSING` without a record. It takes one
        look-up, and nothing is read."""
        with unavailable(name, self._folder):
            try:
                status = self._file(name).stat()
            except FileNotFoundError:
                return MISSING
            return status.st_ino, status.st_mtime_ns, status.st_size

    def changed_since(self, name: str, stamp: Stamp) -> bool:
        """Return whether the record was written or removed since `stamp` was taken. The stamp `MISSING` stands for a
        record that was not there."""
        return self.stamp(name) != stamp

    def place(self, name: str) -> str:
        """Return the path of the record's file."""
        return str(self._file(name))

    def _file(self, name: str) -> Path:
        words = name.split("/")
        if not all(WORD.fullmatch(word) for word in words):
            raise Refused(
                f"{name!r} can't name a record",
                "Names are words of letters, digits, '-', '_' and '.' joined by '/'",
                "Use another name",
            )
        return self._folder.joinpath(*words[:-1], words[-1] + SUFFIX)


class ControlGaps:
    """The port `Gaps` in one record, which the capturing process writes and all processes read."""

    def __init__(self, control: ControlStore, record: str = "gaps") -> None:
        self._control, self._record_name = control, record

    def recorded(self) -> Sequence[Gap]:
        return self._read()[0]

    def add(self, gap: Gap) -> None:
        gaps, settled = self._read()
        if next_gap(gaps, gap):
            self._put([*gaps, gap], settled)

    def settled(self) -> int:
        return self._read()[1]

    def settle(self, number: int) -> None:
        gaps, settled = self._read()
        self._put(gaps, settled_by(gaps, settled, number))

    def _read(self) -> tuple[Sequence[Gap], int]:
        record: Any = self._control.read(self._record_name)
        if record is None:
            return [], 0
        try:
            gaps = [Gap(**{**row, "cause": GapCause(row["cause"])}) for row in record["gaps"]]
            return gaps, int(record["settled"])
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(self._control.place(self._record_name), f"{type(error).__name__}: {error}") from error

    def _put(self, gaps: Sequence[Gap], settled: int) -> None:
        rows = [{**asdict(gap), "cause": gap.cause.value} for gap in gaps]
        self._control.put(self._record_name, {"gaps": rows, "settled": settled})


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock of `file` within the context. One thread of one process has it at a time; the system releases it
    when the process dies."""
    with os.fdopen(open_private(file, os.O_RDWR | os.O_APPEND), "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def unavailable(name: str, folder: Path) -> AbstractContextManager[None]:
    """Return a context manager that turns errors of reaching the control record into calque's own, with their cause."""
    return reaching(f"The control record {name} can't be reached", folder)


def hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def text_of(record: Mapping[str, Json]) -> bytes:
    return json.dumps(record, ensure_ascii=False, sort_keys=True).encode()


def checksum(record: Mapping[str, Json]) -> str:
    return f"{crc32(text_of(record)):08x}"


def record_of(data: bytes) -> Mapping[str, Json]:
    """Return the record in a file with these bytes. Raises `ValueError` where they are not what was written. A record
    without a checksum is taken as it is, because an older calque wrote none."""
    if not data:
        raise ValueError("It is empty")
    record = json.loads(data)
    if not isinstance(record, dict):
        raise ValueError("It is no JSON object")
    said = record.pop(CHECKSUM, None)
    if said is not None and said != checksum(record):
        raise ValueError("Its checksum is another one")
    return record
