"""The page of a process at `/`, beside health and metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from starlette.responses import Response
from starlette.routing import Route


@dataclass(frozen=True, kw_only=True, slots=True)
class FrontPage:
    """The page at `path`, as a plugin gives it to the server.

    `shell` returns the page without any data, with a status of HTTP. It is shown also to a client that has no token.
    Files below `open_folder` are open to every client. `routes` are all routes of the page, the one of `path` first.
    """

    path: str
    open_folder: str
    shell: Callable[[HTTPStatus], Response]
    routes: tuple[Route, ...]
