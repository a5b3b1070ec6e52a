"""Where each file of a dump lies, as Hive 4 lays them out, and as Hive 3.1 does.

Hive 4 keeps what is Hive's below `hive/` (others, such as Ranger, lie beside it), definitions apart from data, and the
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
    """Where Hive 4 looks for the dumps of a database: `<root>/<Base64 of its lower-case name>`."""
    return join(root, base64.b64encode(database.lower().encode()).decode())


@dataclass(frozen=True, slots=True)
class ExportDirectory:
    """What EXPORT writes, and Hive 3.1 for each table of a dump: one directory with definition and data."""

    directory: str

    @property
    def metadata(self) -> str:
        return join(self.directory, METADATA)

    def data(self, partition: str = "") -> str:
        """The data, or the list that stands for it, of a partition by its Hive name, or of an unpartitioned table."""
        return join(self.directory, partition or DATA)


@dataclass(frozen=True, slots=True)
class EventDirectory:
    """What a dump has of one event. Only events that carry a definition have `metadata`, and of these only the ones
    that bring files have data."""

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
    """Where tables, functions and the database itself lie that are dumped whole: those of a bootstrap, and those that
    an increment bootstraps."""

    root: str
    layout: DumpLayout

    def database(self, name: str) -> str:
        """The directory of a database's definitions: its tables are the directories there without `_`."""
        return join(self.root, f"metadata/{name}" if self.layout is DumpLayout.HIVE_4 else name)

    def database_metadata(self, name: str) -> str:
        return join(self.database(name), METADATA)

    def table_metadata(self, name: TableName) -> str:
        return join(self.database(name.database), f"{name.table}/{METADATA}")

    def table_data(self, name: TableName, partition: str = "") -> str:
        """The directory of a table's or partition's data, or of the list that stands for it."""
        match self.layout:
            case DumpLayout.HIVE_4:
                return join(join(self.root, f"{DATA}/{name.database}/{name.table}"), partition)
            case DumpLayout.HIVE_3:
                return join(self.database(name.database), f"{name.table}/{partition or DATA}")

    def contents(self, database: str) -> str:
        """The directory that the data of all tables lie below."""
        return join(self.root, f"{DATA}/{database}") if self.layout is DumpLayout.HIVE_4 else self.database(database)

    def table_contents(self, name: TableName) -> str:
        """The directory that all data of the table lie below; in Hive 3.1 its definition, too."""
        match self.layout:
            case DumpLayout.HIVE_4:
                return self.table_data(name)
            case DumpLayout.HIVE_3:
                return join(self.database(name.database), name.table)

    def constraints(self, name: TableName) -> str:
        """The table's constraints but its foreign keys."""
        return join(self.database(name.database), f"{CONSTRAINTS}/c_{name.table}")

    def foreign_keys(self, name: TableName) -> str:
        return join(self.database(name.database), f"{CONSTRAINTS}/f_{name.table}")

    def functions(self, database: str) -> str:
        return join(self.database(database), FUNCTIONS)

    def function_metadata(self, name: TableName) -> str:
        return join(self.functions(name.database), f"{name.table}/{METADATA}")

    def function_data(self, name: TableName) -> str:
        """Where copies of the function's resources lie, where the dump holds data."""
        match self.layout:
            case DumpLayout.HIVE_4:
                return join(self.root, f"{DATA}/{name.database}/{FUNCTIONS}/{name.table}")
            case DumpLayout.HIVE_3:
                return join(self.functions(name.database), name.table)


@dataclass(frozen=True, slots=True)
class DumpDirectory:
    """One dump; `directory` is what REPL DUMP returned."""

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
        """Where Hive 4 writes the target's own newest event id at the end of a load."""
        return join(self.root, "_load_metadata")

    @property
    def events_dump(self) -> str:
        return join(self.root, EVENTS_DUMP)

    @property
    def external_directories(self) -> str:
        """The list of external directories to copy."""
        return join(self.root, "_file_list_external" if self.layout is DumpLayout.HIVE_4 else "_external_tables_info")

    def tables_in_scope(self, database: str) -> str:
        """The names of all tables in scope, one on a line; only where the policy chooses tables."""
        return join(self.root, f"_tables/{database}")

    @property
    def objects(self) -> ObjectDirectories:
        """What a bootstrap holds."""
        return ObjectDirectories(self.root, self.layout)

    @property
    def bootstrapped(self) -> ObjectDirectories:
        """What an increment holds of tables that came into scope."""
        return ObjectDirectories(join(self.root, BOOTSTRAP), self.layout)

    def events_batch(self, batch: int) -> str:
        """The directory of the events of a batch, from 1; Hive 3.1 has no batches."""
        return join(self.root, f"{EVENTS_BATCH}{batch}") if self.layout is DumpLayout.HIVE_4 else self.root

    def event(self, event_id: EventId, batch: int = 1) -> EventDirectory:
        return EventDirectory(join(self.events_batch(batch), str(event_id)), self.layout)


def event_of(name: str) -> EventId | None:
    """The event whose directory has this name; None for every other name. Events are read in order of their ids."""
    return int(name) if name.isascii() and name.isdigit() else None
