"""Directories of data: the files in one, and the event at which they were known to be its files.

Paths in a listing are relative to the directory, with `/`; sizes are bytes; times are nanoseconds since the epoch.
Files whose name, or the name of a directory on the way, begins with `_` or `.` are no data and never listed. The one
exception is the newest commit of a Delta log, which stands for all files of the version that it made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from calque.model.names import EventId

DELTA_LOG = "_delta_log"
"""The directory of a Delta table's log, below the table's."""


CopyProof = Literal["auto", "read", "storage"]
"""What proves a copy. `read`: it is read back, and has the checksum of what was read at the source. `auto`: the same,
or a checksum that the storage computed of what it has. `storage`: the storage's own checksum where it tells one, else
that it took all bytes and says the right size."""


@dataclass(frozen=True, slots=True, order=True)
class File:
    path: str
    size: int
    modified_ns: int
    checksum: str | None = None
    """The xxh3-128 of the content in hexadecimal; None where it was not computed. It is no part of a listing's
    identity."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """Another place of a listed file that is not at its own place any more, or has another time there. `path` is the
    file's path in the listing, `source` the full path at which it lies now, `modified_ns` its time there."""

    path: str
    source: str
    modified_ns: int


class RowLayout(StrEnum):
    """The layout of rows in files that can be combined."""

    PARQUET = "parquet"
    TEXT = "text"
    """Lines. The table's serde decides what each means."""


@dataclass(frozen=True, slots=True)
class CombinedFile:
    """A file that lies at a target, and in `sources` the paths of the source's files whose rows it has, in order.
    `row_digest` is the digest of all its rows (`core.small_files.row_digest`), empty where the file is the copy of a
    single one."""

    file: File
    sources: tuple[str, ...]
    row_digest: str = ""


@dataclass(frozen=True, slots=True)
class Combination:
    """The small files of a directory and the fewer files into which they were combined on their way to a target.
    `sources` are the source's files, sorted; `files` are those at the target. Without a `layout` the sources are a
    symlink table's manifests, each written anew so that it names files of the target."""

    layout: RowLayout | None
    sources: tuple[File, ...]
    files: tuple[CombinedFile, ...]

    @property
    def row_digest(self) -> str:
        """The digest of the whole directory: over the digests of each file's rows, or of a copied file's content."""
        texts = (combined.row_digest or combined.file.checksum or "" for combined in self.files)
        return hashlib.blake2b("\n".join(texts).encode(), digest_size=16).hexdigest()

    @property
    def stored(self) -> tuple[File, ...]:
        """The files that lie at the target, sorted."""
        return tuple(sorted(combined.file for combined in self.files))


@dataclass(frozen=True, slots=True)
class Listing:
    """The data files below one directory, sorted by path. A missing directory is an empty listing with `missing`. For a
    directory with a Delta log the only file is the newest commit."""

    location: str
    files: tuple[File, ...]
    missing: bool = False
    pin: str = ""
    """A directory where the same files are kept under the same paths while targets need them; empty for none."""
    scan: int = 0
    """The number of the scan that made the listing; 0 where an event led to it."""
    kept: tuple[KeptFile, ...] = ()
    """Other places of those files that are not as they were listed."""
    combination: Combination | None = None
    """The combination of a directory at a target whose files were combined; None for any other directory. `files` are
    then the source's files that the combined ones stand for, so that both sides' listings are equal."""
    claim: str = ""
    """The number of the claim on a directory at a target that was just made; else empty."""
    row_files: tuple[File, ...] = ()
    """The files at a target, by their full paths, that have the rows of an ACID table whose replica has a log of
    commits, as the log says. `files` are then the source's files, so that both sides' listings are equal."""

    @property
    def stored(self) -> tuple[File, ...]:
        """The files that really lie in the directory."""
        return self.files if self.combination is None else self.combination.stored

    @property
    def version(self) -> int | None:
        """The version of a Delta table, None for plain files. The one listed file is then the commit that made the
        version, with its checksum."""
        return delta_version(self.files)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def fingerprint(self) -> str:
        """Return a digest in hexadecimal that is equal for two listings of the same files by path, size and time; of a
        Delta version by the commit's checksum in place of the time. The location is no part of it."""
        digest = hashlib.blake2b(digest_size=12)
        for file in self.files:
            identity = file.modified_ns if self.version is None else file.checksum
            digest.update(f"{file.path}\0{file.size}\0{identity}\n".encode())
        return digest.hexdigest()

    def is_settled(self, before_ns: int) -> bool:
        """Return whether no file is younger than `before_ns`. A Delta version always is settled, because its commit is
        whole from the first moment."""
        return self.version is not None or all(file.modified_ns <= before_ns for file in self.files)


NO_FILES = Listing("", ()).fingerprint()
"""The fingerprint of a listing without files."""


def agree(first: Listing, second: Listing) -> bool:
    """Return whether two listings of a directory, one after the other, say that it is not changing: they are equal, or
    both are versions of a Delta table."""
    return first == second or (first.version is not None and second.version is not None)


def delta_version(files: Sequence[File]) -> int | None:
    """Return the version of a Delta table where `files` is its commit alone; None for plain files, which never lie in a
    hidden directory."""
    path = files[0].path if len(files) == 1 else ""
    if not (path.startswith(f"{DELTA_LOG}/") and path.endswith(".json")):
        return None
    return int(path[len(DELTA_LOG) + 1 : -len(".json")])


@dataclass(frozen=True, slots=True)
class Evidence:
    """A listing that proves which files an object had at `event_id`, its newest event at the time of the listing
    (docs/files.md)."""

    event_id: EventId
    listing: Listing


@dataclass(frozen=True, slots=True)
class FilesOfEvent:
    """The files that a log which comes with its files names for one directory after an event. With `is_whole` `listing`
    has all of the directory's files; else those alone that the event put there, perhaps none, each in place of an older
    file of its name. `listing` is None where some of these files are nowhere to be had."""

    listing: Listing | None
    is_whole: bool
