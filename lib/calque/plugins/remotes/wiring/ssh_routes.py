"""The ways over SSH to remote metastores, from the settings of links and the credentials."""

from __future__ import annotations

from collections.abc import Mapping

from calque.config.places import metastores
from calque.config.secret_keys import one_secret
from calque.errors import Refused
from calque.plugins.remotes.adapters.ssh_way import SshWay
from calque.plugins.remotes.config import Credentials
from calque.plugins.remotes.core.definitions import URIS
from calque.plugins.remotes.core.ssh_routes import ROUTE, route_of


def ssh_route(settings: Mapping[str, str], credentials: Credentials) -> SshWay | None:
    """Return the way to a remote metastore over SSH; None where calque connects to it directly. Raises `Refused` for an
    address by HTTP, and for a route that can't be read."""
    if ROUTE not in settings:
        return None
    if any(not uri.startswith("thrift://") for uri in metastores(settings[URIS])):
        todo = "Write a thrift:// address, or leave VIA out"
        raise Refused("An address by HTTP does not go over SSH", f"'{URIS}' has one", todo)
    passphrase = one_secret("passphrase", credentials.passphrase_env, credentials.passphrase_file)
    return SshWay(route_of(settings, credentials.private_keys, credentials.known_hosts, passphrase))
