"""The forms of addresses, of metastores, brokers and registries, and of paths and URIs. Each function that reads one
raises `Refused` for a text of another form."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from calque.errors import Refused

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
BROKER = re.compile(r"[\w.-]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}", re.ASCII)
THRIFT = "thrift://"
LOGIN = re.compile(r"[^/?#@\s\",]*:[^/?#\s\",]*@")
"""A user and a password before a host."""
SCHEMES = {"thrift": "", "http": "/metastore", "https": "/metastore"}
"""The schemes of metastores, each with the path of an address that names none."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0:0:0:0:0:0:0:1"})


def metastores(value: object) -> tuple[str, ...]:
    """Return the addresses in a comma-separated list, in order and each once: `thrift://host:port` or
    `http://host:port/path`, the host in lower case. Raises `Refused` for a value that is no such list."""
    if not isinstance(value, str):
        raise Refused(f"{value!r} is not an address", "An address is text", 'Write "thrift://host:9083"')
    return tuple(dict.fromkeys(_metastore(part.strip()) for part in value.split(",")))


def brokers(value: str) -> str:
    """Return the comma-separated list of `host:port` without blanks. Raises `Refused` for a part of another form."""
    parts = [part.strip() for part in value.split(",")]
    for part in parts:
        if not BROKER.fullmatch(part):
            raise Refused(f'"{part}" is not a broker', "A broker is host:port", 'Write "host:9092"')
    return ",".join(parts)


def registries(value: str) -> str:
    """Return the comma-separated roots of a schema registry's API without blanks: `http://host:port/path`, without a
    closing slash. Raises `Refused` for a part of another form, and for one with a user's name in it."""
    return ",".join(_registry(part.strip()) for part in value.split(","))


def _registry(value: str) -> str:
    example = 'Write "http://host:8081"'
    try:
        parts = urlsplit(value)
        is_address = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise Refused("it is not the address of a registry", str(error), example) from None
    if parts.username is not None:
        todo = 'Write registry_options = { user = "calque", password_env = "REGISTRY_PASSWORD" }'
        raise Refused("it has a user's name in it", "Addresses are shown in errors", todo)
    if not is_address or parts.query or parts.fragment or re.search(r"\s", value):
        raise Refused(f'"{value}" is not the address of a registry', "One begins with http:// or https://", example)
    return value.rstrip("/")


def one_metastore(addresses: tuple[str, ...], other_addresses: tuple[str, ...]) -> bool:
    """Tell whether two lists share an address; all names of the local host count as one. False does not prove that
    there are two servers."""
    return bool({_endpoint(address) for address in addresses} & {_endpoint(address) for address in other_addresses})


def folder(value: str, base: Path) -> str:
    """Return a place of calque's own: an absolute path, also for `file:` URIs, or the URI of another file system."""
    uri = location(value, base)
    return uri.removeprefix("file://") if uri.startswith("file:///") else uri


def location(value: str, base: Path) -> str:
    """Return a place of data as a URI without a closing slash. A plain path is relative to `base`, and becomes
    `file:///…`."""
    if not value or value != value.strip():
        raise Refused(f'"{value}" is no path', "It is empty, or has blanks around it", "Write a path or a URI")
    if has_login(value):
        todo = 'Write the login as options of its storage, e.g. { username = "calque", password_env = "PASSWORD" }'
        raise Refused("it has a password in it", "Locations are recorded and shown", todo)
    if not SCHEME.match(value):
        return f"file://{absolute(base / value)}"
    scheme, _, path_part = value.partition(":")
    if ".." in PurePosixPath(path_part).parts:
        raise Refused(f'"{value}" steps upwards', "A URI is taken as it stands", "Write it without '..'")
    if scheme.lower() != "file":
        return f"{scheme}:{path_part}".rstrip("/")
    path = path_part.removeprefix("//localhost/") if path_part.startswith("//localhost/") else path_part.lstrip("/")
    if path_part.startswith("//") and not path_part.startswith(("///", "//localhost/")):
        raise Refused(f'"{value}" names a host', "A file URI is of this host", f'Write "file:///{path}"')
    return f"file://{absolute(Path('/') / path)}"


def has_login(text: str) -> bool:
    """Tell whether an address in the text has a password before its host."""
    return re.search(f"//{LOGIN.pattern}", text) is not None


def without_login(text: str) -> str:
    """Return the text with `…` in place of users and passwords in its addresses."""
    return LOGIN.sub("…@", text)


def absolute(path: Path) -> str:
    """Return the path without `.`, `..` and double slashes. Symbolic links are not followed."""
    parts: list[str] = []
    for part in path.parts[1:]:
        if part == "..":
            parts = parts[:-1]
        else:
            parts.append(part)
    return "/" + "/".join(parts)


def _metastore(text: str) -> str:
    example = 'Write "thrift://host:9083"'
    scheme, separator, _ = text.partition("://")
    if not separator or scheme.lower() not in SCHEMES:
        bare = text.rpartition("//")[2]
        todo = f'Write "{THRIFT}{bare}"' if re.fullmatch(r"[\w.-]+:\d+", bare) else example
        why = f"One begins with {THRIFT}, http:// or https://"
        raise Refused(f'"{text}" is not the address of a metastore', why, todo)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise Refused(f'"{text}" is not the address of a metastore', str(error), example) from None
    if parts.username is not None:
        todo = "Write user, and password_env or token_env, below it"
        raise Refused("the address has a user's name in it", "Addresses are shown in errors", todo)
    path = parts.path.rstrip("/")
    if not host or not port or parts.query or parts.fragment or (path and parts.scheme == "thrift"):
        raise Refused(f'"{text}" is not the address of a metastore', "One is a host and a port", example)
    if not re.fullmatch(r"[\w.:-]+", host, re.ASCII) or not re.fullmatch(r"[\w./~-]*", path, re.ASCII):
        raise Refused(f'"{text}" is not the address of a metastore', f'"{host}{path}" is no host', example)
    path = path or SCHEMES[parts.scheme]
    return f"{parts.scheme}://[{host}]:{port}{path}" if ":" in host else f"{parts.scheme}://{host}:{port}{path}"


def _endpoint(address: str) -> tuple[str, int | None]:
    parts = urlsplit(address)
    host = parts.hostname or ""
    return "localhost" if host in LOOPBACK else host, parts.port
