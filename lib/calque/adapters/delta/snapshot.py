"""The data files of a version of a table, and the version that the next commit makes of them. No I/O."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote
from zlib import crc32

from calque.core.records.state_damage import damaged
from calque.errors import StateUnusable

MANY = 100
"""The number of small files that are merged into one; fewer (`FEW`) suffice where they fill one."""
FEW = 8
FULL_BYTES = 16 << 20
"""The size beyond which no file is merged, so that a merge stays below a second."""

Keys = range | Sequence[int]
"""The wanted keys, ascending."""
NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file with the least and the greatest key in it."""

    path: str
    size: int
    rows: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A version of the table: its files in order of key, and the newest number that each application committed."""

    version: int
    files: tuple[DataFile, ...] = ()
    marks: Mapping[str, int] = field(default_factory=dict)

    def holding(self, keys: Keys) -> tuple[DataFile, ...]:
        """Return the files that may hold any of the keys."""
        return tuple(file for file in self.files if any_between(keys, file.low, file.high))


NOT_THERE = Snapshot(-1)
STATE = "calque.state"
"""The key in the metadata of a commit (Delta's `commitInfo`) whose value is the `summary` of the version that the
commit makes."""


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """The change that one commit makes. With `rearranges` the same rows lie in other files afterwards, which readers of
    a stream need not see."""

    add: tuple[DataFile, ...] = ()
    remove: tuple[DataFile, ...] = ()
    marks: Mapping[str, int] = field(default_factory=dict)
    rearranges: bool = False


def after(base: Snapshot, change: SnapshotChange, marks: Mapping[str, int]) -> Snapshot:
    """Return the version that the change makes of `base`."""
    files = (set(base.files) - set(change.remove)) | set(change.add)
    return Snapshot(base.version + 1, in_order(files), {**base.marks, **marks})


def summary(snapshot: Snapshot, names: Iterable[str]) -> str:
    """Return a short text over the version's files (a checksum) and over the marks of these names. If its meaning ever
    changes, the new text needs another name than `STATE`."""
    lines = (f"{file.path} {file.size} {file.rows} {file.low} {file.high}" for file in snapshot.files)
    marks = (f"{name}={snapshot.marks[name]}" for name in names if name in snapshot.marks)
    return ";".join((f"{crc32(chr(10).join(lines).encode()):08x}", *marks))


def agrees_in_marks(marks: Mapping[str, int], said: str, names: Collection[str]) -> bool:
    """Return whether a version with these marks fits `said`, a commit's `summary`. Marks outside of `names` are not
    compared, because they are not known here."""
    wanted = dict(mark.partition("=")[::2] for mark in said.split(";")[1:])
    return all(str(marks.get(name)) == number for name, number in wanted.items() if name in names)


def agrees_in_files(snapshot: Snapshot, said: str) -> bool:
    """Return whether the files of the version fit `said`, a commit's `summary`."""
    return summary(snapshot, ()) == said.split(";")[0]


def said_of_state(commit: str) -> str | None:
    """Return the `summary` in the text of a commit. Empty where the commit changes nothing and has no summary, None
    where it changes the table and has none."""
    actions: list[dict[str, Any]] = [json.loads(line) for line in commit.splitlines()]
    for action in actions:
        match action:
            case {"commitInfo": {"calque.state": str(said)}}:
                return said
    return None if any(action.keys() & {"add", "remove", "txn"} for action in actions) else ""


def advanced(snapshot: Snapshot, commit: str, key: str, location: str) -> Snapshot:
    """Return the version after `snapshot`, whose commit file has the text `commit`. Raises `StateUnusable` for a file
    without statistics of `key`, and `ValueError` where the text is no JSON."""
    files = {file.path: file for file in snapshot.files}
    marks = dict(snapshot.marks)
    count = len(files)
    for line in commit.splitlines():
        match json.loads(line):
            case {"add": {"path": str(path), "size": int(size)} as add}:
                files[unquote(path)] = added_file(unquote(path), size, add.get("stats"), key, location)
            case {"remove": {"path": str(path)}}:
                files.pop(unquote(path), None)
                count = -1
            case {"txn": {"appId": str(name), "version": int(number)}}:
                marks[name] = number
    unchanged = len(files) == count
    return Snapshot(snapshot.version + 1, snapshot.files if unchanged else in_order(files.values()), marks)


def added_file(path: str, size: int, statistics: str | None, key: str, location: str) -> DataFile:
    match json.loads(statistics or "{}"):
        case {"numRecords": int(rows), "minValues": {**least}, "maxValues": {**greatest}}:
            low, high = least.get(key), greatest.get(key)
            if isinstance(low, int) and isinstance(high, int):
                return DataFile(path, size, rows, low, high)
    raise without_statistics(path, key, location)


def without_statistics(path: str, key: str, location: str) -> StateUnusable:
    """Return the error for a table whose log does not say which keys a file holds. A program that writes to such a
    table beside calque must write statistics of its first column (`delta.dataSkippingStatsColumns`)."""
    return damaged(location, f"Its log does not say which {key} the file {path} holds")


def in_order(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    return tuple(sorted(files, key=lambda file: (file.low, file.high, file.path)))


def any_between(keys: Keys, low: int, high: int) -> bool:
    """Return whether one of the keys lies in [low, high]."""
    place = bisect_left(keys, low)
    return place < len(keys) and keys[place] <= high


def small_run(files: Sequence[DataFile], below: int | None) -> tuple[DataFile, ...]:
    """Return the neighbouring files that are worth merging now, or none.

    The run is taken from the newest key backwards, and beyond `MANY` files only while the next file is no larger than
    all before it: each row is then merged a logarithm of times, not once for every merge. Files with keys above `below`
    are left.
    """
    run: list[DataFile] = []
    size = 0
    for file in reversed(files):
        if below is not None and file.high > below:
            continue
        if len(run) >= MANY and file.size > size:
            break
        if size + file.size > FULL_BYTES:
            return tuple(reversed(run)) if len(run) >= FEW and size > FULL_BYTES // 2 else enough(run)
        run.append(file)
        size += file.size
    return enough(run)


def enough(run: Sequence[DataFile]) -> tuple[DataFile, ...]:
    return tuple(reversed(run)) if len(run) >= MANY else ()
