"""Listings of many directories: some can't be listed, some are on the move."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from calque.core.defects import ObjectDefect, work_on
from calque.errors import Refused
from calque.model.files import Listing
from calque.ports import Storage

MOVING_NS = 2_000_000_000
"""For how long a directory may be on its way to another place, or without the files that an INSERT OVERWRITE replaces,
before the event that says so is there."""
RESTING_NS = 2_000_000_000
"""For how long a directory has to stay as it is where the times of its files prove nothing."""


@dataclass(slots=True)
class UnsureDirectories:
    """Since when directories are missing or empty, and since when others are as they are, by a clock that nobody sets.
    A metastore moves a renamed table's directory first and commits then: what is missing may lie elsewhere, and no
    event says so yet. A writer that overwrites removes first: what is empty may be about to be filled."""

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

    def is_certain(self, listing: Listing, now_ns: int, *, just_emptied: bool = False) -> bool:
        """Whether the directory is there, with files unless it was emptied just now; or has been missing or empty for
        longer than any move takes."""
        if not listing.missing and not just_emptied:
            self.since.pop(listing.location, None)
            return True
        return now_ns - self.since.setdefault(listing.location, now_ns) >= MOVING_NS

    def only(self, locations: Collection[str]) -> None:
        """Forget the others: who looks at one of them again begins to wait anew."""
        self.since = {location: since for location, since in self.since.items() if location in locations}


def emptied_lately(storage: Storage, listings: Iterable[Listing], now_ns: int) -> set[str]:
    """The directories without files in which something was made or removed less than `MOVING_NS` ago, or of which the
    storage does not say when. Raises `Unavailable`."""
    empty = sorted({listing.location for listing in listings if not listing.files and not listing.missing})
    times = storage.modified(empty) if empty else {}
    return {location for location in empty if not 0 < times.get(location, 0) < now_ns - MOVING_NS}


def list_what_can_be(
    storage: Storage, locations: Sequence[str]
) -> tuple[dict[str, Listing], dict[str, Refused | ObjectDefect]]:
    """What lies at each location; and why some are refused, or meet a defect of calque, which costs the others nothing
    but more calls. Raises `Unavailable`."""
    try:
        with work_on(f"listing {len(locations)} directories, {next(iter(locations), None)} first"):
            return dict(storage.list(locations)), {}
    except (Refused, ObjectDefect) as refused:
        if len(locations) == 1:
            return {}, {locations[0]: refused}
    middle = len(locations) // 2
    listings, refusals = list_what_can_be(storage, locations[:middle])
    others, more = list_what_can_be(storage, locations[middle:])
    return listings | others, refusals | more
