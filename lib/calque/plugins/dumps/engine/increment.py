"""An increment: the events of a policy in a span of the log, and the tables that come into scope there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from calque.core.events.decode import LoggedFile, Undecodable
from calque.core.formats.layout import join, place
from calque.core.plan.limits import batches
from calque.core.states.kept_files import NamedFile
from calque.engine.sides.journal_reads import entries_in, messages
from calque.engine.sides.sides import SourceSide
from calque.errors import Refused
from calque.model.files import Listing
from calque.model.hive import is_partitioned, location_of
from calque.model.journal import Event
from calque.model.names import EventId, Span, TableName, table_name
from calque.plugins.dumps.core.dump_metadata import INCREMENTAL, DumpMetadata
from calque.plugins.dumps.core.event_contents import DumpedEvent, dumped_event
from calque.plugins.dumps.core.event_types import dumped_kind
from calque.plugins.dumps.core.file_lists import ExternalDirectory, external_lines, file_lines
from calque.plugins.dumps.core.layout import FILES, DumpDirectory
from calque.plugins.dumps.core.markers import FINISHED, EventsDump, events_dump_text, tables_text
from calque.plugins.dumps.core.selection import EventSelection, SelectedEvent
from calque.plugins.dumps.engine.bootstrap import (
    consolidated,
    reads_of,
    unstable_note,
    without_base_note,
    write_tables,
)
from calque.plugins.dumps.engine.objects import ObjectWriter, external_target
from calque.plugins.dumps.engine.reads import no_database
from calque.plugins.dumps.engine.request import DumpRequest, FinishedDump
from calque.plugins.dumps.engine.spool import Spool
from calque.plugins.dumps.engine.table_read import PAGE, is_external
from calque.plugins.dumps.engine.troubles import DumpTroubles
from calque.plugins.dumps.engine.write import DumpWriter, spread
from calque.ports import CopyTask

AT_ONCE = 32
"""Messages of events that are in memory at a time."""
LOOK_AHEAD = 1001
"""Events behind the end of the increment that are read, too, because they may belong to its last call: Hive 3.1 writes
1,000 events for one call."""


@dataclass(frozen=True, slots=True)
class UnfitEvent:
    """The table of an event that can't be dumped, and the reason."""

    name: TableName
    reason: str


