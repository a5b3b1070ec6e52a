"""The listings that follow from checksums in events (`core.states.kept_files`): of contents whose files are gone or
were altered at their places, and of contents that were never listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from calque.core.states.infer_contents import DirectoryEvent
from calque.core.states.kept_files import NamedFile, contents_by_checksum, name_of, named_files, with_kept
from calque.engine.files.copies import Lost, copy_tasks
from calque.engine.files.kept_files import find, looked_at
from calque.engine.window.unlisted_contents import ObjectRun
from calque.model.files import Listing
from calque.model.plan import Data
from calque.ports import Storage

Listings = Mapping[Data, Listing]


def available(listings: Listings, lost: frozenset[Lost]) -> dict[Data, Listing]:
    """Return those of `listings` of which no file is known to be gone."""
    return {data: listing for data, listing in listings.items() if not lost_paths(listing, lost)}


def lost_paths(listing: Listing, lost: frozenset[Lost]) -> set[str]:
    """Return the paths of those of the listing's files that could not be copied from where they are to be had."""
    if not lost:
        return set()
    tasks = copy_tasks(listing, ((file, file.path) for file in listing.files))
    return {task.target for task in tasks if (task.source, task.size, task.expected_ns) in lost}


def kept_listings(
    storage: Storage, runs: Sequence[ObjectRun], listings: Listings, lost: frozenset[Lost]
) -> dict[Data, Listing]:
    """Return those of `listings` that have lost files, with the places where these are kept. A listing is left out when
    one of its lost files is to be had nowhere else. Files that are gone but not in `lost` yet get their places, too."""
    names = {
        data: names_of_gone(storage, listings[data], [event for event in run.events if event.event_id <= data.event_id])
        for run in runs
        for data in run.unlisted
        if data in listings and lost_paths(listings[data], lost)
    }
    present = find(storage, {file for files in names.values() for file in files.values()})
    kept = {
        data: with_kept(listings[data], {path: present[file] for path, file in files.items() if file in present})
        for data, files in names.items()
    }
    return available(kept, lost)


def names_of_gone(storage: Storage, listing: Listing, events: Sequence[DirectoryEvent]) -> dict[str, NamedFile]:
    """Return those of the listing's files that are not at their places any more as they were listed, by their paths, as
    an event named them. `events` are the events on the directory up to the listing's. Files that no event names are
    left out."""
    names = {file: name for file in listing.files if (name := name_of(file, listing.location, events)) is not None}
    now = looked_at(storage, [name.path for name in names.values()])
    return {
        file.path: name
        for file, name in names.items()
        if name.path not in now or (now[name.path].size, now[name.path].modified_ns) != (file.size, file.modified_ns)
    }


def listings_by_checksum(storage: Storage, runs: Sequence[ObjectRun], listings: Listings) -> dict[Data, Listing]:
    """Return listings of contents that are not among `listings`, where events name all their files and these are to be
    had."""
    unknown_runs = [run for run in runs if any(data not in listings for data in run.unlisted)]
    named: set[NamedFile] = set()
    for run in unknown_runs:
        unknown = {data.event_id for data in run.unlisted if data not in listings}
        changes = [event.change for event in run.events if event.event_id in unknown]
        named.update(file for change in changes for file in named_files(run.location, change).values())
    present = find(storage, named)
    by_checksum: dict[Data, Listing] = {}
    for run in unknown_runs if present else ():
        known = {data.event_id: listings[data] for data in run.unlisted if data in listings}
        events = [replace(event, listing=event.listing or known.get(event.event_id)) for event in run.events]
        contents = contents_by_checksum(run.location, run.base, events, present)
        by_checksum |= {data: contents[data.event_id] for data in run.unlisted if data.event_id in contents}
    return by_checksum
