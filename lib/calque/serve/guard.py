"""The rule for who may read which page: a client that has the page's token, where one is given; else a client that
addresses this host by its own name.

A foreign page could have a browser ask 127.0.0.1 under a name of its own, and read the answer as its own. It can't know
a token, so that with a token the name of the host does not matter. Where reading is open, a request without a token may
read under the host's own names, and everything but reading needs the token.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from calque.errors import Refused
from calque.model.secrets import Secret
from calque.serve.front_page import FrontPage

LOG = logging.getLogger(__name__)
OPEN = frozenset({"/healthz", "/readyz"})
"""Pages that never need a token, because the system that starts and ends processes has none. They say one word then."""
MOST_REQUESTS = 48
"""The number of requests for other pages that are answered at a time. It is lower than that of connections, so that
there is always room for a probe."""
METRICS = "/metrics"
READING = frozenset({"GET", "HEAD"})
"""The methods of requests that change nothing."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of the pages. `every` opens every page, `metrics` that of the metrics; None where no such token is
    given. With `reading_is_open` they are needed for actions alone."""

    every: Secret | None = None
    metrics: Secret | None = None
    reading_is_open: bool = False

    def of(self, path: str) -> tuple[Secret, ...]:
        """Return the tokens of which each opens the page at `path`; none where it is open to every client."""
        if path in OPEN:
            return ()
        tokens = (self.every, self.metrics) if path == METRICS else (self.every,)
        return tuple(token for token in tokens if token is not None)


class Guard:
    """The application behind its tokens: it passes on a request that has one of its page's tokens. Tokens are read at
    each request, so that a file that is written anew counts at once."""

    def __init__(self, application: ASGIApp, tokens: Tokens, front: FrontPage | None = None) -> None:
        self.application, self.tokens, self.front = application, tokens, front
        self.answering = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in OPEN:
            await self.application(scope, receive, send)
            return
        status = self.refusal(scope)
        if status is None and self.answering >= MOST_REQUESTS:
            await JSONResponse({"error": BUSY}, HTTPStatus.SERVICE_UNAVAILABLE)(scope, receive, send)
            return
        if status is None:
            self.answering += 1
            try:
                await self.application(scope, receive, send)
            finally:
                self.answering -= 1
            return
        front = self.front if self.front is not None and scope["path"] == self.front.path else None
        if front is not None and status is not HTTPStatus.MISDIRECTED_REQUEST:
            await front.shell(status)(scope, receive, send)
            return
        headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else {}
        await JSONResponse({"error": TEXTS[status]}, status, headers)(scope, receive, send)

    def refusal(self, scope: Scope) -> HTTPStatus | None:
        headers = Headers(scope=scope)
        is_open = self.front is not None and scope["path"].startswith(self.front.open_folder)
        tokens = () if is_open else self.tokens.of(scope["path"])
        if not tokens:
            is_guarded = self.tokens.every is not None or is_own_host(headers)
            return None if is_guarded else HTTPStatus.MISDIRECTED_REQUEST
        if self.tokens.reading_is_open and scope["method"] in READING and not given(headers):
            return None if is_own_host(headers) else HTTPStatus.MISDIRECTED_REQUEST
        values = list(readable(tokens))
        if is_one_of(given(headers), values):
            return None
        return HTTPStatus.UNAUTHORIZED if values else HTTPStatus.SERVICE_UNAVAILABLE


BUSY = "Too much is asked for at this moment."
TEXTS = {
    HTTPStatus.MISDIRECTED_REQUEST: "Without a token this is answered only under an IP address or localhost.",
    HTTPStatus.UNAUTHORIZED: "This page needs a token: Authorization: Bearer TOKEN.",
    HTTPStatus.SERVICE_UNAVAILABLE: "This page's token can't be read now. See the log of the process.",
}


def is_own_host(headers: Headers) -> bool:
    """Tell whether the request is addressed to this host by an IP address, as `localhost`, or without a name."""
    host = headers.get("host", "").rpartition("@")[2]
    name = host[1 : host.index("]")] if host.startswith("[") and "]" in host else host.partition(":")[0]
    try:
        ip_address(name)
    except ValueError:
        return name.lower() in ("localhost", "")
    return True


def has_token(headers: Headers, tokens: Tokens) -> bool:
    """Tell whether the request has the token of all pages; False where no such token is configured."""
    return tokens.every is not None and is_one_of(given(headers), list(readable([tokens.every])))


def readable(tokens: Iterable[Secret]) -> Iterator[str]:
    """Yield the values of those tokens that can be read at this moment. Others are logged."""
    for token in tokens:
        try:
            yield token.read()
        except Refused as refused:
            LOG.warning("a page stays closed: %s", refused)


def given(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def is_one_of(token: str, values: Iterable[str]) -> bool:
    """Tell whether `token` is one of the values, in a time that says nothing of them. `token` is a header's value,
    decoded as Latin-1."""
    encoded = token.encode("latin-1", "replace")
    return any(hmac.compare_digest(encoded, value.encode()) for value in values)
