"""A store that takes connections and says nothing: whoever asks it knows within seconds."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from calque.adapters.files.s3_requests import SILENT_SECONDS
from calque.adapters.files.storage import FileStorage
from calque.adapters.files.system import Own, Systems
from calque.errors import Unavailable
from calque.ports import CopyTask

MOST_SECONDS = SILENT_SECONDS + 10
"""Of a busy machine."""
AT = "s3a://bucket/dr"


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that reads whatever it is sent."""
    taken: list[socket.socket] = []

    def swallow(one: socket.socket) -> None:
        with suppress(OSError):
            while one.recv(1 << 20):
                continue

    def accept() -> None:
        with suppress(OSError):
            while True:
                taken.append(server.accept()[0])
                threading.Thread(target=swallow, args=(taken[-1],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    for one in taken:
        one.close()


def test_whatever_is_asked_of_a_silent_store_is_unavailable_within_seconds(silent: str, tmp_path: Path) -> None:
    options = {"endpoint_url": silent, "key": "k", "secret": "s", "region": "us-east-1"}
    files = [tmp_path / str(size) for size in (1000, 20 << 20)]
    for file in files:
        file.write_bytes(bytes(int(file.name)))
    tasks = [CopyTask(str(file), f"{AT}/t/{file.name}", file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    plain = FileStorage(Systems(options))
    noted = FileStorage(Systems(own=Own((AT,), options)))
    asked: dict[str, Callable[[], object]] = {
        "copy": lambda: plain.copy(tasks[:1]),
        "copy in parts": lambda: plain.copy(tasks[1:]),
        "copy many": lambda: plain.copy([replace(tasks[0], target=f"{AT}/{number}") for number in range(40)]),
        "copy with notes": lambda: noted.copy(tasks),
        "copy inside": lambda: plain.copy([CopyTask(f"{AT}/a", f"{AT}/b", 1000, 1)]),
        "list": lambda: plain.list([AT]),
        "list many": lambda: plain.list([f"{AT}/{number}" for number in range(100)]),
        "read": lambda: plain.read(f"{AT}/f"),
        "write": lambda: plain.write(f"{AT}/f", b"x"),
        "remove": lambda: plain.remove([AT]),
        "publish": lambda: plain.publish([(f"{AT}/staged", f"{AT}/f")]),
        "checksums": lambda: plain.checksums([f"{AT}/f", f"{AT}/g"]),
    }

    def seconds(ask: Callable[[], object]) -> float:
        began = time.monotonic()
        with pytest.raises(Unavailable):
            ask()
        return time.monotonic() - began

    with ThreadPoolExecutor(len(asked)) as pool:
        took = dict(zip(asked, pool.map(seconds, asked.values()), strict=True))
    assert not {what: each for what, each in took.items() if each > MOST_SECONDS}
