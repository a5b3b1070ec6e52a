"""As whom, and how, a metastore is called."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from calque.errors import Refused
from calque.model.secrets import Secret
from calque.model.tls import Tls

HIVE_SERVICE = "hive/_HOST"
"""The principal of most metastores."""


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


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """SASL GSSAPI over Thrift: a ticket of Kerberos, whose client principal is the user.

    principal: whose ticket; empty for that of the process. keytab: path of the file with the principal's keys, by which
    tickets are got; empty for those that the process has. service_principal: the server's, with `_HOST` for the host
    of its address; without a realm that of the host, as krb5.conf has it, else the client's.
    """

    principal: str = ""
    keytab: str = ""
    service_principal: str = HIVE_SERVICE

    def service_at(self, host: str) -> str:
        """The principal of the server at that host."""
        name, _, realm = self.service_principal.partition("@")
        first, *others = name.split("/")
        parts = (first, *(host.lower() if other == "_HOST" else other for other in others))
        return f"{'/'.join(parts)}@{realm}"

    def short_name(self) -> str:
        """The user as servers call him that map no names; empty for the ticket of the process."""
        return self.principal.partition("@")[0].partition("/")[0]


class Route(Protocol):
    """A way to a metastore that calque has no direct connection to. It can be pickled."""

    def connect(
        self, host: str, port: int, seconds: float, first: Callable[[str, int, float], Any], *, far_only: bool
    ) -> Any:
        """A socket to what the end of the way calls so; `first` makes the one to its beginning. With `far_only` it
        forbids near ones. Raises `OSError`, `AccessRefused` and `Refused`."""


Login = NoLogin | PasswordLogin | TokenLogin | KerberosLogin


@dataclass(frozen=True, slots=True)
class MetastoreAccess:
    """How calque calls a metastore. It can be printed and pickled: secrets are references.

    user: the name that calls are made under; empty for the operating system's, as Hive's own clients have it.
    tls: None for connections that anybody on the way can read, but where an address begins with https.
    far_only: nothing is connected to that is near calque itself (`plugins.remotes.core.permission`), whatever its name.
    route: None for a metastore that is connected to directly.
    """

    user: str = ""
    login: Login = NoLogin()
    tls: Tls | None = None
    far_only: bool = False
    route: Route | None = None

    def user_name(self) -> str:
        """Raises `Refused` where the operating system has no name for the user."""
        if self.user:
            return self.user
        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            what = f"The user {os.getuid()} of this process has no name"
            raise Refused(what, "Metastores know users by their names", 'Write user = "calque"') from None
