"""What copying and listing need of one file system, and which file system a location is on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from calque.adapters.files.admitted import AdmittedPlaces, Misplaced
from calque.core.formats.layout import OBJECT_STORES, Place, place
from calque.core.formats.roots import Roots
from calque.errors import CalqueError, Refused, Unavailable
from calque.model.bounds import MESSAGE
from calque.model.files import File
from calque.model.permissions import Permissions
from calque.model.secrets import Options, outdated, versions
from calque.ports import StorageEntry

if TYPE_CHECKING:
    from fsspec.spec import AbstractFileSystem

    from calque.adapters.files.stores import Store


READ_SCHEMES = OBJECT_STORES | {"file", "hdfs", "webhdfs", "sftp", "smb"}
"""Schemes of file systems that the source's tables may lie on; what a target's own section names may be any that fsspec
knows."""


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


@dataclass(frozen=True, slots=True)
class OwnLocations:
    """Locations below which calque writes the data of one target, and how they are reached."""

    locations: tuple[str, ...] = ()
    options: Options = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class OpenSystem:
    """`path` is how an authority and a path are called there. It was opened by `version` of the options."""

    system: System
    path: Callable[[str, str], str]
    options: Options = field(default_factory=dict)
    version: tuple[object, ...] = ()

    @property
    def outdated(self) -> bool:
        """Whether a secret of the options may have another value since."""
        return bool(self.version) and outdated(self.options, self.version)


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


class FileSystemSet:
    """The file systems in use, opened when first needed. It can be pickled; each process opens its own."""

    def __init__(
        self,
        options: Options | None = None,
        durability: Durability = Durability.VERIFIED,
        own: OwnLocations | None = None,
        roots: Roots | None = None,
        most_read: int = MESSAGE,
        kinds: tuple[FileSystemKind, ...] = (),
    ) -> None:
        """`options` are those of the configuration, for all that is not local and not below `own`. With `roots` nothing
        is read that they do not admit. `most_read` are the bytes of a file that is read whole into memory. `kinds` are
        of schemes for which fsspec alone does not do."""
        self.most_read = most_read
        self._options, self._durability, self._own = dict(options or {}), durability, own or OwnLocations()
        self._roots, self._kinds = roots, kinds
        self._places = tuple(place(location) for location in self._own.locations)
        self._lock = Lock()
        self._open: dict[tuple[str, str, bool], OpenSystem] = {}

    def __reduce__(self) -> tuple[type[FileSystemSet], tuple[object, ...]]:
        given = (self._options, self._durability, self._own, self._roots, self.most_read, self._kinds)
        return FileSystemSet, given

    def _kind_of(self, scheme: str) -> FileSystemKind:
        return next((kind for kind in self._kinds if scheme in kind.schemes), FILE_SYSTEM)

    def why_not_read(self, location: str) -> Refused | None:
        """None where the location may be read, as far as its name says."""
        if self._roots is None or not (why := self._roots.why_not(place(location))):
            return None
        return misplaced(Misplaced(location, location, why))

    def why_misplaced(self, location: str) -> Refused | None:
        """The same of where links lead from there now."""
        refused = self.why_not_read(location)
        if refused is None and self._roots is not None and (where := place(location)).scheme == "file":
            try:
                AdmittedPlaces.of(self._roots).require(where.path)
            except Misplaced as error:
                return misplaced(error)
        return refused

    def to_read(self, location: str) -> tuple[System, str]:
        """`at`, for who reads. Raises `Refused` for a place that is not admitted."""
        if (refused := self.why_not_read(location)) is not None:
            raise refused
        return self.at(location)

    def at(self, location: str) -> tuple[System, str]:
        """The file system of a location, and the location's path there. It is opened anew after a file of a secret
        among its options was written."""
        location_place = place(location)
        key = self._key(location_place)
        opened = self._open.get(key)
        if opened is None or opened.outdated:
            with self._lock:
                opened = self._open.get(key)
                if opened is None or opened.outdated:
                    opened = self._open[key] = self._opened(*key)
        return opened.system, opened.path(location_place.authority, location_place.path)

    def share_system(self, location: str, other: str) -> bool:
        """Whether both locations are on one file system, opened by the same options."""
        return self._key(place(location)) == self._key(place(other))

    def require_inside(self, locations: Iterable[str]) -> None:
        """What is to be written or removed at the locations must not be led out of the target's own ones by a link in
        the place of a directory. `Refused` where it would be."""
        roots = [own.path for own in self._places if own.scheme == "file"]
        for directory in dict.fromkeys(location.rpartition("/")[0] for location in locations if roots):
            path = place(f"{directory}/").path
            if any(lies_in(path, root) for root in roots):
                real = os.path.realpath(path)
                if not any(lies_in(real, os.path.realpath(root)) for root in roots):
                    raise Refused(
                        f"Nothing is written or removed below {directory}",
                        f"A link leads from there to {real}, which is outside of the target's warehouse",
                        "Put a directory in the place of the link",
                    )

    def fsspec(self, location: str) -> AbstractFileSystem:
        """fsspec's file system for a location that is not local."""
        from calque.adapters.files.remote import open_fsspec

        location_place = place(location)
        is_own = any(each.contains(location_place) for each in self._places)
        require_read_scheme(location_place.scheme, is_own)
        kind, options = self._kind_of(location_place.scheme), self._options_of(is_own)
        return open_fsspec(kind, location_place.scheme, location_place.authority, options)

    def _key(self, location: Place) -> tuple[str, str, bool]:
        is_own = location.scheme != "file" and any(each.contains(location) for each in self._places)
        return location.scheme, location.authority, is_own

    def _options_of(self, is_own: bool) -> Options:
        return self._own.options if is_own else self._options

    def _opened(self, scheme: str, authority: str, is_own: bool) -> OpenSystem:
        if scheme == "file":
            from calque.adapters.files.local import LocalSystem

            if authority:
                raise Refused(
                    f"file://{authority}/ is on another host",
                    "Local files are read by path only",
                    "Mount it, and name it by its path here",
                )
            admitted = AdmittedPlaces.of(self._roots) if self._roots is not None else None
            return OpenSystem(LocalSystem(self._durability, admitted), lambda _, path: path)
        require_read_scheme(scheme, is_own)
        from calque.adapters.files.remote import open_remote

        options = self._options_of(is_own)
        version = versions(options)
        return OpenSystem(
            *open_remote(self._kind_of(scheme), scheme, authority, options, noted=is_own), options, version
        )


def require_read_scheme(scheme: str, is_own: bool) -> None:
    if not is_own and scheme not in READ_SCHEMES:
        raise Refused(
            f"Locations of the scheme {scheme} are not opened",
            "A table of the source could name any server, or any file inside another, by them",
            f"Give the table one of {', '.join(sorted(READ_SCHEMES))}, or exclude it",
        )


def lies_in(path: str, root: str) -> bool:
    """Whether the path is the root or lies below it."""
    return path == root or path.startswith(f"{root.rstrip('/')}/")


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
