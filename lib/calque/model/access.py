"""As whom, and how, a metastore is called."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class SshHop:
    """A machine on the way, as whom it is logged in to. The hop before it resolves its name."""

    user: str
    host: str
    port: int = 22

    def place(self) -> str:
        """Host and port."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.user}@{self.place()}"


@dataclass(frozen=True, slots=True)
class SshRoute:
    """The way to a metastore: the last hop resolves the metastore's name and connects to it.

    keys: paths of files of private keys, one for each hop, or one for all. passphrase: of all that are encrypted.
    known_hosts: path of the file that says which keys the hops have. seconds: how long each step may take.
    """

    hops: tuple[SshHop, ...]
    keys: tuple[str, ...]
    known_hosts: str
    passphrase: Secret | None = None
    seconds: float = 30.0

    def key(self, number: int) -> str:
        """Of the hop of that number, from 0."""
        return self.keys[number] if len(self.keys) > 1 else self.keys[0]


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
    route: SshRoute | None = None

    def user_name(self) -> str:
        """Raises `Refused` where the operating system has no name for the user."""
        if self.user:
            return self.user
        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            what = f"The user {os.getuid()} of this process has no name"
            raise Refused(what, "Metastores know users by their names", 'Write user = "calque"') from None
