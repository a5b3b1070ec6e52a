"""The partitions, files and definitions that were read for a dump, on this machine's disk until the dump is written.

The spool exists because the partitions of a large table do not fit into memory: readers get `AT_ONCE` rows at a time.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from calque.core.events.decode import LoggedFile
from calque.model.files import File
from calque.model.names import TableName

SCHEMA = """
CREATE TABLE part (
    of TEXT NOT NULL, name TEXT NOT NULL, definition TEXT NOT NULL, location TEXT NOT NULL, files BLOB NOT NULL,
    checksums BLOB,
    PRIMARY KEY (of, name)
) WITHOUT ROWID
"""
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class SpooledContent:
    """The definition and the files of a partition, or of a plain table (`partition` is empty). Paths of files are
    relative to `location`. `checksums` has those that were asked for, by path."""

    partition: str
    definition: str
    location: str
    files: tuple[File, ...]
    checksums: Mapping[str, str]

    def named_files(self, change_root: str) -> Iterator[LoggedFile]:
        """Return the files as a `_files` names them, each with the sub-directory in which it lies."""
        for file in self.files:
            checksum = self.checksums.get(file.path)
            directory = file.path.rpartition("/")[0]
            yield LoggedFile(f"{self.location.rstrip('/')}/{file.path}", checksum, change_root or None, directory)


class Spool:
    """A database of one file in a folder that belongs to the dump alone. Safe from several threads."""

    def __init__(self, folder: Path) -> None:
        self.lock = threading.Lock()
        self.database = sqlite3.connect(folder / "spool", check_same_thread=False, isolation_level=None)
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -16384"):
            self.database.execute(f"PRAGMA {pragma}")
        self.database.execute(SCHEMA)

    def close(self) -> None:
        self.database.close()

    def put(self, name: TableName, contents: Iterable[SpooledContent]) -> None:
        rows = [
            (
                str(name),
                each.partition,
                each.definition,
                each.location,
                orjson.dumps([[file.path, file.size, file.modified_ns] for file in each.files]),
            )
            for each in contents
        ]
        with self.lock:
            self.database.execute("BEGIN")
            self.database.executemany("INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?, ?, NULL)", rows)
            self.database.execute("COMMIT")

    def put_checksums(self, name: TableName, checksums: Mapping[str, Mapping[str, str]]) -> None:
        """Keep these checksums of the table's files, by partition and path."""
        rows = [(orjson.dumps(each), str(name), partition) for partition, each in checksums.items()]
        with self.lock:
            self.database.execute("BEGIN")
            self.database.executemany("UPDATE part SET checksums = ? WHERE of = ? AND name = ?", rows)
            self.database.execute("COMMIT")

    def remove(self, name: TableName, partitions: Iterable[str]) -> None:
        with self.lock:
            rows = [(str(name), partition) for partition in partitions]
            self.database.executemany("DELETE FROM part WHERE of = ? AND name = ?", rows)

    def clear(self, name: TableName) -> None:
        with self.lock:
            self.database.execute("DELETE FROM part WHERE of = ?", (str(name),))

    def contents(self, name: TableName) -> Iterator[SpooledContent]:
        """Return the contents of the table, by ascending name of the partition."""
        last = None
        while True:
            with self.lock:
                rows = self.database.execute(
                    "SELECT name, definition, location, files, checksums FROM part"
                    " WHERE of = ? AND (? IS NULL OR name > ?) ORDER BY name LIMIT ?",
                    (str(name), last, last, AT_ONCE),
                ).fetchall()
            for partition, definition, location, files, checksums in rows:
                found = tuple(File(*file) for file in orjson.loads(files))
                yield SpooledContent(partition, definition, location, found, orjson.loads(checksums or b"{}"))
            if len(rows) < AT_ONCE:
                return
            last = rows[-1][0]
