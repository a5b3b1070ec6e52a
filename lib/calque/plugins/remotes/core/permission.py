"""The rules that decide who may have calque connect to an endpoint. The operator may, by a statement. A user who writes
parameters of a local object may, where `[remotes] allow` has a pattern for the address.

A pattern is an address with `*` and `?` in it, such as `thrift://hms-*.corp:9083`. Neither character stands for `/`,
`:` or `@`. An address near calque itself (loopback, link-local, unspecified) is only allowed by a pattern that writes
it out with its port: no wildcard reaches it. Over SSH each hop (`ssh://bastion:22`) and the metastore need a pattern,
and only the first hop can be near calque itself. A name may still lead to a near address by DNS: so the code that
connects calls `is_near` again for the address that was resolved. To links whose addresses only parameters name, a
section lends its credentials at addresses that it names itself, and no secret without TLS.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import urlsplit

from calque.core.policy.near_addresses import is_near
from calque.errors import Refused
from calque.plugins.remotes.core.definitions import CREDENTIALS
from calque.plugins.remotes.core.ssh_routes import hops_of
from calque.plugins.remotes.model import ClientForm, Endpoint, LentLogin


def refusal(
    endpoint: Endpoint,
    client: ClientForm,
    granted: Collection[Endpoint],
    allow: Collection[str],
    credentials: Mapping[str, LentLogin],
    own_addresses: Collection[str],
) -> Refused | None:
    """Return the reason why calque may not connect to the endpoint; None where it may. `granted` are the endpoints that
    statements named, `credentials` the logins of the sections by name. The local metastore, at `own_addresses`, is
    never allowed."""
    settings = dict(endpoint.settings)
    try:
        direct, behind = _addresses(endpoint, client)
    except Refused as refused:
        return refused
    own = {_place(address) for address in own_addresses}
    if any(_place(address) in own for address in direct):
        return Refused("The link leads to the local metastore itself", "", "Name another metastore, or make a view")
    name = settings.get(CREDENTIALS, "")
    if name and name not in credentials:
        todo = f"Write [remotes.credentials.{name}]" if name.isidentifier() else "Name a section that is there"
        return Refused(f"There are no credentials '{name}'", "The configuration has none of that name", todo)
    if endpoint in granted:
        return None
    if files := sorted(client.key_files & settings.keys()):
        todo = f"Write a section [remotes.credentials.NAME], and name it with '{CREDENTIALS}' = 'NAME'"
        return Refused(f"'{files[0]}' names a file of calque's machine", "Only a statement may do that", todo)
    if direct and client.schemes and (wrong := [one for one in direct if urlsplit(one).scheme not in client.schemes]):
        kinds = " or ".join(f"{scheme}://" for scheme in sorted(client.schemes))
        todo = "Make the link by CREATE REMOTE in calque sql"
        return Refused(f"Parameters alone can't name {wrong[0]}", f"They name addresses with {kinds}", todo)
    denied = [address for address in direct if not is_allowed(address, allow)]
    denied += [address for address in behind if not is_allowed(address, allow, behind_hop=True)]
    if denied:
        todo = "Add a pattern for it to [remotes] allow, or make the link by CREATE REMOTE in calque sql"
        return Refused(f"Nothing allows links to {denied[0]}", "An engine's parameters alone name it", todo)
    if not direct:
        return Refused("The link names no address that could be allowed", "", "Make it by CREATE REMOTE in calque sql")
    if not name and client.own_login:
        why = "The login of calque's own machine is lent to no address that parameters alone name"
        todo = f"Name credentials by '{CREDENTIALS}', or make the link by CREATE REMOTE in calque sql"
        return Refused("The link names no credentials", why, todo)
    return _unlent(name, credentials[name], direct, behind) if name else None


def _unlent(name: str, login: LentLogin, direct: Sequence[str], behind: Sequence[str]) -> Refused | None:
    """Return the reason why the credentials are not used at these addresses, which only parameters name; None where
    they may be."""
    outside = [one for one in direct if not is_allowed(one, login.endpoints)]
    outside += [one for one in behind if not is_allowed(one, login.endpoints, behind_hop=True)]
    if outside:
        why = "Parameters alone name that address, and the section does not"
        todo = f"Add a pattern for it to endpoints of [remotes.credentials.{name}], or make the link by CREATE REMOTE"
        return Refused(f"The credentials '{name}' are not for {outside[0]}", why, todo)
    open_ones = [address for address in (*direct, *behind) if login.secret and not _is_private(address, login.tls)]
    if open_ones:
        why = "Whoever is on the way could read it, and parameters alone name that address"
        todo = f"Write https://, or tls in [remotes.credentials.{name}]; or make the link by CREATE REMOTE"
        return Refused(f"No password or token of '{name}' goes to {open_ones[0]} without TLS", why, todo)
    return None


def _is_private(address: str, tls: bool) -> bool:
    """Tell whether the connection to the address is encrypted, so that a secret can't be read on the way. A hop of SSH
    passes, because it gets no secret."""
    scheme = urlsplit(address).scheme.lower()
    return scheme in ("https", "ssh") or (scheme == "thrift" and tls)


def is_allowed(address: str, allow: Collection[str], *, behind_hop: bool = False) -> bool:
    """Tell whether one of the patterns `allow` matches the address. A near address needs a pattern without wildcards,
    except `behind_hop`: the far end of a hop of SSH is never near calque itself."""
    normal = _normal(address)
    if normal is None:
        return False
    near = not behind_hop and is_near(_host(normal))
    return any(bool(_expression(pattern).fullmatch(normal)) and not (near and _is_wild(pattern)) for pattern in allow)


def require_pattern(text: str) -> str:
    """Return the pattern as it is. Raises `Refused` for a text that can't match any address."""
    scheme, separator, place = text.partition("://")
    if not separator or not scheme or not place.partition("/")[0] or re.search(r"[\s@]", text):
        why = "One is an address with * and ? in it"
        raise Refused(f'"{text}" is no pattern of addresses', why, 'Write e.g. "thrift://hms-*.corp:9083"')
    return text


