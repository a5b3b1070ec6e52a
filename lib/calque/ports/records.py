"""Small records by which processes over one state folder talk to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
Stamp = tuple[int, int, int]
"""The identity of a written record (inode, time of writing, size): a new one for each write. `MISSING` for no
record."""

MISSING: Stamp = (0, 0, 0)


class Records(Protocol):
    """The records of a state folder, by name. A reader sees a record as it was put, never a part of it. Names are words
    joined by `/` (`paused/dr`). Every method may raise `Unavailable`."""

    def put(self, name: str, record: Mapping[str, Json]) -> None:
        """Write or replace a record. It is on the disk when this returns."""

    def read(self, name: str) -> Mapping[str, Json] | None:
        """Return the record, None without one. Raises `StateUnusable` where the file is no record."""

    def names(self, prefix: str = "") -> Sequence[str]:
        """Return the names that begin with `prefix`, sorted."""

    def remove(self, name: str) -> None:
        """Remove a record; a missing one is fine."""

    def stamp(self, name: str) -> Stamp:
        """Return a stamp that tells this writing of the record from any other; `MISSING` without a record. It takes one
        look-up, and nothing is read."""
