"""Whether an address leads near calque itself, where nothing allows that."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from calque.core.link_permission import is_near
from calque.errors import AccessRefused, Unavailable


def require_far(address: str) -> None:
    """Raises `AccessRefused` where the address leads to what is near calque itself, `Unavailable` for no name."""
    parts = urlsplit(address)
    try:
        resolved = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Unavailable(f"{address} is not known", str(error), "Check the name; it is tried again") from error
    near = next((str(one[4][0]) for one in resolved if is_near(str(one[4][0]))), None)
    if near is not None:
        todo = "Write this address out in [remotes] allow, or make the link by CREATE REMOTE in calque sql"
        raise AccessRefused(f"{address} leads to {near}", "It is near calque itself, and nothing allows that", todo)
