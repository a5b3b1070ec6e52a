"""The log of the looks at one catalog, and the state that the last look found, in one SQLite file. One transaction
writes both, so that they never disagree.

One process looks and writes; any number of processes read. Events that the journal has are removed from this log.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from calque.core.events.decode import thrift_object
from calque.core.events.encode import tjson
from calque.core.events.log_messages import LogMessage, logged
from calque.core.records.state_damage import damaged
from calque.errors import Unavailable
from calque.model.hive import Database, Table
from calque.model.journal import Event
from calque.model.names import EventId, TableName
from calque.plugins.remotes.core.compare_polls import KnownTable
from calque.plugins.remotes.ports import PolledDatabase, PolledTable
from calque.state_files import open_private, state_error

WAIT_SECONDS = 10.0
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
UNREACHED = "What is known of a remote catalog can't be read or written in {}"
SCHEMA = """
CREATE TABLE IF NOT EXISTS head (event_id INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS events (
  event_id INTEGER PRIMARY KEY, event_time INTEGER NOT NULL, event_type TEXT NOT NULL, catalog TEXT NOT NULL,
  "database" TEXT NOT NULL, "table" TEXT NOT NULL, format TEXT NOT NULL, message TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS databases (name TEXT PRIMARY KEY, definition TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tables (
  "database" TEXT, name TEXT, version TEXT NOT NULL, partitioned INTEGER NOT NULL, definition TEXT NOT NULL,
  PRIMARY KEY ("database", name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS partitions (
  "database" TEXT, "table" TEXT, name TEXT, digest TEXT NOT NULL,
  PRIMARY KEY ("database", "table", name)) WITHOUT ROWID;
"""


class PolledLog:
    """The log and state of looks as `plugins.remotes.ports.PollHistory` and `ports.EventLog`, in the file at `path`,
    which is made when it is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    # The log

    def current(self) -> EventId:
        with self._opened() as connection:
            return head(connection)

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        with self._opened() as connection:
            rows = connection.execute(
                "SELECT * FROM events WHERE event_id > ? ORDER BY event_id LIMIT ?", (after, limit)
            )
            return [Event(*row) for row in rows]

    def close(self) -> None:
        """Do nothing, because each call opens and closes its own connection."""

    # What the last look knew

    def databases(self) -> Mapping[str, Database]:
        with self._opened() as connection:
            rows = connection.execute("SELECT name, definition FROM databases")
            return {name: thrift_object(Database, definition) for name, definition in rows}

    def versions(self, database: str) -> Mapping[str, str]:
        with self._opened() as connection:
            return dict(connection.execute('SELECT name, version FROM tables WHERE "database" = ?', (database,)))

    def partitioned(self, database: str) -> Collection[str]:
        with self._opened() as connection:
            rows = connection.execute('SELECT name FROM tables WHERE "database" = ? AND partitioned', (database,))
            return {name for (name,) in rows}

    def table(self, name: TableName) -> KnownTable | None:
        with self._opened() as connection:
            of_table = 'SELECT version, definition FROM tables WHERE "database" = ? AND name = ?'
            row = connection.execute(of_table, name).fetchone()
            of_partitions = 'SELECT name, digest FROM partitions WHERE "database" = ? AND "table" = ?'
            digests = dict(connection.execute(of_partitions, name))
        return None if row is None else KnownTable(row[0], thrift_object(Table, row[1]), digests)

    def databases_with_tables(self) -> Sequence[str]:
        with self._opened() as connection:
            return [name for (name,) in connection.execute('SELECT DISTINCT "database" FROM tables ORDER BY 1')]

    def append(self, seconds: int, databases: Sequence[PolledDatabase], tables: Sequence[PolledTable]) -> EventId:
        with self._opened() as connection:
            newest = head(connection)
            for database in databases:
                put_database(connection, database)
            for table in tables:
                put_table(connection, table)
            messages = [message for database in databases for message in database.messages]
            messages += [message for table in tables for message in table.messages]
            for event_id, message in enumerate(messages, newest + 1):
                put_event(connection, message, event_id, seconds)
            newest += len(messages)
            connection.execute("UPDATE head SET event_id = ?", (newest,))
            return newest

    def forget(self, upto: EventId) -> None:
        with self._opened() as connection:
            connection.execute("DELETE FROM events WHERE event_id <= ?", (upto,))

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Give the block a connection within a transaction. Raises `Unavailable`, `StateUnusable`."""
        try:
            os.close(open_private(self.path, os.O_RDWR))
            with closing(sqlite3.connect(self.path, timeout=WAIT_SECONDS)) as connection:
                if connection.execute("PRAGMA user_version").fetchone() == (0,):
                    make(connection)
                with connection:
                    yield connection
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) in DAMAGED:
                raise damaged(str(self.path), str(error)) from error
            raise Unavailable(UNREACHED.format(self.path), str(error), "Look whether the disk is full") from error
        except OSError as error:
            raise state_error(UNREACHED.format(self.path), self.path, str(error), error) from error


def make(connection: sqlite3.Connection) -> None:
    """Make the tables, unless another process has made them in the meantime."""
    connection.isolation_level = None
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in SCHEMA.split(";"):
            connection.execute(statement)
        if connection.execute("SELECT count(*) FROM head").fetchone() == (0,):
            connection.execute("INSERT INTO head VALUES (0)")
        connection.execute("PRAGMA user_version = 1")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.isolation_level = "DEFERRED"


def head(connection: sqlite3.Connection) -> EventId:
    return int(connection.execute("SELECT event_id FROM head").fetchone()[0])


def put_event(connection: sqlite3.Connection, message: LogMessage, event_id: EventId, seconds: int) -> None:
    event = logged(message, event_id, seconds)
    values = (event.event_id, event.event_time, event.event_type, event.catalog, event.database, event.table)
    connection.execute(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*values, event.message_format, event.message)
    )


def put_database(connection: sqlite3.Connection, looked: PolledDatabase) -> None:
    connection.execute("DELETE FROM databases WHERE name = ?", (looked.name,))
    if looked.definition is not None:
        connection.execute("INSERT INTO databases VALUES (?, ?)", (looked.name, tjson(looked.definition)))


def put_table(connection: sqlite3.Connection, looked: PolledTable) -> None:
    name, known = looked.name, looked.known
    if known is None:
        connection.execute('DELETE FROM tables WHERE "database" = ? AND name = ?', name)
        connection.execute('DELETE FROM partitions WHERE "database" = ? AND "table" = ?', name)
        return
    row = (*name, known.version, bool(known.table.partition_keys), tjson(known.table))
    connection.execute("REPLACE INTO tables VALUES (?, ?, ?, ?, ?)", row)
    connection.executemany(
        'DELETE FROM partitions WHERE "database" = ? AND "table" = ? AND name = ?',
        [(*name, one) for one in looked.gone],
    )
    connection.executemany(
        "REPLACE INTO partitions VALUES (?, ?, ?, ?)",
        [(*name, one, known.partitions[one]) for one in looked.changed],
    )
