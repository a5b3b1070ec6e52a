"""A door before a server that speaks HTTP: it lets pass who says the right word."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError

SECONDS = 30.0


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@contextmanager
def guarded(url: str, authorization: str, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of a door before `url`, for POSTs with that header; with `tls` it is one of https."""

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, answer = 401, b'{"error_code": 401, "message": "Who are you?"}'
            if self.headers["Authorization"] == authorization:
                status, answer = passed_on(f"{url}{self.path}", body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def passed_on(url: str, body: bytes) -> tuple[int, bytes]:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return 200, json.dumps(json.loads(answer.read())).encode()
    except HTTPError as error:
        with error:
            return error.code, error.read()
