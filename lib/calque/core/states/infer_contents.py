"""Contents of a directory at events after which it was not listed, as far as they follow from listings and messages.

The effect of an event on the files of a directory is a `FileChange`. Between two contents that are known, or after an
event that names all files, every event must say which files it added, or be one that can't change files. Then the later
listing has the sizes and times of all files between:

    known {a} · INSERT names b · INSERT names c · listed {a, b, c}          after the first INSERT: {a, b}

A content is inferred only if the events account for every listed file, each by one event, and no file that was there is
missing or altered. So a name that is used again, a file that no event names, or a truncation that no event tells of
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
"""Nanoseconds by which an event's time may be early: it is a second of the metastore's clock, rounded down, so the
event came before that second's end. A file with a later time is younger, or its storage's clock is ahead; then the
state stays unknown. Where the storage's clock is behind, a file that was replaced shortly after the event may pass.
That takes a writer that raises no event, of which only scans tell: events that may replace a file bar the inference by
themselves, at any times."""
MOST_FILES = 1_000_000
"""Files of all contents that are inferred from one listing: contents of a longer run stay unknown."""
COUNTED = ("numFiles", "totalSize")
"""The parameters that a metastore writes itself when it alters a definition."""
SIZES = frozenset({*COUNTED, "numFilesErasureCoded", "numRows", "rawDataSize"})
SPARK_STATISTICS = "spark.sql.statistics."


@dataclass(frozen=True, slots=True)
class KeptUnder:
    """The checksum and the change manager's root under which a source keeps a file that Hive removes."""

    checksum: str
    change_root: str


@dataclass(frozen=True, slots=True)
class FilesAdded:
    """The change of an event that added the files of these paths, and left the others as they were. `kept` is that of
    `FilesListed`."""

    paths: frozenset[str]
    kept: Mapping[str, KeptUnder] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilesReplaced:
    """The change of an event after which the files of these paths were all that there was. `kept` is that of
    `FilesListed`."""

    paths: frozenset[str]
    kept: Mapping[str, KeptUnder] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilesListed:
    """The change of an event that made an object, whose files the metastore listed, but none in sub-directories.

    A later listing without any in sub-directories proves that there were none, but for a truncation without an event,
    which only scans tell of. `kept` has the paths for which the event gives a checksum and a root, as a metastore with
    a change manager does (never 2.3).
    """

    paths: frozenset[str]
    kept: Mapping[str, KeptUnder] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilesKept:
    """The change of an event that can't have changed any file. `counted` are the number and the bytes of the files that
    the metastore counted then, None where it did not count."""

    counted: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class FilesUnknown:
    """The change of an event that does not say what it did to files."""


FileChange = FilesAdded | FilesReplaced | FilesListed | FilesKept | FilesUnknown


@dataclass(frozen=True, slots=True)
class DirectoryEvent:
    """An event on one directory; its time is in seconds since the epoch. `listing` is the content after it, where that
    is known."""

    event_id: EventId
    event_time: int
    change: FileChange
    listing: Listing | None = None


def infer_contents(location: str, base: Listing | None, events: Sequence[DirectoryEvent]) -> dict[EventId, Listing]:
    """Return the contents after events on the directory `location` that follow for certain and that no listing says.

    `events` are all events on the directory, in order; `base` is the content before the first, where it is known. Each
    content that is returned is a part of a later listing, and is kept where that is kept, or has no files.
    """
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
    """Yield the events that kept all files where there was none before, and after which the metastore counted none."""
    known = base
    for event in events:
        if event.listing is None and known is not None and not known.files and event.change == FilesKept((0, 0)):
            yield event.event_id
        else:
            known = event.listing


def start_of(events: Sequence[DirectoryEvent], end: int) -> int | None:
    """Return the index of the newest event before `end` after which the content is known or named whole, -1 for the
    base. None where an event since then, or `end` itself, may have removed or altered a file."""
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
    """Return the contents after the events of `run` but the last one, after which `listing` was made. Empty unless the
    files before and those that the events name are exactly the listed ones, each of them once."""
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
    """Tell whether the metastore's own count or list does not contradict these files.

    A count must be of as many files and bytes. A list is trusted only if the later listing has no file in a
    sub-directory, where the metastore does not look. A change without either agrees with all files.
    """
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
    """Tell whether the file was certainly changed after an event of that second, if the clocks agree."""
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
    """Return the event's change of files for each of `keys.locations` of which its message tells. `moves` are the
    directories that renames moved with all that was in them. Never raises for a message that can't be decoded: it tells
    of none."""
    if keys.transactional:
        return {}
    try:
        if keys.kind is EventKind.ADD_PARTITIONS:
            return added_partitions(event, keys)
        return {location: change_of(event, keys, location, moves) for location in keys.locations[:1]}
    except (decode.Undecodable, Refused):
        return {}


def change_of(event: Event, keys: Keys, location: str, moves: Sequence[Move]) -> FileChange:
    """Return the event's change of the files in the one directory `location`. Raises `Undecodable` for a message that
    can't be read, and `Refused` for a place in it that can't be understood."""
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
    """Return the files that the metastore listed for added partitions, by directory. Directories that several
    partitions share are left out, and so are those that it did not list (4.2: those of external tables)."""
    listed = decode.partition_files(event)
    owners = Counter(keys.locations)
    return {
        location: files_listed(location, listed[partition])
        for partition, location in zip(keys.partitions, keys.locations, strict=True)
        if owners[location] == 1 and partition in listed
    }


def is_managed(event: Event) -> bool:
    """Tell whether the table is managed, so that its directory was listed: 4.2 lists no directories of external tables,
    and names no files of them."""
    return decode.table_after(event).type == "MANAGED_TABLE"


def files_listed(location: str, logged_files: Sequence[decode.LoggedFile]) -> FileChange:
    files = files_below(location, logged_files)
    return FilesListed(frozenset(files), kept_under(files)) if files is not None else FilesUnknown()


def files_below(location: str, files: Sequence[decode.LoggedFile]) -> Mapping[str, decode.LoggedFile] | None:
    """Return the data files by their paths below the location; None where some lie elsewhere."""
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
    """Return the change of files by a rename or an alteration of a definition. One that leaves the directory where it
    is, or moves it with its content, keeps the files; 2.3 does not tell such an alteration from a truncation.

    A metastore may count the files when it alters a definition (`FilesKept.counted`). Other sizes, and alterations of
    statistics alone, come from a writer that perhaps told of no INSERT: they leave the change unknown.
    """
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
    """Tell whether the directory is the same before and after the event, or moved along with all that was in it."""
    was, now = location_of(before), location_of(after)
    return bool(was and now) and places(event_id - 1, was or "", moves)[-1] == places(event_id, now or "", moves)[-1]


def sizes_of(thing: Table | Partition) -> dict[str, str]:
    """Return the parameters that a writer changes with the files."""
    parameters = thing.parameters or {}
    return {name: value for name, value in parameters.items() if name in SIZES or name.startswith(SPARK_STATISTICS)}
