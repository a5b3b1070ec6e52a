"""Logins by a password, or by a token, which prove to a metastore who calls.

A secret that a server has refused is not sent there again by this process, so that no account is locked by it: a
further login is refused at once, until the secret has another value.
"""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, assert_never

from thrift.transport.TTransport import TSaslClientTransport, TTransportException

from calque.adapters.metastore.addresses import Address
from calque.adapters.metastore.weighed import LimitedTransport
from calque.errors import AccessRefused
from calque.model.access import PasswordLogin, TokenLogin
from calque.model.secrets import FileSecret, Secret, VariableSecret

SERVICE = "metastore"
LONGEST_REASON = 200
"""The bytes that are shown of why a server refuses."""
LONGEST_FRAME = 1 << 30
"""The greatest length of a frame in bytes; an answer is one frame."""


class SentSecrets:
    """The fate of secrets that were sent, by address and user: the digest of the value that was refused last, and why;
    the digest of the value that was taken."""

    def __init__(self) -> None:
        self._refused: dict[tuple[Address, str], tuple[bytes, str]] = {}
        self._taken: dict[tuple[Address, str], bytes] = {}
        self._trials: defaultdict[tuple[Address, str], threading.Lock] = defaultdict(threading.Lock)

    @contextmanager
    def trial(self, address: Address, user: str, value: str) -> Iterator[None]:
        """Hold the right to log in with this value. Until the server has taken a value one login goes on at a time, so
        that several threads do not send a wrong one."""
        if self._taken.get((address, user)) == digest(value):
            yield
            return
        with self._trials[address, user]:
            yield

    def note_taken(self, address: Address, user: str, value: str) -> None:
        self._taken[address, user] = digest(value)

    def note_refused(self, address: Address, user: str, value: str, why: str) -> None:
        self._taken.pop((address, user), None)
        self._refused[address, user] = digest(value), why

    def why_refused(self, address: Address, user: str, value: str) -> str | None:
        """Return why the server refused this value last; None where it did not."""
        refused_digest, why = self._refused.get((address, user), (b"", ""))
        return why if refused_digest == digest(value) else None


SENT = SentSecrets()
"""The secrets that this process has sent."""


class NegotiatedTransport(TSaslClientTransport):  # type: ignore[misc]
    """Thrift's own SASL transport, which keeps the server's last word in the negotiation in `said`."""

    said: tuple[int, bytes] | None = None

    def recv_sasl_msg(self) -> tuple[int, bytes]:
        answer: tuple[int, bytes] = super().recv_sasl_msg()
        self.said = answer
        return answer

    def refusal(self) -> str | None:
        """Return why the server ended the negotiation; None where it did not."""
        match self.said:
            case ((TSaslClientTransport.BAD | TSaslClientTransport.ERROR), bytes(said)):
                return printable(said[:LONGEST_REASON]) or "It gives no reason"
        return None


def log_in(limited: LimitedTransport, address: Address, user: str, login: PasswordLogin) -> Any:
    """Log in by a password, and return the transport of the connection. Raises `AccessRefused` where the server does
    not take the password, and `OSError` where it negotiates nothing."""
    password = login.password.read()
    with SENT.trial(address, user, password):
        if (why := SENT.why_refused(address, user, password)) is not None:
            raise refused_password(address, user, login, why)
        transport = NegotiatedTransport(
            limited, address.host, SERVICE, "PLAIN", max_frame_size=LONGEST_FRAME, username=user, password=password
        )
        try:
            transport.open()
        except TTransportException as error:
            if (why := transport.refusal()) is not None:
                SENT.note_refused(address, user, password, why)
                raise refused_password(address, user, login, why) from None
            raise ConnectionError(f'{error} (does it take passwords? auth = "plain" asks for it)') from error
        finally:
            transport.sasl.dispose()
        SENT.note_taken(address, user, password)
        return transport


def bearer_headers(address: Address, login: TokenLogin) -> dict[str, str]:
    """Return the HTTP header with the value that the token has now. Raises `AccessRefused` for a value that the server
    refused before."""
    token = login.token.read()
    if (why := SENT.why_refused(address, "", token)) is not None:
        raise refused_token(address, login, why)
    return {"Authorization": f"Bearer {token}"}


def note_refused_token(address: Address, login: TokenLogin, why: str) -> AccessRefused:
    """Note that the server did not take the token, and return the error to raise."""
    SENT.note_refused(address, "", login.token.read(), why)
    return refused_token(address, login, why)


def refused_password(address: Address, user: str, login: PasswordLogin, why: str) -> AccessRefused:
    todo = (
        f"Put the right one into {place_of(login.password)}, or correct the user; it is sent again when it has changed"
    )
    return AccessRefused(f"The metastore at {address} refuses the password of {user}", why, todo)


def refused_token(address: Address, login: TokenLogin, why: str) -> AccessRefused:
    todo = f"Put a valid one into {place_of(login.token)}; it is sent again when it has changed"
    return AccessRefused(f"The metastore at {address} refuses the token", why, todo)


def printable(said: bytes) -> str:
    """Return a server's words as one line that is fit for a terminal."""
    text = "".join(letter if letter.isprintable() else " " for letter in said.decode(errors="replace"))
    return " ".join(text.split())


def place_of(secret: Secret) -> str:
    match secret:
        case VariableSecret(name):
            return f"the environment variable {name}"
        case FileSecret(path):
            return f"the file {path}"
        case _:
            assert_never(secret)


def digest(value: str) -> bytes:
    return hashlib.sha256(value.encode()).digest()
