"""The ports of links to catalogs other than Hive metastores: a client that connects, and the catalog that it connects
to.

Packages that add a client import these from `calque.remotes`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from calque.core.events.log_messages import LogMessage
from calque.model.hive import Database, Partition, Table
from calque.model.names import EventId, TableName
from calque.model.secrets import Secret
from calque.model.tls import Tls
from calque.plugins.remotes.core.compare_polls import KnownTable
from calque.plugins.remotes.model import ClientForm
from calque.ports.source import EventLog


@dataclass(frozen=True, slots=True)
class RemoteAccess:
    """The login to a remote catalog, from the section [remotes.credentials.NAME] that a link names; empty where the
    link names none. Secrets are references, which are read only when they are needed. With `far_only` the client
    connects to no address near calque itself, even where a name leads there (`core.policy.near_addresses.is_near`)."""

    user: str = ""
    password: Secret | None = None
    token: Secret | None = None
    tls: Tls | None = None
    far_only: bool = False


class RemoteCatalog(Protocol):
    """A catalog without a log, at which calque looks from time to time. Names are lower-case. Every method raises
    `Unavailable` where the catalog does not answer, `AccessRefused` where it refuses calque, and `Refused` for settings
    or answers that are invalid. All methods are safe from several threads at once."""

    def identity(self) -> str:
        """Return an id that the catalog alone has, and that stays the same under each of its addresses; an empty text
        where the catalog has no such id."""

    def databases(self) -> Sequence[str]: ...

    def database(self, name: str) -> Database | None: ...

    def versions(self, database: str) -> Mapping[str, str]:
        """Return the tables and views of the database by name, each with its version: a text that changes whenever the
        table's definition does. A text is empty where the catalog keeps no versions; then the table is read at each
        look. The result is empty where the database is missing. The method makes a few calls, not one for each table,
        where the catalog can do so."""

    def table(self, name: TableName) -> Table | None:
        """Return the table's definition as Hive's engines read it; None where there is none."""

    def partitions(self, table: Table) -> Mapping[str, Partition]:
        """Return all partitions of a table with partition keys, by their names in Hive's escaped form; none where the
        table is missing."""

    def close(self) -> None:
        """Close all connections."""


class RemoteClient(Protocol):
    """A client for one kind of remote catalogs."""

    @property
    def form(self) -> ClientForm:
        """Return the client's name after VIA, and its settings. `addresses` of the form names the setting with the
        address that `[remotes] allow` has to allow for links by engines."""

    def require(self, settings: Mapping[str, str]) -> None:
        """Raise `Refused` for invalid settings, without a call to any server."""

    def connect(self, settings: Mapping[str, str], access: RemoteAccess) -> RemoteCatalog:
        """Return the catalog with these settings. It makes its first call when it is first used."""


@dataclass(frozen=True, slots=True)
class PolledDatabase:
    """The finding of a look at one database. `definition` is None where the database is gone, or links do not take it
    any more."""

    name: str
    definition: Database | None
    messages: tuple[LogMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class PolledTable:
    """The finding of a look at one table. `known` is None where the table is gone, or links do not take it any more.
    `changed` and `gone` are the partitions that are new or changed, or gone, since the last look."""

    name: TableName
    known: KnownTable | None
    messages: tuple[LogMessage, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class PollHistory(EventLog, Protocol):
    """The log of the looks at one catalog, and the state that the last look found. Only one process appends."""

    def databases(self) -> Mapping[str, Database]: ...

    def databases_with_tables(self) -> Sequence[str]: ...

    def versions(self, database: str) -> Mapping[str, str]:
        """Return the versions of the database's tables that the last look found, by table name."""

    def partitioned(self, database: str) -> Collection[str]:
        """Return the names of the database's known tables that have partition keys."""

    def table(self, name: TableName) -> KnownTable | None: ...

    def append(self, seconds: int, databases: Sequence[PolledDatabase], tables: Sequence[PolledTable]) -> EventId:
        """Record what a look found at the time `seconds` (since the epoch), and make its messages the next events, all
        or nothing. Return the newest event id. Ids have no holes."""

    def forget(self, upto: EventId) -> None:
        """Remove the events up to `upto` from the log."""
