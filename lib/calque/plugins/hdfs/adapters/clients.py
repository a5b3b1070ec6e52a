"""Clients of one HDFS: which of them asks, and for how long one that was given up is kept."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hdfs_native import AsyncClient

KEPT_SECONDS = 60.0
"""A client that goes waits for its threads, and one of these may wait for Python just then, to tell of an answer: both
would wait for ever. So none goes before all that it had to tell is long told."""


class Clients:
    """`opened()` makes one; it is told whether one before did not answer."""

    def __init__(self, opened: Callable[[bool], AsyncClient]) -> None:
        self._opened, self._lock = opened, Lock()
        self._current = opened(False)
        self._abandoned: deque[tuple[float, AsyncClient]] = deque()

    @contextmanager
    def one(self) -> Iterator[AsyncClient]:
        """One that lives for as long as the block, and what it gave there: readers, writers and listings."""
        client = self._current
        try:
            yield client
        finally:
            if client is not self._current:
                self._keep(client)

    def leave(self, client: AsyncClient) -> None:
        """Ask another one from now on: this one does not answer. What it still waits for ends with it."""
        with self._lock:
            if self._current is client:
                self._current = self._opened(True)

    def _keep(self, client: AsyncClient) -> None:
        now = time.monotonic()
        with self._lock:
            self._abandoned.append((now, client))
            while self._abandoned[0][0] < now - KEPT_SECONDS:
                self._abandoned.popleft()
