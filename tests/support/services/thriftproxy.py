"""Stands between calque and a server, and remembers what a metastore was asked. It can be as bad as a network can."""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from calque.adapters.metastore.addresses import address

VERSION = b"\x80\x01\x00\x01"
"""How a call begins; the length of its name and its name follow."""


@dataclass
class Asked:
    """Calls in their order, each with its bytes; `most` connections were open at a time. No answer comes through while
    `answering` is not set. The next answers to the methods in `losing`, so many of each, never come through: the
    connection is cut when the server has given them. `lost` are the methods that it happened to. So many answers as
    `cutting` says end in their middle, and each is late by `delay` seconds. Questions of more than `longest` bytes
    do not come through: their connections are cut."""

    uri: str
    calls: list[tuple[str, bytes]] = field(default_factory=list)
    open: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    answering: threading.Event = field(default_factory=threading.Event)
    losing: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    cutting: int = 0
    delay: float = 0.0
    longest: int = sys.maxsize
    refusing: bool = False
    sockets: set[socket.socket] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.answering.set()

    def named(self, method: str) -> list[bytes]:
        return [request for name, request in self.calls if name == method]

    def loses(self, method: str) -> bool:
        """Whether the answer to a call of it, which the server has just given, is lost."""
        with self.lock:
            if self.losing[method] <= 0:
                return False
            self.losing[method] -= 1
            self.lost.append(method)
            return True

    def cuts(self) -> bool:
        """Whether this answer ends in its middle."""
        with self.lock:
            cut = self.cutting > 0
            self.cutting -= cut
            return cut

    def refuse(self) -> None:
        """Cut all connections, and refuse new ones."""
        self.refusing = True
        with self.lock:
            sockets = list(self.sockets)
        end(*sockets)

    def heal(self) -> None:
        self.refusing, self.delay, self.cutting = False, 0.0, 0
        self.answering.set()


@contextmanager
def asked(uri: str) -> Iterator[Asked]:
    """A port that hands everything on to the server at `uri`."""
    listener = socket.create_server(("127.0.0.1", 0))
    behind = address(uri)
    found = Asked(f"thrift://127.0.0.1:{listener.getsockname()[1]}")

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                if found.refusing:
                    raise ConnectionRefusedError
                server = socket.create_connection((behind.host, behind.port))
            except OSError:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
                continue
            with found.lock:
                found.sockets |= {client, server}
            asking: list[str] = []
            for one, other, hand_on in ((client, server, questions), (server, client, answers)):
                threading.Thread(target=hand_on, args=(found, one, other, asking), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield found
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def questions(found: Asked, caller: socket.socket, server: socket.socket, asking: list[str]) -> None:
    """A caller sends nothing before it has its answer, so each call begins a chunk. `asking` gets its method."""
    with found.lock:
        found.open += 1
        found.most = max(found.most, found.open)
    try:
        size = 0
        for chunk in chunks(caller):
            size = len(chunk) + (0 if chunk.startswith(VERSION) else size)
            if size > found.longest:
                return
            if chunk.startswith(VERSION):
                (length,) = struct.unpack(">i", chunk[4:8])
                asking[:] = [chunk[8 : 8 + length].decode()]
                with found.lock:
                    found.calls.append((asking[0], chunk))
            server.sendall(chunk)
    except OSError:
        pass
    finally:
        with found.lock:
            found.open -= 1
            found.sockets -= {caller, server}
        end(caller, server)


def answers(found: Asked, server: socket.socket, caller: socket.socket, asking: list[str]) -> None:
    """A server answers when it has done what was asked: the first chunk tells that it did."""
    try:
        for chunk in chunks(server):
            if asking and found.loses(asking.pop()):
                return
            found.answering.wait()
            time.sleep(found.delay)
            if found.cuts():
                caller.sendall(chunk[: len(chunk) // 2])
                return
            caller.sendall(chunk)
    except OSError:
        pass
    finally:
        end(server, caller)


def chunks(one: socket.socket) -> Iterator[bytes]:
    while chunk := one.recv(1 << 20):
        yield chunk


def end(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
