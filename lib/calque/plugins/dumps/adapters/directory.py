"""Open a dump: which it is, whether it is whole, and where the newest one of a database lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calque.core.events.decode import Undecodable
from calque.core.formats.layout import join
from calque.errors import Refused
from calque.model.names import EventId, TableName
from calque.plugins.dumps.core.dump_metadata import BOOTSTRAP, INCREMENTAL, DumpMetadata, read_dump_metadata
from calque.plugins.dumps.core.file_lists import ExternalDirectory, read_external
from calque.plugins.dumps.core.layout import (
    DUMP_METADATA,
    HIVE_DIRECTORY,
    DumpDirectory,
    DumpLayout,
    policy_directory,
)
from calque.plugins.dumps.core.markers import read_tables
from calque.plugins.dumps.core.scope import scope_of_policy
from calque.ports import Storage

AGAIN = "Make the dump again, and load that"


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump that is whole. `database` is the one that it was made of, lower-case."""

    storage: Storage
    directory: DumpDirectory
    metadata: DumpMetadata
    database: str

    @property
    def location(self) -> str:
        return self.directory.directory

    @property
    def begin(self) -> EventId:
        """The event after which it begins; of a bootstrap the one that it was made at."""
        return self.metadata.from_event

    @property
    def end(self) -> EventId:
        """The last event that it considered. A bootstrap by Hive says at which event it ended, and what events changed
        since its begin comes with the next increment once more."""
        return self.metadata.from_event if self.metadata.is_bootstrap else self.metadata.to_event

    def external(self) -> list[ExternalDirectory]:
        """Directories of external tables, which are copied as they are now. Raises `Refused`."""
        content = self.storage.read(self.directory.external_directories)
        try:
            return list(read_external(text_of(content or b""), self.directory.layout))
        except Undecodable as error:
            raise unreadable(self.directory.external_directories, error) from error

    def takes(self) -> Callable[[TableName], bool]:
        """Which tables the policy takes: what its expressions say, or where the dump does not have these (Hive 3.1), or
        calque can't read them, the names that it has of all of them. Without these it takes all."""
        if self.metadata.policy is not None:
            try:
                return scope_of_policy(self.metadata.policy).takes
            except Refused as error:
                refused: Refused | None = error
        else:
            refused = None
        content = self.storage.read(self.directory.tables_in_scope(self.database))
        if content is None:
            if refused is not None:
                raise refused
            return lambda _: True
        names = read_tables(text_of(content))
        return lambda name: name.database == self.database and name.table in names


def open_dump(storage: Storage, location: str) -> Dump:
    """The dump in a directory, of either layout; `location` may also be its `hive` directory. Raises `Refused` for one
    that is not whole, or none."""
    location = location.rstrip("/")
    if location.rpartition("/")[2] == HIVE_DIRECTORY:
        location = location.rpartition("/")[0]
    directory = DumpDirectory(location, DumpLayout.HIVE_4)
    content = storage.read(directory.dump_metadata)
    if content is None:
        directory = DumpDirectory(location, DumpLayout.HIVE_3)
        content = storage.read(directory.dump_metadata)
    if content is None:
        raise Refused(
            f"{location} is no dump",
            f"It has no {DUMP_METADATA}, nor has {HIVE_DIRECTORY} below it",
            "Correct the path",
        )
    metadata = read_metadata(directory, content)
    if directory.layout is DumpLayout.HIVE_4 and not storage.exists(directory.finished_dump):
        raise Refused(
            f"The dump in {location} is not complete", "It has no _finished_dump", "Say its REPL DUMP again, then this"
        )
    if metadata.kind not in (BOOTSTRAP, INCREMENTAL):
        raise Refused(
            f"The dump in {location} is of kind {metadata.kind}", "calque loads bootstraps and increments", AGAIN
        )
    return Dump(storage, directory, metadata, database_of(storage, directory, metadata))


def read_metadata(directory: DumpDirectory, content: bytes) -> DumpMetadata:
    try:
        return read_dump_metadata(text_of(content))
    except Undecodable as error:
        raise unreadable(directory.dump_metadata, error) from error


def database_of(storage: Storage, directory: DumpDirectory, metadata: DumpMetadata) -> str:
    """The database that was dumped: Hive 4 says it. In a bootstrap of Hive 3.1 it is the only directory, and in an
    increment with tables that came into scope it is below others; empty where only events can tell."""
    if metadata.policy is not None:
        return metadata.policy.database.lower()
    for place in (directory.root, directory.bootstrapped.root, join(directory.root, "_tables")):
        names = [name for name in storage.children(place) if not name.startswith(("_", ".")) and not name.isdigit()]
        if len(names) == 1:
            return names[0].lower()
    return ""


def newest_dump(storage: Storage, root: str, database: str) -> Dump:
    """The newest whole dump of a database below the root of dumps, where Hive 4 lays them. Raises `Refused`."""
    folder = policy_directory(root, database)
    dumps: list[tuple[int, Dump]] = []
    for entry in storage.entries(folder):
        if entry.directory and not entry.name.startswith("."):
            location = join(folder, entry.name)
            directory = DumpDirectory(location, DumpLayout.HIVE_4)
            ends = storage.files([directory.finished_dump, f"{location}/_finished_dump"])
            if ends:
                dumps.append((max(file.modified_ns for file in ends.values()), open_dump(storage, location)))
    if not dumps:
        raise Refused(
            f"There is no complete dump of {database} in {root}",
            f"It would lie in {folder}",
            "Make one by REPL DUMP, or name its directory: REPL LOAD … FROM",
        )
    return max(dumps, key=lambda pair: (pair[1].end, pair[0]))[1]


def text_of(content: bytes) -> str:
    """What is no UTF-8 names no file that there is."""
    return content.decode(errors="replace")


def unreadable(path: str, error: Undecodable) -> Refused:
    return Refused(f"{path} can't be read", error.reason, AGAIN)
