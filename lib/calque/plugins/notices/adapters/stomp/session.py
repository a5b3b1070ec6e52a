"""A connection to a broker that took the login, with what is sent over it and what the broker answers."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from stomp.connect import BaseConnection
from stomp.exception import StompException
from stomp.listener import ConnectionListener
from stomp.protocol import Protocol12

from calque.errors import AccessRefused, CalqueError, Unavailable
from calque.model.secrets import refusals_of_access
from calque.plugins.notices.adapters.stomp.address import StompAddress
from calque.plugins.notices.adapters.stomp.errors import refused_by, speaks_tls, unavailable
from calque.plugins.notices.adapters.stomp.transport import SocketTransport, connected

SILENCE = 10.0
"""Seconds without an answer after which a broker is given up."""
HEARTBEAT = 4_000
"""Milliseconds between two signs of life, for both sides."""
WITH_RECEIPT = 20
"""The number of frames of which the last one asks for a receipt."""
ROLLED_BACK = "marked rollback only"
"""The text that ActiveMQ answers to a COMMIT after an error in its transaction. The error itself may be told
behind it."""
ENDING = 2.0
"""Seconds in which the last words of a broker are read."""

# stomp.py's warnings would only repeat calque's errors.
logging.getLogger("stomp.py").addHandler(logging.NullHandler())
logging.getLogger("stomp.py").propagate = False


class RefusedLogins:
    """The digests of the logins that brokers refused in this process, with the refusals. These logins are not tried
    again."""

    def __init__(self) -> None:
        self.refusals: dict[bytes, AccessRefused] = {}


REFUSED = RefusedLogins()


class _Connection(BaseConnection, Protocol12):  # type: ignore[misc]
    """stomp.py's protocol over calque's transport."""

    def __init__(self, transport: SocketTransport) -> None:
        BaseConnection.__init__(self, transport)
        Protocol12.__init__(self, transport, (HEARTBEAT, HEARTBEAT))


class Session(ConnectionListener):  # type: ignore[misc]
    """A connection to the first host that takes connections and the login. The constructor raises `AccessRefused`, and
    `Unavailable` where no host does.

    `seconds` is how long the login may take, `silence` how long an answer may take, both in seconds. `messages` are the
    frames that came and were not taken yet, in order. `changed` is notified of every frame that comes, and of the
    connection's end.
    """

    def __init__(
        self, address: StompAddress, client_id: str = "", seconds: float = SILENCE, silence: float = SILENCE
    ) -> None:
        self.address, self._silence = address, silence
        self.changed = threading.Condition()
        self.messages: deque[Any] = deque()
        self._numbers = count(1)
        self._logged_in, self._ended = False, False
        self._errors: list[str] = []
        self._awaited: set[str] = set()
        self._passcode = address.passcode()
        digest = address.digest(self._passcode)
        if digest in REFUSED.refusals:
            raise REFUSED.refusals[digest]
        try:
            self._log_in(client_id, seconds)
        except AccessRefused as error:
            if self._errors:
                REFUSED.refusals[digest] = error
            raise

    @property
    def ended(self) -> bool:
        return self._ended

    def send(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send one frame without waiting for an answer. Raises the error of `problem`."""
        try:
            self._connection.send_frame(command, dict(headers), body)
        except (OSError, StompException) as error:
            # The broker may have said why before it closed.
            with self.changed:
                self.changed.wait_for(lambda: self._ended, ENDING)
            raise self.problem(str(error)) from error

    def send_and_wait(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send one frame, and wait until the broker has done it and all that was sent before. Raises the error of
        `problem`."""
        self._send_with_receipt(command, headers, body)
        self._wait_for_receipts()

    def send_all(self, command: str, headers: Sequence[Mapping[str, str]]) -> None:
        """Send one frame for each of `headers`, and wait until the broker has done them all. Several receipts are asked
        for on the way, so that a broker that is busy with one frame after the other does not count as silent. Raises
        the error of `problem`."""
        for number, of_frame in enumerate(headers, 1):
            if number % WITH_RECEIPT == 0 or number == len(headers):
                self._send_with_receipt(command, of_frame)
            else:
                self.send(command, of_frame)
        self._wait_for_receipts()

    def _send_with_receipt(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        receipt = f"calque-{next(self._numbers)}"
        with self.changed:
            self._awaited.add(receipt)
        self.send(command, {**headers, "receipt": receipt}, body)

    def _wait_for_receipts(self) -> None:
        with self.changed:
            while self._awaited and not self._errors and self._wait_for_fewer(len(self._awaited)):
                continue
            if self._awaited or self._errors:
                self.changed.wait_for(lambda: self._ended or not self._errors or bool(self._causes()), ENDING)
                raise self.problem(f"Nothing was answered for {self._silence:.0f} seconds")

    def _wait_for_fewer(self, receipts: int) -> bool:
        """Wait for a receipt, an error or the end, for at most the session's silence. Return whether a receipt came."""
        self.changed.wait_for(lambda: len(self._awaited) < receipts or self._ended or bool(self._errors), self._silence)
        return len(self._awaited) < receipts

    def _causes(self) -> list[str]:
        """Return the broker's errors that are not the mere consequence of another one."""
        return [error for error in self._errors if ROLLED_BACK not in error]

    def problem(self, otherwise: str) -> CalqueError:
        """Return the error to raise: the one that the broker told, else why the connection ended, else `Unavailable`
        with the text `otherwise`."""
        if self._errors:
            return refused_by(self.address, (self._causes() or self._errors)[0])
        if self._transport.foreign:
            return speaks_tls(self.address)
        if self._transport.failure is not None:
            return unavailable(self.address, f"The connection broke: {self._transport.failure}")
        return unavailable(self.address, "It closed the connection" if self._ended else otherwise)

    def error(self) -> str:
        """Return the first error that the broker told; empty without any."""
        return self._errors[0] if self._errors else ""

    def close(self) -> None:
        """Log out and close the connection. A second call does nothing."""
        if not self._ended:
            with suppress(OSError, StompException):
                self._connection.send_frame("DISCONNECT", {})
        self._transport.disconnect_socket()

    # Methods that stomp.py's thread calls

    def on_connected(self, frame: Any) -> None:  # noqa: ARG002
        with self.changed:
            self._logged_in = True
            self.changed.notify_all()

    def on_error(self, frame: Any) -> None:
        body = (frame.body or b"").decode(errors="replace").strip().partition("\n")[0]
        with self.changed:
            self._errors.append(f"{frame.headers.get('message', '')}: {body}".strip(": ") or "an error without a text")
            self.changed.notify_all()

    def on_receipt(self, frame: Any) -> None:
        with self.changed:
            self._awaited.discard(frame.headers["receipt-id"])
            self.changed.notify_all()

    def on_message(self, frame: Any) -> None:
        with self.changed:
            self.messages.append(frame)
            self.changed.notify_all()

    def on_disconnected(self) -> None:
        with self.changed:
            self._ended = True
            self.changed.notify_all()

    def _log_in(self, client_id: str, seconds: float) -> None:
        """Log in at the first host that takes the connection. A refused login is not tried at the next host, because
        all hosts take the same one."""
        of_host, problems = max(seconds / len(self.address.hosts), 1.0), list[str]()
        for host, port in self.address.hosts:
            try:
                self._log_in_at(host, port, client_id, of_host)
            except (OSError, Unavailable) as error:
                why = error.why if isinstance(error, Unavailable) else str(error.strerror or error)
                problems.append(f"{host}:{port}: {why}")
            else:
                return
        raise unavailable(self.address, "; ".join(problems))

    def _log_in_at(self, host: str, port: int, client_id: str, seconds: float) -> None:
        with refusals_of_access():
            open_socket = connected(self.address, host, port, seconds)
        self._logged_in = self._ended = False
        self._errors.clear()
        self._transport = SocketTransport(open_socket, host, port)
        self._connection = _Connection(self._transport)
        self._connection.set_listener("session", self)
        self._transport.start()
        try:
            headers = {"client-id": client_id} if client_id else {}
            self._connection.connect(self.address.user or None, self._passcode or None, headers=headers)
            with self.changed:
                self.changed.wait_for(lambda: self._logged_in or self._errors or self._ended, seconds)
                if not self._logged_in or self._errors:
                    raise self.problem("It took the connection and did not answer")
        except (OSError, StompException) as error:
            self.abandon()
            raise self.problem(str(error)) from error
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Shut the socket down, and wait until nothing more comes from the connection, for at most `ENDING` seconds."""
        self._transport.disconnect_socket()
        with self.changed:
            self.changed.wait_for(lambda: self._ended, ENDING)


def is_usable(session: Session | None) -> bool:
    return session is not None and not session.ended and not session.error()
