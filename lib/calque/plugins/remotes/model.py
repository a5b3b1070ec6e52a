"""Names in a local catalog that stand for tables and databases of a remote one. The functions over them are in
`plugins.remotes.core.layers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from calque.model.names import TableName
from calque.model.secrets import Secret


@dataclass(frozen=True, slots=True)
class Links:
    """All links into one remote catalog: local names are keys, names there are values. Several local names may stand
    for one remote table or database. Names are lower-case."""

    tables: Mapping[TableName, TableName] = field(default_factory=dict)
    databases: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[TableName, TableName]]:
        """(local name, remote name) of each; a database's name is one without a table."""
        for local, remote in self.databases.items():
            yield TableName(local), TableName(remote)
        yield from self.tables.items()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One remote catalog as one client reaches it: what has the same endpoint shares a connection, a capture and a
    journal. `settings` are the client's own, normalized and sorted."""

    via: str
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LinkDefinition:
    """What a link is, as its statement or the parameters of a local object say: `local` stands for `remote`, a database
    for a database (both without a table), a table for a table. `data` is `copy` for a table whose files are copied."""

    local: TableName
    remote: TableName
    endpoint: Endpoint
    data: str = "none"


@dataclass(frozen=True, slots=True)
class ClientForm:
    """What a client of remote catalogs calls itself, and which settings it takes. `class_names` are names of Java
    classes that stand for it, without their packages. `addresses` names the setting that says where it connects to,
    `key_files` those that name files or places on calque's own machine, `route` the one that says through which hops. A
    link with the setting `path` stands for the one table there: `default`, and the path's last word. `schemes` are
    those of the addresses that parameters alone may name; empty for any. `own_login`: without credentials it uses a
    login that calque's machine has."""

    name: str
    class_names: frozenset[str]
    settings: frozenset[str]
    required: frozenset[str]
    addresses: str
    key_files: frozenset[str] = frozenset()
    route: str = ""
    path: str = ""
    schemes: frozenset[str] = frozenset()
    own_login: bool = False


@dataclass(frozen=True, slots=True)
class LentLogin:
    """What a section of credentials lends to links whose addresses stand in parameters alone: it is used at addresses
    that `endpoints` (patterns) name, and nowhere else. `secret`: a password or a token is sent to whom it is used at.
    `tls`: within TLS, also where the address does not say so."""

    endpoints: tuple[str, ...] = ()
    secret: bool = False
    tls: bool = False


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """A local object that says it is a link. `connected_to` and `via` are its parameters as they stand. One with a
    reason is set aside; the others have a definition, and a layer (`plugins.remotes.core.layers`)."""

    connected_to: str
    via: str
    definition: LinkDefinition | None = None
    reason: str = ""
    layer: int = 0


@dataclass(frozen=True, slots=True)
class LinkRegistry:
    """All links of a local catalog, by their local names, as they were when somebody looked.

    `position` is the event of the local log up to which it was looked; None before the first look. `warehouse` is where
    the local catalog has its databases. `granted` are endpoints that statements named, `made` the links that they made,
    `copied` those whose files they have copied.
    `leaving` are names that were links, with what is still to become of the objects: `drop`, or `unmark` where they
    stay.
    """

    position: int | None = None
    warehouse: str = ""
    granted: frozenset[Endpoint] = frozenset()
    made: frozenset[TableName] = frozenset()
    copied: frozenset[TableName] = frozenset()
    links: Mapping[TableName, LinkRecord] = field(default_factory=dict)
    leaving: Mapping[TableName, str] = field(default_factory=dict)

    def taken(self) -> Mapping[TableName, LinkDefinition]:
        """Links that are not set aside."""
        return {
            name: record.definition
            for name, record in self.links.items()
            if record.definition is not None and not record.reason
        }


@dataclass(frozen=True, slots=True)
class SshHop:
    """A machine on the way, as whom it is logged in to. The hop before it resolves its name."""

    user: str
    host: str
    port: int = 22

    def place(self) -> str:
        """Host and port."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.user}@{self.place()}"


@dataclass(frozen=True, slots=True)
class SshRoute:
    """The way to a metastore: the last hop resolves the metastore's name and connects to it.

    keys: paths of files of private keys, one for each hop, or one for all. passphrase: of all that are encrypted.
    known_hosts: path of the file that says which keys the hops have. seconds: how long each step may take.
    """

    hops: tuple[SshHop, ...]
    keys: tuple[str, ...]
    known_hosts: str
    passphrase: Secret | None = None
    seconds: float = 30.0

    def key(self, number: int) -> str:
        """Of the hop of that number, from 0."""
        return self.keys[number] if len(self.keys) > 1 else self.keys[0]
