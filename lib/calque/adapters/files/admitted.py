"""The check that a file of this machine may be read: `core.formats.roots` must admit the place where it really lies
after all links are followed."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from calque.core.formats.layout import Place
from calque.core.formats.roots import Roots

DESCRIPTORS = Path("/proc/self/fd")


class Misplaced(PermissionError):
    """A file or directory that is to be read lies at a place that is not admitted."""

    def __init__(self, path: str, real: str, why: str) -> None:
        super().__init__(errno.EACCES, f"It is {why}" if real == path else f"It leads to {real}, {why}", path)


@dataclass(frozen=True, slots=True)
class AdmittedPlaces:
    """The places of this machine that may be read. Its methods raise `Misplaced` for others. Roots that are links count
    by the places to which they lead, too."""

    roots: Roots

    @staticmethod
    def of(roots: Roots) -> AdmittedPlaces:
        return AdmittedPlaces(
            replace(
                roots,
                admitted=with_resolved(roots.admitted),
                private=with_resolved(roots.private),
                host=with_resolved(roots.host),
            )
        )

    def require(self, path: str) -> None:
        """Raise `Misplaced` unless the directory or file of the name `path` may be read. All links are followed."""
        self._require(path, real_path(path))

    def require_open(self, path: str, descriptor: int) -> None:
        """Raise `Misplaced` unless the open file may be read. The descriptor is asked, because a link may have been put
        in the file's place after its name was checked."""
        try:
            real = str((DESCRIPTORS / str(descriptor)).readlink())
        except FileNotFoundError:
            real = os.path.realpath(path)
        self._require(path, real)

    def _require(self, path: str, real: str) -> None:
        if why := self.roots.why_not(Place("file", "", real)):
            raise Misplaced(path, real, why)


def real_path(path: str) -> str:
    """Return where the path leads after all links are followed, as `os.path.realpath` does. The kernel follows the
    links: three calls in place of one for each directory of the path. A missing last name is added to where its
    directory leads."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        directory, _, name = path.rpartition("/")
        if directory and name not in ("", ".") and ".." not in path and not os.path.lexists(path):
            return f"{real_path(directory).rstrip('/')}/{name}"
        return os.path.realpath(path)
    except OSError:
        return os.path.realpath(path)
    try:
        return os.readlink(f"{DESCRIPTORS}/{descriptor}")  # noqa: PTH115 - for each directory that is read
    except OSError:
        return os.path.realpath(path)
    finally:
        os.close(descriptor)


def with_resolved(places: Sequence[Place]) -> tuple[Place, ...]:
    resolved = [replace(one, path=os.path.realpath(one.path)) if one.scheme == "file" else one for one in places]
    return tuple(dict.fromkeys((*places, *resolved)))
