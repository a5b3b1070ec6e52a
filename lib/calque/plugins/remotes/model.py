"""The names in a local catalog that stand for tables and databases of a remote catalog. The functions over them are in
`plugins.remotes.core.layers`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from calque.model.names import TableName
from calque.model.secrets import Secret


@dataclass(frozen=True, slots=True)
class Links:
    """All links into one remote catalog: local names are keys, remote names are values. Several local names may stand
    for one remote table or database. Names are lower-case."""

    tables: Mapping[TableName, TableName] = field(default_factory=dict)
    databases: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[TableName, TableName]]:
        """Return (local name, remote name) of each link; a database's name is one without a table."""
        for local, remote in self.databases.items():
            yield TableName(local), TableName(remote)
        yield from self.tables.items()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One remote catalog as one client reaches it. Links with the same endpoint share a connection, a capture and a
    journal. `via` is the client's name; `settings` are the client's own settings, normalized and sorted."""

    via: str
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LinkDefinition:
    """The definition of a link, as its statement or the parameters of a local object give it. `local` stands for
    `remote`: a database for a database (both names without a table), or a table for a table. `data` is `copy` for a
    table whose files are copied."""

    local: TableName
    remote: TableName
    endpoint: Endpoint
    data: str = "none"


@dataclass(frozen=True, slots=True)
class ClientForm:
    """The name of a client of remote catalogs, and the settings that it takes. `class_names` are names of Java classes
    that stand for it, without their packages. `addresses` names the setting with the addresses that it connects to,
    `route` the setting with the hops of SSH, and `key_files` those settings that name files or places on calque's own
    machine. A link with the setting `path` stands for the one table there: `default`, and the path's last word.
    `schemes` are those of the addresses that parameters alone may name; empty for any. `own_login`: without credentials
    the client uses a login of calque's machine."""

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
    """The login that a section of credentials lends to links whose addresses only parameters name. It is used only at
    addresses that a pattern in `endpoints` matches. `secret`: the login sends a password or a token. `tls`: it is sent
    within TLS, also where the address does not say so."""

    endpoints: tuple[str, ...] = ()
    secret: bool = False
    tls: bool = False


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """A local object whose parameters say that it is a link. `connected_to` and `via` are these parameters as they
    stand. A link with a `reason` is set aside. All others have a definition, and a layer
    (`plugins.remotes.core.layers`)."""

    connected_to: str
    via: str
    definition: LinkDefinition | None = None
    reason: str = ""
    layer: int = 0


@dataclass(frozen=True, slots=True)
class LinkRegistry:
    """All links of a local catalog, by their local names, as the last look found them.

    `position` is the event of the local log up to which that look saw; None before the first one. `warehouse` is the
    location of the local catalog's databases. `granted` are the endpoints that statements named, `made` the links that
    statements made, `copied` those whose files statements have copied. `leaving` has names that were links, with what
    is still to become of their objects: `drop`, or `unmark` where the objects stay.
    """

    position: int | None = None
    warehouse: str = ""
    granted: frozenset[Endpoint] = frozenset()
    made: frozenset[TableName] = frozenset()
    copied: frozenset[TableName] = frozenset()
    links: Mapping[TableName, LinkRecord] = field(default_factory=dict)
    leaving: Mapping[TableName, str] = field(default_factory=dict)

    def taken(self) -> Mapping[TableName, LinkDefinition]:
        """Return the definitions of the links that are not set aside, by local name."""
        return {
            name: record.definition
            for name, record in self.links.items()
            if record.definition is not None and not record.reason
        }


@dataclass(frozen=True, slots=True)
class SshHop:
    """A machine on the way to a metastore, and the user as whom calque logs in there. The hop before resolves the
    machine's name."""

    user: str
    host: str
    port: int = 22

    def place(self) -> str:
        """Return host and port as `host:port`."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.user}@{self.place()}"


@dataclass(frozen=True, slots=True)
class SshRoute:
    """The way to a metastore over hops of SSH: the last hop resolves the metastore's name and connects to it.

    `keys` are paths of files with private keys: one for each hop, or one for all. `passphrase` is that of all encrypted
    keys. `known_hosts` is the path of the file that says which keys the hops have. `seconds` is how long each step may
    take.
    """

    hops: tuple[SshHop, ...]
    keys: tuple[str, ...]
    known_hosts: str
    passphrase: Secret | None = None
    seconds: float = 30.0

    def key(self, number: int) -> str:
        """Return the path of the private key for the hop of that number, from 0."""
        return self.keys[number] if len(self.keys) > 1 else self.keys[0]
