"""The way to call a metastore: the user, the login, TLS, and the route to it."""

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
"""The service principal that most metastores have."""


@dataclass(frozen=True, slots=True)
class NoLogin:
    """The absence of a login: the server believes the user name that a client gives."""


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """A login by SASL PLAIN over Thrift: the user's password, as the server itself or a directory (LDAP) has it."""

    password: Secret


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """A login by a bearer token (JWT) over HTTP. The subject of the token is the user."""

    token: Secret


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """A login by SASL GSSAPI over Thrift: a ticket of Kerberos, whose client principal is the user.

    `principal` is the principal whose ticket is used, empty for that of the process's ticket. `keytab` is the path of
    the file with the principal's keys, by which calque gets tickets; empty for the tickets that the process has.
    `service_principal` is the server's, with `_HOST` for the host of its address. Without a realm it has that of the
    host, as krb5.conf has it, else the client's.
    """

    principal: str = ""
    keytab: str = ""
    service_principal: str = HIVE_SERVICE

    def service_at(self, host: str) -> str:
        """Return the principal of the server at `host`: `_HOST` is replaced by the host in lower case."""
        name, _, realm = self.service_principal.partition("@")
        first, *others = name.split("/")
        parts = (first, *(host.lower() if other == "_HOST" else other for other in others))
        return f"{'/'.join(parts)}@{realm}"

    def short_name(self) -> str:
        """Return the user as servers without name mapping call it: the principal without instance and realm; empty for
        the ticket of the process."""
        return self.principal.partition("@")[0].partition("/")[0]


class Route(Protocol):
    """A way to a metastore to which calque has no direct connection. It can be pickled."""

    def connect(
        self, host: str, port: int, seconds: float, first: Callable[[str, int, float], Any], *, far_only: bool
    ) -> Any:
        """Return a socket to `host` and `port`, names that the far end of the route resolves. `first(host, port,
        seconds)` makes the socket to the route's beginning. With `far_only` near addresses are forbidden. Raises
        `OSError` where a connection fails, `AccessRefused` where a login on the way is refused or an address is
        forbidden, and `Refused` where the route's settings can't be used."""


Login = NoLogin | PasswordLogin | TokenLogin | KerberosLogin


@dataclass(frozen=True, slots=True)
class MetastoreAccess:
    """The user, login and transport by which calque calls a metastore. It can be printed and pickled, because secrets
    are references.

    `user` is the name under which calls are made; empty for the operating system's user, as Hive's own clients have it.
    Without `tls` anybody on the way can read the connection, unless the address begins with https. With `far_only`
    calque connects to no address near itself (`plugins.remotes.core.permission`), also where a name leads to one.
    `route` is None for a metastore that is connected to directly.
    """

    user: str = ""
    login: Login = NoLogin()
    tls: Tls | None = None
    far_only: bool = False
    route: Route | None = None

    def user_name(self) -> str:
        """Return the name under which calls are made. Raises `Refused` where the operating system has no name for the
        user of this process."""
        if self.user:
            return self.user
        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            what = f"The user {os.getuid()} of this process has no name"
            raise Refused(what, "Metastores know users by their names", 'Write user = "calque"') from None
