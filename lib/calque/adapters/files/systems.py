"""The choice of the file system that a location is on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from calque.adapters.files.admitted import AdmittedPlaces, Misplaced, real_path
from calque.adapters.files.system import FILE_SYSTEM, Durability, FileSystemKind, System, misplaced
from calque.core.formats.layout import OBJECT_STORES, Place, place
from calque.core.formats.roots import Roots
from calque.errors import Refused
from calque.model.bounds import MESSAGE
from calque.model.secrets import Options, outdated, versions

if TYPE_CHECKING:
    from fsspec.spec import AbstractFileSystem


READ_SCHEMES = OBJECT_STORES | {"file", "hdfs", "webhdfs", "sftp", "smb"}
"""The schemes of file systems that the source's tables may lie on. What a target's own section names may have any
scheme that fsspec knows."""


REMEMBERED = 64
"""The number of local directories whose paths are remembered."""


@dataclass(frozen=True, slots=True)
class OwnLocations:
    """The locations below which calque writes the data of one target, and the options by which they are reached."""

    locations: tuple[str, ...] = ()
    options: Options = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class OpenSystem:
    """An open file system. `path` makes its path of an authority and a path. It was opened by `version` of the
    options."""

    system: System
    path: Callable[[str, str], str]
    options: Options = field(default_factory=dict)
    version: tuple[object, ...] = ()

    @property
    def outdated(self) -> bool:
        """Return whether a file of a secret among the options was written since the system was opened."""
        return bool(self.version) and outdated(self.options, self.version)


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
        """Set the file systems up. `options` are those of the configuration, for all that is not local and not below
        `own`. With `roots` only places that they admit are read. `most_read` is the greatest number of bytes of a file
        that is read whole into memory. `kinds` are for schemes for which fsspec alone does not do."""
        self.most_read = most_read
        self._options, self._durability, self._own = dict(options or {}), durability, own or OwnLocations()
        self._roots, self._kinds = roots, kinds
        self._places = tuple(place(location) for location in self._own.locations)
        self._lock = Lock()
        self._open: dict[tuple[str, str, bool], OpenSystem] = {}
        self._beside: dict[str, tuple[System, str]] = {}
        """The local file system, and the path there of a directory with its slash, by the directory's location: most
        locations lie beside another one."""

    def __reduce__(self) -> tuple[type[FileSystemSet], tuple[object, ...]]:
        given = (self._options, self._durability, self._own, self._roots, self.most_read, self._kinds)
        return FileSystemSet, given

    def _kind_of(self, scheme: str) -> FileSystemKind:
        return next((kind for kind in self._kinds if scheme in kind.schemes), FILE_SYSTEM)

    def why_not_read(self, location: str) -> Refused | None:
        """Return the error for a location that may not be read; None where it may, as far as its name says."""
        if self._roots is None or not (why := self._roots.why_not(place(location))):
            return None
        return misplaced(Misplaced(location, location, why))

    def why_misplaced(self, location: str) -> Refused | None:
        """Return the error for a location that may not be read, by its name or by the place to which links lead from it
        now; None where it may."""
        refused = self.why_not_read(location)
        if refused is None and self._roots is not None and (where := place(location)).scheme == "file":
            try:
                AdmittedPlaces.of(self._roots).require(where.path)
            except Misplaced as error:
                return misplaced(error)
        return refused

    def to_read(self, location: str) -> tuple[System, str]:
        """Return the file system and path of a location (see `at`) that is to be read. Raises `Refused` for a place
        that is not admitted."""
        if self._roots is not None and (refused := self.why_not_read(location)) is not None:
            raise refused
        return self.at(location)

    def at(self, location: str) -> tuple[System, str]:
        """Return the file system of a location, and the location's path there. The system is opened anew after a file
        of a secret among its options was written."""
        above, _, name = location.rpartition("/")
        is_plain = name not in ("", "..") and "\0" not in name
        if is_plain and (beside := self._beside.get(above)) is not None:
            return beside[0], beside[1] + name
        location_place = place(location)
        key = self._key(location_place)
        opened = self._open.get(key)
        if opened is None or opened.outdated:
            with self._lock:
                opened = self._open.get(key)
                if opened is None or opened.outdated:
                    opened = self._open[key] = self._opened(*key)
        path = opened.path(location_place.authority, location_place.path)
        if is_plain and location_place.scheme == "file" and path.endswith(f"/{name}"):
            if len(self._beside) >= REMEMBERED:
                self._beside = {}
            self._beside[above] = opened.system, path.removesuffix(name)
        return opened.system, path

    def share_system(self, location: str, other: str) -> bool:
        """Return whether both locations are on one file system, opened by the same options."""
        return self._key(place(location)) == self._key(place(other))

    def require_inside(self, locations: Iterable[str]) -> None:
        """Raise `Refused` where a link in the place of a directory leads one of the locations, which are to be written
        or removed, out of the target's own places."""
        roots = [own.path for own in self._places if own.scheme == "file"]
        for directory in dict.fromkeys(location.rpartition("/")[0] for location in locations if roots):
            path = place(f"{directory}/").path
            if any(lies_in(path, root) for root in roots):
                real = real_path(path)
                if not any(lies_in(real, real_path(root)) for root in roots):
                    raise Refused(
                        f"Nothing is written or removed below {directory}",
                        f"A link leads from there to {real}, which is outside of the target's warehouse",
                        "Put a directory in the place of the link",
                    )

    def fsspec(self, location: str) -> AbstractFileSystem:
        """Return fsspec's file system for a location that is not local. Raises `Refused` for a scheme that is not
        opened."""
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
    """Return whether the path is the root or lies below it."""
    return path == root or path.startswith(f"{root.rstrip('/')}/")
