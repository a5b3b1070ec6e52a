"""The opened dump: its layout, its metadata, the check that it is whole, and the search for a database's newest
dump."""

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
    """A dump that is whole. `database` is the lower-case name of the database that it was made of."""

    storage: Storage
    directory: DumpDirectory
    metadata: DumpMetadata
    database: str

    @property
    def location(self) -> str:
        return self.directory.directory

    @property
    def begin(self) -> EventId:
        """Return the id of the event after which the dump begins; for a bootstrap, the event that it was made at."""
        return self.metadata.from_event

    @property
    def end(self) -> EventId:
        """Return the id of the last event that the dump considered; for a bootstrap this is `begin`. A bootstrap by
        Hive also says at which event it ended, but the next increment brings the changes since its begin once more."""
        return self.metadata.from_event if self.metadata.is_bootstrap else self.metadata.to_event

    def external(self) -> list[ExternalDirectory]:
        """Return the directories of external tables, whose files a load copies as they are at the source now. Raises
        `Refused` where the list can't be read."""
        content = self.storage.read(self.directory.external_directories)
        try:
            return list(read_external(text_of(content or b""), self.directory.layout))
        except Undecodable as error:
            raise unreadable(self.directory.external_directories, error) from error

    def takes(self) -> Callable[[TableName], bool]:
        """Return the function that tells whether the policy of the dump takes a table. The function uses the policy's
        expressions. Where the dump has none (Hive 3.1), or where calque can't read them, it uses the dump's list of all
        tables in scope. Where both are missing it takes every table. Raises `Refused` where calque can't read the
        expressions and the dump has no list of tables."""
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
    """Return the dump in the directory `location`, in the layout of Hive 4 or of Hive 3.1. `location` may also be the
    dump's `hive` directory. Raises `Refused` where there is no dump, where it is not whole, and where it is neither a
    bootstrap nor an increment."""
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
    """Return the lower-case name of the database that was dumped. Hive 4 writes the name into the metadata. In a dump
    of Hive 3.1 it is the name of the only directory: at the root of a bootstrap, or below other directories in an
    increment with tables that came into scope. The result is empty where only the events can tell."""
    if metadata.policy is not None:
        return metadata.policy.database.lower()
    for place in (directory.root, directory.bootstrapped.root, join(directory.root, "_tables")):
        names = [name for name in storage.children(place) if not name.startswith(("_", ".")) and not name.isdigit()]
        if len(names) == 1:
            return names[0].lower()
    return ""


def newest_dump(storage: Storage, root: str, database: str) -> Dump:
    """Return the newest whole dump of a database below `root`, where Hive 4 lays dumps: the dump with the highest last
    event, and of several such dumps the one that was finished last. Raises `Refused` where there is none."""
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
    """Return the bytes as text. Bytes that are not UTF-8 become U+FFFD: a path with this character names no file, so
    that the file counts as missing."""
    return content.decode(errors="replace")


def unreadable(path: str, error: Undecodable) -> Refused:
    return Refused(f"{path} can't be read", error.reason, AGAIN)
