"""Listings of many directories: some can't be listed, some are on the move."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from calque.errors import Refused
from calque.model.files import Listing
from calque.ports import Storage

MOVING_NS = 2_000_000_000
"""For how long a directory may be on its way to another place, before the event that says so is there."""
RESTING_NS = 2_000_000_000
"""For how long a directory has to stay as it is where the times of its files prove nothing."""


@dataclass(slots=True)
class UnsureDirectories:
    """Since when directories are missing, and since when others are as they are, by a clock that nobody sets. A
    metastore moves a renamed table's directory first and commits then: what is missing may lie elsewhere, and no event
    says so yet."""

    since: dict[str, int] = field(default_factory=dict)
    resting: dict[str, tuple[Listing, int]] = field(default_factory=dict)

    def is_at_rest(self, listing: Listing, before_ns: int, now_ns: int) -> bool:
        """Whether no file is younger than `before_ns`, or all have been as they are for a while: files that are dated
        in the future, since a clock was set back, stay younger for as long."""
        if listing.is_settled(before_ns):
            self.resting.pop(listing.location, None)
            return True
        last_listing, since = self.resting.get(listing.location, (None, now_ns))
        if last_listing != listing:
            self.resting[listing.location] = (listing, now_ns)
            return False
        return now_ns - since >= RESTING_NS

    def is_certain(self, listing: Listing, now_ns: int) -> bool:
        """Whether the directory is there, or has been missing for longer than any move takes."""
        if not listing.missing:
            self.since.pop(listing.location, None)
            return True
        return now_ns - self.since.setdefault(listing.location, now_ns) >= MOVING_NS

    def only(self, locations: Collection[str]) -> None:
        """Forget the others: who looks at one of them again begins to wait anew."""
        self.since = {location: since for location, since in self.since.items() if location in locations}


def list_what_can_be(storage: Storage, locations: Sequence[str]) -> tuple[dict[str, Listing], dict[str, Refused]]:
    """What lies at each location; and why some are refused, which costs the others nothing but more calls. Raises
    `Unavailable`."""
    try:
        return dict(storage.list(locations)), {}
    except Refused as refused:
        if len(locations) == 1:
            return {}, {locations[0]: refused}
    middle = len(locations) // 2
    listings, refusals = list_what_can_be(storage, locations[:middle])
    others, more = list_what_can_be(storage, locations[middle:])
    return listings | others, refusals | more
