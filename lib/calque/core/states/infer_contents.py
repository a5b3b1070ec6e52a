"""Contents of a directory at events after which nobody listed it, as far as they follow from listings and messages.

What an event did to the files of a directory is a `FileChange`. Between two contents that are known, or after an event
that names all files, every event must say which files it added, or be one that can't change files. Then the later
listing has the sizes and times of all files between:

    known {a} · INSERT names b · INSERT names c · listed {a, b, c}          after the first INSERT: {a, b}

Nothing is inferred unless this accounts for every listed file, each by one event, and nothing that was there is
missing or altered. So a name that is used again, a file that nobody names, or a truncation that no event tells of
leaves the states unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from calque.core.events import decode
from calque.core.events.effects import RENAMES
from calque.core.formats.layout import is_data, place
from calque.core.states.moves import Move, places
from calque.errors import Refused
from calque.model.files import File, Listing
from calque.model.hive import Partition, Table, location_of
from calque.model.journal import Event, EventKind, Keys
from calque.model.names import EventId

TIME_RESOLUTION_NS = 1_000_000_000
"""An event's time is a second of the metastore's clock, rounded down: the event itself came before that second's end.
A file with a later time is younger, or its storage's clock is ahead; then the state stays unknown. Where the storage's
clock is behind, a file that was replaced shortly after the event may pass. That takes a writer that raises no event, of
which only scans tell: events that may replace a file are met by themselves, whatever the times say."""
MOST_FILES = 1_000_000
"""Of all contents that are inferred from one listing: those of a longer run stay unknown."""
COUNTED = ("numFiles", "totalSize")
"""The parameters that a metastore writes itself when it alters a definition."""
SIZES = frozenset({*COUNTED, "numFilesErasureCoded", "numRows", "rawDataSize"})
SPARK_STATISTICS = "spark.sql.statistics."


@dataclass(frozen=True, slots=True)
class KeptUnder:
    """What a file is called by a source that keeps what Hive removes: its checksum, and the change manager's root."""

    checksum: str
    change_root: str


@dataclass(frozen=True, slots=True)
class FilesAdded:
    """The event added the files of these paths, and left the others as they were. `kept`: as below."""

    paths: frozenset[str]
    kept: Mapping[str, KeptUnder] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilesReplaced:
    """The files of these paths are all that there was after the event. `kept`: as below."""

    paths: frozenset[str]
    kept: Mapping[str, KeptUnder] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilesListed:
    """The metastore listed these files of a new object, and none in sub-directories. A later listing without any proves
    that there were none, but for a truncation without an event, which only scans tell of. `kept` are those of the paths
    for which the event has a checksum and a root, as a metastore with a change manager writes (never 2.3)."""

    paths: frozenset[str]
    kept: Mapping[str, KeptUnder] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilesKept:
    """The event can't have changed any file. `counted` are how many files the metastore counted then, and their bytes,
    where it did."""

    counted: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class FilesUnknown:
    """What the event did to files is not said."""


FileChange = FilesAdded | FilesReplaced | FilesListed | FilesKept | FilesUnknown


@dataclass(frozen=True, slots=True)
class DirectoryEvent:
    """An event on one directory; its time is in seconds. `listing` is the content after it, where that is known."""

    event_id: EventId
    event_time: int
    change: FileChange
    listing: Listing | None = None


def infer_contents(location: str, base: Listing | None, events: Sequence[DirectoryEvent]) -> dict[EventId, Listing]:
    """The contents after events on the directory `location`, which come in their order, where no listing says them and
    they are certain. Each is a part of a later listing, and kept where that is, or has no files. `base` is the content
    before the first event, where that is known."""
    inferred = {event_id: Listing(location, ()) for event_id in staying_empty(base, events)}
    for end, last in enumerate(events):
        start = start_of(events, end) if last.listing is not None else None
        if last.listing is None or start is None:
            continue
        known = events[start].listing if start >= 0 else base
        if known is not None:
            inferred |= contents_in_run(known.files, events[start + 1 : end + 1], last.listing)
        elif start >= 0:
            inferred |= contents_in_run((), events[start : end + 1], last.listing)
    return inferred


