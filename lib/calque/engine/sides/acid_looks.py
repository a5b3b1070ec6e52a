"""Looks into the directories of ACID tables: `look_at`."""

from __future__ import annotations

import json
from collections.abc import Iterable

from calque.core.acid.contents import AcidLook
from calque.core.acid.directories import DirectoryKind, directory_of
from calque.core.formats.layout import join
from calque.errors import Refused
from calque.model.files import Listing
from calque.ports import Storage

NOTE = "_metadata_acid"
"""The file by which Hive 3 says that a base was compacted, and every version that a table was truncated."""


def look_at(storage: Storage, locations: Iterable[str]) -> dict[str, AcidLook]:
    """Look at what lies in directories, by location.

    The files are listed before the names, so that all files were listed of a directory of write ids that is among the
    names, if its writer had finished before the look. A directory that a cleaner removes meanwhile is not among them.
    Raises as `Storage.list` does.
    """
    listings = storage.list(sorted(set(locations)))
    return {location: look_of(storage, listing) for location, listing in listings.items()}


def look_of(storage: Storage, listing: Listing) -> AcidLook:
    names = frozenset(storage.children(listing.location))
    bases = [
        name
        for name in sorted(names)
        if (found := directory_of(name)) is not None and found.kind is DirectoryKind.BASE and found.visibility is None
    ]
    compacted = frozenset(name for name in bases if is_compacted(storage, join(listing.location, name)))
    return AcidLook(listing, names, compacted)


def is_compacted(storage: Storage, base: str) -> bool:
    """Tell whether the base's own note says that a compaction made it. Raises `Refused` for a note that can't be
    read."""
    note = storage.read(join(base, NOTE))
    if note is None:
        return False
    try:
        return bool(json.loads(note)["dataFormat"] == "compacted")
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"{join(base, NOTE)} can't be read", "It is no note of Hive's", "Look at the file") from error
