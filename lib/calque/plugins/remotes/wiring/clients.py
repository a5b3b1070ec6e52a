"""The clients of remote catalogs: those that are built in, and those that packages add by entry points."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from calque.plugins.remotes.adapters.catalogs import GLUE, ICEBERG
from calque.plugins.remotes.core.definitions import CLIENTS
from calque.plugins.remotes.model import ClientForm
from calque.plugins.remotes.ports import RemoteClient

LOG = logging.getLogger(__name__)
GROUP = "calque.remotes"
BUILT_IN: tuple[RemoteClient, ...] = (GLUE, ICEBERG)
"""The built-in clients of catalogs that are no metastores."""


@cache
def remote_clients() -> Mapping[str, RemoteClient]:
    """Return the clients of catalogs that are no metastores, by name. A client of a package is left out, with a log
    line, where its name is taken, or where it can't be loaded."""
    taken = {form.name for form in CLIENTS}
    clients: dict[str, RemoteClient] = {client.form.name: client for client in BUILT_IN}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.value.partition(":")[0], point.name)):
        try:
            client: RemoteClient = point.load()
            name = client.form.name
        except Exception as error:  # noqa: BLE001 - it is the package's own code
            LOG.warning("the client of remote catalogs %s can't be loaded: %r", point.value, error)
            continue
        if name in taken | clients.keys():
            LOG.warning("the client of remote catalogs %s is left out: there is one called %s", point.value, name)
        else:
            clients[name] = client
    return clients


def forms() -> tuple[ClientForm, ...]:
    """Return the names and settings of all clients, those for metastores first."""
    return (*CLIENTS, *(client.form for client in remote_clients().values()))
