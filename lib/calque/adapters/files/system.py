"""The interface of one file system, as copying and listing need it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from calque.adapters.files.admitted import Misplaced
from calque.errors import CalqueError, Refused, Unavailable
from calque.model.files import File
from calque.model.permissions import Permissions
from calque.model.secrets import Options
from calque.ports import StorageEntry

if TYPE_CHECKING:
    from fsspec.spec import AbstractFileSystem

    from calque.adapters.files.stores import Store


class Durability(Enum):
    """The moment at which a written file counts as written."""

    VERIFIED = "verified"
    """The moment at which it was read back with the right checksum. The file outlives the process, but perhaps not a
    loss of power at its host: `verify` finds what such a loss took."""
    SYNCED = "synced"
    """The moment at which it was read back so, and the file and its directory were synced to the device."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The size, time and kind of a file or directory. `version` differs between two files that followed each other
    under one name, as far as the system can tell."""

    size: int
    modified_ns: int
    version: str = ""
    directory: bool = False


class ReadableSystem(Protocol):
    """A file system to read from; paths are its own. Every method raises `OSError` and nothing else,
    `FileNotFoundError` and `PermissionError` in particular. Methods may be called from several threads at once."""

    def facts(self, path: str) -> FileFacts | None:
        """Return the facts of the file or directory at the end of links; None when nothing is there."""

    def chunks(self, path: str, size: int) -> Iterator[memoryview]:
        """Give a file's content, expected to be `size` bytes. A chunk is valid until the next one is asked for."""


class System(ReadableSystem, Protocol):
    """A file system to read from and to write to, on the terms of `ReadableSystem`."""

    def below(self, path: str) -> Sequence[File] | None:
        """Return the data files below a directory, sorted; None when it is missing. Raises `NotADirectoryError` for a
        file."""

    def children(self, path: str) -> Sequence[str]:
        """Return the names directly below a directory, sorted; empty when it is missing."""

    def entries(self, path: str) -> Sequence[StorageEntry]:
        """Return the entries directly below a directory with sizes and times, by name; empty when it is missing.
        Entries that vanish meanwhile are left out. A link to a directory is no directory here."""

    def create(self, path: str, chunks: Iterable[memoryview]) -> None:
        """Write a new file, and make its parents. An exception that `chunks` raises comes through, and may leave a part
        of the file."""

    def create_new(self, path: str, content: bytes) -> bool:
        """Write a small new file whole, make its parents, and return True; False where the name is taken."""

    def set_aside(self, path: str, target: str) -> bool:
        """Rename a directory to `target` in one step, and return True; False where there is none, or directories can't
        be renamed."""

    def date(self, path: str, modified_ns: int) -> None:
        """Give a file the time `modified_ns`, where the system can; elsewhere nothing happens."""

    def rename(self, path: str, target: str) -> None:
        """Rename a file, and make the target's parents. The caller has seen to it that nothing lies at the target."""

    def replace(self, path: str, target: str) -> None:
        """Rename a file as `rename` does, also over a file that lies at the target."""

    def make_directory(self, path: str) -> None:
        """Make a directory with its parents. One that exists is fine."""

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all below. Links are removed, not followed; a missing file is fine."""


def entry(name: str, facts: FileFacts) -> StorageEntry:
    """Return the entry of `System.entries` for a file or directory with these facts."""
    return StorageEntry(name, 0 if facts.directory else facts.size, facts.modified_ns, facts.directory)


@runtime_checkable
class BulkListing(Protocol):
    """A system that lists many directories with fewer requests."""

    def below_each(self, paths: Sequence[str]) -> Mapping[str, Sequence[File] | None]:
        """Return `System.below` of each directory, by path. A file, and a Delta table, are None as a missing directory
        is: list them one by one."""


@runtime_checkable
class ChecksumSystem(Protocol):
    """A system that has checksums of its own."""

    def system_checksum(self, path: str) -> str:
        """Return the system's own checksum of a file (see `Storage.system_checksums`). Raises `OSError`, also where it
        is not told."""


@runtime_checkable
class TailSystem(Protocol):
    """A system that reads the end of a file without the rest."""

    def tail(self, path: str, size: int) -> bytes:
        """Return the last `size` bytes of a file, all of a smaller one."""


@runtime_checkable
class PermissionSystem(Protocol):
    """A system whose files and directories have owners, groups and modes. Methods raise `OSError`."""

    def permissions(self, path: str) -> Permissions | None:
        """Return the permissions of the file or directory at the end of links; None when nothing is there."""

    def set_permissions(self, path: str, permissions: Permissions) -> str:
        """Give a file or directory the permissions (see `Storage.set_permissions`). Returns what could not be given,
        and why; empty where all was. Raises `FileNotFoundError` when nothing is there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileSystemKind:
    """A kind of file system, for schemes that need more than fsspec's file system.

    `system` opens the system of an authority by the options of the configuration, and gives a function that makes its
    path of an authority and a path. `readers` opens the same as one of fsspec's file systems, for programs that read
    data by it. `store` makes an object store of fsspec's file system.
    """

    schemes: tuple[str, ...]
    system: Callable[[str, Options], tuple[System, Callable[[str, str], str]]] | None = None
    readers: Callable[[str, Options], AbstractFileSystem] | None = None
    store: Callable[[AbstractFileSystem], Store] | None = None


FILE_SYSTEM = FileSystemKind(schemes=())
"""The kind of all file systems for which fsspec's own suffices."""


_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
OF_THE_NAME = {errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EILSEQ, errno.ELOOP, errno.EINVAL}
"""Errors that concern one name and would be the same at the next attempt."""


def misplaced(error: Misplaced) -> Refused:
    todo = "Move it, exclude what names it, or name its place in roots of [source]"
    return Refused(f"Nothing is read at {error.filename}", error.strerror or "", todo)


def trouble(action: str, location: str, error: OSError) -> CalqueError:
    """Return the error of calque's to raise for an error of a file system. `action` is an infinitive phrase ("list",
    "write to")."""
    why = f"{type(error).__name__}: {error.strerror or error}"
    if isinstance(error, Misplaced):
        return misplaced(error)
    if isinstance(error, PermissionError) or error.errno in _REFUSED:
        return Refused(f"Not permitted to {action} {location}", why, "Give the user that runs calque the right to it")
    if error.errno == errno.ENXIO:
        return Refused(f"Can't {action} {location}", why, "Make it, or correct the location")
    if error.errno in _FULL:
        return Unavailable(f"No room to {action} {location}", why, "Free or add space; it is tried again")
    if isinstance(error, NotADirectoryError | IsADirectoryError) or error.errno in OF_THE_NAME:
        return Refused(f"Can't {action} {location}", why, "Put right what lies there, or its name")
    return Unavailable(f"Can't {action} {location} now", why, "Look at the storage; it is tried again")