def is_far_only(endpoint: Endpoint, client: ClientForm, granted: Collection[Endpoint]) -> bool:
    """Tell whether the names of the endpoint must not lead to near addresses. They may where a statement named the
    endpoint, and where the endpoint writes nothing but near addresses out, because a pattern without wildcards has to
    allow these."""
    if endpoint in granted:
        return False
    direct, _ = _addresses(endpoint, client)
    return not all(is_near(_host(_normal(address) or "")) for address in direct)


def _addresses(endpoint: Endpoint, client: ClientForm) -> tuple[list[str], list[str]]:
    """Return the addresses that calque itself connects to, and those that hops of SSH connect to. Raises `Refused` for
    an invalid route."""
    settings = dict(endpoint.settings)
    addresses = [part.strip() for part in settings.get(client.addresses, "").split(",") if part.strip()]
    if not client.route:
        return addresses, []
    first, *others = (f"ssh://{hop.place()}" for hop in hops_of(settings[client.route]))
    return [first], [*others, *addresses]


def _normal(address: str) -> str | None:
    """Return scheme, host, port and path in one spelling; None for a text that is no address, or that carries a
    login."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if not parts.scheme or not parts.hostname or "@" in parts.netloc or re.search(r"[\s\\]", address):
        return None
    host = parts.hostname.lower().rstrip(".")
    at = f"[{host}]" if ":" in host else host
    return (
        f"{parts.scheme.lower()}://{at}:{port or DEFAULT_PORTS.get(parts.scheme.lower(), '')}{parts.path.rstrip('/')}"
    )


def _place(address: str) -> str:
    """Return host and port of the address. All names of calque's own machine become `localhost`."""
    parts = urlsplit(_normal(address) or "")
    return f"{'localhost' if is_near(parts.hostname or '') else parts.hostname}:{parts.port}"


DEFAULT_PORTS: Mapping[str, int] = {"thrift": 9083, "http": 80, "https": 443, "ssh": 22}


def _host(normal: str) -> str:
    return urlsplit(normal).hostname or ""


def _is_wild(pattern: str) -> bool:
    place = pattern.partition("://")[2].partition("/")[0]
    return "*" in place or "?" in place


def _expression(pattern: str) -> re.Pattern[str]:
    text = "".join(
        "[^/:@]*" if character == "*" else "[^/:@]" if character == "?" else re.escape(character.lower())
        for character in pattern
    )
    return re.compile(text)
