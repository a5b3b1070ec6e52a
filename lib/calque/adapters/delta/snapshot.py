"""Which data files a version of a table has, and what the next commit makes of that. No I/O."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import unquote

from calque.errors import Refused

MANY = 100
"""So many small files are merged into one; fewer, when they fill one."""
FEW = 8
FULL_BYTES = 16 << 20
"""A file is never merged beyond this size, so that a merge stays below a second."""

Keys = range | Sequence[int]
"""Wanted keys, ascending."""
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
        """The files that may hold any of the keys."""
        return tuple(file for file in self.files if any_between(keys, file.low, file.high))


NOT_THERE = Snapshot(-1)


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit does. `rearranges`: the same rows in other files, which readers of a stream need not see."""

    add: tuple[DataFile, ...] = ()
    remove: tuple[DataFile, ...] = ()
    marks: Mapping[str, int] = field(default_factory=dict)
    rearranges: bool = False


def advanced(snapshot: Snapshot, commit: str, key: str, location: str) -> Snapshot:
    """The version after `snapshot`, whose commit file has this text."""
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


def without_statistics(path: str, key: str, location: str) -> Refused:
    return Refused(
        f"The file {path} of {location} can't be used",
        f"The table's log does not say which {key} it holds",
        "Write to this table only with statistics of its first column (delta.dataSkippingStatsColumns)",
    )


def in_order(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    return tuple(sorted(files, key=lambda file: (file.low, file.high, file.path)))


def any_between(keys: Keys, low: int, high: int) -> bool:
    """Whether one of the keys lies in [low, high]."""
    place = bisect_left(keys, low)
    return place < len(keys) and keys[place] <= high


def small_run(files: Sequence[DataFile], below: int | None) -> tuple[DataFile, ...]:
    """The neighbouring files worth merging now, or none.

    Taken from the newest key backwards, and beyond `MANY` only while the next file is no larger than all before it:
    each row is then merged a logarithm of times, not once for every merge. Files with keys above `below` are left.
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
