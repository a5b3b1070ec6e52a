"""The paths of all files of a dump, as Hive 4 lays them out, and as Hive 3.1 does.

Hive 4 keeps its own files below `hive/` (others, such as Ranger's, lie beside it), definitions apart from data, and the
directories of events in batches. Hive 3.1 has one directory for each object, with definition and data.

    Hive 4                                         Hive 3.1
    hive/_dumpmetadata                             _dumpmetadata
    hive/metadata/<db>/_metadata                   <db>/_metadata
    hive/metadata/<db>/<table>/_metadata           <db>/<table>/_metadata
    hive/metadata/<db>/_constraints/c_<table>      <db>/_constraints/c_<table>
    hive/metadata/<db>/_functions/<f>/_metadata    <db>/_functions/<f>/_metadata
    hive/data/<db>/<table>/[<partition>/]_files    <db>/<table>/data/_files, <db>/<table>/<partition>/_files
    hive/events_batch_<n>/<id>/_dumpmetadata       <id>/_dumpmetadata
    hive/events_batch_<n>/<id>/data/[<partition>/] <id>/data/_files, <id>/<partition>/_files

Sources: `TableExport.Paths`, `EximDataExport`, `PathBuilder` and the event handlers of both versions.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from enum import StrEnum

from calque.core.formats.layout import join
from calque.model.names import EventId, TableName

HIVE_DIRECTORY = "hive"
METADATA = "_metadata"
FILES = "_files"
DATA = "data"
CONSTRAINTS = "_constraints"
FUNCTIONS = "_functions"
BOOTSTRAP = "_bootstrap"
DUMP_METADATA = "_dumpmetadata"
FINISHED_DUMP = "_finished_dump"
FINISHED_LOAD = "_finished_load"
EVENTS_DUMP = "_events_dump"
EVENTS_BATCH = "events_batch_"


class DumpLayout(StrEnum):
    HIVE_3 = "3"
    HIVE_4 = "4"


def policy_directory(root: str, database: str) -> str:
    """Return the directory in which Hive 4 looks for the dumps of a database: `<root>/<Base64 of its lower-case
    name>`."""
    return join(root, base64.b64encode(database.lower().encode()).decode())


@dataclass(frozen=True, slots=True)
class ExportDirectory:
    """The directory that EXPORT writes, with the definition and the data of one table. Hive 3.1 writes the same for
    each table of a dump."""

    directory: str

    @property
    def metadata(self) -> str:
        return join(self.directory, METADATA)

    def data(self, partition: str = "") -> str:
        """Return the directory with the data, or with the list of files that stands for the data, of the partition of
        this Hive name, or of an unpartitioned table."""
        return join(self.directory, partition or DATA)


@dataclass(frozen=True, slots=True)
class EventDirectory:
    """The directory of one event in a dump. Only an event that carries a definition has `metadata`. Of these, only an
    event that brings files has `data`."""

    directory: str
    layout: DumpLayout

    @property
    def dump_metadata(self) -> str:
        return join(self.directory, DUMP_METADATA)

    @property
    def metadata(self) -> str:
        return join(self.directory, METADATA)

    def data(self, partition: str = "") -> str:
        match self.layout:
            case DumpLayout.HIVE_4:
                return join(join(self.directory, DATA), partition)
            case DumpLayout.HIVE_3:
                return join(self.directory, partition or DATA)


@dataclass(frozen=True, slots=True)
class ObjectDirectories:
    """The directories of the objects that a dump has whole: the database, its tables and its functions. A bootstrap has
    them at its root. An increment has the tables that came into scope below `_bootstrap`."""

    root: str
    layout: DumpLayout

    def database(self, name: str) -> str:
        """Return the directory of a database's definitions. Each directory in it is a table, except those whose names
        begin with `_`."""
        return join(self.root, f"metadata/{name}" if self.layout is DumpLayout.HIVE_4 else name)

    def database_metadata(self, name: str) -> str:
        return join(self.database(name), METADATA)

    def table_metadata(self, name: TableName) -> str:
        return join(self.database(name.database), f"{name.table}/{METADATA}")

    def table_data(self, name: TableName, partition: str = "") -> str:
        """Return the directory with the data, or with the list of files that stands for the data, of a table or of one
        of its partitions."""
        match self.layout:
            case DumpLayout.HIVE_4:
                return join(join(self.root, f"{DATA}/{name.database}/{name.table}"), partition)
            case DumpLayout.HIVE_3:
                return join(self.database(name.database), f"{name.table}/{partition or DATA}")

    def contents(self, database: str) -> str:
        """Return the directory below which the data of all tables of the database lie."""
        return join(self.root, f"{DATA}/{database}") if self.layout is DumpLayout.HIVE_4 else self.database(database)

    def table_contents(self, name: TableName) -> str:
        """Return the directory below which all data of the table lie; with the layout of Hive 3.1 it also has the
        table's definition."""
        match self.layout:
            case DumpLayout.HIVE_4:
                return self.table_data(name)
            case DumpLayout.HIVE_3:
                return join(self.database(name.database), name.table)

    def constraints(self, name: TableName) -> str:
        """Return the path of the file with all constraints of the table except its foreign keys."""
        return join(self.database(name.database), f"{CONSTRAINTS}/c_{name.table}")

    def foreign_keys(self, name: TableName) -> str:
        return join(self.database(name.database), f"{CONSTRAINTS}/f_{name.table}")

    def functions(self, database: str) -> str:
        return join(self.database(database), FUNCTIONS)

    def function_metadata(self, name: TableName) -> str:
        return join(self.functions(name.database), f"{name.table}/{METADATA}")

    def function_data(self, name: TableName) -> str:
        """Return the directory with the copies of the function's resources; only a dump that holds data has it."""
        match self.layout:
            case DumpLayout.HIVE_4:
                return join(self.root, f"{DATA}/{name.database}/{FUNCTIONS}/{name.table}")
            case DumpLayout.HIVE_3:
                return join(self.functions(name.database), name.table)


