"""The log and the journal of a dump: the events of an increment. A bootstrap has no events.

The dump leaves out the events of other databases, so that there are holes between the ids. A message is read from the
dump when a caller asks for it. The messages that were read last stay in memory, up to `KEPT_BYTES`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from calque.core.events.decode import Undecodable, thrift_object, weight_of
from calque.core.events.keys import entry_of
from calque.core.formats.layout import join
from calque.core.records.weight import first_ones
from calque.errors import Refused
from calque.model.hive import Function
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span
from calque.plugins.dumps.adapters.directory import AGAIN, Dump, text_of, unreadable
from calque.plugins.dumps.core.dump_metadata import DumpMetadata, read_dump_metadata
from calque.plugins.dumps.core.event_types import UNKNOWN
from calque.plugins.dumps.core.layout import EVENTS_BATCH, DumpLayout, EventDirectory, event_of
from calque.plugins.dumps.core.log_events import (
    DumpedObjects,
    logged_database,
    logged_event,
    logged_partitions,
    logged_table,
)
from calque.plugins.dumps.core.metadata import read_object, read_table

READERS = 16
KEPT_BYTES = 64 << 20


class DumpedEvents:
    """The events of one dump, by event id. An event whose time the dump does not say has `time`, in seconds since the
    epoch. The constructor reads all events once. Safe from several threads."""

    def __init__(self, dump: Dump, time: int) -> None:
        self.dump, self.storage, self.time = dump, dump.storage, time
        self.directories = {} if dump.metadata.is_bootstrap else event_directories(dump)
        self.lock = threading.Lock()
        self.kept: OrderedDict[EventId, Event] = OrderedDict()
        self.kept_bytes = 0
        with ThreadPoolExecutor(READERS, "dump") as pool:
            read = list(pool.map(self.entry, sorted(self.directories)))
        self.entries = [entry for entry in read if entry is not None and dump.begin < entry.event_id <= dump.end]
        """The events after the dump's begin up to its end, by ascending id."""

    def entry(self, event_id: EventId) -> Entry | None:
        event = self.read(event_id)
        return None if event is None else entry_of(event)

    def event(self, event_id: EventId) -> Event | None:
        with self.lock:
            event = self.kept.get(event_id)
        return self.read(event_id) if event is None else event

    def read(self, event_id: EventId) -> Event | None:
        """Read the event from its directory in the dump, and keep it in memory. Return None for an event that did
        nothing to what is replicated. Raises `Refused` where the event's directory is not whole or can't be read."""
        directory = self.directories[event_id]
        content = self.storage.read(directory.dump_metadata)
        if content is None:
            raise Refused(f"{directory.directory} has no _dumpmetadata", "The dump is not whole", AGAIN)
        try:
            metadata = read_dump_metadata(text_of(content))
            if metadata.to_event != event_id:
                raise Undecodable(f"it is of event {metadata.to_event}")
            event = logged_event(metadata, self.objects(directory, metadata), self.time)
        except Undecodable as error:
            raise unreadable(directory.dump_metadata, error) from error
        if event is not None:
            self.keep(event)
        return event

    def objects(self, directory: EventDirectory, metadata: DumpMetadata) -> DumpedObjects:
        """Return the table with its partitions, the database or the function that the event's message lacks, from the
        `_metadata` beside it. The result is empty where the event has a message."""
        if metadata.payload is not None or metadata.kind == UNKNOWN:
            return DumpedObjects()
        content = self.storage.read(directory.metadata)
        if content is None:
            return DumpedObjects()
        match metadata.kind:
            case "EVENT_CREATE_FUNCTION":
                return DumpedObjects(function=thrift_object(Function, read_object(content, "function")[1]))
            case "EVENT_CREATE_DATABASE":
                return DumpedObjects(database=logged_database(read_object(content, "db")[1]))
            case _:
                read = read_table([content])
                return DumpedObjects(logged_table(read.table), logged_partitions(read.partitions))

    def keep(self, event: Event) -> None:
        with self.lock:
            before = self.kept.pop(event.event_id, None)
            self.kept[event.event_id] = event
            self.kept_bytes += len(event.message) - (len(before.message) if before is not None else 0)
            while self.kept_bytes > KEPT_BYTES and len(self.kept) > 1:
                _, oldest = self.kept.popitem(last=False)
                self.kept_bytes -= len(oldest.message)


def event_directories(dump: Dump) -> dict[EventId, EventDirectory]:
    storage, root, layout = dump.storage, dump.directory.root, dump.directory.layout
    batches = [root]
    if layout is DumpLayout.HIVE_4:
        batches += [join(root, name) for name in storage.children(root) if name.startswith(EVENTS_BATCH)]
    return {
        event_id: EventDirectory(join(batch, name), layout)
        for batch in batches
        for name in storage.children(batch)
        if (event_id := event_of(name)) is not None
    }


def database_of_events(dump: Dump) -> str:
    """Return the lower-case name of the database that the events of an increment are of. The result is empty where no
    event names one. Only a dump that does not name its database by itself needs this."""
    events = DumpedEvents(dump, 0)
    names = (entry.keys.table for entry in events.entries)
    return next((name.database for name in names if name is not None), "")


class DumpLog:
    """The events of a dump as `ports.EventLog`."""

    def __init__(self, events: DumpedEvents) -> None:
        self._events = events

    def current(self) -> EventId:
        return self._events.dump.end

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        ids = [entry.event_id for entry in self._events.entries if entry.event_id > after][: max(limit, 0)]
        return [event for event_id in ids if (event := self._events.event(event_id)) is not None]


class DumpJournal:
    """The events of a dump as a `ports.Journal` that can only be read: `append`, `forget` and `restart` raise
    `Refused`. The journal is complete from the dump's begin to its end, but it lists only the events that concern the
    dump."""

    def __init__(self, events: DumpedEvents) -> None:
        self._events = events

    def last(self) -> EventId | None:
        return self._events.dump.end

    def oldest(self) -> EventId | None:
        dump = self._events.dump
        return dump.begin + 1 if dump.begin < dump.end else None

    def append(self, rows: pa.Table) -> None:  # noqa: ARG002
        raise read_only()

    def entries(self, span: Span) -> Sequence[Entry]:
        return [entry for entry in self._events.entries if entry.event_id in span]

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        events = (event for event_id in sorted(set(ids)) if (event := self._events.event(event_id)) is not None)
        return {event.event_id: event for event in first_ones(events, weight_of, most)}

    def forget(self, upto: EventId) -> int:  # noqa: ARG002
        raise read_only()

    def restart(self, event_id: EventId) -> None:  # noqa: ARG002
        raise read_only()


def read_only() -> Refused:
    return Refused("A dump is not written to while it is loaded", "", "Report it with the log")
