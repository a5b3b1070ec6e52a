"""What links ask of catalogs other than Hive metastores: a client that connects, and a catalog that it connects to.

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
from calque.plugins.remotes.core.compare_looks import KnownTable
from calque.plugins.remotes.model import ClientForm
from calque.ports.source import EventLog


@dataclass(frozen=True, slots=True)
class RemoteAccess:
    """As whom a catalog is called: what the section [remotes.credentials.NAME] says that a link names, nothing where it
    names none. Secrets are references, read when they are needed. With `far_only` nothing near calque itself is
    connected to, whatever its name (`core.policy.near_addresses.is_near`)."""

    user: str = ""
    password: Secret | None = None
    token: Secret | None = None
    tls: Tls | None = None
    far_only: bool = False


class RemoteCatalog(Protocol):
    """A catalog without a log: calque looks at it from time to time. Names are lower-case. Every method raises
    `Unavailable` where the catalog does not answer, `AccessRefused` where it refuses calque, `Refused` for what can't
    be. All are safe from several threads at once."""

    def identity(self) -> str:
        """What the catalog has to itself, the same whatever its address; empty where it has nothing of the kind."""

    def databases(self) -> Sequence[str]: ...

    def database(self, name: str) -> Database | None: ...

    def versions(self, database: str) -> Mapping[str, str]:
        """The tables and views of the database, by name, each with a text that is another one whenever the table's
        definition is; an empty text where the catalog keeps nothing of the kind, and the table is read at each look.
        Empty where the database is missing. It costs a few calls, not one for each table, where the catalog can."""

    def table(self, name: TableName) -> Table | None:
        """The table as Hive's engines read it."""

    def partitions(self, table: Table) -> Mapping[str, Partition]:
        """All partitions of a table with partition keys, by their names in Hive's escaped form; empty when the table
        is missing."""

    def close(self) -> None:
        """Let go of connections."""


class RemoteClient(Protocol):
    """One kind of catalogs."""

    @property
    def form(self) -> ClientForm:
        """Its name after VIA, and its settings. `addresses` names the setting with the address that `[remotes] allow`
        has to allow for links by engines."""

    def require(self, settings: Mapping[str, str]) -> None:
        """Raises `Refused` for settings that can't be, without asking anybody."""

    def connect(self, settings: Mapping[str, str], access: RemoteAccess) -> RemoteCatalog:
        """Nothing is asked before the catalog is used."""


@dataclass(frozen=True, slots=True)
class LookedDatabase:
    """What a look found of a database; no definition: it is gone, or nobody asks for it any more."""

    name: str
    definition: Database | None
    messages: tuple[LogMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class LookedTable:
    """The same of a table. `changed` and `gone` are the partitions that are other ones than before."""

    name: TableName
    known: KnownTable | None
    messages: tuple[LogMessage, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class Looks(EventLog, Protocol):
    """The log that looks at a catalog make, and what the last look knew. One process appends."""

    def databases(self) -> Mapping[str, Database]: ...

    def databases_with_tables(self) -> Sequence[str]: ...

    def versions(self, database: str) -> Mapping[str, str]:
        """Of the tables that are known, by name."""

    def partitioned(self, database: str) -> Collection[str]:
        """The names of those that have partition keys."""

    def table(self, name: TableName) -> KnownTable | None: ...

    def append(self, seconds: int, databases: Sequence[LookedDatabase], tables: Sequence[LookedTable]) -> EventId:
        """Record what a look at that time found, and make its messages the next events, all or nothing. Returns the
        newest event id; ids have no holes."""

    def forget(self, upto: EventId) -> None:
        """Let go of events up to that one."""
