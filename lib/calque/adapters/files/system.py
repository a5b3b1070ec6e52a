"""What copying and listing need of one file system."""

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
    """When a written file counts as written."""

    VERIFIED = "verified"
    """When it was read back with the right checksum. It outlives the process, but perhaps not the loss of power at
    its host: what such a loss took is found by `verify`."""
    SYNCED = "synced"
    """The same, and the file and its directory were synced to the device."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """`version` differs between two files that followed each other under one name, as far as the system can tell."""

    size: int
    modified_ns: int
    version: str = ""
    directory: bool = False


class ReadableSystem(Protocol):
    """A file system to read from; paths are its own. Every method raises `OSError` and nothing else,
    `FileNotFoundError` and `PermissionError` in particular; methods may be called from several threads at once."""

    def facts(self, path: str) -> FileFacts | None:
        """Links are followed. None when there is nothing."""

    def chunks(self, path: str, size: int) -> Iterator[memoryview]:
        """A file's content, expected to be `size` bytes. A chunk is valid until the next one is asked for."""


class System(ReadableSystem, Protocol):
    """One file system, on the same terms."""

    def below(self, path: str) -> Sequence[File] | None:
        """The data files below a directory, sorted; None when it is missing. `NotADirectoryError` for a file."""

    def children(self, path: str) -> Sequence[str]:
        """Names directly below a directory, sorted; empty when it is missing."""

    def entries(self, path: str) -> Sequence[StorageEntry]:
        """The same with sizes and times; what vanishes meanwhile is left out. A link to a directory is none."""

    def create(self, path: str, chunks: Iterable[memoryview]) -> None:
        """Write a new file, its parents too. An exception that `chunks` raises comes through; a part may be left."""

    def create_new(self, path: str, content: bytes) -> bool:
        """Write a small new file whole, its parents too; False where something has the name."""

    def set_aside(self, path: str, target: str) -> bool:
        """Rename a directory, in one step; False where there is none, or directories can't be renamed."""

    def date(self, path: str, modified_ns: int) -> None:
        """Give a file the time of another, where the system can; elsewhere nothing happens."""

    def rename(self, path: str, target: str) -> None:
        """The target's parents are made. Nothing lies at the target, the caller saw to that."""

    def replace(self, path: str, target: str) -> None:
        """The same over a file that lies there, or nothing."""

    def make_directory(self, path: str) -> None:
        """With its parents; one that exists is fine."""

    def remove(self, path: str) -> None:
        """A file or a directory with all below; links are not followed; missing is fine."""


def entry(name: str, facts: FileFacts) -> StorageEntry:
    """What `System.entries` says of one of them."""
    return StorageEntry(name, 0 if facts.directory else facts.size, facts.modified_ns, facts.directory)


@runtime_checkable
class BulkListing(Protocol):
    """A system that lists many directories with fewer requests."""

    def below_each(self, paths: Sequence[str]) -> Mapping[str, Sequence[File] | None]:
        """`System.below` of each; None also for a Delta table, and for a file."""


@runtime_checkable
class ChecksumSystem(Protocol):
    """A system that has checksums of its own."""

    def system_checksum(self, path: str) -> str:
        """As `Storage.system_checksums` has it. Raises `OSError`, also where it is not told."""


@runtime_checkable
class TailSystem(Protocol):
    """A system that reads the end of a file without the rest."""

    def tail(self, path: str, size: int) -> bytes:
        """The last `size` bytes; all of a smaller file."""


@runtime_checkable
class PermissionSystem(Protocol):
    """A system whose files and directories have owners, groups and modes. Methods raise `OSError`."""

    def permissions(self, path: str) -> Permissions | None:
        """Links are followed. None when there is nothing."""

    def set_permissions(self, path: str, permissions: Permissions) -> str:
        """As `Storage.set_permissions` has it, of one: what could not be given, and why. `FileNotFoundError` when there
        is nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileSystemKind:
    """How locations of some schemes are reached that need more than fsspec's file system. `system` opens that of an
    authority by the options of the configuration, and says how an authority and a path are called there; `readers`
    opens the same as one of fsspec's, for programs that read data by it. `store` is what an object store is over
    fsspec's."""

    schemes: tuple[str, ...]
    system: Callable[[str, Options], tuple[System, Callable[[str, str], str]]] | None = None
    readers: Callable[[str, Options], AbstractFileSystem] | None = None
    store: Callable[[AbstractFileSystem], Store] | None = None


FILE_SYSTEM = FileSystemKind(schemes=())
"""What fsspec has, and nothing more."""


_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
OF_THE_NAME = {errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EILSEQ, errno.ELOOP, errno.EINVAL}
"""Errors that concern one name and would be the same at the next attempt."""


def misplaced(error: Misplaced) -> Refused:
    todo = "Move it, exclude what names it, or name its place in roots of [source]"
    return Refused(f"Nothing is read at {error.filename}", error.strerror or "", todo)


def trouble(action: str, location: str, error: OSError) -> CalqueError:
    """What to raise for an error of a file system; `action` is an infinitive phrase ("list", "write to")."""
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
