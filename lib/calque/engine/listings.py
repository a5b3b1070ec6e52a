"""Listings of many directories, of which some can't be listed."""

from __future__ import annotations

from collections.abc import Sequence

from calque.errors import Refused
from calque.model.files import Listing
from calque.ports import Storage


def list_what_can_be(storage: Storage, locations: Sequence[str]) -> tuple[dict[str, Listing], dict[str, Refused]]:
    """What lies at each location; and why some are refused, which costs the others nothing but more calls. Raises
    `Unavailable`."""
    try:
        return dict(storage.list(locations)), {}
    except Refused as refused:
        if len(locations) == 1:
            return {}, {locations[0]: refused}
    middle = len(locations) // 2
    found, refusals = list_what_can_be(storage, locations[:middle])
    others, more = list_what_can_be(storage, locations[middle:])
    return found | others, refusals | more
