"""An increment: the events of a policy in a span of the log, and what comes into scope there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from calque.core.decode import LoggedFile, Undecodable
from calque.core.dumps.dump_metadata import INCREMENTAL, DumpMetadata
from calque.core.dumps.event_contents import DumpedEvent, dumped_event
from calque.core.dumps.event_types import dumped_kind
from calque.core.dumps.file_lists import ExternalDirectory, external_lines, file_lines
from calque.core.dumps.layout import FILES, DumpDirectory
from calque.core.dumps.markers import FINISHED, EventsDump, events_dump_text, tables_text
from calque.core.dumps.selection import EventSelection, SelectedEvent
from calque.core.kept_files import NamedFile
from calque.core.layout import join, place
from calque.core.limits import batches
from calque.engine.dump.bootstrap import consolidated, reads_of, unstable_note, without_base_note, write_tables
from calque.engine.dump.objects import ObjectWriter, external_target
from calque.engine.dump.request import DumpRequest, FinishedDump
from calque.engine.dump.spool import Spool
from calque.engine.dump.table_read import PAGE, is_external
from calque.engine.dump.write import DumpWriter, spread
from calque.engine.sides.journal_reads import entries_in, messages
from calque.engine.sides.sides import SourceSide
from calque.errors import Refused
from calque.model.files import Listing
from calque.model.hive import is_partitioned, location_of
from calque.model.journal import Event
from calque.model.names import EventId, Span, TableName
from calque.ports import CopyTask

AT_ONCE = 32
"""Messages that are held at a time."""
LOOK_AHEAD = 1001
"""Events behind the end that may belong to its last call: 3.1 writes 1,000 for one."""


@dataclass(slots=True)
class IncrementDump:
    """Writes one. `report` hears how far it is."""

    source: SourceSide
    request: DumpRequest
    directory: DumpDirectory
    writer: DumpWriter
    spool: Spool
    report: Callable[[str], None]

    def write(self) -> FinishedDump:
        """Raises `Refused` where the log does not reach back, or files are gone that the dump is to have."""
        request, scope = self.request, self.request.scope
        selection = self.select()
        objects = self.dump_coming(selection)
        count = self.write_events(selection.selected)
        notes = [f"{name} is not in the dump: ACID tables are not dumped" for name in sorted(selection.transactional)]
        notes += self.write_external()
        if not scope.takes_all_tables:
            names = tables_text(table.table for table in self.tables_now())
            self.writer.text(self.directory.tables_in_scope(scope.database), names)
        self.writer.text(self.directory.events_dump, events_dump_text(EventsDump(selection.last, count)))
        is_changed = request.replaced is not None and request.replaced.policy != scope.policy
        kind = DumpMetadata(
            *(INCREMENTAL, request.from_event or 0, selection.last, request.change_root or None),
            scope_changed=is_changed,
            policy=scope.policy,
        )
        self.writer.text(self.directory.dump_metadata, kind.text(self.directory.layout))
        self.writer.storage.write(self.directory.finished_dump, FINISHED)
        has_files = count > 0 or (objects is not None and any(map(objects.has_data, objects.tables())))
        return FinishedDump(self.directory, selection.last, (*notes, *unstable_note(request, has_files)))

    # What goes in

    def select(self) -> EventSelection:
        request, after = self.request, self.request.from_event or 0
        newest = self.source.log.current()
        if after > newest:
            raise Refused(
                f"Event {after} is not there yet",
                f"The source's newest is {newest}",
                "Begin with an event that a dump gave as last_repl_id",
            )
        upto = newest if request.to_event is None else min(request.to_event, newest)
        if upto < after:
            raise Refused(f"TO {upto} is before FROM {after}", "An increment goes forward", "Write a later event")
        selection = EventSelection(request.scope, request.replaced, after)
        if request.replaced is not None:
            new = [name for name in self.tables_now() if not request.replaced.takes(name)]
            selection.bootstrapped = dict.fromkeys(new, False)
        if request.options.bootstraps_external:
            external = [name for name, is_one in self.externals_now() if is_one]
            selection.bootstrapped |= dict.fromkeys(external, True)
        try:
            entries = entries_in(self.source, Span(after, min(newest, upto + LOOK_AHEAD)))
            selection.extend(entries, upto, request.limit)
        except Refused as error:
            raise Refused(error.what, error.why, "Bootstrap again") from error
        return selection

    def tables_now(self) -> list[TableName]:
        database = self.request.scope.database
        names = (TableName(database, table) for table in self.source.catalog.tables(database))
        return [name for name in names if self.request.scope.takes(name)]

    def externals_now(self) -> Iterator[tuple[TableName, bool]]:
        for names in batches(self.tables_now(), PAGE):
            headers = self.source.catalog.headers(self.request.scope.database, [name.table for name in names])
            for table, header in headers.items():
                yield TableName(self.request.scope.database, table), is_external(header)

    # Tables that come into scope

    def dump_coming(self, selection: EventSelection) -> ObjectWriter | None:
        """Dump them whole, exact at the increment's end: without TO and LIMIT it ends where they are."""
        if not selection.bootstrapped:
            return None
        request = self.request
        reads = reads_of(
            *(self.source, request, self.spool, lambda name: name in selection.bootstrapped, self.report), whole=False
        )
        objects = ObjectWriter(
            *(request, reads, self.spool, self.writer, self.source.storage, self.directory.bootstrapped)
        )
        reads.begin(selection.bootstrapped)
        while True:
            event_id = consolidated(reads, objects)
            before = set(selection.bootstrapped)
            if request.to_event is None and request.limit is None and event_id > selection.last:
                selection.extend(entries_in(self.source, Span(selection.last, event_id)), event_id)
            for gone in before - selection.bootstrapped.keys():
                reads.tables.pop(gone, None)
            coming = selection.bootstrapped.keys() - before
            if not coming:
                break
            reads.read(sorted(coming))
        write_tables(objects, self.source.clock.now_ns() // 10**9, self.report)
        return objects

    # Events

    def write_events(self, selected: list[SelectedEvent]) -> int:
        """How many are in the dump."""
        chosen = {each.entry.event_id: each for each in selected}
        events = messages(self.source.journal, chosen)
        pairs = ((event, chosen[event.event_id]) for event in events)
        count = 0
        for event, dumped in spread(self.prepare, pairs, AT_ONCE):
            if dumped is not None:
                batch = 1 + count // self.request.options.batch
                self.write_event(event, dumped, batch)
                count += 1
                if count % 100 == 0:
                    self.report(f"{self.request.scope.database}: {count} of {len(chosen)} events are written")
        return count

    def prepare(self, pair: tuple[Event, SelectedEvent]) -> tuple[Event, DumpedEvent | None]:
        event, selected = pair
        try:
            kind = selected.kind or dumped_kind(event, selected.entry.keys)
            return event, dumped_event(event, selected.entry.keys, kind, self.request.options, self.listed)
        except Undecodable as error:
            raise Refused(
                f"Event {event.event_id} on {selected.entry.keys.table} can't be dumped",
                error.reason,
                "Bootstrap again behind it",
            ) from error

    def listed(self, event_id: EventId, location: str) -> Listing | None:
        """What a running calque found for the event."""
        if self.source.evidence.considered() < event_id:
            return None
        return self.source.evidence.evidence([event_id]).get((event_id, location))

    def write_event(self, event: Event, dumped: DumpedEvent, batch: int) -> None:
        place_of_event = self.directory.event(dumped.event_id, batch)
        if dumped.metadata is not None:
            self.writer.pieces(place_of_event.metadata, dumped.metadata)
        for partition, files in (dumped.files or {}).items():
            if self.request.options.copies:
                self.copy(event, files, place_of_event.data(partition))
            else:
                self.writer.text(join(place_of_event.data(partition), FILES), file_lines(map(self.with_root, files)))
        state = DumpMetadata(
            *(dumped.kind, dumped.event_id, dumped.event_id, self.request.change_root or None), payload=dumped.payload
        )
        self.writer.text(place_of_event.dump_metadata, state.text(self.directory.layout))

    def with_root(self, file: LoggedFile) -> LoggedFile:
        """With where its removed content is kept, where the event did not say."""
        root = file.change_root or self.request.change_root or None
        return replace(file, change_root=root) if file.checksum is not None else file

    def copy(self, event: Event, files: tuple[LoggedFile, ...], directory: str) -> None:
        """Into the dump; from where Hive keeps them, if they are not as the event says any more."""
        self.writer.storage.make_directories([directory])
        tasks = []
        for file in files:
            source = self.present(file)
            if source is None:
                raise Refused(
                    f"{file.uri} of event {event.event_id} on {event.database}.{event.table} is gone",
                    "A dump with data has the files of each event, and the source keeps no others",
                    "Bootstrap again, or dump more often",
                )
            target = join(join(directory, file.directory), file.uri.rpartition("/")[2])
            found = self.source.storage.files([source])[source]
            tasks.append(CopyTask(source, target, found.size, found.modified_ns, ours=True))
        for failed in self.writer.copies(tasks):
            raise Refused(f"{failed.task.source} can't be copied", failed.problem, "Dump again")

    def present(self, file: LoggedFile) -> str | None:
        """Where the file's content lies."""
        storage = self.source.storage
        if file.checksum is None:
            return file.uri if storage.files([file.uri]) else None
        if storage.system_checksums([file.uri]).get(file.uri) == file.checksum:
            return file.uri
        root = file.change_root or self.request.change_root
        kept = NamedFile(file.uri, file.checksum, root).kept_path if root else ""
        return kept if kept and storage.files([kept]) else None

    # External tables

    def write_external(self) -> tuple[str, ...]:
        """All directories of external tables are copied with each increment: nobody tells of changes there."""
        if not (self.request.options.external and self.request.options.external_data):
            return ()
        directories = list(self.external_directories())
        if directories:
            text = external_lines(directories, self.directory.layout)
            self.writer.text(self.directory.external_directories, text)
        return without_base_note(self.request, bool(directories))

    def external_directories(self) -> Iterator[ExternalDirectory]:
        base = self.request.options.external_base
        for name, is_one in self.externals_now():
            table = self.source.catalog.table(name) if is_one else None
            location = location_of(table) if table is not None else None
            if table is None or location is None:
                continue
            yield ExternalDirectory(name.table, location, external_target(location, base))
            for names in batches(self.source.catalog.partition_names(name), PAGE) if is_partitioned(table) else ():
                for partition in self.source.catalog.partitions(name, names).values():
                    other = location_of(partition)
                    if other and not place(location).contains(place(other)):
                        yield ExternalDirectory(name.table, other, external_target(other, base))
