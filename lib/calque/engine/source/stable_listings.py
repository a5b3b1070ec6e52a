"""Listings of many directories, some of which can't be listed or are being moved or filled at the moment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from calque.core.defects import ObjectDefect, work_on
from calque.errors import Refused
from calque.model.files import Listing
from calque.ports import Storage

MOVING_NS = 2_000_000_000
"""Nanoseconds for which a directory may be on its way to another place, or without the files that an INSERT OVERWRITE
replaces, before the event that says so is in the log."""
RESTING_NS = 2_000_000_000
"""Nanoseconds for which a directory has to stay as it is where the times of its files prove nothing."""


@dataclass(slots=True)
class UnsureDirectories:
    """The directories that can't be believed yet: those that are missing or empty, with the time since when (`since`),
    and others with the time since when they are as they are (`resting`); all by a monotonic clock. A metastore moves a
    renamed table's directory first and commits then, so a missing directory may lie elsewhere while no event says so
    yet. A writer that overwrites removes files first, so an empty directory may be about to be filled."""

    since: dict[str, int] = field(default_factory=dict)
    resting: dict[str, tuple[Listing, int]] = field(default_factory=dict)

    def is_at_rest(self, listing: Listing, before_ns: int, now_ns: int) -> bool:
        """Tell whether no file is younger than `before_ns`, or all have been as they are for `RESTING_NS`. Files
        dated in the future, because a clock was set back, would stay younger for as long as that."""
        if listing.is_settled(before_ns):
            self.resting.pop(listing.location, None)
            return True
        last_listing, since = self.resting.get(listing.location, (None, now_ns))
        if last_listing != listing:
            self.resting[listing.location] = (listing, now_ns)
            return False
        return now_ns - since >= RESTING_NS

    def is_certain(self, listing: Listing, now_ns: int, *, just_emptied: bool = False) -> bool:
        """Tell whether the directory exists and was not emptied lately (`just_emptied`), or has been missing or empty
        for `MOVING_NS`, which is longer than a move takes."""
        if not listing.missing and not just_emptied:
            self.since.pop(listing.location, None)
            return True
        return now_ns - self.since.setdefault(listing.location, now_ns) >= MOVING_NS

    def only(self, locations: Collection[str]) -> None:
        """Forget all directories but `locations`; a forgotten one waits from the beginning when it is looked at
        again."""
        self.since = {location: since for location, since in self.since.items() if location in locations}


def emptied_lately(storage: Storage, listings: Iterable[Listing], now_ns: int) -> set[str]:
    """Return the directories without files in which a file was made or removed less than `MOVING_NS` ago, or for which
    the storage has no time. Raises `Unavailable`."""
    empty = sorted({listing.location for listing in listings if not listing.files and not listing.missing})
    times = storage.modified(empty) if empty else {}
    return {location for location in empty if not 0 < times.get(location, 0) < now_ns - MOVING_NS}


def list_what_can_be(
    storage: Storage, locations: Sequence[str]
) -> tuple[dict[str, Listing], dict[str, Refused | ObjectDefect]]:
    """Return the listings of the locations that can be listed, and the errors of the others, which are refused or meet
    a defect of calque. A location that fails costs the others nothing but more calls. Raises `Unavailable`."""
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
