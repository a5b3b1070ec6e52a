"""Prove to a metastore who calls: by a password, or by a token.

What a server has refused this process does not send there again, so that nobody's account is locked by it: whoever
connects is refused at once, until the secret has another value.
"""

from __future__ import annotations

import hashlib
from typing import Any, assert_never

from thrift.transport.TTransport import TSaslClientTransport, TTransportException

from calque.adapters.metastore.addresses import Address
from calque.adapters.metastore.weighed import LimitedTransport
from calque.errors import AccessRefused
from calque.model.access import PasswordLogin, TokenLogin
from calque.model.secrets import FileSecret, Secret, VariableSecret

SERVICE = "metastore"
LONGEST_FRAME = 1 << 30
"""Bytes: an answer is one."""


class RefusedSecrets:
    """What servers refused, by address and user: the digest of the last value, and why."""

    def __init__(self) -> None:
        self._refused: dict[tuple[Address, str], tuple[bytes, str]] = {}

    def note(self, address: Address, user: str, value: str, why: str) -> None:
        self._refused[address, user] = digest(value), why

    def why(self, address: Address, user: str, value: str) -> str | None:
        """Why the value was refused; None for one that was not."""
        refused_digest, why = self._refused.get((address, user), (b"", ""))
        return why if refused_digest == digest(value) else None


REFUSED = RefusedSecrets()
"""Of this process."""


class PlainTransport(TSaslClientTransport):  # type: ignore[misc]
    """Thrift's own, that keeps the server's last word in the negotiation."""

    said: tuple[int, bytes] | None = None

    def recv_sasl_msg(self) -> tuple[int, bytes]:
        answer: tuple[int, bytes] = super().recv_sasl_msg()
        self.said = answer
        return answer


def log_in(limited: LimitedTransport, address: Address, user: str, login: PasswordLogin) -> Any:
    """The transport of a connection on which the server knows the user. Raises `AccessRefused` where it does not take
    the password, and `OSError` where it negotiates nothing."""
    password = login.password.read()
    if (why := REFUSED.why(address, user, password)) is not None:
        raise refused_password(address, user, login, why)
    transport = PlainTransport(
        limited, address.host, SERVICE, "PLAIN", max_frame_size=LONGEST_FRAME, username=user, password=password
    )
    try:
        transport.open()
    except TTransportException as error:
        match transport.said:
            case ((PlainTransport.BAD | PlainTransport.ERROR), bytes(said)):
                why = said.decode(errors="replace") or "It gives no reason"
                REFUSED.note(address, user, password, why)
                raise refused_password(address, user, login, why) from None
        raise ConnectionError(f'{error} (does it take passwords? auth = "plain" asks for it)') from error
    finally:
        transport.sasl.dispose()
    return transport


def bearer_headers(address: Address, login: TokenLogin) -> dict[str, str]:
    """With the value that the token has now. Raises `AccessRefused` for one that the server did not take before."""
    token = login.token.read()
    if (why := REFUSED.why(address, "", token)) is not None:
        raise refused_token(address, login, why)
    return {"Authorization": f"Bearer {token}"}


def note_refused_token(address: Address, login: TokenLogin, why: str) -> AccessRefused:
    """The server did not take the token."""
    REFUSED.note(address, "", login.token.read(), why)
    return refused_token(address, login, why)


def refused_password(address: Address, user: str, login: PasswordLogin, why: str) -> AccessRefused:
    todo = (
        f"Put the right one into {place_of(login.password)}, or correct the user; it is sent again when it has changed"
    )
    return AccessRefused(f"The metastore at {address} refuses the password of {user}", why, todo)


def refused_token(address: Address, login: TokenLogin, why: str) -> AccessRefused:
    todo = f"Put a valid one into {place_of(login.token)}; it is sent again when it has changed"
    return AccessRefused(f"The metastore at {address} refuses the token", why, todo)


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
