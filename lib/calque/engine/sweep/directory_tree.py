"""A directory at the target with all that is below it, and which events made it."""

from __future__ import annotations

from dataclasses import dataclass, field

from calque.core.layout import join
from calque.engine.sweep.references import key_of
from calque.model.names import OURS, EventId
from calque.ports import Storage, StorageEntry

OWNER = f"{OURS}_owner."


@dataclass(slots=True)
class DirectoryEntry:
    """A directory and what is in it. `event` is the one that made it where its name says so, else 0."""

    location: str
    changed_ns: int
    files: list[StorageEntry] = field(default_factory=list)
    directories: list[DirectoryEntry] = field(default_factory=list)
    event: EventId = 0

    @property
    def key(self) -> str:
        return key_of(self.location)

    @property
    def name(self) -> str:
        return self.location.rsplit("/", 1)[1]

    def is_claimed(self) -> bool:
        """Whether it carries the mark of an owner: calque made it."""
        return any(child.name.startswith(OWNER) for child in self.directories)

    def claimed_at(self) -> EventId:
        """The event id in the owner's mark; 0 where it has none."""
        marks = [child.name for child in self.directories if child.name.startswith(OWNER)]
        return max((event_of(mark.removeprefix(OWNER)) for mark in marks), default=0)

    def newest_event(self) -> EventId:
        """The newest event that made the directory or one below it."""
        return max([self.event, self.claimed_at(), *(child.newest_event() for child in self.directories)])

    def newest_ns(self) -> int:
        times = [file.modified_ns for file in self.files] + [child.newest_ns() for child in self.directories]
        return max([self.changed_ns, *times])

    def content(self) -> tuple[int, int]:
        """How many files with how many bytes."""
        contents = [child.content() for child in self.directories]
        files = len(self.files) + sum(count for count, _ in contents)
        return files, sum(file.size for file in self.files) + sum(size for _, size in contents)


def node_of(storage: Storage, location: str, changed_ns: int) -> DirectoryEntry:
    node = DirectoryEntry(location, changed_ns)
    for entry in storage.entries(location):
        if entry.directory:
            node.directories.append(node_of(storage, join(location, entry.name), entry.modified_ns))
        else:
            node.files.append(entry)
    return node


def event_of(text: str) -> EventId:
    """The event id in an incarnation (`812`, `r812`), a claim (`moved812` too) or the name of a staging directory
    (`812.7`); 0 without one."""
    digits = text.removeprefix("r").removeprefix("moved").partition(".")[0]
    return int(digits) if digits.isdecimal() else 0
