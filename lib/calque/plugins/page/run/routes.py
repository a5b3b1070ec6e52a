"""The routes of the page: `/` itself, its static files, JSON for them, and actions.

The files hold no data, so that they are open to everybody. `/` answers 401 without a token, with the same file, in
which the user can enter a token. The browser keeps the token for its tab and sends it in a header, never in a cookie.
So a page of another site can't have the browser send it, and requests with the token come from this page alone.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from calque.errors import CalqueError, Refused, nearest
from calque.plugins.page.run.table_list import TableOrder, TableQuery, as_csv, as_json
from calque.ports.records import Json
from calque.serve.front_page import FrontPage

LOG = logging.getLogger(__name__)
FOLDER = Path(__file__).parent / "assets"
PAGE, ASSETS, API = "/", "/assets/", "/api/"
MOST_ROWS = 200
LONGEST_BODY = 65_536
UNNAMED = re.compile(r"[^A-Za-z0-9_-]+")
"""Characters that a file's name does not get from a target's name."""
KINDS = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript"}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
NO_TOKEN = "Actions need a token, and none is configured. Write token_env or token_file below [serve]."


@dataclass(frozen=True, slots=True)
class ExportForm:
    """A form in which all tables of a search are sent: `pieces` makes it out of the rows."""

    ending: str
    media_type: str
    pieces: Callable[[Iterable[Mapping[str, Any]]], Iterator[bytes]]


EXPORTS: Mapping[str, ExportForm] = {
    "csv": ExportForm("csv", "text/csv; charset=utf-8", as_csv),
    "json": ExportForm("json", "application/json", as_json),
}


@dataclass(frozen=True, slots=True)
class LinkQuery:
    """A search for links. `text` is a part of a local name, or a glob. `state` is a link's state, or empty for all."""

    text: str = ""
    state: str = ""
    offset: int = 0
    limit: int = 50


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """An action that the page asks for. `tables` are patterns; without any, the action concerns the target itself, or
    all that it can concern."""

    action: str
    target: str
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Console:
    """The functions by which the page asks the process. Each may raise `CalqueError`, which the page shows."""

    overview: Callable[[], Json]
    lags: Callable[[float], Json]
    """A function that returns the lags that were sampled after the given time (seconds since the epoch)."""
    tables: Callable[[TableQuery], Json]
    every_table: Callable[[TableQuery], Iterator[Mapping[str, Any]]]
    """Returns all tables that the query takes, for an export. Its offset and limit do not count."""
    table: Callable[[str, str], Json]
    """A function that returns the chain of a table, by the names of the target and of the table."""
    links: Callable[[LinkQuery], Json]
    about: Callable[[], Json]
    act: Callable[[ActionRequest], Json]
    """A function that begins an action and returns at once; `overview` shows how an action that takes long goes on."""


