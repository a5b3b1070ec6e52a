"""Whom Spark's own ports answer: calls as its processes make them, by somebody who knows no secret."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

REQUEST, FAILURE = 3, 5
"""Types of messages in `org.apache.spark.network.protocol.Message`."""
LISTENING = "0A"


def answer(port: int) -> str:
    """To a call without a secret: the failure that it ends with; empty where nobody speaks that protocol."""
    body = b"\0" * 16
    head = struct.pack(">BqI", REQUEST, 7, len(body))
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(struct.pack(">q", 8 + len(head) + len(body)) + head + body)
        frame = b""
        while chunk := connection.recv(1 << 16):
            frame += chunk
            if len(frame) >= 8 and len(frame) >= struct.unpack(">q", frame[:8])[0]:
                break
        if len(frame) > 21 and frame[8] == FAILURE:
            return frame[21:].decode(errors="replace")
    return ""


def listening(process: int) -> Iterator[int]:
    """The ports of TCP on which the process listens."""
    inodes = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            inodes.add(str(descriptor.readlink()))
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENING and f"socket:[{words[9]}]" in inodes:
                yield int(words[1].rpartition(":")[2], 16)


def children(process: int) -> Iterator[int]:
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, file.read_text().split()):
            yield child
            yield from children(child)


def is_java(process: int) -> bool:
    return Path(f"/proc/{process}/comm").read_text().strip() == "java"
