"""The pages of a running process: `/healthz`, `/readyz`, `/metrics` and `/status`, which only read, and a plugin's page
at `/`.

Probes get one word, and with the token the reasons. They have threads of their own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from calque.errors import CalqueError
from calque.serve.front_page import FrontPage
from calque.serve.guard import METRICS, Guard, Tokens, has_token
from calque.serve.samples import ProcessSample

JSON = "application/json"
PROBES = 2
"""The number of threads that look for probes."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The contents of the pages. `snapshot` and `metrics` read memory alone; `status` may ask the sources. `metrics`
    gets the client's Accept header."""

    snapshot: Callable[[], ProcessSample]
    metrics: Callable[[str], tuple[bytes, str]]
    status: Callable[[], Mapping[str, Any]]
    front: FrontPage | None = None


def application(pages: Pages, tokens: Tokens) -> Guard:
    """Return all pages behind their tokens. Each page is answered on a thread of its own, because it may take a
    while."""

    probes = ThreadPoolExecutor(PROBES, thread_name_prefix="probe")

    async def probe(request: Request, problems: Callable[[ProcessSample], list[str]]) -> Response:
        found = await asyncio.get_running_loop().run_in_executor(probes, lambda: problems(pages.snapshot()))
        return verdict(found, has_reasons=has_token(request.headers, tokens))

    async def healthz(request: Request) -> Response:
        return await probe(request, lambda view: [f"{name} does not turn" for name in view.silent])

    async def readyz(request: Request) -> Response:
        return await probe(request, hindrances)

    def metrics(request: Request) -> Response:
        content, media_type = pages.metrics(request.headers.get("accept", ""))
        return response(HTTPStatus.OK, media_type, content)

    def status(_request: Request) -> Response:
        try:
            return document(HTTPStatus.OK, pages.status())
        except CalqueError as error:
            return document(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)})

    endpoints = {"/healthz": healthz, "/readyz": readyz, METRICS: metrics, "/status": status}

    def missing(request: Request, _error: Exception) -> Response:
        return document(
            HTTPStatus.NOT_FOUND,
            {
                "error": f"There is no {request.url.path}",
                "pages": [*endpoints, *(route.path for route in of_front[:1])],
            },
        )

    of_front = () if pages.front is None else pages.front.routes
    of_pages = [Route(path, endpoint) for path, endpoint in endpoints.items()]
    return Guard(Starlette(routes=[*of_pages, *of_front], exception_handlers={404: missing}), tokens, pages.front)


def verdict(problems: list[str], *, has_reasons: bool) -> Response:
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    if has_reasons:
        return document(status, {"ok": not problems, "problems": problems})
    return response(status, "text/plain", b"failing\n" if problems else b"ok\n")


def document(status: HTTPStatus, content: object) -> Response:
    return response(status, JSON, json.dumps(content, indent=2).encode() + b"\n")


def response(status: HTTPStatus, kind: str, content: bytes) -> Response:
    # The media type would get a charset; the header does not.
    return Response(content, status, {"Content-Type": kind, "Cache-Control": "no-store"})


def hindrances(view: ProcessSample) -> list[str]:
    """Return why the process does not do all its work now; nothing where it does."""
    hindrances = [f"{name} does not turn" for name in view.silent]
    captures = [(source.name, source.capture) for source in view.sources if source.capture is not None]
    if not view.targets and not captures:
        hindrances.append("it starts")
    for name, capture in captures:
        part = "capture" if len(view.sources) == 1 else f"capture of {name}"
        hindrances += because(part, capture.state, capture.problem)
        if not capture.reachable and capture.problem is None:
            hindrances.append(f"the source {name} has not answered")
    for target in view.targets:
        hindrances += because(target.name, target.state, target.problem)
    return hindrances


def because(name: str, state: str, problem: str | None) -> list[str]:
    if state != "running":
        return [f"{name} is {state}" + (f": {problem}" if problem else "")]
    return [f"{name}: {problem}"] if problem else []
