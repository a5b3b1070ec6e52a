"""The contents of a group's states that have no evidence: they are inferred from what the target shows, from the
evidence of other states, and from the messages of the events between. Messages are read only where they can make a
content known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from calque.core.events.contents_by_event import contents_by_event, known_at
from calque.core.states.fold import Chain, PartCell
from calque.core.states.infer_contents import DirectoryEvent, FileChange, FilesUnknown, changes_of, infer_contents
from calque.core.states.locate import observed_state
from calque.core.states.moves import Move, places
from calque.engine.sides.journal_reads import messages
from calque.engine.sides.sides import SourceSide
from calque.engine.target.observe import ShownTable, as_observed
from calque.model.files import Listing
from calque.model.journal import Entry
from calque.model.names import EventId, TableName
from calque.model.plan import Data
from calque.ports import EventFiles

Listings = Mapping[Data, Listing]
MOST_EVENTS = 1_000
"""Events on one directory in a window above which its contents are not inferred. Behind a backlog there may be many
more; their states are passed over as a rule."""


@dataclass(frozen=True, slots=True)
class DirectoryTouch:
    """An event on the directory that lies at `location` after all moves. `data` is the content after the event, of the
    object `cell`; None where the chain has no such state."""

    location: str
    entry: Entry
    data: Data
    cell: PartCell | None


@dataclass(frozen=True, slots=True)
class ShownContent:
    """The files of an object at the target, and the event that the object is marked with."""

    event_id: EventId
    listing: Listing


@dataclass(frozen=True, slots=True)
class ObjectRun:
    """The run of events on an object in one directory. `location` is where the directory lies now. `base` is the
    content that the target shows of the object, if it does, and `events` are those after that. `unlisted` are the
    object's contents that no listing says."""

    location: str
    base: Listing | None
    events: Sequence[DirectoryEvent]
    unlisted: Sequence[Data]
    touched: Sequence[Data] = ()
    """The object's contents after those events, listed or not, and contents that no state of the chain has."""
    shown: Data | None = None
    """The content among `contents` that the target shows already, because a window that died brought it there; None
    where it shows none of them."""


def infer_listings(runs: Sequence[ObjectRun]) -> dict[Data, Listing]:
    """Return listings of contents that no listing says, as far as they follow from the contents before and after
    them."""
    inferred: dict[Data, Listing] = {}
    for run in runs:
        contents = infer_contents(run.location, run.base, run.events)
        inferred |= {data: contents[data.event_id] for data in run.unlisted if data.event_id in contents}
    return inferred


def said_listings(event_files: EventFiles, runs: Sequence[ObjectRun]) -> dict[Data, Listing]:
    """Return listings of contents that no listing says, where the log came with its files."""
    files = event_files.files({data.event_id for run in runs for data in run.touched})
    said: dict[Data, Listing] = {}
    for run in runs:
        by_event = {
            data.event_id: files[data.event_id, data.location]
            for data in run.touched
            if (data.event_id, data.location) in files
        }
        contents = contents_by_event(run.location, run.base, [data.event_id for data in run.touched], by_event)
        said |= {data: contents[data.event_id] for data in run.unlisted if data.event_id in contents}
        if run.shown is not None and run.base is not None:
            said[run.shown] = known_at(run.location, run.base)
    return said


def object_runs(
    source: SourceSide,
    chain: Chain,
    entries: Sequence[Entry],
    moves: Sequence[Move],
    listings: Listings,
    shown: Mapping[TableName, ShownTable | None],
    shown_event: Callable[[TableName], EventId],
) -> list[ObjectRun]:
    """Return the runs of all objects in the directories that have a content of the chain which is not among `listings`.
    Directories are where the last rename left them. `shown_event` says which event a table shows."""
    cells = {data: cell for data, cell in contents_with_cells(chain) if data not in chain.renamed}
    if all(data in listings for data in cells):
        return []
    carrying = {move.event_id for move in moves}
    changing_entries = [entry for entry in entries if entry.event_id not in carrying]
    touches = list(directory_touches(cells, changing_entries, moves))
    runs = {location: run for location, run in runs_of(touches).items() if may_be_known(run, listings)}
    if not runs:
        return []
    changes = changes_in(source, runs.values(), moves)
    bases = bases_of(touches, shown_contents(chain, shown, shown_event))
    return [
        object_run(location, cell, run, bases.get((cell, location)), changes, listings)
        for location, run in runs.items()
        for cell in dict.fromkeys(touch.cell for touch in run if touch.cell is not None)
    ]


def object_run(
    location: str,
    cell: PartCell,
    run: Sequence[DirectoryTouch],
    base: ShownContent | None,
    changes: Mapping[Data, FileChange],
    listings: Listings,
) -> ObjectRun:
    since = base.event_id if base is not None else 0
    later = [touch for touch in run if touch.entry.event_id > since]
    return ObjectRun(
        location,
        base.listing if base is not None else None,
        tuple(event_of(touch, cell, changes, listings) for touch in later),
        tuple(
            touch.data for touch in later if touch.cell == cell and touch.data not in listings and not touch.data.scan
        ),
        tuple(
            touch.data
            for touch, owner in zip(run, owners(run), strict=True)
            if owner == cell and touch.entry.event_id > since
        ),
        next((touch.data for touch in reversed(run) if touch.cell == cell and touch.entry.event_id <= since), None),
    )


