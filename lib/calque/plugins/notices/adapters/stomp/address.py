"""Where a broker is, and how one logs in there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from calque.model.secrets import Secret, refusals_of_access
from calque.model.tls import Tls


@dataclass(frozen=True, slots=True)
class StompAddress:
    """`hosts` are tried in their order: those of a pair, of which one takes connections at a time. `user` is empty
    where anybody may. `tls` is None for connections that anybody on the way can read. `section` is where all that
    stands in the configuration, for errors."""

    hosts: tuple[tuple[str, int], ...]
    user: str = ""
    password: Secret | None = None
    tls: Tls | None = None
    section: str = "[notices]"

    def __str__(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.hosts)

    def passcode(self) -> str:
        """Raises `AccessRefused` where it can't be read."""
        with refusals_of_access():
            return self.password.read() if self.password is not None else ""

    def digest(self, passcode: str) -> bytes:
        """Of a login, by which it is known that it was refused."""
        return hashlib.sha256(repr((self.hosts, self.user, passcode)).encode()).digest()
