"""The pages of a running process, which only read: `/healthz`, `/readyz`, `/metrics`, `/status` and `/wait`, and those
of plugins, such as the page at `/`.

Probes get one word, and with the token the reasons. They have threads of their own.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from calque.errors import CalqueError, Refused, Unavailable
from calque.model.names import EventId
from calque.serve.front_page import FrontPage
from calque.serve.guard import METRICS, Guard, Tokens, has_token
from calque.serve.samples import ProcessSample

N = TypeVar("N", int, float)
JSON = "application/json"
PROBES = 2
"""The number of threads that look for probes."""
MOST_WAITS = 16
"""The number of clients that wait for events at a time, so that there is room for other requests."""
LONGEST_WAIT_SECONDS, WAIT_LOOK_SECONDS = 50.0, 0.1
"""Seconds for which a client waits at most, because an answer has to go within `connections.WHOLE_SECONDS`, and seconds
between two looks."""


def no_target(target: str, _event_id: EventId) -> EventWait:
    raise Refused(f'"{target}" is no target', "This process knows of none", "Ask another one")


@dataclass(frozen=True, slots=True)
class Pages:
    """The contents of the pages. `snapshot` and `metrics` read memory alone; `status` may ask the sources. `metrics`
    gets the client's Accept header. `wait` begins the wait of one client for an event at a target."""

    snapshot: Callable[[], ProcessSample]
    metrics: Callable[[str], tuple[bytes, str]]
    status: Callable[[], Mapping[str, Any]]
    front: FrontPage | None = None
    wait: Callable[[str, EventId], EventWait] = no_target
    asked: Mapping[str, Callable[[Mapping[str, str]], tuple[int, Any]]] = field(default_factory=dict)
    """Further questions at paths of their own: each gets the request's parameters, and returns status and document."""


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

    waiting = Waiting(pages.wait)
    asked = {path: answering(ask) for path, ask in pages.asked.items()}
    own = {"/healthz": healthz, "/readyz": readyz, METRICS: metrics, "/status": status, "/wait": waiting.answer}
    endpoints = {**own, **asked}

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


class EventWait(Protocol):
    """The wait of one client for an event at a target. `look` raises `Unavailable` where the event does not come by
    itself; `late` returns the error of a client whose time is over."""

    def look(self) -> Waited: ...

    def late(self, waited: Any, timeout: float) -> Unavailable: ...


class Waited(Protocol):
    @property
    def has_reached(self) -> bool: ...

    @property
    def position(self) -> EventId | None: ...


class Waiting:
    """The answers of `/wait`: 200 once the target shows the event, 504 when the time is over, and at once where the
    event does not come by itself. A client that waits holds no thread, and at most `MOST_WAITS` wait at a time."""

    def __init__(self, begin: Callable[[str, EventId], EventWait]) -> None:
        self.begin, self.waiting = begin, 0

    async def answer(self, request: Request) -> Response:
        if self.waiting >= MOST_WAITS:
            return document(HTTPStatus.SERVICE_UNAVAILABLE, {"error": "Too many wait at this moment. Ask again."})
        self.waiting += 1
        try:
            return document(*await self.waited(request.query_params))
        except Refused as refused:
            return document(HTTPStatus.BAD_REQUEST, {"error": str(refused)})
        except CalqueError as error:
            return document(HTTPStatus.GATEWAY_TIMEOUT, {"error": str(error)})
        finally:
            self.waiting -= 1

    async def waited(self, given: Mapping[str, str]) -> tuple[HTTPStatus, Any]:
        target, event_id = given.get("target", ""), number_of(int, given, "event_id")
        timeout = min(number_of(float, given, "timeout", LONGEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS)
        deadline = time.monotonic() + timeout
        wait = await run_in_threadpool(self.begin, target, event_id)
        while not (found := await run_in_threadpool(wait.look)).has_reached:
            if time.monotonic() >= deadline:
                raise wait.late(found, timeout)
            await asyncio.sleep(WAIT_LOOK_SECONDS)
        return HTTPStatus.OK, {"target": target, "event_id": event_id, "position": found.position}


def number_of(kind: Callable[[str], N], given: Mapping[str, str], key: str, default: N | None = None) -> N:
    """Return the request's parameter as a number of that kind, from 0 on. Raises `Refused` for any other text, and
    where it is missing and there is no default."""
    text = given.get(key, "" if default is None else str(default))
    try:
        value = kind(text)
        if not 0 <= value < float("inf"):
            raise ValueError
    except ValueError:
        problem = f"{key} is missing" if not text else f'{key}: "{text}" is no number from 0 on'
        raise Refused(problem, "The wait is for an event of a target", "Ask /wait?target=dr&event_id=812") from None
    return value


def answering(ask: Callable[[Mapping[str, str]], tuple[int, Any]]) -> Callable[[Request], Response]:
    """Return the endpoint of a question of a plugin."""

    def endpoint(request: Request) -> Response:
        try:
            status, answer = ask(request.query_params)
            return document(HTTPStatus(status), answer)
        except Refused as refused:
            return document(HTTPStatus.BAD_REQUEST, {"error": str(refused)})
        except CalqueError as error:
            return document(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)})

    return endpoint


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
