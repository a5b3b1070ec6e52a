"""A dump as a source of a target that the configuration names."""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from calque.adapters.held_evidence import MemoryEvidence
from calque.engine.sides.sides import SourceSide
from calque.model.names import EventId, TableName
from calque.plugins.dumps.adapters.catalog import DumpCatalog
from calque.plugins.dumps.adapters.directory import Dump, newest_dump, open_dump
from calque.plugins.dumps.adapters.event_files import DumpedEventFiles
from calque.plugins.dumps.adapters.find_files import FileLocator
from calque.plugins.dumps.adapters.held_scans import MemoryScans
from calque.plugins.dumps.adapters.log import DumpedEvents, DumpJournal, DumpLog, database_of_events
from calque.plugins.dumps.adapters.storage import DumpedDirectories, DumpStorage
from calque.ports import Storage
from calque.wiring.source import SourceWiring


@dataclass(frozen=True, slots=True)
class OpenedDump:
    """A whole dump. The files that it names are looked for through `storage`."""

    dump: Dump
    storage: Storage


def open_dump_at(source: SourceWiring, location: str) -> OpenedDump:
    """Return the dump in the directory `location`, opened through the source's storage. Raises `Refused` where there is
    no whole dump."""
    return opened_dump(source.dump_storage(), location)


def opened_dump(storage: Storage, location: str) -> OpenedDump:
    """Return the dump in the directory `location` of the storage. Where the dump does not name its database, its events
    do. Raises `Refused` where there is no whole dump."""
    dump = open_dump(storage, location)
    if not dump.database:
        dump = replace(dump, database=database_of_events(dump))
    return OpenedDump(dump, storage)


def open_newest_dump(source: SourceWiring, root: str, database: str) -> OpenedDump:
    """Return the newest whole dump of the database below `root`, opened through the source's storage. Raises `Refused`
    where there is none."""
    storage = source.dump_storage()
    return OpenedDump(newest_dump(storage, root, database), storage)


@dataclass(slots=True)
class DumpSource:
    """A dump as the engine knows a source. Making it reads all events of the dump."""

    opened: OpenedDump
    name: str
    scans: MemoryScans = field(default_factory=MemoryScans)
    locator: FileLocator = field(init=False)
    events: DumpedEvents = field(init=False)
    side: SourceSide = field(init=False)

    def __post_init__(self) -> None:
        dump, storage = self.dump, self.opened.storage
        self.locator = FileLocator(storage, dump.metadata.change_root)
        self.events = DumpedEvents(dump, int(time.time()))
        directories = DumpedDirectories([directory.source for directory in dump.external()])
        whole = dump.directory.objects if dump.metadata.is_bootstrap else dump.directory.bootstrapped
        evidence = MemoryEvidence()
        evidence.append([], dump.end)
        self.side = SourceSide(
            self.name,
            DumpLog(self.events),
            DumpCatalog(dump, whole, self.locator, directories.note),
            DumpJournal(self.events),
            evidence,
            DumpStorage(storage, directories, self.locator, whole.contents(dump.database)),
            scans=self.scans,
            event_files=DumpedEventFiles(self.events, directories, self.locator, storage),
        )

    @property
    def dump(self) -> Dump:
        return self.opened.dump

    def ids(self) -> Sequence[EventId]:
        """Return the ids of the dump's events, ascending."""
        return [entry.event_id for entry in self.events.entries]

    def bootstrapped(self) -> Sequence[TableName]:
        """Return the tables that an increment has whole; none for a bootstrap."""
        return () if self.dump.metadata.is_bootstrap else self.whole()

    def left_at(self) -> Mapping[TableName, EventId]:
        """Return the names that a table leaves by a rename, each with the last event that does so."""
        renames = [entry for entry in self.events.entries if entry.keys.table not in (None, entry.keys.other)]
        return {entry.keys.other: entry.event_id for entry in renames if entry.keys.other is not None}

    def whole(self) -> Sequence[TableName]:
        """Return the tables that the dump has whole: all of a bootstrap, and of an increment those that came into
        scope."""
        return [TableName(self.dump.database, table) for table in self.side.catalog.tables(self.dump.database)]

    def lacked_by(self, shown: Container[TableName]) -> Sequence[TableName]:
        """Return the tables that the dump has whole and that are not in `shown`."""
        return [name for name in self.whole() if name not in shown]