def staying_empty(base: Listing | None, events: Sequence[DirectoryEvent]) -> Iterator[EventId]:
    """The events that kept all files where there was none before, and after which the metastore counted none."""
    known = base
    for event in events:
        if event.listing is None and known is not None and not known.files and event.change == FilesKept((0, 0)):
            yield event.event_id
        else:
            known = event.listing


def start_of(events: Sequence[DirectoryEvent], end: int) -> int | None:
    """The newest event before `end` after which the content is known or said whole, -1 for the base; None where an
    event since, or `end` itself, may have removed or altered a file."""
    if not isinstance(events[end].change, FilesAdded | FilesKept):
        return None
    for index in range(end - 1, -1, -1):
        event = events[index]
        if event.listing is not None or isinstance(event.change, FilesReplaced | FilesListed):
            return index
        if isinstance(event.change, FilesUnknown):
            return None
    return -1


def contents_in_run(before: Sequence[File], run: Sequence[DirectoryEvent], listing: Listing) -> dict[EventId, Listing]:
    """The contents after the events of `run` but the last one, whose listing is given. Empty unless the files before
    and those that the events name are what is listed, each of them once."""
    if len(run) * len(listing.files) > MOST_FILES:
        return {}
    listed = {file.path: file for file in listing.files}
    if any(file.path not in listed or identity(file) != identity(listed[file.path]) for file in before):
        return {}
    present = {file.path for file in before}
    contents: dict[EventId, Listing] = {}
    for event in run:
        paths = paths_of(event.change)
        if not present.isdisjoint(paths):
            return {}
        if any(path not in listed or is_younger(listed[path], event.event_time) for path in paths):
            return {}
        present |= paths
        files = tuple(file for file in listing.files if file.path in present)
        if not agrees(event.change, files, listing):
            return {}
        contents[event.event_id] = Listing(listing.location, files, pin=listing.pin)
    if present != listed.keys():
        return {}
    return {event.event_id: contents[event.event_id] for event in run[:-1]}


def agrees(change: FileChange, files: Sequence[File], listing: Listing) -> bool:
    """Whether the metastore counted these files, if it counted any; whether it looked wherever the later listing has
    files, if it listed them."""
    match change:
        case FilesKept(counted):
            return counted is None or counted == (len(files), sum(file.size for file in files))
        case FilesListed():
            return not any("/" in file.path for file in listing.files)
        case FilesAdded() | FilesReplaced() | FilesUnknown():
            return True
        case _:
            assert_never(change)


def identity(file: File) -> tuple[str, int, int]:
    return file.path, file.size, file.modified_ns


def is_younger(file: File, event_time: int) -> bool:
    """Whether the file was certainly changed after an event of that second, if the clocks agree."""
    return file.modified_ns >= event_time * 1_000_000_000 + TIME_RESOLUTION_NS


def paths_of(change: FileChange) -> frozenset[str]:
    match change:
        case FilesAdded(paths, _) | FilesReplaced(paths, _) | FilesListed(paths, _):
            return paths
        case FilesKept() | FilesUnknown():
            return frozenset()
        case _:
            assert_never(change)


# What messages say


def changes_of(event: Event, keys: Keys, moves: Sequence[Move] = ()) -> dict[str, FileChange]:
    """What the event says of the files in each of `keys.locations`; `moves` are directories that renames moved with all
    that was in them."""
    if keys.transactional:
        return {}
    try:
        if keys.kind is EventKind.ADD_PARTITIONS:
            return added_partitions(event, keys)
        return {location: change_of(event, keys, location, moves) for location in keys.locations[:1]}
    except (decode.Undecodable, Refused):
        return {}


