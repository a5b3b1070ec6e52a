"""Stands between calque and a metastore, and remembers what was asked."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from calque.adapters.metastore.client import address

VERSION = b"\x80\x01\x00\x01"
"""How a call begins; the length of its name and its name follow."""


@dataclass
class Asked:
    """Calls in their order, each with its bytes; `most` connections were open at a time. No answer comes through while
    `answering` is not set."""

    uri: str
    calls: list[tuple[str, bytes]] = field(default_factory=list)
    open: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    answering: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.answering.set()

    def named(self, method: str) -> list[bytes]:
        return [request for name, request in self.calls if name == method]


@contextmanager
def asked(uri: str) -> Iterator[Asked]:
    """A port that hands everything on to the metastore at `uri`."""
    listener = socket.create_server(("127.0.0.1", 0))
    found = Asked(f"thrift://127.0.0.1:{listener.getsockname()[1]}")

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(address(uri))
            for one, other, note in ((client, server, True), (server, client, False)):
                threading.Thread(target=hand_on, args=(found, one, other, note), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield found
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def hand_on(found: Asked, one: socket.socket, other: socket.socket, note: bool) -> None:
    """A caller sends nothing before it has its answer, so each call begins a chunk."""
    with found.lock:
        found.open += note
        found.most = max(found.most, found.open)
    try:
        while chunk := one.recv(1 << 20):
            if note and chunk.startswith(VERSION):
                (length,) = struct.unpack(">i", chunk[4:8])
                with found.lock:
                    found.calls.append((chunk[8 : 8 + length].decode(), chunk))
            if not note:
                found.answering.wait()
            other.sendall(chunk)
    except OSError:
        pass
    finally:
        with found.lock:
            found.open -= note
        for end in (one, other):
            with_shutdown(end)


def with_shutdown(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
