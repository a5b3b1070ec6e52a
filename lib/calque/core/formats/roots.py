"""Which places the definitions of others may have calque read: locations of tables and partitions, jars, schemas, files
that a dump names.

calque reads with rights of its own, and what it copies others can read. Therefore a place that a definition names is
read where it lies below a root, and below none of the places that nobody is to have by a definition: what is calque's
own and, where no roots were written, what is the host's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from calque.core.formats.layout import Place, place

HOST = tuple(Place("file", "", path) for path in ("/etc", "/proc", "/sys", "/dev", "/run", "/boot", "/root"))
"""The host's own places."""
ONE_SCHEME = {"s3a": "s3", "s3n": "s3"}
OUTSIDE = "below none of the roots of [source]"
PRIVATE = "a place of calque's own"
OF_THE_HOST = "a place of this host's own"


@dataclass(frozen=True, slots=True)
class Roots:
    """Of the places that contain a location the longest decides: one that is `admitted` before one that is `private`,
    or the `host`'s. Where none contains it, it is admitted if there are no `written` roots."""

    written: bool = False
    admitted: tuple[Place, ...] = ()
    private: tuple[Place, ...] = ()
    host: tuple[Place, ...] = ()

    def why_not(self, location: Place) -> str:
        """What the location is that is not read; empty where it may be."""
        where = normal(location)
        longest, refusal = -1, OUTSIDE if self.written else ""
        for places, why in ((self.host, OF_THE_HOST), (self.private, PRIVATE), (self.admitted, "")):
            for one in places:
                if len(one.path) >= longest and one.contains(where):
                    longest, refusal = len(one.path), why
        return refusal


def roots_of(written: Iterable[str], private: Iterable[str], own: Iterable[str]) -> Roots:
    """`written` are those of `[source]`. `private` are calque's own places, and `own` those where it may read all the
    same: where it writes data itself."""
    roots = [normal(place(location)) for location in written]
    return Roots(
        written=bool(roots),
        admitted=(*roots, *(normal(place(location)) for location in own)),
        private=tuple(normal(place(location)) for location in private),
        host=() if roots else HOST,
    )


def normal(location: Place) -> Place:
    """Schemes that are one storage are one."""
    scheme = ONE_SCHEME.get(location.scheme)
    return replace(location, scheme=scheme) if scheme else location