def change_of(event: Event, keys: Keys, location: str, moves: Sequence[Move]) -> FileChange:
    match keys.kind:
        case EventKind.INSERT:
            # An empty list says nothing: some writers send one whatever they wrote.
            insert = decode.insert_of(event)
            files = files_below(location, insert.files)
            if not files:
                return FilesUnknown()
            paths, kept = frozenset(files), kept_under(files)
            return FilesReplaced(paths, kept) if insert.replaces else FilesAdded(paths, kept)
        case EventKind.CREATE_TABLE:
            logged_files = decode.table_files(event)
            return files_listed(location, logged_files) if logged_files or is_managed(event) else FilesUnknown()
        case EventKind.ALTER_TABLE | EventKind.RENAME_TABLE if not keys.facets_only:
            return alteration_change(event, keys, decode.table_before(event), decode.table_after(event), moves)
        case EventKind.ALTER_PARTITIONS | EventKind.RENAME_PARTITION if not keys.facets_only:
            before, (after,) = decode.partition_before(event), decode.partitions_after(event)
            return alteration_change(event, keys, before, after, moves)
        case _:
            return FilesUnknown()


def added_partitions(event: Event, keys: Keys) -> dict[str, FileChange]:
    """What the metastore listed in directories of which each is one partition's. It names no partition whose directory
    it did not list (4.2: those of external tables)."""
    listed = decode.partition_files(event)
    owners = Counter(keys.locations)
    return {
        location: files_listed(location, listed[partition])
        for partition, location in zip(keys.partitions, keys.locations, strict=True)
        if owners[location] == 1 and partition in listed
    }


def is_managed(event: Event) -> bool:
    """Whether the table's directory was listed: 4.2 leaves out those of external tables, and names no files of them."""
    return decode.table_after(event).type == "MANAGED_TABLE"


def files_listed(location: str, logged_files: Sequence[decode.LoggedFile]) -> FileChange:
    files = files_below(location, logged_files)
    return FilesListed(frozenset(files), kept_under(files)) if files is not None else FilesUnknown()


def files_below(location: str, files: Sequence[decode.LoggedFile]) -> Mapping[str, decode.LoggedFile] | None:
    """The data files by their paths below the location; None where some lie elsewhere."""
    root = place(location)
    files_by_path: dict[str, decode.LoggedFile] = {}
    for file in files:
        path = place(file.uri)
        if file.directory or not root.contains(path) or root == path:
            return None
        files_by_path[path.path.removeprefix(root.path).lstrip("/")] = file
    return {path: file for path, file in files_by_path.items() if is_data(path)}


def kept_under(files: Mapping[str, decode.LoggedFile]) -> dict[str, KeptUnder]:
    return {
        path: KeptUnder(file.checksum, file.change_root)
        for path, file in files.items()
        if file.checksum and file.change_root
    }


def alteration_change(
    event: Event, keys: Keys, before: Table | Partition, after: Table | Partition, moves: Sequence[Move]
) -> FileChange:
    """A rename, or an alteration of the definition, in one place keeps the files; 2.3 does not tell the latter from
    truncations. A metastore may count the files when it alters a definition. Other sizes, and alterations of statistics
    alone, are a writer's, who perhaps told of no INSERT."""
    if not stays(event.event_id, before, after, moves):
        return FilesUnknown()
    if keys.kind in RENAMES:
        return FilesKept()
    if keys.replaces or "isTruncateOp" not in decode.fields(event):
        return FilesUnknown()
    was, now = sizes_of(before), sizes_of(after)
    if was == now:
        return FilesKept()
    files, size = now.get("numFiles", ""), now.get("totalSize", "")
    if {**was, **{name: now.get(name) for name in COUNTED}} != now or not (files.isdecimal() and size.isdecimal()):
        return FilesUnknown()
    return FilesKept((int(files), int(size)))


def stays(event_id: EventId, before: Table | Partition, after: Table | Partition, moves: Sequence[Move]) -> bool:
    """Whether the directory is the same, or all that was in it moved along."""
    was, now = location_of(before), location_of(after)
    return bool(was and now) and places(event_id - 1, was or "", moves)[-1] == places(event_id, now or "", moves)[-1]


def sizes_of(thing: Table | Partition) -> dict[str, str]:
    """The parameters that a writer changes with the files."""
    parameters = thing.parameters or {}
    return {name: value for name, value in parameters.items() if name in SIZES or name.startswith(SPARK_STATISTICS)}
