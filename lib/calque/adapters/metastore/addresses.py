"""The addresses at which a metastore listens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from calque.errors import Refused

DEFAULT_PORTS = {"thrift": 9083, "http": 80, "https": 443}
HTTP_PATH = "/metastore"
"""The path of servers over HTTP whose address has none."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a metastore. `scheme` is one of `DEFAULT_PORTS`; `path` is empty for Thrift."""

    scheme: str
    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def addresses(uris: str) -> Sequence[Address]:
    """Read a comma-separated list of URIs. Raises `Refused` for an empty list, and for a URI that is no address."""
    listed = tuple(address(uri) for uri in uris.split(",") if uri.strip())
    if not listed:
        raise Refused("No metastore address is given", "The list of URIs is empty", "Give thrift://host:port")
    return listed


def address(uri: str) -> Address:
    """Read `thrift://host:port`, `http://host:port/path` or `https://host:port/path`; a missing port or path is the
    default one. Raises `Refused` for other text."""
    parts = urlsplit(uri.strip())
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise Refused(f"{uri!r} is no address of a metastore", "It must look like thrift://host:9083", "Correct it")
    path = "" if parts.scheme == "thrift" else parts.path.rstrip("/") or HTTP_PATH
    return Address(parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS[parts.scheme], path)
