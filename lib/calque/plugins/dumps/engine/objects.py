"""The writing of whole tables, functions and the database itself: for a bootstrap, or as they come into scope in an
increment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from calque.core.events.decode import LoggedFile
from calque.core.formats.layout import is_data, join, natural_location, place
from calque.core.plan.limits import batches
from calque.errors import Refused
from calque.model.facets import ForeignKey
from calque.model.hive import Function, Resource, is_partitioned, is_view, location_of
from calque.model.names import EventId, TableName
from calque.plugins.dumps.core.constraints import constraints_text, foreign_keys_text
from calque.plugins.dumps.core.file_lists import ExternalDirectory, file_line, file_lines
from calque.plugins.dumps.core.layout import FILES, DumpLayout, ObjectDirectories
from calque.plugins.dumps.core.metadata import (
    STATE_OF_BOOTSTRAP,
    ReplicationSpec,
    database_metadata,
    dumped_database,
    dumped_function,
    function_metadata,
    table_metadata,
)
from calque.plugins.dumps.engine.reads import DumpReads
from calque.plugins.dumps.engine.request import DumpRequest
from calque.plugins.dumps.engine.spool import Spool, SpooledContent
from calque.plugins.dumps.engine.table_read import ReadTable, is_external
from calque.plugins.dumps.engine.write import DumpWriter
from calque.ports import CopyTask, Storage

AT_ONCE = 1000


@dataclass(slots=True)
class ObjectWriter:
    """The writer of what `reads` and `spool` have into `directories` of the dump."""

    request: DumpRequest
    reads: DumpReads
    spool: Spool
    writer: DumpWriter
    storage: Storage
    """The source's storage."""
    directories: ObjectDirectories

    def tables(self) -> list[ReadTable]:
        """Return the tables that are part of the dump, by ascending name."""
        return [
            self.reads.tables[name] for name in sorted(self.reads.tables) if self.is_dumped(self.reads.tables[name])
        ]

    def is_dumped(self, table: ReadTable) -> bool:
        return table.table is not None and not table.reason

    def has_data(self, table: ReadTable) -> bool:
        definition = table.table
        return (
            self.request.options.data
            and definition is not None
            and not is_view(definition)
            and not is_external(definition)
        )

    # Data, which decides whether what was read still holds

    def hold_files(self, table: ReadTable) -> bool:
        """Copy the table's files into the dump, or keep their checksums in the spool where files are only named. Return
        whether all files still were as the table was read. A dump that only names files, of a source without a change
        manager, looks at none."""
        if not self.has_data(table):
            return True
        if self.request.options.copies:
            return not any(self.writer.copies(self.copy_tasks(table)))
        return self.request.change_root == "" or self.put_checksums(table)

    def try_hold_files(self, table: ReadTable) -> bool:
        """Do `hold_files`, and return its result. Where it fails the result is True, and the reads' `troubles` has the
        failure."""
        with self.reads.troubles.of(str(table.name)):
            if not self.hold_files(table):
                return False
        return True

    def copy_tasks(self, table: ReadTable) -> Iterator[CopyTask]:
        for content in self.spool.contents(table.name):
            directory = self.directories.table_data(table.name, content.partition)
            for file in content.files:
                source, target = join(content.location, file.path), join(directory, file.path)
                yield CopyTask(source, target, file.size, file.modified_ns, ours=True, within=content.location)

    def put_checksums(self, table: ReadTable) -> bool:
        for contents in chunks(self.spool.contents(table.name)):
            files = {join(each.location, file.path): file for each in contents for file in each.files}
            checksums = self.storage.system_checksums(list(files))
            present = self.storage.files(list(files))
            for path, file in files.items():
                now = present.get(path)
                if now is None or (now.size, now.modified_ns) != (file.size, file.modified_ns):
                    return False
            self.spool.put_checksums(
                table.name,
                {
                    each.partition: {
                        file.path: checksum
                        for file in each.files
                        if (checksum := checksums.get(join(each.location, file.path)))
                    }
                    for each in contents
                },
            )
        return True

    # Definitions and lists

    def write_table(self, table: ReadTable, timestamp: int) -> None:
        name, definition = table.name, table.table
        assert definition is not None
        partitions = (each.definition for each in self.spool.contents(name) if each.partition)
        self.writer.pieces(
            self.directories.table_metadata(name), table_metadata(self.spec(table), table.definition, partitions)
        )
        own = [one for one in table.constraints if not isinstance(one, ForeignKey)]
        foreign = [one for one in table.constraints if isinstance(one, ForeignKey)]
        if own:
            self.writer.text(self.directories.constraints(name), constraints_text(own, timestamp))
        if foreign:
            self.writer.text(self.directories.foreign_keys(name), foreign_keys_text(foreign, timestamp))
        if self.has_data(table) and not self.request.options.copies:
            self.writer.texts(self.lists(table))
        elif self.has_data(table):
            contents = self.spool.contents(name)
            empty = (self.directories.table_data(name, each.partition) for each in contents if not each.files)
            for directories in batches(list(empty), AT_ONCE):
                self.writer.storage.make_directories(directories)

    def lists(self, table: ReadTable) -> Iterator[tuple[str, str]]:
        """Return the path and the text of a `_files` for each partition, or for the unpartitioned table. A partition
        without files gets an empty list."""
        for content in self.spool.contents(table.name):
            directory = self.directories.table_data(table.name, content.partition)
            yield join(directory, FILES), file_lines(content.named_files(self.request.change_root))

    def spec(self, table: ReadTable) -> ReplicationSpec:
        definition = table.table
        metadata = not self.request.options.data or (definition is not None and is_view(definition))
        lazy = not self.request.options.copies if self.directories.layout is DumpLayout.HIVE_3 else None
        last_id, scope = str(table.exact_at), "metadata" if metadata else "all"
        return ReplicationSpec(scope, STATE_OF_BOOTSTRAP, last_id, noop=False, lazy=lazy, replaces=True)

    def write_around(self, event_id: EventId) -> None:
        """Write the definitions of the database and of its functions, as of the event. Functions that can't be dumped
        are kept in the reads' `troubles`."""
        database = self.reads.database
        assert database is not None
        own_location = not is_natural(database.location, database.name)
        text = dumped_database(
            database,
            event_id,
            own_location=own_location,
            own_managed_location=bool(database.managed_location)
            and not is_natural(database.managed_location, database.name),
        )
        self.writer.text(self.directories.database_metadata(self.reads.scope.database), database_metadata(text))
        for name, function in sorted(self.reads.functions.items()):
            spec = ReplicationSpec("all", last_id=str(event_id))
            with self.reads.troubles.of(f"function {name}"):
                text = dumped_function(self.with_resources(name, function))
                self.writer.text(self.directories.function_metadata(name), function_metadata(spec, text))

    def with_resources(self, name: TableName, function: Function) -> Function:
        """Return the function with its resources (jars) as the dump has them: copied into the dump where that holds
        data, else named with their checksums. A resource that this machine can't open, such as `ivy:`, stays as it is.
        Raises `Refused` where a resource is gone or can't be copied."""
        resources = tuple(self.resource(name, resource) for resource in function.resources or ())
        return replace(function, resources=resources or function.resources)

    def resource(self, name: TableName, resource: Resource) -> Resource:
        uri = resource.uri or ""
        if self.request.options.copies:
            return replace(resource, uri=self.copied_resource(name, uri))
        checksum = self.storage.system_checksums([uri]).get(uri) if uri.startswith("hdfs:") else None
        if checksum is None or not self.request.change_root:
            return resource
        return replace(resource, uri=file_line(LoggedFile(uri, checksum, self.request.change_root)))

    def copied_resource(self, name: TableName, uri: str) -> str:
        try:
            place(uri)
            found = self.storage.files([uri]).get(uri)
        except Refused:
            return uri
        if found is None:
            raise Refused(
                f"{uri} of function {name} is not there", "A dump with data has it", "Put it back, or drop the function"
            )
        target = join(self.directories.function_data(name), uri.rpartition("/")[2])
        for failed in self.writer.copies([CopyTask(uri, target, found.size, found.modified_ns, ours=True, lent=True)]):
            raise Refused(f"{uri} of function {name} can't be copied", failed.problem, "Dump again")
        return target

    # External tables

    def external_directories(self) -> Iterator[ExternalDirectory]:
        """Return the directory of each external table, and of each partition that lies outside of its table's
        directory. The result is empty where the options leave these directories out."""
        if not self.request.options.external_data:
            return
        for table in self.tables():
            definition = table.table
            location = location_of(definition) if definition is not None else None
            if definition is None or not is_external(definition) or location is None:
                continue
            yield self.external(table.name, location)
            if is_partitioned(definition):
                for content in self.spool.contents(table.name):
                    if content.location and not place(location).contains(place(content.location)):
                        yield self.external(table.name, content.location)

    def external(self, name: TableName, location: str) -> ExternalDirectory:
        return ExternalDirectory(name.table, location, external_target(location, self.request.options.external_base))


def external_target(location: str, base: str) -> str:
    """Return the path at the target as Hive forms it: the source's path below the base directory. The result is empty
    where the base directory is not known."""
    if not base:
        return ""
    base_place = place(base)
    return str(replace(base_place, path=f"{base_place.path.rstrip('/')}{place(location).path}"))


def is_natural(location: str | None, database: str) -> bool:
    """Tell whether the location may be the one where a warehouse puts the database."""
    if not location:
        return True
    natural = place(natural_location("/x", database.lower())).path.rpartition("/")[2]
    return is_data(natural) and place(location).path.rpartition("/")[2].lower() == natural


def chunks(contents: Iterator[SpooledContent]) -> Iterator[list[SpooledContent]]:
    chunk: list[SpooledContent] = []
    files = 0
    for content in contents:
        chunk.append(content)
        files += len(content.files)
        if files >= AT_ONCE or len(chunk) >= AT_ONCE:
            yield chunk
            chunk, files = [], 0
    if chunk:
        yield chunk
