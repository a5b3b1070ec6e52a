"""Files that events name by their checksums, and contents that follow from these alone.

A metastore with a change manager writes into the log, for each file, the file system's own checksum and the directory
where Hive keeps files that it removes, replaces or renames: `<root>/<name>_<checksum>`. So a file can be told from
another of its name at any later time, and may be found where it is kept. Hive keeps no files of external tables, nor of
databases without `repl.source.for`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from calque.core.formats.layout import join
from calque.core.states.infer_contents import (
    DirectoryEvent,
    FileChange,
    FilesAdded,
    FilesKept,
    FilesListed,
    FilesReplaced,
    FilesUnknown,
    agrees,
    is_younger,
)
from calque.model.files import File, KeptFile, Listing
from calque.model.names import EventId

LONGEST_NAME = 254
"""Characters to which Hive cuts names of kept files: one less than HDFS takes."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file as an event named it: its full path, as far as it did not move, its checksum, and the root below which
    Hive keeps the file when it removes it."""

    path: str
    checksum: str
    change_root: str

    @property
    def kept_path(self) -> str:
        name = self.path.rpartition("/")[2]
        return join(self.change_root, f"{name}_{self.checksum}"[:LONGEST_NAME])


PresentFiles = Mapping[NamedFile, File]
"""The named files that can be had, with the paths where they lie now."""


def named_files(location: str, change: FileChange) -> dict[str, NamedFile]:
    """Return the files that an event on the directory names by their checksums, by their paths below the directory."""
    match change:
        case FilesAdded(_, kept) | FilesReplaced(_, kept) | FilesListed(_, kept):
            return {
                path: NamedFile(join(location, path), each.checksum, each.change_root) for path, each in kept.items()
            }
        case FilesKept() | FilesUnknown():
            return {}
        case _:
            assert_never(change)


def contents_by_checksum(
    location: str, base: Listing | None, events: Sequence[DirectoryEvent], present: PresentFiles
) -> dict[EventId, Listing]:
    """Return the contents after events on a directory that no listing says, as far as the events name all their files
    and these are `present`.

    They begin with a content that is known or that an event names whole; `base` is the one before the first event.
    Where no event until a listing can have removed a file, none is returned, because `infer_contents` has decided there
    already.
    """
    contents: dict[EventId, Listing] = {}
    since_removal: dict[EventId, Listing] = {}
    content = replace(base, location=location) if base is not None else None
    for event in events:
        if not isinstance(event.change, FilesAdded | FilesKept):
            contents |= since_removal
            since_removal = {}
        if event.listing is not None:
            content, since_removal = event.listing, {}
            continue
        content = content_after(location, content, event.change, present)
        if content is not None:
            since_removal[event.event_id] = content
    return contents | since_removal


def content_after(location: str, before: Listing | None, change: FileChange, present: PresentFiles) -> Listing | None:
    """Return the content of `location` after a change. `before` is the content before it, None where that is not known.
    The result is None where the files after the change do not follow for certain."""
    match change:
        case FilesReplaced():
            return with_files(Listing(location, ()), change, present)
        case FilesAdded():
            # A name that is used again leaves open whose file was there.
            if before is None or before.version is not None or any(file.path in change.paths for file in before.files):
                return None
            return with_files(before, change, present)
        case FilesKept(counted):
            is_certain = before is not None and counted is not None and agrees(change, before.files, before)
            return before if is_certain else None
        case FilesListed() | FilesUnknown():
            # What a metastore listed lacks sub-directories.
            return None
        case _:
            assert_never(change)


def with_files(listing: Listing, change: FilesAdded | FilesReplaced, present: PresentFiles) -> Listing | None:
    """Return the listing with the event's files added; None unless each is present. They have the times that they have
    now."""
    named = named_files(listing.location, change)
    if named.keys() != change.paths or any(file not in present for file in named.values()):
        return None
    added = {path: present[file] for path, file in named.items()}
    files = (*listing.files, *(File(path, file.size, file.modified_ns) for path, file in added.items()))
    return with_kept(replace(listing, files=tuple(sorted(files)), missing=False), added)


def with_kept(listing: Listing, sources: Mapping[str, File]) -> Listing:
    """Return the listing with the places where some of its files can be had, by their paths."""
    kept = {each.path: each for each in listing.kept}
    kept |= {path: KeptFile(path, file.path, file.modified_ns) for path, file in sources.items()}
    return replace(listing, kept=tuple(kept[path] for path in sorted(kept)))


def name_of(file: File, location: str, events: Sequence[DirectoryEvent]) -> NamedFile | None:
    """Return the name under which the source may keep `file`, which was listed after the last of the events on its
    directory. None where no event named it, or it was changed after the event that named it last."""
    for event in reversed(events):
        named = named_files(location, event.change).get(file.path)
        if named is not None:
            return None if is_younger(file, event.event_time) else named
    return None
