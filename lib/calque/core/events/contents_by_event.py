"""Contents of a directory where the log comes with its files: each content follows from the one before it.

    CREATE brings {a}, INSERT brings {b}, ALTER brings none, INSERT OVERWRITE leaves {c}: {a} · {a, b} · {a, b} · {c}

Events say all that happens to the directory, so nothing has to be listed. An event that says nothing of files, or whose
files are nowhere to be had, leaves an unknown content; contents stay unknown until an event names all files again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from calque.core.formats.layout import join
from calque.model.files import FilesOfEvent, KeptFile, Listing
from calque.model.names import EventId


def contents_by_event(
    location: str, base: Listing | None, events: Sequence[EventId], files: Mapping[EventId, FilesOfEvent]
) -> dict[EventId, Listing]:
    """Return the contents of the directory `location` after those of `events` where they are known.

    `base` is the content before the first of the events, listed where its files can be had (None: unknown). `files`
    has, by event, what the log says of the directory's files.
    """
    contents: dict[EventId, Listing] = {}
    content = known_at(location, base) if base is not None else None
    for event_id in events:
        said = files.get(event_id)
        content = content_after(content, said) if said is not None else None
        if content is not None:
            contents[event_id] = content
    return contents


def known_at(location: str, listing: Listing) -> Listing:
    """Return a content that lies elsewhere as the content of `location`: its `kept` says where the files can be had."""
    kept = tuple(KeptFile(file.path, join(listing.location, file.path), file.modified_ns) for file in listing.files)
    return replace(listing, location=location, kept=kept)


def content_after(before: Listing | None, said: FilesOfEvent) -> Listing | None:
    """Return the content after an event, from the one before and the files that the event names; None where it is not
    known.

    A file that is named again with the size that it has counts as the file that is there, with its old time: a window
    that died brought it, or a dump that was made while its source went on has it already.
    """
    if said.listing is None or said.is_whole:
        return said.listing
    if before is None or before.version is not None:
        return None
    sizes = {file.path: file.size for file in before.files}
    new_files = [file for file in said.listing.files if sizes.get(file.path) != file.size]
    brought = {file.path for file in new_files}
    kept_files = {kept.path: kept for kept in before.kept if kept.path not in brought}
    kept_files |= {kept.path: kept for kept in said.listing.kept if kept.path in brought}
    files = (*(file for file in before.files if file.path not in brought), *new_files)
    kept = tuple(kept_files[path] for path in sorted(kept_files))
    return replace(before, files=tuple(sorted(files)), missing=False, kept=kept)
