"""The parameters of local objects that make them links: read, checked and written.

`CREATE REMOTE TABLE` and any engine write the same parameters:

    'calque.remote.connected_to' = 'shop.orders', 'calque.remote.via' = 'thrift',
    'hive.metastore.uris' = 'thrift://far:9083'
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from calque.core.images.own_parameters import CONNECTED_TO, OF_CLIENTS, PREFIX
from calque.errors import Refused, nearest
from calque.model.names import TableName, table_name
from calque.plugins.remotes.core.ssh_routes import KEYS, KNOWN_HOSTS, ROUTE, TIMEOUT
from calque.plugins.remotes.model import ClientForm, Endpoint, LinkDefinition

VIA = f"{PREFIX}via"
DATA = f"{PREFIX}data"
"""The parameter that is `copy` for a link whose files are copied. Only a statement may set it."""
CREDENTIALS = f"{PREFIX}credentials"
"""The setting with the NAME of a section [remotes.credentials.NAME]."""
COPY, NONE = "copy", "none"
URIS = "hive.metastore.uris"
OF_ENDPOINTS = "remote."
"""The beginning of the names of endpoints."""

THRIFT = ClientForm(
    "thrift",
    frozenset({"ThriftHiveMetastoreClientFactory", "SessionHiveMetaStoreClientFactory"}),
    frozenset({URIS, CREDENTIALS}),
    frozenset({URIS}),
    URIS,
)
SSH = ClientForm(
    "ssh",
    frozenset({"SSHThriftHiveMetastoreClientFactory"}),
    frozenset({URIS, CREDENTIALS, ROUTE, KEYS, KNOWN_HOSTS, TIMEOUT}),
    frozenset({URIS, ROUTE}),
    URIS,
    frozenset({KEYS, KNOWN_HOSTS}),
    ROUTE,
)
SECRET = re.compile(r"(password|passwd|pwd|passphrase|secret|token|(access|account|shared)[._-]?key)", re.IGNORECASE)
"""The words in the names of parameters whose values are secrets."""
CLIENTS = (THRIFT, SSH)
"""The clients for metastores, which are built in."""


def link_of_parameters(
    local: TableName, parameters: Mapping[str, str], clients: Sequence[ClientForm]
) -> LinkDefinition:
    """Return the link that the object `local` with these parameters is. Parameters that are no setting of a client, and
    do not seem to be meant as one, are the object's own. Raises `Refused` for an unknown client, and for settings that
    are missing, wrong or of no client."""
    known = {setting for client in clients for setting in client.settings}
    settings = {key: value for key, value in parameters.items() if key in known or _is_meant_for_client(key)}
    link = link_of(local, parameters.get(CONNECTED_TO), parameters.get(VIA), settings, clients)
    data = parameters.get(DATA, NONE)
    if data not in (COPY, NONE):
        raise Refused(f"'{DATA}' = '{data}' is no choice", "It is copy or none", "Write ALTER REMOTE TABLE t SET DATA")
    return replace(link, data=data)


def link_of(
    local: TableName,
    connected_to: str | None,
    via: str | None,
    settings: Mapping[str, str],
    clients: Sequence[ClientForm],
) -> LinkDefinition:
    """Return the link that a statement asks for. Without `connected_to` the remote name is the local name, or `default`
    and the last word of the path where the client's settings have a path. Without `via` the client is `thrift`. Raises
    `Refused` for an unknown client, for settings that it does not know or lacks, for secrets, and for an invalid
    name."""
    local = table_name(*local)
    client = client_of(via, clients)
    for key in settings:
        _require_no_secret(key)
        if key not in client.settings:
            raise Refused(
                f"'{key}' is no setting of '{client.name}'", nearest(key, sorted(client.settings)), "Correct it"
            )
    given = {key: value.strip() for key, value in settings.items() if value.strip()}
    for key in sorted(client.required - given.keys()):
        raise Refused(
            f"'{key}' is missing", f"The client '{client.name}' needs it", f"Write '{key}' among the link's properties"
        )
    if connected_to:
        remote = _remote_name(connected_to, bool(local.table))
    else:
        remote = TableName("default", last_word(given[client.path])) if given.get(client.path) else local
    return LinkDefinition(local, remote, Endpoint(client.name, tuple(sorted(given.items()))))


def last_word(path: str) -> str:
    """Return the last part of the path, lower-case, as the name of the table that lies there."""
    return path.rstrip("/").rpartition("/")[2].lower()


def client_of(via: str | None, clients: Sequence[ClientForm]) -> ClientForm:
    """Return the client whose name is `via`, or that the Java class of this name in any package stands for; None stands
    for `thrift`. Raises `Refused` for an unknown name, and names the nearest client."""
    name = (via or THRIFT.name).strip()
    for client in clients:
        if name.lower() == client.name or name.rpartition(".")[2] in client.class_names:
            return client
    todo = "Name one of them, or leave VIA out for 'thrift'"
    raise Refused(f"There is no client '{name}'", nearest(name, [client.name for client in clients]), todo)


def parameters_of(link: LinkDefinition) -> dict[str, str]:
    """Return the parameters that make a local object this link."""
    data = {DATA: COPY} if link.data == COPY else {}
    return {CONNECTED_TO: str(link.remote), VIA: link.endpoint.via, **data, **dict(link.endpoint.settings)}


def endpoint_name(endpoint: Endpoint, client: ClientForm) -> str:
    """Return the name of the endpoint among sources and targets. `calque.source` of its links has this name. The name
    stays the same as long as the endpoint's settings do. Example: remote.thrift.hms-far-corp.1f0c9a52."""
    address = dict(endpoint.settings).get(client.addresses, "").partition(",")[0]
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        host = ""
    words = re.sub(r"[^a-z0-9]+", "-", host.lower()).strip("-")[:24] or "catalog"
    digest = hashlib.blake2b(repr((endpoint.via, endpoint.settings)).encode(), digest_size=4).hexdigest()
    return f"{OF_ENDPOINTS}{endpoint.via}.{words}.{digest}"


def is_of_endpoint(source: str) -> bool:
    """Tell whether `source`, the name of a source, is the name of an endpoint."""
    return source.startswith(OF_ENDPOINTS)


def _remote_name(text: str, is_table: bool) -> TableName:
    database, dot, table = text.strip().partition(".")
    if not database or bool(dot) != is_table or bool(table) != is_table or "." in table:
        form, example = ("database.table", "sales.orders") if is_table else ("one name", "sales")
        kind = "table" if is_table else "database"
        raise Refused(f"'{text}' names no remote {kind}", f"It is {form}", f"Write e.g. {example}")
    return table_name(database, table)


def _is_meant_for_client(key: str) -> bool:
    is_own = key.startswith(PREFIX) and key not in (CONNECTED_TO, VIA, DATA)
    return is_own or (key.startswith(OF_CLIENTS) and bool(SECRET.search(key)))


def _require_no_secret(key: str) -> None:
    if SECRET.search(key):
        raise Refused(
            f"'{key}' would be a secret in the catalog",
            "Parameters can be read by everybody",
            f"Write a section [remotes.credentials.NAME], and name it with '{CREDENTIALS}' = 'NAME'",
        )
