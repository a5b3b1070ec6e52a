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
    """A whole dump; the files that it names are looked for through `storage`."""

    dump: Dump
    storage: Storage


def open_dump_at(source: SourceWiring, location: str) -> OpenedDump:
    """The dump in that directory, through the storage of the source. Raises `Refused`."""
    return opened_dump(source.dump_storage(), location)


def opened_dump(storage: Storage, location: str) -> OpenedDump:
    """The dump in that directory of the storage. Raises `Refused`."""
    dump = open_dump(storage, location)
    if not dump.database:
        dump = replace(dump, database=database_of_events(dump))
    return OpenedDump(dump, storage)


def open_newest_dump(source: SourceWiring, root: str, database: str) -> OpenedDump:
    """The newest whole dump of the database below the root of dumps. Raises `Refused`."""
    storage = source.dump_storage()
    return OpenedDump(newest_dump(storage, root, database), storage)


@dataclass(slots=True)
class DumpSource:
    """The dump as the engine knows a source. Reads all events at once."""

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
        """Of its events, ascending."""
        return [entry.event_id for entry in self.events.entries]

    def bootstrapped(self) -> Sequence[TableName]:
        """Tables that an increment has whole."""
        return () if self.dump.metadata.is_bootstrap else self.whole()

    def left_at(self) -> Mapping[TableName, EventId]:
        """Names that a table leaves by a rename to another, with the last event that does so."""
        renames = [entry for entry in self.events.entries if entry.keys.table not in (None, entry.keys.other)]
        return {entry.keys.other: entry.event_id for entry in renames if entry.keys.other is not None}

    def whole(self) -> Sequence[TableName]:
        """Tables that the dump has whole."""
        return [TableName(self.dump.database, table) for table in self.side.catalog.tables(self.dump.database)]

    def lacked_by(self, shown: Container[TableName]) -> Sequence[TableName]:
        """Tables that the dump has whole, and that are not among these."""
        return [name for name in self.whole() if name not in shown]
