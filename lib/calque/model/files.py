"""Directories of data: what lay in one, and when that was known.

Paths in a listing are relative to the directory, with `/`; sizes are bytes; times nanoseconds since the epoch.
Files whose name (or the name of a directory on the way) begins with `_` or `.` are no data and never listed, but for
the newest commit of a Delta log, which stands for all files of the version that it made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from calque.model.names import EventId

DELTA_LOG = "_delta_log"
"""The directory of a Delta table's log, below the table's."""


@dataclass(frozen=True, slots=True, order=True)
class File:
    path: str
    size: int
    modified_ns: int
    checksum: str | None = None
    """xxh3-128, hexadecimal, when it was computed; no part of a listing's identity."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """Where a file of a listing is to be had that is not at its place any more, or has another time there: the file's
    path in the listing; where it lies now, a full path, and its time there."""

    path: str
    source: str
    modified_ns: int


class RowLayout(StrEnum):
    """How rows lie in files that can be combined."""

    PARQUET = "parquet"
    TEXT = "text"
    """Lines, whatever a serde makes of each."""


@dataclass(frozen=True, slots=True)
class CombinedFile:
    """A file that lies at a target, and the paths of those at the source whose rows it has, in order. `row_digest` is
    that of all its rows (`core.small_files.row_digest`), empty where it is the copy of one file."""

    file: File
    sources: tuple[str, ...]
    row_digest: str = ""


@dataclass(frozen=True, slots=True)
class Combination:
    """How the small files of a directory were combined on their way to a target. `sources` are the source's, sorted.
    Without a layout they are a symlink table's manifests, each written anew, which name files of the target."""

    layout: RowLayout | None
    sources: tuple[File, ...]
    files: tuple[CombinedFile, ...]

    @property
    def row_digest(self) -> str:
        """Of the whole directory: over what each file's rows have, or where it is a copy the file's content."""
        texts = (combined.row_digest or combined.file.checksum or "" for combined in self.files)
        return hashlib.blake2b("\n".join(texts).encode(), digest_size=16).hexdigest()

    @property
    def stored(self) -> tuple[File, ...]:
        """The files that lie there, sorted."""
        return tuple(sorted(combined.file for combined in self.files))


@dataclass(frozen=True, slots=True)
class Listing:
    """The data files below one directory, sorted by path; a missing directory is an empty listing with `missing`. Of a
    directory with a Delta log the newest version is what is listed."""

    location: str
    files: tuple[File, ...]
    missing: bool = False
    pin: str = ""
    """A directory where the same files are kept under the same paths while targets need them; empty for none."""
    scan: int = 0
    """The number of the scan that found it; 0 where an event led to it."""
    kept: tuple[KeptFile, ...] = ()
    """Where those of the files are that are not as they were listed."""
    combination: Combination | None = None
    """Of a directory at a target whose files were combined: `files` are then those of the source that they stand for,
    so that both sides' listings are equal."""
    claim: str = ""
    """The number of the claim on a directory at a target, where it was just made."""

    @property
    def stored(self) -> tuple[File, ...]:
        """The files that really lie there."""
        return self.files if self.combination is None else self.combination.stored

    @property
    def version(self) -> int | None:
        """Of a Delta table: the one file that is listed is then the commit that made the version, with its checksum."""
        return delta_version(self.files)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def fingerprint(self) -> str:
        """Equal for equal (path, size, modified) of every file, of a Delta version for an equal commit; the location is
        no part of it."""
        digest = hashlib.blake2b(digest_size=12)
        for file in self.files:
            identity = file.modified_ns if self.version is None else file.checksum
            digest.update(f"{file.path}\0{file.size}\0{identity}\n".encode())
        return digest.hexdigest()

    def is_settled(self, before_ns: int) -> bool:
        """Whether no file is younger; a Delta commit is whole from its first moment."""
        return self.version is not None or all(file.modified_ns <= before_ns for file in self.files)


def agree(first: Listing, second: Listing) -> bool:
    """Whether the second of two listings is not of a directory on the move: it is equal, or both are Delta versions."""
    return first == second or (first.version is not None and second.version is not None)


def delta_version(files: Sequence[File]) -> int | None:
    """The version of a Delta table that `files` say; None for plain files, none of which lies in a hidden directory."""
    path = files[0].path if len(files) == 1 else ""
    if not (path.startswith(f"{DELTA_LOG}/") and path.endswith(".json")):
        return None
    return int(path[len(DELTA_LOG) + 1 : -len(".json")])


@dataclass(frozen=True, slots=True)
class Evidence:
    """Which files an object had at `event_id`, its newest event then (docs/files.md)."""

    event_id: EventId
    listing: Listing


@dataclass(frozen=True, slots=True)
class FilesOfEvent:
    """What a log that comes with its files says of one directory after an event: `listing` are all its files where
    `is_whole`, else those that the event put there, in place of others of their names, or none. None where some of
    these are nowhere to be had."""

    listing: Listing | None
    is_whole: bool
