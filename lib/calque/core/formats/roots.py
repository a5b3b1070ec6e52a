"""Roots: the places that others may have calque read by a definition. Such places are locations of tables and
partitions, jars, schemas, and files that a dump names.

calque reads with rights of its own, and others can read the files that it copies. Therefore a place that a definition
names is read only where it lies below a root, and below no place that must not be had by a definition: calque's own
places and, where no roots were written, the host's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from calque.core.formats.layout import Place, place

HOST = tuple(Place("file", "", path) for path in ("/etc", "/proc", "/sys", "/dev", "/run", "/boot", "/root"))
"""The host's own places."""
ONE_SCHEME = {"s3a": "s3", "s3n": "s3"}
OUTSIDE = "below none of the roots of [source]"
PRIVATE = "a place of calque's own"
OF_THE_HOST = "a place of this host's own"


@dataclass(frozen=True, slots=True)
class Roots:
    """The rule of which locations may be read. Of the places that contain a location the longest decides: an `admitted`
    one before one that is `private` or the `host`'s. A location in none of them is admitted if there are no `written`
    roots."""

    written: bool = False
    admitted: tuple[Place, ...] = ()
    private: tuple[Place, ...] = ()
    host: tuple[Place, ...] = ()
    _ranked: tuple[tuple[Place, str], ...] = field(init=False, repr=False, compare=False)
    """All places with why they are not read, the longest first."""

    def __post_init__(self) -> None:
        by_reason = (("", self.admitted), (PRIVATE, self.private), (OF_THE_HOST, self.host))
        places = [(one, why) for why, places in by_reason for one in places]
        object.__setattr__(self, "_ranked", tuple(sorted(places, key=lambda ranked: -len(ranked[0].path))))

    def why_not(self, location: Place) -> str:
        """Say why the location is not read; empty where it may be."""
        where = normal(location)
        outside = OUTSIDE if self.written else ""
        return next((why for one, why in self._ranked if one.contains(where)), outside)


def roots_of(written: Iterable[str], private: Iterable[str], own: Iterable[str]) -> Roots:
    """Return the rule for the roots `written` in `[source]`. `private` are calque's own places, and `own` those among
    them that it may read all the same, because it writes data there itself."""
    roots = [normal(place(location)) for location in written]
    return Roots(
        written=bool(roots),
        admitted=(*roots, *(normal(place(location)) for location in own)),
        private=tuple(normal(place(location)) for location in private),
        host=() if roots else HOST,
    )


def normal(location: Place) -> Place:
    """Return the location with one scheme for all schemes of one storage."""
    scheme = ONE_SCHEME.get(location.scheme)
    return replace(location, scheme=scheme) if scheme else location
