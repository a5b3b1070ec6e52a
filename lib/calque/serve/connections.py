"""The limits on connections to the pages: how many are open, and for how long. No client can keep others out, or use up
the descriptors of the process.

A socket counts from when it is accepted until it is closed, in TLS's handshake too. Where all that are allowed are
open, a new one takes the place of the oldest over which no request is being answered. A client that sends its request
at once, as probes do, therefore always gets in.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 64
"""The number of connections that are open at a time."""
ACCEPTED = 128
"""The number of connections that the system accepts before the process does."""
PATIENCE_SECONDS = 5.0
"""Seconds within which the head of a request has to come: the first head since the client has connected, others since
they began."""
WHOLE_SECONDS = 60.0
"""Seconds within which a request has to come, and its answer has to go."""


class Listener(socket.socket):
    """A listening socket for one event loop, which keeps at most `most` connections open. It takes over the descriptor
    of `listener`."""

    def __init__(self, listener: socket.socket, most: int = MOST) -> None:
        super().__init__(fileno=listener.detach())
        self.most = most
        self.open: dict[int, Connection] = {}
        """The open connections by their descriptors, the oldest first."""

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection, and end an old one where too many are open. Raises `BlockingIOError` also where no old
        one can be ended: the event loop tries again then."""
        accepted, address = super().accept()
        if not self.make_room():
            accepted.close()
            raise BlockingIOError
        return Connection(accepted, self), address

    def make_room(self) -> bool:
        if len(self.open) < self.most:
            return True
        oldest = next((one for one in self.open.values() if not one.is_answered), None)
        if oldest is None:
            return False
        oldest.leave()
        return True


class Connection(socket.socket):
    """An accepted connection. `is_answered` is True while a request that came over it is being answered. A client that
    is not through with TLS's handshake after `PATIENCE_SECONDS` is left."""

    def __init__(self, accepted: socket.socket, listener: Listener) -> None:
        super().__init__(fileno=accepted.detach())
        self.listener, self.number = listener, self.fileno()
        self.is_answered = self.is_through = False
        listener.open[self.number] = self
        asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self.leave_if_not_through)

    def close(self) -> None:
        self.forget()
        super().close()

    def leave(self) -> None:
        """Shut the connection down, and count it no more. The event loop that holds the socket finds its end, and
        closes it."""
        self.forget()
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def leave_if_not_through(self) -> None:
        if not self.is_through:
            self.leave()

    def forget(self) -> None:
        if self.listener.open.get(self.number) is self:
            del self.listener.open[self.number]


class TimeLimitedProtocol(H11Protocol):
    """The HTTP protocol of one connection. It leaves a client whose request takes too long, and has the listener know
    whether a request is being answered."""

    def __init__(self, listener: Listener, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.listener = listener
        self.opened: Connection | None = None
        self.head: asyncio.TimerHandle | None = None
        self.whole: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        opened = transport.get_extra_info("socket")
        self.opened = self.listener.open.get(opened.fileno()) if opened is not None else None
        if self.opened is not None:
            self.opened.is_through = True
        self.head = self.loop.call_later(PATIENCE_SECONDS, self.leave)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.note(head=False, whole=False)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is not h11.SEND_BODY:
            self.note(head=False, whole=False)
        self.look()

    def look(self) -> None:
        """Find out what has come of a request, and start or stop the timers for it."""
        cycle: Any = self.cycle
        is_answered = cycle is not None and not cycle.response_complete
        has_begun = not is_answered and bool(self.conn.trailing_data[0])
        if self.opened is not None:
            self.opened.is_answered = is_answered
        whole = is_answered or has_begun or self.conn.their_state is h11.SEND_BODY
        self.note(head=has_begun or cycle is None, whole=whole)

    def note(self, *, head: bool, whole: bool) -> None:
        """Run a timer for the head of a request, and one for the whole of it, as long as each is waited for. A timer
        that runs already goes on."""
        self.head = self.timer(self.head, head, PATIENCE_SECONDS)
        self.whole = self.timer(self.whole, whole, WHOLE_SECONDS)

    def timer(self, running: asyncio.TimerHandle | None, wanted: bool, seconds: float) -> asyncio.TimerHandle | None:
        if wanted:
            return running or self.loop.call_later(seconds, self.leave)
        if running is not None:
            running.cancel()
        return None

    def leave(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()
