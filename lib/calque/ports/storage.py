"""Files at a source and at a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from calque.model.files import File, Listing, RowLayout
from calque.model.permissions import Permissions


@dataclass(frozen=True, slots=True)
class CopyTask:
    """One file to copy from `source` (a full path) to `target`; `size` and `modified_ns` are what evidence says.
    `ours`: nobody else writes at the target, so that a file of equal size and time there is a copy that was verified,
    and neither is read again. `source_ns` is the source's time where it has another by now, else 0; the copy gets the
    one that evidence says. With `permissions` it gets the source's owner, group, mode and ACL before it has its name,
    where both storages have them."""

    source: str
    target: str
    size: int
    modified_ns: int
    ours: bool = False
    source_ns: int = 0
    permissions: bool = False
    lent: bool = False
    within: str = ""

    @property
    def expected_ns(self) -> int:
        """The time that the source has."""
        return self.source_ns or self.modified_ns


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """`checksum` is xxh3-128 of what was read and, verified, of what lies at the target; empty where a store copied
    inside itself and proved it by checksums of its own, and where a copy that was verified before was there. `problem`
    says why not."""

    task: CopyTask
    checksum: str = ""
    problem: str = ""
    bytes_moved: int = 0
    """0 when a verified copy was there already."""
    unpermitted: str = ""
    """Which of the source's permissions it could not be given, and why."""


@dataclass(frozen=True, slots=True)
class CombineTask:
    """Files whose rows are to lie in one, in their order: each as a copy to `target` would be asked for."""

    sources: tuple[CopyTask, ...]
    target: str
    layout: RowLayout

    @property
    def size(self) -> int:
        return sum(source.size for source in self.sources)


@dataclass(frozen=True, slots=True)
class CombinedRows:
    """`file` is the one that was made, by its full path, with its checksum; `row_digest` is of the rows that were read
    and, verified, of those that lie at the target. Without a `file` nothing lies there: `unfit` says why the files stay
    as they are, or `lost` are those that could not be read as the task says, and `problem` says why not."""

    task: CombineTask
    file: File | None = None
    row_digest: str = ""
    unfit: str = ""
    problem: str = ""
    lost: tuple[CopyTask, ...] = ()
    unpermitted: str = ""
    """As of a `CopiedFile`."""


@dataclass(frozen=True, slots=True)
class StorageEntry:
    """A file or directory that lies directly below another. `modified_ns` of a directory is when something was last
    made, renamed or removed in it; 0 where the storage has no time for it."""

    name: str
    size: int
    modified_ns: int
    directory: bool = False


class Storage(Protocol):
    """Directories of data at both sides, addressed by URI or plain path."""

    def list(self, locations: Sequence[str]) -> Mapping[str, Listing]:
        """The data files below each location, by location; hidden names are left out (`model.files`). Of one that has
        a Delta log with a commit, the newest commit alone. `Refused` names the first location that is a file or may
        not be read."""

    def files(self, paths: Sequence[str]) -> Mapping[str, File]:
        """Size and time of each file, by full path, which is also the file's `path`; what is not there, or is a
        directory, is left out."""

    def copy(
        self, tasks: Sequence[CopyTask], progress: Callable[[CopiedFile], None] | None = None
    ) -> Sequence[CopiedFile]:
        """Copy and verify each, its time too where the storage can. A file that is not as the task says, or vanishes,
        becomes a `problem`, never an exception; so does one whose target is another file. An existing target of equal
        size and checksum is kept, one of ours (`CopyTask.ours`) by its time. Parents are made. What is `Unavailable`
        for a moment is tried again; when it ends the copy, what was copied stays. Results are in the order of the
        tasks; `progress` is called in the caller's thread."""

    def combine(
        self, tasks: Sequence[CombineTask], progress: Callable[[CombinedRows], None] | None = None
    ) -> Sequence[CombinedRows]:
        """Make one file of the rows of several, and read it back; a file that lies at the target is replaced. Sources
        are read on the terms of `copy`, results come in the order of the tasks, `progress` is called as there. Where
        sources are to be copied with their permissions, the file gets those of the first."""

    def row_digests(self, groups: Sequence[tuple[RowLayout, tuple[str, ...]]]) -> Sequence[str]:
        """Of the rows of files, by full path, one behind the other; empty where a file is not there, or has none."""

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        """Rename staged files into place, in order; one that was renamed before is passed over. `Refused` when another
        file lies at a target; `Unavailable` when neither is there: stage it again."""

    def make_directories(self, locations: Sequence[str]) -> None: ...

    def exists(self, location: str) -> bool: ...

    def checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        """xxh3-128 (hexadecimal) of each file's whole content, by full path; those that are not there are left out."""

    def digests(self, paths: Sequence[str]) -> Mapping[str, str]:
        """SHA-256 (hexadecimal) of the same: of what is to have a name that nobody can make another content for."""

    def tails(self, paths: Sequence[str], size: int) -> Mapping[str, bytes]:
        """The last `size` bytes of each file, of a smaller one its whole content, by full path; what is not there is
        left out."""

    def system_checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        """The checksum that the file system itself has of each file, by full path, as Hive writes it into events:
        hexadecimal, equal for equal content of equal layout. Those that are not there are left out, and all where the
        file system has none or does not tell."""

    def date(self, times: Mapping[str, int]) -> None:
        """Give files, by full path, the times that `list` tells from now on, as a copy gets its source's. What is not
        there, or belongs to another user, is passed over; where the storage takes no times nothing happens."""

    def read(self, path: str) -> bytes | None:
        """A small file's whole content; None when there is none."""

    def write(self, path: str, content: bytes) -> None:
        """Write a small file, whole or not at all, in place of one that is there; its parents are made."""

    def create(self, contents: Mapping[str, bytes]) -> frozenset[str]:
        """Make small files, by full path, each whole or not at all, and only where nothing has the name; their parents
        are made. Which of them were made: of several callers that make one, at one time, one is told that it did;
        in a store that knows no conditions several may be, that ask at one time."""

    def set_aside(self, location: str, aside: str) -> str:
        """Give a directory another name in one step, beside the one that it has. Where it is now: at `location` still
        where the storage can't rename directories, or where nothing is there."""

    def remove(self, locations: Sequence[str]) -> None:
        """Remove directories or files with all below; missing ones are fine."""

    def children(self, location: str) -> Sequence[str]:
        """Names directly below a directory, hidden ones too; empty when it is missing."""

    def entries(self, location: str) -> Sequence[StorageEntry]:
        """The same with sizes and times, by name; what vanishes meanwhile is left out. A link to a directory is no
        directory here: whoever goes down from one to the next never comes back to where it was."""

    def modified(self, directories: Sequence[str]) -> Mapping[str, int]:
        """When something was last made, renamed or removed directly in each, in nanoseconds; 0 where the storage has
        no time for it. Those that are not there are left out, and so is what is no directory."""

    def permissions(self, locations: Sequence[str]) -> Mapping[str, Permissions]:
        """Owner, group, mode and ACL of each file or directory, by location; links are followed. What is not there is
        left out, and everything where the storage has no permissions."""

    def set_permissions(self, permissions: Mapping[str, Permissions]) -> Mapping[str, str]:
        """Give files and directories these, as far as that is permitted; by location what could not be given, and why.
        Links are passed over, and so is what is not there, or where the storage has no permissions. Who has to stay the
        owner of a directory keeps every right to it."""
