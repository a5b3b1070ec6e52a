"""What is served at `/` beside health and metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from starlette.responses import Response
from starlette.routing import Route


@dataclass(frozen=True, kw_only=True, slots=True)
class FrontPage:
    """`shell` is the page at `path` without any data, which is shown with that status also to whoever has no token;
    below `open_folder` are files that are open to everybody. `routes` are all of its pages, also `path`."""

    path: str
    open_folder: str
    shell: Callable[[HTTPStatus], Response]
    routes: tuple[Route, ...]
