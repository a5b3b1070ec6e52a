"""The socket below stomp.py's connection.

stomp.py's own transport waits for ever where a broker is silent, spins where a broker closes TLS, and does not tell why
a connection failed. Here every wait has a limit, and the reason is kept. One thread reads and others write; an object
of OpenSSL may be used by only one of them at a time, so a lock guards it.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time

from stomp.transport import BaseTransport

from calque.plugins.notices.adapters.stomp.address import StompAddress
from calque.plugins.notices.adapters.stomp.errors import distrusted

CONNECTING = 5.0
"""Seconds that a host has to take a connection."""
STUCK = 10.0
"""Seconds in which a broker must take some of what it is sent."""
CHUNK = 64 << 10
TLS_RECORDS = (b"\x15\x03", b"\x16\x03")
"""The first bytes of an alert and of a greeting of TLS. No frame of STOMP begins so."""


def connected(address: StompAddress, host: str, port: int, seconds: float) -> socket.socket:
    """Connect to the host within `seconds`, and `CONNECTING` at most, and return the socket, within TLS where the
    address asks for it. Raises `OSError` where the connection fails, `AccessRefused` where calque does not trust the
    broker's certificate, and `Refused` where the files of TLS can't be used."""
    context = address.tls.context() if address.tls is not None else None
    plain = socket.create_connection((host, port), timeout=min(seconds, CONNECTING))
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if context is None:
            return plain
        return context.wrap_socket(plain, server_hostname=host)
    except TimeoutError:
        plain.close()
        # A broker that does not speak TLS takes the greeting for the beginning of a line, and waits for the line's end.
        raise TimeoutError("it says nothing in TLS, which the port of another connector would not") from None
    except ssl.SSLError as error:
        plain.close()
        raise distrusted(address, host, port, error) from error
    except BaseException:
        plain.close()
        raise


class SocketTransport(BaseTransport):  # type: ignore[misc]
    """stomp.py's transport over a socket that is connected. `failure` is the error that ended the connection; `foreign`
    says that the other side speaks TLS where none was asked for."""

    def __init__(self, open_socket: socket.socket, host: str, port: int) -> None:
        super().__init__(auto_decode=False, is_eol_fc=lambda text: text in (b"\n", b"\r\n"))
        open_socket.setblocking(False)
        self.current_host_and_port, self.vhost = (host, port), None
        self.failure: Exception | None = None
        self.foreign = False
        self._socket = open_socket
        self._using, self._sending = threading.Lock(), threading.Lock()
        self._began = False

    def send(self, encoded_frame: bytes) -> None:
        """Send the whole frame. Raises `OSError`, and its `TimeoutError` where the broker takes nothing for `STUCK`
        seconds."""
        rest = memoryview(encoded_frame)
        with self._sending:
            deadline = time.monotonic() + STUCK
            while rest:
                try:
                    with self._using:
                        sent = self._socket.send(rest)
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError) as error:
                    if time.monotonic() > deadline or not self.running:
                        raise TimeoutError("it takes nothing more") from None
                    self._wait(select.POLLIN if isinstance(error, ssl.SSLWantReadError) else select.POLLOUT)
                else:
                    rest, deadline = rest[sent:], time.monotonic() + STUCK

    def receive(self) -> bytes:
        """Return the next bytes; empty bytes where the connection ended."""
        while self.running:
            try:
                with self._using:
                    data = self._socket.recv(CHUNK)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError) as error:
                self._wait(select.POLLOUT if isinstance(error, ssl.SSLWantWriteError) else select.POLLIN)
            except OSError as error:
                self.failure = error
                return b""
            else:
                self.foreign = not self._began and data[:2] in TLS_RECORDS
                self._began = True
                return b"" if self.foreign else data
        return b""

    def disconnect_socket(self) -> None:
        """Shut the socket down, so that every thread that waits for it wakes up. The thread that reads closes it."""
        self.running = False
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def cleanup(self) -> None:
        self._socket.close()

    def _wait(self, event: int) -> None:
        handle = self._socket.fileno()
        if handle < 0:
            raise ConnectionError("the connection is closed")
        poll = select.poll()
        poll.register(handle, event)
        poll.poll(500)
