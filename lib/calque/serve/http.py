"""The HTTP server of a running process: an address, TLS, and a thread that answers until the process ends."""

from __future__ import annotations

import errno
import logging
import socket
import ssl
import threading
from dataclasses import dataclass
from typing import Any

import uvicorn

from calque.config.checks import Endpoint
from calque.errors import CalqueError, Refused, Unavailable
from calque.model.tls import ServerTls
from calque.serve.connections import ACCEPTED, Listener, TimeLimitedProtocol
from calque.serve.guard import Guard, Tokens
from calque.serve.pages import Pages, application

LOG = logging.getLogger(__name__)
DEFAULT = Endpoint("127.0.0.1", 9400)
"""The address of the pages where the configuration does not name one."""
END_SECONDS = 2
RENEWAL_SECONDS = 30
"""Seconds between two looks whether the certificate's files were written anew."""


@dataclass(frozen=True, slots=True)
class Access:
    """The tokens of the pages, and the certificate of the server; `tls` is None for plain HTTP."""

    tokens: Tokens
    tls: ServerTls | None


class Serving:
    """The HTTP server of the pages, which answers on a thread from `begin` to `end`. `address` is its URL."""

    def __init__(self, listener: socket.socket, pages: Guard, tls: ServerTls | None) -> None:
        self.listener, self.tls = Listener(listener), tls
        self.context = tls.context() if tls is not None else None
        host, port = self.listener.getsockname()[:2]
        scheme = "http" if tls is None else "https"
        self.address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        self.server = uvicorn.Server(
            uvicorn.Config(
                pages,
                loop="asyncio",
                http=self.protocol,  # type: ignore[arg-type]  # what makes a protocol does
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=ACCEPTED,
                timeout_graceful_shutdown=END_SECONDS,
                ssl_context_factory=None if self.context is None else self.same_context,
                callback_notify=self.renew_certificate,
                timeout_notify=RENEWAL_SECONDS,
            )
        )
        # Only the main thread has signals: the server leaves them alone on any other.
        self.thread = threading.Thread(target=self.server.run, args=([self.listener],), name="http", daemon=True)

    def begin(self) -> None:
        """Start the thread that answers. A client that connects earlier is not refused, and waits for it."""
        self.thread.start()
        LOG.info("health and metrics at %s", self.address)

    def end(self) -> None:
        self.server.should_exit = True
        if self.thread.is_alive():
            self.thread.join(timeout=5)
        self.listener.close()

    def protocol(self, *given: Any, **named: Any) -> TimeLimitedProtocol:
        return TimeLimitedProtocol(self.listener, *given, **named)

    def same_context(self, *_given: object) -> ssl.SSLContext:
        assert self.context is not None
        return self.context

    async def renew_certificate(self) -> None:
        """Load the certificate's files again, so that later connections show what is in them now. Where they can't be
        used, the old certificate goes on."""
        if self.tls is None or self.context is None:
            return
        try:
            self.tls.load(self.context)
        except Refused as refused:
            LOG.warning("the certificate shown before goes on: %s", refused)


def serve(endpoint: Endpoint | None, pages: Pages, access: Access) -> Serving:
    """Bind the address, answer the pages there, and return the server.

    None stands for the default address, or any free port of its host where another process has that. Raises
    `Unavailable` for an address that is taken, `Refused` for one that can't be had.
    """
    if endpoint is not None:
        return begun(bound(endpoint), pages, access)
    try:
        return begun(bound(DEFAULT), pages, access)
    except Unavailable as problem:
        serving = begun(bound(Endpoint(DEFAULT.host, 0)), pages, access)
        LOG.warning(
            "%s. They are at %s: a Prometheus scrape of port %d reads another process",
            problem.what,
            serving.address,
            DEFAULT.port,
        )
        return serving


def begun(listener: socket.socket, pages: Pages, access: Access) -> Serving:
    try:
        serving = Serving(listener, application(pages, access.tokens), access.tls)
    except CalqueError:
        listener.close()
        raise
    serving.begin()
    return serving


def bound(endpoint: Endpoint) -> socket.socket:
    """Return a socket that listens at the address. Raises as `serve` does."""
    address = endpoint.host, endpoint.port
    try:
        if ":" in endpoint.host:
            return socket.create_server(address, family=socket.AF_INET6, dualstack_ipv6=socket.has_dualstack_ipv6())
        return socket.create_server(address)
    except OSError as error:
        raise trouble(endpoint, error) from error


def require_free(endpoint: Endpoint) -> None:
    """Bind the address for a moment. Raises as `serve` does."""
    bound(endpoint).close()


def trouble(endpoint: Endpoint, error: OSError) -> Unavailable | Refused:
    problem, why = f"health and metrics can't be served at {endpoint}", str(error.strerror or error)
    if error.errno == errno.EADDRINUSE:
        return Unavailable(problem, why, "Stop who listens there, or choose another [serve] address")
    return Refused(problem, why, 'Choose another [serve] address, or "" for none')
