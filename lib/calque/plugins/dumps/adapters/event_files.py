"""The files of the events of an increment, as the dump says them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from calque.core.events import decode
from calque.core.events.decode import Undecodable
from calque.core.events.effects import ALTERS_TABLE_OR_PARTITIONS, CARRIES_FILES
from calque.core.formats.layout import join
from calque.model.files import FilesOfEvent, Listing
from calque.model.hive import location_of
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId
from calque.plugins.dumps.adapters.find_files import FileLocator
from calque.plugins.dumps.adapters.log import DumpedEvents
from calque.plugins.dumps.adapters.storage import DumpedDirectories
from calque.plugins.dumps.core.layout import FILES
from calque.ports import Storage


class DumpedEventFiles:
    """The files of the events of a dump, as `ports.EventFiles`."""

    def __init__(
        self, events: DumpedEvents, directories: DumpedDirectories, locator: FileLocator, storage: Storage
    ) -> None:
        self.events, self.directories, self.locator, self.storage = events, directories, locator, storage
        self.entries = {entry.event_id: entry for entry in events.entries}
        self.names_files: bool | None = None
        """Whether any event of the dump has a list of files; None until `has_lost_list` first looks."""

    def files(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], FilesOfEvent]:
        said: dict[tuple[EventId, str], FilesOfEvent] = {}
        for event_id in sorted(set(ids)):
            entry = self.entries.get(event_id)
            if entry is not None:
                said |= {(event_id, location): files for location, files in self.of(entry).items()}
        return said

    def of(self, entry: Entry) -> dict[str, FilesOfEvent]:
        keys = entry.keys
        if keys.kind in CARRIES_FILES:
            is_whole = keys.kind is not EventKind.INSERT or keys.replaces
            return {location: FilesOfEvent(files, is_whole) for location, files in self.brought(entry).items()}
        if keys.kind in ALTERS_TABLE_OR_PARTITIONS and keys.replaces:
            return {location: FilesOfEvent(Listing(location, ()), is_whole=True) for location in keys.locations}
        if keys.kind in ALTERS_TABLE_OR_PARTITIONS and self.stays(entry):
            return {location: FilesOfEvent(Listing(location, ()), is_whole=False) for location in keys.locations}
        return {}

    def brought(self, entry: Entry) -> dict[str, Listing | None]:
        """Return the listing of each location that the event brought files to. The files of a managed table come from
        the event's data directory in the dump, those of an external table from the source as it is now. A listing is
        None where a file that the dump names, or the list of files itself, is missing."""
        places = self.data_of(entry)
        external = [location for location in places if self.directories.is_external(location)]
        listings: dict[str, Listing | None] = dict(self.storage.list(external)) if external else {}
        inside = {location: data for location, data in places.items() if location not in listings}
        found = self.locator.listings(inside)
        for location, listing in found.items():
            if listing is not None and not listing.files and self.has_lost_list(inside[location]):
                found[location] = None
        return listings | found

    def data_of(self, entry: Entry) -> dict[str, str]:
        """Return the data directory in the dump of each location that the event names, by location."""
        directory = self.events.directories[entry.event_id]
        return dict(zip(entry.keys.locations, map(directory.data, entry.keys.partitions or ("",)), strict=False))

    def has_lost_list(self, data: str) -> bool:
        """Tell whether the list of files that the directory `data` had is lost. A dump that names files has such a list
        for every event with files, even where the list is empty. So a missing list is lost as soon as the directory of
        any event of the dump has one."""
        if self.storage.exists(path := join(data, FILES)):
            return False
        if self.names_files is None:
            all_data = (data for entry in self.events.entries for data in self.data_of(entry).values())
            self.names_files = any(self.storage.exists(join(data, FILES)) for data in all_data)
        if self.names_files:
            self.locator.note_missing(path)
        return self.names_files

    def stays(self, entry: Entry) -> bool:
        """Tell whether the altered table or partition lies where it lay before the event. An event of several
        partitions does not say where they were, and counts as staying. An unreadable event does not."""
        event = self.events.event(entry.event_id)
        if event is None or event.event_type == "ALTER_PARTITIONS":
            return event is not None
        try:
            if entry.keys.kind is EventKind.ALTER_TABLE:
                return location_of(decode.table_before(event)) == location_of(decode.table_after(event))
            before, (after,) = decode.partition_before(event), decode.partitions_after(event)
        except Undecodable:
            return False
        return location_of(before) == location_of(after)
