"""The files at a source and at a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from calque.model.files import File, Listing, RowLayout
from calque.model.permissions import Permissions


@dataclass(frozen=True, slots=True)
class CopyTask:
    """One file to copy from `source` to `target`, both full paths. `size` and `modified_ns` are what evidence says of
    it.

    With `ours` calque alone writes at the target, so that a file of equal size and time there is a copy that was
    verified, and neither file is read again. `source_ns` is the source's time where that is another by now, else 0; the
    copy gets `modified_ns` all the same. With `permissions` the copy gets the source's owner, group, mode and ACL
    before it has its name, where both storages have them. With `lent`, or where a link below the directory `within`
    leads to the source, the copy gives group and others no right that the source's mode does not give.
    """

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
        """The time that the source's file has to have, in nanoseconds."""
        return self.source_ns or self.modified_ns


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """The result of one `CopyTask`. `checksum` is the xxh3-128 of the content that was read and, by what `CopyProof`
    demands, of the content at the target. It is empty where a storage copied inside itself and nothing was read to
    prove it, and where a copy that was verified before was there. `problem` says why the file was not copied."""

    task: CopyTask
    checksum: str = ""
    problem: str = ""
    bytes_moved: int = 0
    """0 when a verified copy was there already."""
    unpermitted: str = ""
    """The permissions of the source that the copy could not be given, and why."""


@dataclass(frozen=True, slots=True)
class CombineTask:
    """A task to write the rows of several files into one file, `target`, in the order of `sources`. Each source is
    given as the task of a copy to `target`."""

    sources: tuple[CopyTask, ...]
    target: str
    layout: RowLayout

    @property
    def size(self) -> int:
        return sum(source.size for source in self.sources)


@dataclass(frozen=True, slots=True)
class CombinedRows:
    """The result of one `CombineTask`. `file` is the file that was made, by its full path, with its checksum;
    `row_digest` is of the rows that were read and, verified, of those at the target. Without a `file` nothing lies
    there: `unfit` says why the files stay as they are, or `lost` are the sources that could not be read as the task
    says and `problem` says why."""

    task: CombineTask
    file: File | None = None
    row_digest: str = ""
    unfit: str = ""
    problem: str = ""
    lost: tuple[CopyTask, ...] = ()
    unpermitted: str = ""
    """The permissions that the file could not be given, as in a `CopiedFile`."""


@dataclass(frozen=True, slots=True)
class StorageEntry:
    """A file or directory directly below another directory. `modified_ns` of a directory is the time at which an entry
    in it was last made, renamed or removed; 0 where the storage has no time for it."""

    name: str
    size: int
    modified_ns: int
    directory: bool = False


