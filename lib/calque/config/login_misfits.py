"""The contradictions between the keys that say how a metastore is called, and between these keys and its addresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol
from urllib.parse import urlsplit

from calque.errors import Refused
from calque.model.secrets import Secret


class CalledMetastore(Protocol):
    """A section that says how a metastore is called, as `config.keys.MetastoreSection` has it."""

    metastore: tuple[str, ...]
    user: str
    auth: Any
    password_env: Any
    password_file: Any
    token_env: Any
    token_file: Any
    principal: str
    keytab: str
    service_principal: str
    tls: Any

    def password(self) -> Secret | None: ...

    def token(self) -> Secret | None: ...


def misfits(section: CalledMetastore) -> Iterator[tuple[str, Refused]]:
    """Yield each contradiction in the section, with the key that is to be changed."""
    scheme, *others = sorted({urlsplit(uri).scheme for uri in section.metastore})
    password, token = section.password(), section.token()
    if others:
        why = "User, login and TLS are the same for all of them"
        yield "metastore", Refused("the addresses are of several kinds", why, "Write them all with one scheme")
    if section.auth == "kerberos":
        yield from kerberos_misfits(section, scheme)
    for key in ("principal", "keytab", "service_principal"):
        if getattr(section, key) and section.auth != "kerberos":
            why = 'Only auth = "kerberos" does'
            yield key, Refused(f"nobody asks for {key}", why, "Write that, or remove it")
    if section.auth == "plain" and scheme != "thrift":
        todo = "Give a token by token_env or token_file"
        yield "auth", Refused(f'auth = "plain" is not for {scheme}', "Over HTTP servers take tokens", todo)
    if section.auth == "plain" and password is None:
        todo = 'Write password_env = "METASTORE_PASSWORD", or password_file'
        yield "auth", Refused("the password is missing", 'With auth = "plain" the server asks for it', todo)
    if section.auth == "plain" and not section.user:
        yield "auth", Refused("user is missing", "A password is somebody's", 'Write user = "calque"')
    if password is not None and section.auth != "plain":
        key = "password_env" if section.password_env else "password_file"
        yield key, Refused("nobody asks for a password", 'Only auth = "plain" does', "Write that, or remove it")
    if token is not None and scheme == "thrift":
        key = "token_env" if section.token_env else "token_file"
        why = "Only servers that speak HTTP take one"
        yield key, Refused("a token is not for thrift", why, 'Write metastore = "https://host:9083/metastore"')
    if token is not None and section.user:
        yield "user", Refused("the token says who the user is", "The server takes no other word", "Remove user")
    if section.tls.model_fields_set and scheme == "http":
        yield "tls", Refused("tls is not for http", "Such addresses are without TLS", "Write https:// in metastore")


def kerberos_misfits(section: CalledMetastore, scheme: str) -> Iterator[tuple[str, Refused]]:
    if scheme != "thrift":
        todo = "Give a token by token_env or token_file"
        yield "auth", Refused(f'auth = "kerberos" is not for {scheme}', "Over HTTP servers take tokens", todo)
    if section.user:
        yield "user", Refused("the ticket says who the user is", "The server takes no other word", "Remove user")
    if section.keytab and not section.principal:
        todo = 'Write principal = "calque@EXAMPLE.COM"; `klist -k` says which the keytab has'
        yield "keytab", Refused("the principal is missing", "A keytab may have the keys of several", todo)
