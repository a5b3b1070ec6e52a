"""Logins by Kerberos, within SASL (RFC 4752): calque proves to a metastore who calls, and has it prove who it is.

Each login has tickets of its own, in a cache that lives as long as the process. libkrb5 fills it from the keytab, and
again when half of the tickets' life is over, so that every connection finds a valid ticket.
"""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gssapi
from thrift.transport.TTransport import TTransportException

from calque.adapters.metastore.addresses import Address
from calque.adapters.metastore.logins import LONGEST_FRAME, SERVICE, NegotiatedTransport, printable
from calque.adapters.metastore.weighed import LimitedTransport
from calque.errors import AccessRefused
from calque.model.access import KerberosLogin

AUTHENTICATED, SIGNED, SEALED = 1, 2, 4
"""The protections of the bytes after the login, as bits of a server's offer."""
LONGEST_BUFFER = (1 << 24) - 1
FIRST_ERROR = (1 << 32) - 1765328384
"""The offset of minor codes: a code less this number is a number of RFC 4120, or of libkrb5."""
CENTER_UNREACHABLE = 156
TODOS = {
    7: "Write the server's own principal (hive.metastore.kerberos.principal there) as service_principal",
    37: "Set the clocks of this host, of the key distribution center and of the server right",
    154: "Name a key distribution center below [realms] in krb5.conf, or in the file that KRB5_CONFIG names",
}
"""The advice for an unknown server, for clocks that differ, and for a realm without a center, by the number of the
error."""
LOOKING: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""Locks by the cache of tickets: libkrb5 empties a cache before it fills it again, and no thread may look for a ticket
meanwhile."""


class Mechanism:
    """The client's side of SASL GSSAPI, as `TSaslClientTransport` calls it."""

    mechanism = "GSSAPI"

    def __init__(self, context: Any, first_token: bytes) -> None:
        """Take a security context, and `first_token`, the first token that it gave."""
        self._context, self._first_token = context, first_token
        self._protection = AUTHENTICATED
        self.complete = False

    def process(self, challenge: bytes | None = None) -> bytes:
        """Return the answer to a challenge of the server, or the first token when there is no challenge yet."""
        if challenge is None:
            return self._first_token
        if not self._context.complete:
            return self._context.step(challenge) or b""
        offer = self._context.unwrap(challenge).message
        if len(offer) != 4:
            raise TTransportException(TTransportException.NOT_OPEN, "The server's offer of protection is malformed")
        self._protection = weakest(offer[0])
        self.complete = True
        answer = bytes([self._protection]) + LONGEST_BUFFER.to_bytes(3, "big")
        return bytes(self._context.wrap(answer, False).message)

    def wrap(self, data: bytes) -> bytes:
        if self._protection == AUTHENTICATED:
            return data
        with breaking_the_connection():
            return bytes(self._context.wrap(data, self._protection == SEALED).message)

    def unwrap(self, data: bytes) -> bytes:
        if self._protection == AUTHENTICATED:
            return data
        with breaking_the_connection():
            message, encrypted, _ = self._context.unwrap(data)
        if self._protection == SEALED and not encrypted:
            raise TTransportException(TTransportException.UNKNOWN, "The server sent in the clear what it has to seal")
        return bytes(message)

    def dispose(self) -> None:
        """Do nothing, because nothing outlives the context."""


@contextmanager
def breaking_the_connection() -> Iterator[None]:
    """Turn an error of signing, or of a wrong signature, into the transport's own error, which ends the connection as a
    socket's error does."""
    try:
        yield
    except gssapi.exceptions.GSSError as error:
        raise TTransportException(TTransportException.UNKNOWN, said_by_library(error)) from error


def weakest(offered: int) -> int:
    """Return the weakest of the protections that the server offers, as Hadoop's clients do: TLS is there for more.
    Raises `TTransportException` where none is known."""
    for protection in (AUTHENTICATED, SIGNED, SEALED):
        if offered & protection:
            return protection
    raise TTransportException(TTransportException.NOT_OPEN, "The server offers no protection that is known")


