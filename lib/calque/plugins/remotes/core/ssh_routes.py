"""The hops of a route over SSH, as the setting `ssh.tunnel.route` = 'ann@bastion -> bob@node:2222' names them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from calque.errors import Refused
from calque.model.secrets import Secret
from calque.plugins.remotes.model import SshHop, SshRoute

ROUTE = "ssh.tunnel.route"
KEYS = "ssh.tunnel.private.keys"
KNOWN_HOSTS = "ssh.tunnel.known.hosts"
TIMEOUT = "ssh.tunnel.timeout"
"""The setting with the time for each step of the way, in milliseconds as in Waggle Dance."""
EXAMPLE = f"Write '{ROUTE}' = 'user@bastion -> user@node:2222'"
HOP = re.compile(r"([^\s@:\[\]/\\]+)@(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?", re.ASCII)
LONGEST_MILLISECONDS = 600_000


def hops_of(route: str) -> tuple[SshHop, ...]:
    """Return the hops of the route, the nearest first. Raises `Refused` for an invalid route."""
    return tuple(_hop(part.strip(), route) for part in route.split("->"))


def route_of(
    settings: Mapping[str, str], keys: tuple[str, ...], known_hosts: str, passphrase: Secret | None
) -> SshRoute:
    """Return the route that the settings name. `keys` and `known_hosts`, the files of the credentials, are used where
    the settings name none. Raises `Refused` where a file is not named, a path is not absolute, or the keys do not fit
    the hops."""
    hops = hops_of(settings[ROUTE])
    keys = tuple(part.strip() for part in settings[KEYS].split(",")) if KEYS in settings else keys
    known_hosts = settings.get(KNOWN_HOSTS, known_hosts)
    if not keys:
        raise _missing(KEYS, "private_keys", "Each hop asks for a private key")
    if not known_hosts:
        raise _missing(KNOWN_HOSTS, "known_hosts", "It says which keys the hops have; no other is trusted")
    if len(keys) not in (1, len(hops)):
        what = f"There are {len(keys)} private keys for {len(hops)} hop{'s' if len(hops) > 1 else ''}"
        raise Refused(what, "Each hop has one, in order, or all have the same", "Name one for each, or one for all")
    for path in (*keys, known_hosts):
        if not path.startswith("/"):
            raise Refused(f"'{path}' is no absolute path", "It would depend on where calque runs", "Write it from / on")
    route = SshRoute(hops, keys, known_hosts, passphrase)
    return replace(route, seconds=_seconds(settings[TIMEOUT])) if TIMEOUT in settings else route


def _hop(text: str, route: str) -> SshHop:
    match = HOP.fullmatch(text)
    if match is None or not 0 < int(match[4] or 22) <= 65535:
        what = f"'{route}' is no route" if text else f"'{route}' has an empty hop"
        raise Refused(what, f"'{text}' is not user@host or user@host:port" if text else "", EXAMPLE)
    return SshHop(match[1], (match[2] or match[3]).lower(), int(match[4] or 22))


def _missing(setting: str, key: str, why: str) -> Refused:
    todo = f"Write '{setting}' in a statement, or {key} in the section [remotes.credentials.NAME] that the link names"
    return Refused(f"'{setting}' is missing", why, todo)


def _seconds(milliseconds: str) -> float:
    if not milliseconds.isdecimal() or not 0 < int(milliseconds) <= LONGEST_MILLISECONDS:
        why = f"It is a number of milliseconds up to {LONGEST_MILLISECONDS}"
        raise Refused(f"'{TIMEOUT}' = '{milliseconds}' is no time", why, f"Write '{TIMEOUT}' = '30000'")
    return int(milliseconds) / 1000
