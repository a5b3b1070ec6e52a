"""The HTTP endpoint of a running process: `/healthz`, `/readyz`, `/metrics`, `/status`. It reads, and takes nothing."""

from __future__ import annotations

import errno
import json
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from calque.config.checks import Endpoint
from calque.errors import CalqueError, Refused, Unavailable
from calque.serve.metrics import ProcessView

LOG = logging.getLogger(__name__)
DEFAULT = Endpoint("127.0.0.1", 9400)
"""Where it is served when the configuration does not say."""
PATIENCE_SECONDS = 10.0
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Pages:
    """What is served. `look` and `metrics` ask nobody; `status` may ask the source."""

    look: Callable[[], ProcessView]
    metrics: Callable[[], bytes]
    status: Callable[[], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Page:
    status: HTTPStatus
    kind: str
    content: bytes


class Serving:
    """Answers from `begin` to `end`. `address` is where, as a URL."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.server = server
        host, port = server.server_address[:2]
        host_text = str(host)
        self.address = f"http://{f'[{host_text}]' if ':' in host_text else host_text}:{port}"
        self.thread = threading.Thread(target=server.serve_forever, name="http", daemon=True)

    def begin(self) -> None:
        self.thread.start()
        LOG.info("health and metrics at %s", self.address)

    def end(self) -> None:
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join(timeout=5)
        self.server.server_close()


def serve(endpoint: Endpoint | None, pages: Pages) -> Serving:
    """Bind the address and answer there. None: the default one, or any free port of its host where another process has
    that. Raises `Unavailable` for an address that is taken, `Refused` for one that can't be had."""
    if endpoint is not None:
        return begun(bound(endpoint, pages))
    try:
        return begun(bound(DEFAULT, pages))
    except Unavailable as problem:
        LOG.info("%s", problem)
        return begun(bound(Endpoint(DEFAULT.host, 0), pages))


def begun(server: ThreadingHTTPServer) -> Serving:
    serving = Serving(server)
    serving.begin()
    return serving


def bound(endpoint: Endpoint, pages: Pages) -> ThreadingHTTPServer:
    try:
        return Server(endpoint, pages)
    except OSError as error:
        raise trouble(endpoint, error) from error


def require_free(endpoint: Endpoint) -> None:
    """Have the address for a moment. Raises as `serve` does."""
    try:
        socket.create_server((endpoint.host, endpoint.port), family=family_of(endpoint)).close()
    except OSError as error:
        raise trouble(endpoint, error) from error


def trouble(endpoint: Endpoint, error: OSError) -> Unavailable | Refused:
    problem, why = f"health and metrics can't be served at {endpoint}", str(error.strerror or error)
    if error.errno == errno.EADDRINUSE:
        return Unavailable(problem, why, "Stop who listens there, or choose another [serve] address")
    return Refused(problem, why, 'Choose another [serve] address, or "" for none')


def family_of(endpoint: Endpoint) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 32

    def __init__(self, endpoint: Endpoint, pages: Pages) -> None:
        self.address_family = family_of(endpoint)
        self.pages = pages
        super().__init__((endpoint.host, endpoint.port), RequestHandler)

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
        """A client that goes away is nothing to tell."""
        LOG.debug("a request was not answered", exc_info=True)


class RequestHandler(BaseHTTPRequestHandler):
    server_version, sys_version = "calque", ""
    timeout = PATIENCE_SECONDS
    server: Server

    def do_GET(self) -> None:
        page = answer(self.path.partition("?")[0], self.server.pages)
        self.send_response(page.status)
        self.send_header("Content-Type", page.kind)
        self.send_header("Content-Length", str(len(page.content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(page.content)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        LOG.debug(format, *args)


def answer(path: str, pages: Pages) -> Page:
    match path:
        case "/healthz":
            return verdict([f"{name} does not turn" for name in pages.look().silent])
        case "/readyz":
            return verdict(hindrances(pages.look()))
        case "/metrics":
            return Page(HTTPStatus.OK, CONTENT_TYPE_LATEST, pages.metrics())
        case "/status":
            try:
                return page_of(HTTPStatus.OK, pages.status())
            except CalqueError as error:
                return page_of(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)})
    return page_of(HTTPStatus.NOT_FOUND, {"error": f"There is no {path}", "pages": list(PAGES)})


PAGES = ("/healthz", "/readyz", "/metrics", "/status")


def verdict(problems: list[str]) -> Page:
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    return page_of(status, {"ok": not problems, "problems": problems})


def page_of(status: HTTPStatus, document: object) -> Page:
    return Page(status, JSON, json.dumps(document, indent=2).encode() + b"\n")


def hindrances(look: ProcessView) -> list[str]:
    """Why the process does not do all that it is there for."""
    hindrances = [f"{name} does not turn" for name in look.silent]
    if not look.targets and look.capture is None:
        hindrances.append("it starts")
    if look.capture is not None:
        hindrances += because("capture", look.capture.state, look.capture.problem)
        if not look.capture.reachable and look.capture.problem is None:
            hindrances.append("the source has not answered")
    for target in look.targets:
        hindrances += because(target.name, target.state, target.problem)
    return hindrances


def because(name: str, state: str, problem: str | None) -> list[str]:
    if state != "running":
        return [f"{name} is {state}" + (f": {problem}" if problem else "")]
    return [f"{name}: {problem}"] if problem else []
