"""A directory at the target with all that is below it."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from calque.core.formats.layout import join
from calque.core.records.claims import is_mark
from calque.ports import Storage, StorageEntry


@dataclass(slots=True)
class DirectoryEntry:
    """A directory and what is in it. `changed_ns` is its own modification time in nanoseconds, 0 where unknown."""

    location: str
    changed_ns: int
    files: list[StorageEntry] = field(default_factory=list)
    directories: list[DirectoryEntry] = field(default_factory=list)

    def names(self) -> list[str]:
        """Return the names of the files and directories that lie directly in it."""
        children = (child.location.rsplit("/", 1)[1] for child in self.directories)
        return [*(file.name for file in self.files), *children]

    def newest_ns(self) -> int:
        times = [file.modified_ns for file in self.files] + [child.newest_ns() for child in self.directories]
        return max([self.changed_ns, *times])

    def content(self, gone: Set[str] = frozenset()) -> tuple[int, int]:
        """Return the number of files and their bytes, without calque's marks and without what lies in the directories
        `gone`."""
        contents = [child.content(gone) for child in self.directories if child.location not in gone]
        sizes = [file.size for file in self.files if not is_mark(file.name)]
        return len(sizes) + sum(count for count, _ in contents), sum(sizes) + sum(size for _, size in contents)

    def claimed_below(self) -> Iterator[str]:
        """Yield the directories at any depth below that have claims of their own."""
        for child in self.directories:
            if any(is_mark(name) for name in child.names()):
                yield child.location
            yield from child.claimed_below()


def node_of(storage: Storage, location: str, changed_ns: int) -> DirectoryEntry:
    node = DirectoryEntry(location, changed_ns)
    for entry in storage.entries(location):
        if entry.directory:
            node.directories.append(node_of(storage, join(location, entry.name), entry.modified_ns))
        else:
            node.files.append(entry)
    return node
