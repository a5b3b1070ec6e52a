"""S3 stores that are silent, busy or full: whoever asks knows within seconds, and which of them it is."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest

from calque.adapters.files.attempt import CopyTerms
from calque.adapters.files.storage import FileStorage
from calque.adapters.files.systems import FileSystemSet, OwnLocations
from calque.app import APP
from calque.errors import Unavailable
from calque.plugins.s3.adapters.requests import SILENT_SECONDS, S3Requests
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


def options_of(endpoint: str) -> dict[str, str]:
    return {"endpoint_url": endpoint, "key": "k", "secret": "s", "region": "us-east-1"}


def test_whatever_is_asked_of_a_silent_store_is_unavailable_within_seconds(silent: str, tmp_path: Path) -> None:
    options = options_of(silent)
    files = [tmp_path / str(size) for size in (1000, 20 << 20)]
    for file in files:
        file.write_bytes(bytes(int(file.name)))
    tasks = [CopyTask(str(file), f"{AT}/t/{file.name}", file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    plain = FileStorage(FileSystemSet(options, kinds=APP.file_systems()))
    noted = FileStorage(FileSystemSet(own=OwnLocations((AT,), options), kinds=APP.file_systems()))
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


class Store(ThreadingHTTPServer):
    """Has one object, whatever it is asked for, and gives these answers before it: a status and the protocol's word for
    it, once more for each time that is left."""

    daemon_threads = True

    def __init__(self, *answers: tuple[int, str], times: int = 1_000) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.answers = list(answers) * times
        self.asked: list[Message] = []
        """The headers of all requests."""

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    def do_GET(self) -> None:
        self.server.asked.append(self.headers)
        status, word = self.server.answers.pop() if self.server.answers else (200, "")
        content = f"<Error><Code>{word}</Code><Message>no</Message></Error>".encode() if word else b"hello"
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", '"e"')
        self.send_header("Last-Modified", "Sun, 22 Nov 2026 00:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_HEAD = do_GET  # noqa: N815

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def serving(store: Store) -> Iterator[FileStorage]:
    thread = threading.Thread(target=store.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield FileStorage(
            FileSystemSet(options_of(store.endpoint), kinds=APP.file_systems()), terms=CopyTerms(attempts=1)
        )
    finally:
        store.shutdown()
        store.server_close()
        thread.join(30)


def test_a_store_that_is_busy_for_a_moment_is_asked_again() -> None:
    with serving(Store((503, "SlowDown"), (500, "InternalError"), times=1)) as storage:
        assert storage.read(f"{AT}/f") == b"hello"


def test_a_store_that_stays_busy_is_unavailable_and_no_file_of_it_is_lost(tmp_path: Path) -> None:
    began = time.monotonic()
    with serving(Store((503, "SlowDown"))) as storage, pytest.raises(Unavailable, match="Can't read s3a://"):
        storage.copy([CopyTask(f"{AT}/f", str(tmp_path / "f"), 5, 1)])
    assert time.monotonic() - began < MOST_SECONDS


@pytest.mark.parametrize("answer", [(403, "QuotaExceeded"), (507, "InsufficientStorage"), (507, "XMinioStorageFull")])
def test_a_store_without_room_says_so(answer: tuple[int, str]) -> None:
    with serving(Store(answer)) as storage, pytest.raises(Unavailable, match=f"No room to write {AT}/f"):
        storage.write(f"{AT}/f", b"x")


def test_nothing_of_the_environment_mixes_with_what_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    other = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_SESSION_TOKEN": "t", "AWS_ACCESS_KEY_ID": "another"}
    for name, value in {**other, "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "eu-central-1"}.items():
        monkeypatch.setenv(name, value)
    store = Store()
    with serving(store) as storage:
        assert storage.read(f"{AT}/f") == b"hello"
        storage.write(f"{AT}/f", b"x")
    assert len(store.asked) >= 2
    for headers in store.asked:
        assert "Credential=k/" in headers["Authorization"]
        assert "/us-east-1/" in headers["Authorization"]
        assert "x-amz-security-token" not in headers


@pytest.mark.parametrize("answer", [(301, "PermanentRedirect"), (400, "AuthorizationHeaderMalformed")])
def test_a_bucket_in_another_region_is_left_to_who_finds_it(answer: tuple[int, str]) -> None:
    store = Store(answer, times=1)
    with serving(store):
        options = {"endpoint_url": store.endpoint, "key": "k", "secret": "s", "skip_instance_cache": True}
        requests = S3Requests(fsspec.filesystem("s3", **options))
        assert [requests.read("bucket", "f", 5) for _ in range(2)] == [b"hello", b"hello"]
    assert ["botocore" in headers["User-Agent"].lower() for headers in store.asked] == [False, True, True]