def log_in(limited: LimitedTransport, address: Address, login: KerberosLogin) -> Any:
    """Log in by a ticket, and return the transport of the connection. Both sides know each other then. Raises
    `AccessRefused` where there is no ticket, or the server does not take it, and `OSError` where a center, or the
    server, does not answer."""
    transport = NegotiatedTransport(limited, address.host, SERVICE, None, max_frame_size=LONGEST_FRAME)
    try:
        transport.sasl = mechanism(login, address.host)
        transport.open()
    except gssapi.exceptions.GSSError as error:
        raise problem(error, address, login) from error
    except TTransportException as error:
        if (why := transport.refusal()) is not None:
            todo = "Its log says more. Compare its principal with service_principal, and the clocks"
            raise refused_login(address, login, why, todo) from None
        raise ConnectionError(f'{error} (does it know Kerberos? auth = "kerberos" asks for it)') from error
    return transport


def mechanism(login: KerberosLogin, host: str) -> Mechanism:
    """Return a mechanism with a ticket for the server at `host`. Raises `GSSError` where there is none."""
    kerberos, principal = gssapi.MechType.kerberos, gssapi.NameType.kerberos_principal
    user = gssapi.Name(login.principal, principal) if login.principal else None
    server = gssapi.Name(login.service_at(host), principal)
    flag = gssapi.RequirementFlag
    flags = flag.mutual_authentication | flag.integrity | flag.confidentiality | flag.out_of_sequence_detection
    cache = cache_name(login)
    store = {"client_keytab": f"FILE:{login.keytab}", "ccache": cache} if cache else None
    with LOOKING[cache]:
        tickets = gssapi.Credentials(name=user, usage="initiate", mechs=[kerberos], store=store)
        context = gssapi.SecurityContext(name=server, creds=tickets, mech=kerberos, usage="initiate", flags=flags)
        return Mechanism(context, context.step() or b"")


def cache_name(login: KerberosLogin) -> str:
    """Return the name of the cache where libkrb5 keeps the tickets that it gets by the keytab; empty for the tickets
    that the process has."""
    if not login.keytab:
        return ""
    digest = hashlib.sha256(f"{login.principal}\0{login.keytab}".encode()).hexdigest()
    return f"MEMORY:calque-{digest}"


def said_by_library(error: gssapi.exceptions.GSSError) -> str:
    """Return the text of libkrb5 for the error, without its numbers."""
    return printable("; ".join(error.get_all_statuses(error.min_code, False)).encode())


def problem(error: gssapi.exceptions.GSSError, address: Address, login: KerberosLogin) -> AccessRefused | OSError:
    """Return the error to raise for an error of libkrb5: with its text and the advice that fits, or a `ConnectionError`
    where no key distribution center answers."""
    why = said_by_library(error)
    code = error.min_code - FIRST_ERROR
    if code == CENTER_UNREACHABLE:
        return ConnectionError(f"{why} (a key distribution center of Kerberos)")
    if code in TODOS:
        return refused_login(address, login, why, TODOS[code])
    if not login.keytab:
        todo = "Say `kinit` as the user that calque runs as, or write principal and keytab"
        return refused_login(address, login, why, todo)
    why = f"The keytab {login.keytab} gave no ticket: {unreadable(login.keytab) or why}"
    todo = "See by `klist -k` that it has the principal's newest key, and that calque's user can read it"
    return refused_login(address, login, why, todo)


def refused_login(address: Address, login: KerberosLogin, why: str, todo: str) -> AccessRefused:
    user, service = login.principal or "the ticket's user", login.service_at(address.host)
    return AccessRefused(f"Kerberos does not let {user} call {service}, the metastore at {address}", why, todo)


def unreadable(keytab: str) -> str:
    """Return why the file can't be read; empty where it can be. libkrb5 itself says of such a file only that it gave no
    ticket."""
    try:
        with Path(keytab).open("rb"):
            return ""
    except OSError as error:
        return error.strerror or str(error)
