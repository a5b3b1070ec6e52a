"""Small records in the state folder by which processes talk to each other: pause, reload, wake counters, status.

A record is one JSON file, written to a hidden name, flushed to the disk, and renamed: a reader sees the old record or
the new one, never a part. Names are words joined by `/` (`pause/dr`); each word is letters, digits, `-`, `_` and `.`,
and does not begin with a dot.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from calque.core.continuity import next_gap, settled_by
from calque.errors import Broken, Refused, Unavailable
from calque.model.gaps import Gap, GapCause
from calque.ports.forwarding import Interceptor, direct
from calque.ports.records import MISSING, Json, Stamp

WORD = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
SUFFIX = ".json"


class ControlStore:
    """Records below the folder `path`, on a file system with atomic rename. Nothing is held open: safe from several
    threads and processes, and to pickle. Every method may raise `Unavailable`. Records are changed through
    `intercept`."""

    def __init__(self, path: str | Path, intercept: Interceptor = direct) -> None:
        self._folder, self._intercept = Path(path), intercept

    def put(self, name: str, record: Mapping[str, Json]) -> None:
        """Write or replace a record; it is on the disk when this returns."""
        self._intercept("put", self._put, name, record)

    def _put(self, name: str, record: Mapping[str, Json]) -> None:
        with unavailable(name):
            write_atomically(self._file(name), json.dumps(record, ensure_ascii=False, sort_keys=True).encode())

    def read(self, name: str) -> Mapping[str, Json] | None:
        """The record, or None. `Broken` when the file holds something else."""
        with unavailable(name):
            try:
                data = self._file(name).read_bytes()
            except FileNotFoundError:
                return None
        try:
            record = json.loads(data)
        except ValueError as error:
            raise not_a_record(self._file(name)) from error
        if not isinstance(record, dict):
            raise not_a_record(self._file(name))
        return record

    def names(self, prefix: str = "") -> Sequence[str]:
        """The names that begin with `prefix`, sorted."""
        with unavailable(prefix or "all"):
            paths = (path.relative_to(self._folder) for path in self._folder.rglob(f"*{SUFFIX}"))
            names = (path.as_posix().removesuffix(SUFFIX) for path in paths if not hidden(path))
            return sorted(name for name in names if name.startswith(prefix))

    def remove(self, name: str) -> None:
        """Remove a record; a missing one is fine."""
        self._intercept("remove", self._remove, name)

    def _remove(self, name: str) -> None:
        with unavailable(name):
            self._file(name).unlink(missing_ok=True)

    def bump(self, name: str) -> int:
        """Add one to the counter of that name and return it; counters start at 0, never go back, and no two callers
        get the same number, whatever their process."""
        with unavailable(name), locked(self._file(name).with_name(f".{self._file(name).name}.lock")):
            number = self.count(name) + 1
            self.put(name, {"count": number})
            return number

    def count(self, name: str) -> int:
        """The counter's number; 0 before the first `bump`."""
        record = self.read(name)
        match record:
            case None:
                return 0
            case {"count": int(number)}:
                return number
        raise not_a_record(self._file(name))

    def stamp(self, name: str) -> Stamp:
        """What tells this writing of the record from any other: one look-up, nothing is read."""
        with unavailable(name):
            try:
                status = self._file(name).stat()
            except FileNotFoundError:
                return MISSING
            return status.st_ino, status.st_mtime_ns, status.st_size

    def changed_since(self, name: str, stamp: Stamp) -> bool:
        """Whether the record was written or removed since `stamp` was taken (`MISSING` for never)."""
        return self.stamp(name) != stamp

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
    """The port `Gaps` in one record: written by the process that captures, read by all."""

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
            raise Broken("The record of gaps can't be read", str(error), "Restore it from a backup") from error

    def _put(self, gaps: Sequence[Gap], settled: int) -> None:
        rows = [{**asdict(gap), "cause": gap.cause.value} for gap in gaps]
        self._control.put(self._record_name, {"gaps": rows, "settled": settled})


def write_atomically(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    try:
        with draft.open("wb") as sink:
            sink.write(data)
            sink.flush()
            os.fsync(sink.fileno())
        draft.replace(file)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Held by one thread of one process at a time; given back when a process dies."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def unavailable(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"The control record {name} can't be reached", str(error), "Check the state folder, then try again"
        ) from error


def hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def not_a_record(file: Path) -> Broken:
    return Broken(
        f"{file} is no control record", "Its content is not what calque writes there", "Remove the file and try again"
    )
