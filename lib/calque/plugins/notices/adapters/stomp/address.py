"""The address of a STOMP broker, with its login."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from calque.model.secrets import Secret, refusals_of_access
from calque.model.tls import Tls


@dataclass(frozen=True, slots=True)
class StompAddress:
    """The hosts of a broker and the login there. `hosts` are tried in order: they are those of a pair, of which only
    one takes connections at a time. `user` is empty where the broker needs no login. `tls` is None for connections that
    are not encrypted. `section` is where all this stands in the configuration, for errors."""

    hosts: tuple[tuple[str, int], ...]
    user: str = ""
    password: Secret | None = None
    tls: Tls | None = None
    section: str = "[notices]"

    def __str__(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.hosts)

    def passcode(self) -> str:
        """Return the password, empty where none is configured. Raises `AccessRefused` where it can't be read."""
        with refusals_of_access():
            return self.password.read() if self.password is not None else ""

    def digest(self, passcode: str) -> bytes:
        """Return a digest of hosts, user and password, by which a login that was refused is recognised."""
        return hashlib.sha256(repr((self.hosts, self.user, passcode)).encode()).digest()