@dataclass(frozen=True, slots=True)
class DumpDirectory:
    """The directory of one dump; `directory` is the path that REPL DUMP returned."""

    directory: str
    layout: DumpLayout = DumpLayout.HIVE_4

    @property
    def root(self) -> str:
        return join(self.directory, HIVE_DIRECTORY) if self.layout is DumpLayout.HIVE_4 else self.directory

    @property
    def dump_metadata(self) -> str:
        return join(self.root, DUMP_METADATA)

    @property
    def finished_dump(self) -> str:
        return join(self.root, FINISHED_DUMP)

    @property
    def finished_load(self) -> str:
        return join(self.root, FINISHED_LOAD)

    @property
    def load_metadata(self) -> str:
        """Return the path of the file into which Hive 4 writes the newest event id of the target's own log at the end
        of a load."""
        return join(self.root, "_load_metadata")

    @property
    def events_dump(self) -> str:
        return join(self.root, EVENTS_DUMP)

    @property
    def external_directories(self) -> str:
        """Return the path of the list of external directories that a load copies."""
        return join(self.root, "_file_list_external" if self.layout is DumpLayout.HIVE_4 else "_external_tables_info")

    def tables_in_scope(self, database: str) -> str:
        """Return the path of the file with the names of all tables in scope, one a line. The file exists only where the
        policy chooses tables."""
        return join(self.root, f"_tables/{database}")

    @property
    def objects(self) -> ObjectDirectories:
        """Return the directories of the objects that a bootstrap has."""
        return ObjectDirectories(self.root, self.layout)

    @property
    def bootstrapped(self) -> ObjectDirectories:
        """Return the directories of the tables that an increment has whole, as they came into scope."""
        return ObjectDirectories(join(self.root, BOOTSTRAP), self.layout)

    def events_batch(self, batch: int) -> str:
        """Return the directory of the events of batch number `batch`, from 1; in Hive 3.1 it is the root."""
        return join(self.root, f"{EVENTS_BATCH}{batch}") if self.layout is DumpLayout.HIVE_4 else self.root

    def event(self, event_id: EventId, batch: int = 1) -> EventDirectory:
        return EventDirectory(join(self.events_batch(batch), str(event_id)), self.layout)


def event_of(name: str) -> EventId | None:
    """Return the id of the event whose directory has this name; None for every other name. A load reads the events in
    the order of their ids."""
    return int(name) if name.isascii() and name.isdigit() else None