def shell(status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Return the page's HTML without any data, with this status."""
    content = (FOLDER / "index.html").read_bytes()
    headers = {**HEADERS, "Content-Type": KINDS[".html"], "Cache-Control": "no-cache"}
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(content, status, headers)


def front_page(console: Console, has_token: bool) -> FrontPage:
    """Return the page to be served. `has_token` says whether every request that passes `serve.guard` has shown a token;
    only then actions are possible."""
    return FrontPage(path=PAGE, open_folder=ASSETS, shell=shell, routes=tuple(routes(console, has_token)))


def routes(console: Console, has_token: bool) -> list[Route]:
    assets = {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.suffix in (".css", ".js")}

    def page(_request: Request) -> Response:
        return shell()

    def asset(request: Request) -> Response:
        name = request.path_params["name"]
        content = assets.get(name)
        if content is None:
            return document({"error": f"There is no {request.url.path}"}, HTTPStatus.NOT_FOUND)
        tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        headers = {**HEADERS, "ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(content, headers={**headers, "Content-Type": KINDS[Path(name).suffix]})

    def export(request: Request) -> Response:
        try:
            form, query = EXPORTS[required_form(request)], query_of(request)
            rows = form.pieces(console.every_table(query))
        except CalqueError as error:
            return refusal(error)
        name = UNNAMED.sub("-", query.target)
        disposition = f'attachment; filename="calque-{name}-tables.{form.ending}"'
        headers = {**HEADERS, "Cache-Control": "no-store", "Content-Disposition": disposition}
        return StreamingResponse(rows, headers=headers, media_type=form.media_type)

    def answering(answer: Callable[[Request], Json]) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            return answered(lambda: answer(request))

        return endpoint

    async def act(request: Request) -> Response:
        if not has_token:
            return document({"error": NO_TOKEN}, HTTPStatus.FORBIDDEN)
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return document({"error": "An action is asked for in JSON."}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return document({"error": "An action is asked for by this page alone."}, HTTPStatus.FORBIDDEN)
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > LONGEST_BODY:
                return document({"error": "That is too long."}, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return await run_in_threadpool(answered, lambda: console.act(action_of(body)))

    return [
        Route(PAGE, page),
        Route(ASSETS + "{name}", asset),
        Route(API + "overview", answering(lambda _: console.overview())),
        Route(API + "lags", answering(lambda request: console.lags(number(request, "since", 0.0)))),
        Route(API + "tables", answering(lambda request: console.tables(query_of(request)))),
        Route(API + "export", export),
        Route(API + "table", answering(lambda request: console.table(text(request, "target"), text(request, "name")))),
        Route(API + "links", answering(lambda request: console.links(LinkQuery(*search_of(request))))),
        Route(API + "about", answering(lambda _: console.about())),
        Route(API + "actions", act, methods=["POST"]),
    ]


def answered(answer: Callable[[], Json]) -> Response:
    try:
        return document(answer())
    except CalqueError as error:
        return refusal(error)


def refusal(error: CalqueError) -> Response:
    status = HTTPStatus.BAD_REQUEST if isinstance(error, Refused) else HTTPStatus.SERVICE_UNAVAILABLE
    return document({"error": str(error)}, status)


def document(content: Json | Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Response:
    headers = {**HEADERS, "Content-Type": "application/json", "Cache-Control": "no-store"}
    return Response(orjson.dumps(content), status, headers)


def text(request: Request, key: str) -> str:
    return request.query_params.get(key, "")


def number(request: Request, key: str, default: float) -> float:
    try:
        value = float(request.query_params.get(key, default))
        if not math.isfinite(value):
            raise ValueError
        return value
    except ValueError:
        raise Refused(f'"{text(request, key)}" is no number', f"{key} is one", "Ask again with one") from None


def query_of(request: Request) -> TableQuery:
    """Return the search for tables that the request asks for. `order` is the name of an order; a minus sign before it
    turns the order round. Raises `Refused` for any other order."""
    asked, known = text(request, "order"), [one.value for one in TableOrder]
    order = asked.removeprefix("-")
    if order not in ("", *known):
        raise Refused(f'There is no order "{order}"', "", nearest(order, known))
    chosen = TableOrder(order or TableOrder.NAME)
    return TableQuery(text(request, "target"), *search_of(request), order=chosen, is_turned=asked.startswith("-"))


def required_form(request: Request) -> str:
    """Return the name of the form in which tables are exported. Raises `Refused` for one that there is not."""
    form = text(request, "format")
    if form not in EXPORTS:
        raise Refused(f'Tables are not exported as "{form}"', "", nearest(form, EXPORTS))
    return form


def search_of(request: Request) -> tuple[str, str, int, int]:
    """Return text, state, offset and limit of the request's search. Raises `Refused` for an offset or limit that is no
    number."""
    offset, limit = (int(number(request, key, default)) for key, default in (("offset", 0), ("limit", 50)))
    return text(request, "q"), text(request, "state"), max(offset, 0), min(max(limit, 1), MOST_ROWS)


def action_of(body: bytes) -> ActionRequest:
    """Return the action in the body of a request. Raises `Refused` for a body of any other form."""
    form = '{"action": "pause", "target": "dr", "tables": ["sales.*"]}'
    try:
        match orjson.loads(body):
            case {"action": str(action), "target": str(target), **rest} if rest.keys() <= {"tables"}:
                tables = rest.get("tables", [])
                if isinstance(tables, list) and all(isinstance(one, str) for one in tables):
                    return ActionRequest(action, target, tuple(tables))
    except orjson.JSONDecodeError:
        pass
    raise Refused("That is no action", "An action names itself, a target, and patterns of tables", f"Send {form}")