@dataclass(slots=True)
class IncrementDump:
    """The writer of one increment. It calls `report` with texts that say how far it is. `unfit` has the events whose
    files were found to be gone: their tables go into the dump whole."""

    source: SourceSide
    request: DumpRequest
    directory: DumpDirectory
    writer: DumpWriter
    spool: Spool
    report: Callable[[str], None]
    unfit: dict[EventId, UnfitEvent] = field(init=False, default_factory=dict)
    troubles: DumpTroubles = field(init=False, default_factory=DumpTroubles)

    def write(self) -> FinishedDump:
        """Write the increment, its `_finished_dump` last. Raises `Refused` where the log does not reach back to the
        first event, where files are gone that the dump is to have, where an object can't be dumped, and where the
        source has neither the database nor an event on it."""
        request, scope = self.request, self.request.scope
        selection, objects, count = self.write_selected()
        if not selection.selected and self.source.catalog.database(scope.database) is None:
            raise no_database(self.source, scope.database)
        notes = [f"{name} is not in the dump: ACID tables are not dumped" for name in sorted(selection.transactional)]
        notes += self.whole_notes(selection)
        notes += self.write_external()
        if not scope.takes_all_tables:
            names = tables_text(table.table for table in self.tables_now())
            self.writer.text(self.directory.tables_in_scope(scope.database), names)
        self.writer.text(self.directory.events_dump, events_dump_text(EventsDump(selection.last, count)))
        is_changed = request.replaced is not None and request.replaced.policy != scope.policy
        kind = DumpMetadata(
            INCREMENTAL,
            request.from_event or 0,
            selection.last,
            request.change_root or None,
            scope_changed=is_changed,
            policy=scope.policy,
        )
        self.writer.text(self.directory.dump_metadata, kind.text(self.directory.layout))
        self.writer.storage.write(self.directory.finished_dump, FINISHED)
        has_files = count > 0 or (objects is not None and any(map(objects.has_data, objects.tables())))
        return FinishedDump(self.directory, selection.last, (*notes, *unstable_note(request, has_files)))

    def write_selected(self) -> tuple[EventSelection, ObjectWriter | None, int]:
        """Write the selected events, and the tables that the increment has whole. Where files of an event are gone,
        select and write all again with the event's table whole. Where the dump has copies, all files are looked for
        before the first one is copied, so that a file that is gone already costs no copy. Return the selection, the
        writer of the whole tables (None where there are none), and the number of events."""
        while True:
            selection = self.select()
            if self.request.options.copies and self.note_unfit(selection.selected):
                continue
            objects = self.dump_coming(selection)
            count = self.write_events(selection.selected)
            if count is not None:
                return selection, objects, count
            root = self.directory.root
            self.writer.storage.remove([join(root, name) for name in self.writer.storage.children(root)])

    def whole_notes(self, selection: EventSelection) -> list[str]:
        reasons: dict[TableName, str] = {}
        for unfit in self.unfit.values():
            reasons.setdefault(unfit.name, unfit.reason)
        named = [name for name in sorted(reasons) if name in selection.bootstrapped]
        return [f"{name} is in the dump whole, as it is now: {reasons[name]}" for name in named]

    # What goes in

    def note_unfit(self, selected: list[SelectedEvent]) -> bool:
        """Look for the files of all selected events, note the events that have lost one in `unfit`, and tell whether
        there are such events."""
        known = len(self.unfit)
        chosen = {each.entry.event_id: each for each in selected}
        pairs = ((event, chosen[event.event_id]) for event in messages(self.source.journal, chosen))
        for _ in spread(self.look, pairs, AT_ONCE):
            pass
        self.troubles.require_none()
        return len(self.unfit) > known

    def look(self, pair: tuple[Event, SelectedEvent]) -> None:
        event, dumped = self.prepare(pair)
        with self.troubles.of(named(pair)):
            self.look_for_files(event, dumped)

    def look_for_files(self, event: Event, dumped: DumpedEvent | None) -> None:
        files = (file for each in (dumped.files or {}).values() for file in each) if dumped is not None else ()
        gone = next((file for file in files if self.present(file) is None), None)
        if gone is not None:
            self.leave_out(event, gone)

    def leave_out(self, event: Event, file: LoggedFile) -> None:
        """Note that a file of the event is gone, so that the dump has the event's table whole instead."""
        name = table_name(event.database or "", event.table or "")
        self.unfit[event.event_id] = UnfitEvent(name, f"{file.uri} of event {event.event_id} is gone")

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
        selection = EventSelection(request.scope, request.replaced, after, self.unfit.keys())
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
        """Dump the tables of `selection.bootstrapped` whole, exact at the increment's end. Without TO and LIMIT the
        increment is extended to the event at which these tables were read. Return their writer, None where there are no
        such tables."""
        if not selection.bootstrapped:
            return None
        request = self.request
        reads = reads_of(
            self.source,
            request,
            self.spool,
            lambda name: name in selection.bootstrapped,
            self.report,
            whole=False,
        )
        objects = ObjectWriter(
            request, reads, self.spool, self.writer, self.source.storage, self.directory.bootstrapped
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

    def write_events(self, selected: list[SelectedEvent]) -> int | None:
        """Write the directories of the selected events. Return the number of events in the dump, or None where files of
        some events were gone, which are in `unfit` then. Raises `Refused` and `Unavailable` for events that can't be
        dumped."""
        known = len(self.unfit)
        chosen = {each.entry.event_id: each for each in selected}
        events = messages(self.source.journal, chosen)
        pairs = ((event, chosen[event.event_id]) for event in events)
        count = 0
        for event, dumped in spread(self.prepare, pairs, AT_ONCE):
            if dumped is not None and not self.troubles.met:
                batch = 1 + count // self.request.options.batch
                with self.troubles.of(named((event, chosen[event.event_id]))):
                    self.write_event(event, dumped, batch)
                count += 1
                if count % 100 == 0:
                    self.report(f"{self.request.scope.database}: {count} of {len(chosen)} events are written")
        self.troubles.require_none()
        return count if len(self.unfit) == known else None

    def prepare(self, pair: tuple[Event, SelectedEvent]) -> tuple[Event, DumpedEvent | None]:
        """Return the event with the contents of its directory. The contents are None where the options leave the event
        out, and where it can't be dumped, which `troubles` keeps."""
        dumped: DumpedEvent | None = None
        with self.troubles.of(named(pair)):
            dumped = self.dumped(*pair)
        return pair[0], dumped

    def dumped(self, event: Event, selected: SelectedEvent) -> DumpedEvent | None:
        keys = selected.entry.keys
        try:
            kind = selected.kind or dumped_kind(event, keys)
            return dumped_event(event, keys, kind, self.request.options, self.listed)
        except Undecodable as error:
            what = f"{named((event, selected))} can't be dumped"
            raise Refused(what, error.reason, "Bootstrap again behind it") from error

    def listed(self, event_id: EventId, location: str) -> Listing | None:
        """Return the files that a running calque listed at the location for the event; None where it has not looked at
        the event, or found no certain files."""
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
            dumped.kind,
            dumped.event_id,
            dumped.event_id,
            self.request.change_root or None,
            payload=dumped.payload,
        )
        self.writer.text(place_of_event.dump_metadata, state.text(self.directory.layout))

    def with_root(self, file: LoggedFile) -> LoggedFile:
        """Return the file with the directory where the change manager keeps removed files, if the event did not say it.
        A file without a checksum stays as it is, because it can't be found there."""
        root = file.change_root or self.request.change_root or None
        return replace(file, change_root=root) if file.checksum is not None else file

    def copy(self, event: Event, files: tuple[LoggedFile, ...], directory: str) -> None:
        """Copy the event's files into the directory of the dump. A file whose checksum is no longer that of the event
        is copied from where Hive's change manager keeps it. Where a file is nowhere, the event is noted in `unfit`.
        Raises `Refused` where a file that exists can't be copied."""
        self.writer.storage.make_directories([directory])
        tasks: list[CopyTask] = []
        by_source: dict[str, LoggedFile] = {}
        for file in files:
            source = self.present(file)
            found = self.source.storage.files([source]).get(source) if source is not None else None
            if source is None or found is None:
                self.leave_out(event, file)
                return
            target = join(join(directory, file.directory), file.uri.rpartition("/")[2])
            tasks.append(CopyTask(source, target, found.size, found.modified_ns, ours=True))
            by_source[source] = file
        for failed in self.writer.copies(tasks):
            if self.present(by_source[failed.task.source]) is None:
                self.leave_out(event, by_source[failed.task.source])
                return
            raise Refused(f"{failed.task.source} can't be copied", failed.problem, "Dump again")

    def present(self, file: LoggedFile) -> str | None:
        """Return the path at which the file has the content that the event names: its own, or that where the change
        manager keeps it. Return None where it is at neither."""
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
        """Write the list of all directories of external tables, because no event tells of changes to their files: each
        load copies them again. Return the notes for the user."""
        if not (self.request.options.external and self.request.options.external_data):
            return ()
        directories = list(self.external_directories())
        self.troubles.require_none()
        if directories:
            text = external_lines(directories, self.directory.layout)
            self.writer.text(self.directory.external_directories, text)
        return without_base_note(self.request, bool(directories))

    def external_directories(self) -> Iterator[ExternalDirectory]:
        base = self.request.options.external_base
        for name, is_one in self.externals_now():
            directories: list[ExternalDirectory] = []
            if is_one:
                with self.troubles.of(str(name)):
                    directories += self.directories_of(name, base)
            yield from directories

    def directories_of(self, name: TableName, base: str) -> Iterator[ExternalDirectory]:
        table = self.source.catalog.table(name)
        location = location_of(table) if table is not None else None
        if table is None or location is None:
            return
        yield ExternalDirectory(name.table, location, external_target(location, base))
        for names in batches(self.source.catalog.partition_names(name), PAGE) if is_partitioned(table) else ():
            for partition in self.source.catalog.partitions(name, names).values():
                other = location_of(partition)
                if other and not place(location).contains(place(other)):
                    yield ExternalDirectory(name.table, other, external_target(other, base))


def named(pair: tuple[Event, SelectedEvent]) -> str:
    event, selected = pair
    return f"Event {event.event_id} on {selected.entry.keys.table}"