class Storage(Protocol):
    """The directories of data at both sides, addressed by URI or plain path."""

    def list(self, locations: Sequence[str]) -> Mapping[str, Listing]:
        """Return the data files below each location, by location; hidden names are left out (`model.files`). Where a
        location has a Delta log with a commit, the newest commit is the only file. Raises `Refused`, which names the
        first location that is a file or may not be read."""

    def files(self, paths: Sequence[str]) -> Mapping[str, File]:
        """Return size and time of each file, by full path, which is also the file's `path`. Paths of directories, and
        of files that are not there, are left out."""

    def copy(
        self, tasks: Sequence[CopyTask], progress: Callable[[CopiedFile], None] | None = None
    ) -> Sequence[CopiedFile]:
        """Copy each file and verify its content, and its time where the storage can.

        A source that is not as its task says, or vanishes, becomes a `problem`, never an exception; so does a target
        that is another file. An existing target of equal size and checksum is kept, with `CopyTask.ours` one of equal
        size and time. Parents are made. A storage that is `Unavailable` for a moment is tried again; where that ends
        the call, the copies made so far stay. Results are in the order of the tasks; `progress` is called in the
        caller's thread.
        """

    def combine(
        self, tasks: Sequence[CombineTask], progress: Callable[[CombinedRows], None] | None = None
    ) -> Sequence[CombinedRows]:
        """Make one file of the rows of several for each task, and read it back. A file that lies at the target is
        replaced. Sources are read on the terms of `copy`, results come in the order of the tasks, `progress` is called
        as there. Where sources are to be copied with their permissions, the file gets those of the first."""

    def row_digests(self, groups: Sequence[tuple[RowLayout, tuple[str, ...]]]) -> Sequence[str]:
        """Return for each group of files, by layout and full paths, the digest of their rows, one file behind the
        other; empty where a file is not there, or has no rows that are understood."""

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        """Rename staged files into place, in order. A rename that was made before is passed over. Raises `Refused` when
        another file lies at a target, and `Unavailable` when neither file is there: stage it again."""

    def make_directories(self, locations: Sequence[str]) -> None: ...

    def exists(self, location: str) -> bool: ...

    def checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        """Return the xxh3-128 (hexadecimal) of each file's whole content, by full path. Files that are not there are
        left out."""

    def digests(self, paths: Sequence[str]) -> Mapping[str, str]:
        """Return the SHA-256 (hexadecimal) of each file's whole content, by full path. Files that are not there are
        left out. For names made of a content, so that no other content can be forged for the name."""

    def tails(self, paths: Sequence[str], size: int) -> Mapping[str, bytes]:
        """Return the last `size` bytes of each file, of a smaller one its whole content, by full path. Files that are
        not there are left out."""

    def system_checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        """Return the checksum that the file system itself has of each file, by full path, as Hive writes it into
        events: hexadecimal, equal for equal content of equal layout. Files that are not there are left out, and all
        files where the file system has no checksums or does not tell them."""

    def date(self, times: Mapping[str, int]) -> None:
        """Give files, by full path, the times (in nanoseconds) that `list` tells from now on, as a copy gets its
        source's. Files that are not there, or belong to another user, are passed over; where the storage takes no times
        nothing happens."""

    def read(self, path: str) -> bytes | None:
        """Return a small file's whole content, None without a file."""

    def write(self, path: str, content: bytes) -> None:
        """Write a small file, whole or not at all, in place of one that is there. Its parents are made."""

    def create(self, contents: Mapping[str, bytes]) -> frozenset[str]:
        """Make small files, by full path, each whole or not at all, and only where nothing has the name. Their parents
        are made. Returns the paths of the files that this call made. Of several callers that make one file at one time,
        one is told that it did; in a store that knows no conditions several may be told so."""

    def set_aside(self, location: str, aside: str) -> str:
        """Rename a directory in one step to `aside`, a place beside it. Returns the place where it is now: still
        `location` where the storage can't rename directories, or where nothing is there."""

    def remove(self, locations: Sequence[str]) -> None:
        """Remove directories or files with all below. Missing ones are fine."""

    def children(self, location: str) -> Sequence[str]:
        """Return the names directly below a directory, hidden ones too; empty when it is missing."""

    def entries(self, location: str) -> Sequence[StorageEntry]:
        """Return the files and directories directly below a directory with sizes and times, by name, hidden ones too;
        empty when it is missing. Entries that vanish meanwhile are left out. A link to a directory is no directory
        here, so that a walk from one directory to the next never comes back to where it was."""

    def modified(self, directories: Sequence[str]) -> Mapping[str, int]:
        """Return for each directory the time at which an entry directly in it was last made, renamed or removed, in
        nanoseconds; 0 where the storage has no time for it. Directories that are not there, and files, are left out."""

    def permissions(self, locations: Sequence[str]) -> Mapping[str, Permissions]:
        """Return owner, group, mode and ACL of each file or directory, by location; links are followed. Locations where
        nothing is are left out, and all of them where the storage has no permissions."""

    def set_permissions(self, permissions: Mapping[str, Permissions]) -> Mapping[str, str]:
        """Give files and directories these permissions, as far as that is permitted. Returns, by location, the
        permissions that could not be given, and why. Links and missing files are passed over, and everything where the
        storage has no permissions. A user who has to stay the owner of a directory keeps every right to it."""