def owners(run: Sequence[DirectoryTouch]) -> list[PartCell | None]:
    """Return for each touch the object whose content it changed. A touch that no state has belongs to the object of the
    next touch on the directory, because one call wrote both."""
    owner_by_location: dict[str, PartCell] = {}
    found: list[PartCell | None] = []
    for touch in reversed(run):
        if touch.cell is not None:
            owner_by_location[touch.data.location] = touch.cell
        found.append(owner_by_location.get(touch.data.location))
    return found[::-1]


def changes_in(
    source: SourceSide, runs: Iterable[Sequence[DirectoryTouch]], moves: Sequence[Move]
) -> dict[Data, FileChange]:
    """Return what the touches did to files, as the messages of their events say."""
    entries = {
        touch.entry.event_id: touch.entry
        for run in runs
        for touch in run
        if touch.cell is not None and not touch.data.scan
    }
    return {
        Data(event.event_id, location): change
        for event in messages(source.journal, entries)
        for location, change in changes_of(event, entries[event.event_id].keys, moves).items()
    }


def directory_touches(
    cells: Mapping[Data, PartCell], entries: Sequence[Entry], moves: Sequence[Move]
) -> Iterator[DirectoryTouch]:
    """Yield each directory that an event touched, in the order of the events."""
    for entry in entries:
        scans = entry.scans or (0,) * len(entry.keys.locations)
        for location, scan in zip(entry.keys.locations, scans, strict=True):
            data = Data(entry.event_id, location, scan)
            yield DirectoryTouch(places(entry.event_id, location, moves)[-1], entry, data, cells.get(data))


def runs_of(touches: Sequence[DirectoryTouch]) -> dict[str, list[DirectoryTouch]]:
    """Return the touches by their directories."""
    runs: dict[str, list[DirectoryTouch]] = {}
    for touch in touches:
        runs.setdefault(touch.location, []).append(touch)
    return runs


def contents_with_cells(chain: Chain) -> Iterator[tuple[Data, PartCell]]:
    """Yield the contents of tables (partition `""`) and partitions, with their lineages."""
    for step in chain.steps:
        for lineage, head in step.heads.items():
            if head.data is not None and head.data.location:
                yield head.data, (lineage, "")
        for (lineage, _), part in step.parts.items():
            if part is not None and part.data.location:
                yield part.data, (lineage, part.lineage)


def may_be_known(run: Sequence[DirectoryTouch], listings: Listings) -> bool:
    """Tell whether a content of the run is not listed, and the run is short enough for its messages to be read."""
    return len(run) <= MOST_EVENTS and any(touch.cell is not None and touch.data not in listings for touch in run)


def shown_contents(
    chain: Chain, shown: Mapping[TableName, ShownTable | None], shown_event: Callable[[TableName], EventId]
) -> dict[PartCell, ShownContent]:
    """Return what the target shows of the chain's tables and partitions, by their lineages. Objects that carry no event
    are left out, because they are on their way."""
    observed = {name: as_observed(table) if table is not None else None for name, table in shown.items()}
    values = observed_state(chain, observed, shown_event)
    contents: dict[PartCell, ShownContent] = {}
    for name, table in shown.items():
        seen, lineage = observed[name], values.names.get(name)
        if table is None or seen is None or lineage is None:
            continue
        for partition, listing in table.listings.items():
            part = values.parts.get((lineage, partition)) if partition else None
            part_lineage = part.lineage if part is not None else partition
            event_id = seen.parts[partition].event if partition else seen.event
            if event_id:
                contents[lineage, part_lineage] = ShownContent(event_id, listing)
    return contents


def bases_of(
    touches: Sequence[DirectoryTouch], contents: Mapping[PartCell, ShownContent]
) -> dict[tuple[PartCell, str], ShownContent]:
    """Return what the target shows of each object, by the object and the directory that it had at the event of that
    content."""
    locations: dict[PartCell, str] = {}
    for touch in touches:
        if touch.cell is None or touch.cell not in contents:
            continue
        if touch.cell not in locations or touch.entry.event_id <= contents[touch.cell].event_id:
            locations[touch.cell] = touch.location
    return {(cell, location): contents[cell] for cell, location in locations.items()}


def event_of(
    touch: DirectoryTouch, cell: PartCell, changes: Mapping[Data, FileChange], listings: Listings
) -> DirectoryEvent:
    """Return the touch as an event for the object `cell`; what a touch of another object does to the directory stays
    unknown."""
    entry, data = touch.entry, touch.data
    if touch.cell != cell:
        return DirectoryEvent(entry.event_id, entry.event_time, FilesUnknown())
    return DirectoryEvent(entry.event_id, entry.event_time, changes.get(data, FilesUnknown()), listings.get(data))
