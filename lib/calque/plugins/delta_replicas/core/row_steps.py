"""The way from one state of an ACID table's partition to another, by the names of its directories: which have to be
read, because they may have events that the rows here don't have yet.

A directory's name says of which write ids it has events, and a write id's directories are seen at once. So the write
ids of a state are those of its directories (`Covered`), and a compaction is known by a directory whose highest write id
the state before had already.

    Before: delta_1_1, delta_2_2. After: delta_1_2 and delta_4_4. The first is a compaction of what is known, and only
    the second is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from calque.core.acid.contents import directory_in
from calque.core.acid.directories import directory_of
from calque.model.files import File
from calque.plugins.delta_replicas.core.row_log import WriteIds

ORIGINALS = ""
"""The name that stands for the files in no directory of write ids."""


def by_directory(files: Iterable[File]) -> dict[str, tuple[File, ...]]:
    """Return the files of a state's listing, whose names are flat (`core.acid.contents`), by their directories."""
    directories: dict[str, list[File]] = {}
    for file in sorted(files):
        directories.setdefault(directory_name(file.path), []).append(file)
    return {name: tuple(some) for name, some in directories.items()}


def directory_name(path: str) -> str:
    directory = directory_in(path)
    return directory.name if directory is not None else ORIGINALS


def span_of(name: str) -> WriteIds:
    """Return the lowest and the highest write id of which the directory may have events."""
    directory = directory_of(name)
    return (directory.low, directory.high) if directory is not None else (0, 0)


def lies_in(inner: WriteIds, outer: WriteIds) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


@dataclass(frozen=True)
class Covered:
    """The write ids whose events are known: those of `spans`."""

    spans: Sequence[WriteIds]

    @cached_property
    def joined(self) -> Sequence[WriteIds]:
        """The spans in order, without overlaps and gaps between neighbours."""
        joined: list[WriteIds] = []
        for low, high in sorted(self.spans):
            if joined and low <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(joined[-1][1], high))
            else:
                joined.append((low, high))
        return joined

    def holds(self, write_id: int) -> bool:
        return any(low <= write_id <= high for low, high in self.joined)

    def holds_all(self, span: WriteIds) -> bool:
        """Tell whether all write ids from 1 on that the span has are known."""
        wanted = max(span[0], 1), span[1]
        return any(lies_in(wanted, known) for known in self.joined)


@dataclass(frozen=True)
class RowStep:
    """A step between two states of a partition, each given by its files by directory."""

    before: Mapping[str, Sequence[File]]
    after: Mapping[str, Sequence[File]]

    @cached_property
    def known(self) -> Covered:
        return Covered([span_of(name) for name in self.before])

    @cached_property
    def new(self) -> list[str]:
        return [name for name, files in self.after.items() if self.before.get(name) != files]

    @cached_property
    def gone(self) -> list[str]:
        return [name for name, files in self.before.items() if self.after.get(name) != files]

    @cached_property
    def compactions(self) -> list[str]:
        """The new directories that a compaction made of known ones, perhaps with others."""
        return [name for name in self.new if name not in self.before and self.known.holds(span_of(name)[1])]

    @cached_property
    def is_whole(self) -> bool:
        """Tell whether rows of the state may be gone for which no event says so, so that all of them are compared."""
        if any(not any(lies_in(span_of(one), span_of(made)) for made in self.compactions) for one in self.gone):
            return True
        return any(name.startswith("base_") and not self.is_known(name) for name in self.new)

    @cached_property
    def unknown(self) -> list[str]:
        """The new directories with events that may be new, in the order of their names."""
        return sorted(name for name in self.new if name in self.before or not self.is_known(name))

    def is_known(self, name: str) -> bool:
        return name != ORIGINALS and self.known.holds_all(span_of(name))
