"""As whom, and how, a metastore is called."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass

from calque.errors import Refused
from calque.model.secrets import Secret
from calque.model.tls import Tls


@dataclass(frozen=True, slots=True)
class NoLogin:
    """The server believes whoever says a name."""


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """SASL PLAIN over Thrift: the user's password, as the server itself or a directory (LDAP) has it."""

    password: Secret


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """A bearer token (JWT) over HTTP: whom it speaks of is the user."""

    token: Secret


Login = NoLogin | PasswordLogin | TokenLogin


@dataclass(frozen=True, slots=True)
class MetastoreAccess:
    """How calque calls a metastore. It can be printed and pickled: secrets are references.

    user: the name that calls are made under; empty for the operating system's, as Hive's own clients have it.
    tls: None for connections that anybody on the way can read, but where an address begins with https.
    far_only: nothing is connected to that is near calque itself (`core.link_permission`), whatever its name.
    """

    user: str = ""
    login: Login = NoLogin()
    tls: Tls | None = None
    far_only: bool = False

    def user_name(self) -> str:
        """Raises `Refused` where the operating system has no name for the user."""
        if self.user:
            return self.user
        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            what = f"The user {os.getuid()} of this process has no name"
            raise Refused(what, "Metastores know users by their names", 'Write user = "calque"') from None
