"""Directories of data: what lay in one, and when that was known.

Paths in a listing are relative to the directory, with `/`; sizes are bytes; times nanoseconds since the epoch.
Files whose name (or the name of a directory on the way) begins with `_` or `.` are no data and never listed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from calque.model.names import EventId


@dataclass(frozen=True, slots=True, order=True)
class File:
    path: str
    size: int
    modified_ns: int
    checksum: str | None = None
    """xxh3-128, hexadecimal, when it was computed; no part of a listing's identity."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The data files below one directory, sorted by path; a missing directory is an empty listing with `missing`."""

    location: str
    files: tuple[File, ...]
    missing: bool = False
    pin: str = ""
    """A directory where the same files are kept under the same paths while targets need them; empty for none."""

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def fingerprint(self) -> str:
        """Equal for equal (path, size, modified) of every file; the location is no part of it."""
        digest = hashlib.blake2b(digest_size=12)
        for file in self.files:
            digest.update(f"{file.path}\0{file.size}\0{file.modified_ns}\n".encode())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Evidence:
    """Which files an object had at `event_id`, its newest event then (design §6)."""

    event_id: EventId
    listing: Listing
