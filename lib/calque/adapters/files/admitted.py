"""Files of this machine are read where `core.formats.roots` admits the place that they have, whatever links lead
there."""

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
    """What is to be read has a place that is not admitted."""

    def __init__(self, path: str, real: str, why: str) -> None:
        super().__init__(errno.EACCES, f"It is {why}" if real == path else f"It leads to {real}, {why}", path)


@dataclass(frozen=True, slots=True)
class AdmittedPlaces:
    """Raises `Misplaced`. Roots count by the places that they have themselves, too."""

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
        """Of a directory or file, by its name, all links followed."""
        self._require(path, os.path.realpath(path))

    def require_open(self, path: str, descriptor: int) -> None:
        """Of what is open: a link may have been put in its place since somebody looked."""
        try:
            real = str((DESCRIPTORS / str(descriptor)).readlink())
        except FileNotFoundError:
            real = os.path.realpath(path)
        self._require(path, real)

    def _require(self, path: str, real: str) -> None:
        if why := self.roots.why_not(Place("file", "", real)):
            raise Misplaced(path, real, why)


def with_resolved(places: Sequence[Place]) -> tuple[Place, ...]:
    resolved = [replace(one, path=os.path.realpath(one.path)) if one.scheme == "file" else one for one in places]
    return tuple(dict.fromkeys((*places, *resolved)))
