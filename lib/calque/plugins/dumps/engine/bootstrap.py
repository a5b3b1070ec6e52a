"""A bootstrap: all objects that a policy takes, as they were at one event id."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from calque.engine.sides.sides import SourceSide
from calque.errors import Unavailable
from calque.model.names import EventId, TableName
from calque.plugins.dumps.core.dump_metadata import BOOTSTRAP, DumpMetadata
from calque.plugins.dumps.core.file_lists import external_lines
from calque.plugins.dumps.core.layout import DumpDirectory
from calque.plugins.dumps.core.markers import FINISHED, tables_text
from calque.plugins.dumps.engine.objects import ObjectWriter
from calque.plugins.dumps.engine.reads import DumpReads
from calque.plugins.dumps.engine.request import DumpRequest, FinishedDump
from calque.plugins.dumps.engine.spool import Spool
from calque.plugins.dumps.engine.table_read import TableReader
from calque.plugins.dumps.engine.write import DumpWriter, spread

ATTEMPTS = 20
SHOWN = 10


@dataclass(slots=True)
class BootstrapDump:
    """The writer of one bootstrap. It calls `report` with texts that say how far it is."""

    source: SourceSide
    request: DumpRequest
    directory: DumpDirectory
    writer: DumpWriter
    spool: Spool
    report: Callable[[str], None]

    def write(self) -> FinishedDump:
        """Write the bootstrap, its `_finished_dump` last. Raises `Refused` for objects that can't be dumped, and
        `Unavailable` where no event id is found at which all tables are exact."""
        request, scope = self.request, self.request.scope
        reads = reads_of(self.source, request, self.spool, scope.takes, self.report, whole=True)
        objects = ObjectWriter(request, reads, self.spool, self.writer, self.source.storage, self.directory.objects)
        reads.begin()
        event_id = consolidated(reads, objects)
        timestamp = self.source.clock.now_ns() // 10**9
        objects.write_around(event_id)
        write_tables(objects, timestamp, self.report)
        notes = finish_lists(objects, self.directory, self.writer)
        kind = DumpMetadata(BOOTSTRAP, event_id, event_id, request.change_root or None, policy=scope.policy)
        self.writer.text(self.directory.dump_metadata, kind.text(self.directory.layout))
        self.writer.storage.write(self.directory.finished_dump, FINISHED)
        return FinishedDump(self.directory, event_id, (*notes, *notes_of(objects)))


def reads_of(
    source: SourceSide,
    request: DumpRequest,
    spool: Spool,
    takes: Callable[[TableName], bool],
    report: Callable[[str], None],
    *,
    whole: bool,
) -> DumpReads:
    options = request.options
    reader = TableReader(source, spool, options.data, options.data, options.external)
    return DumpReads(source, request.scope, lambda name: bool(name.table) and takes(name), reader, report, whole)


def consolidated(reads: DumpReads, objects: ObjectWriter) -> EventId:
    """Return an event id at which all tables are exact, and their files are held: copied, or named with their
    checksums. A table whose files changed meanwhile is read again. Raises `Refused` for objects that can't be dumped,
    and `Unavailable` where files change faster than they are held."""
    held: dict[TableName, EventId] = {}
    changed: list[TableName] = []
    for _ in range(ATTEMPTS):
        event_id = reads.consolidate()
        due = [table for table in objects.tables() if held.get(table.name) != table.exact_at]
        outdated = held.keys() - {table.name for table in objects.tables()} | held.keys() & {each.name for each in due}
        remove_copies(objects, outdated)
        held = {name: exact_at for name, exact_at in held.items() if name not in outdated}
        changed = []
        for table, is_held in zip(due, spread(objects.try_hold_files, due), strict=True):
            if is_held:
                held[table.name] = table.exact_at
            else:
                changed.append(table.name)
        reads.troubles.require_none()
        remove_copies(objects, changed)
        if not changed:
            return event_id
        reads.mark_stale(changed)
    raise Unavailable(
        f"Files of {', '.join(map(str, changed[:SHOWN]))} change faster than they are held",
        f"{ATTEMPTS} rounds did not settle them",
        "Try again when less is written, or leave them out",
    )


def remove_copies(objects: ObjectWriter, names: Collection[TableName]) -> None:
    """Remove the dump's copies of the files of these tables, which have changed since they were copied, or are gone."""
    if objects.request.options.copies and names:
        objects.writer.storage.remove([objects.directories.table_contents(name) for name in names])


def write_tables(objects: ObjectWriter, timestamp: int, report: Callable[[str], None]) -> None:
    tables = objects.tables()
    for done, table in enumerate(tables, 1):
        with objects.reads.troubles.of(str(table.name)):
            objects.write_table(table, timestamp)
        report(f"{objects.reads.scope.database}: {done} of {len(tables)} tables are written")
    objects.reads.troubles.require_none()


def finish_lists(objects: ObjectWriter, directory: DumpDirectory, writer: DumpWriter) -> tuple[str, ...]:
    """Write the list of external directories, and the names of the tables in scope where the policy chooses tables.
    Return the notes for the user about these lists."""
    request, scope = objects.request, objects.request.scope
    external = list(objects.external_directories())
    if external:
        writer.text(directory.external_directories, external_lines(external, directory.layout))
    if not scope.takes_all_tables:
        writer.text(
            directory.tables_in_scope(scope.database), tables_text(table.name.table for table in objects.tables())
        )
    return without_base_note(request, bool(external))


def without_base_note(request: DumpRequest, has_external: bool) -> tuple[str, ...]:
    if not has_external or request.options.external_base:
        return ()
    note = (
        "The dump names no place for external tables: hive.repl.replica.external.table.base.dir is not set; "
        "Hive's own load needs it here, calque's takes it in REPL LOAD"
    )
    return (note,)


def unstable_note(request: DumpRequest, has_files: bool) -> tuple[str, ...]:
    is_lazy = request.options.data and not request.options.copies
    if not is_lazy or request.keeps_files or not has_files:
        return ()
    note = (
        "The files that the dump names are not stable: the source's change manager does not keep them. Load the "
        "dump before they are changed, or dump with 'hive.repl.run.data.copy.tasks.on.target' = 'false'"
    )
    return (note,)


def notes_of(objects: ObjectWriter) -> tuple[str, ...]:
    """Return the notes for the user: the tables that are not in the dump, with the reasons, and that named files may
    change at the source."""
    notes = [
        f"{table.name} is not in the dump: {table.reason}"
        for table in objects.reads.tables.values()
        if table.table is not None and table.reason not in ("", "external")
    ]
    has_files = any(map(objects.has_data, objects.tables()))
    return (*notes, *unstable_note(objects.request, has_files))
