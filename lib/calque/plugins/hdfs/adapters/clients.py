"""The clients of one HDFS: the current one, and those that were given up and are kept for a while."""

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
"""Seconds for which a client that was given up is kept. The end of a client waits for its threads, and one of these may
wait for Python at that moment, to report an answer: both would wait for ever. So a client ends only when all of its
answers have been reported."""


class Clients:
    """The current client of one HDFS, and those that were given up. `opened` makes a client; its argument says whether
    a client before did not answer. Safe from several threads."""

    def __init__(self, opened: Callable[[bool], AsyncClient]) -> None:
        self._opened, self._lock = opened, Lock()
        self._current = opened(False)
        self._abandoned: deque[tuple[float, AsyncClient]] = deque()

    @contextmanager
    def one(self) -> Iterator[AsyncClient]:
        """Give the block the current client. The client lives for as long as the block, and so do its readers, writers
        and listings there, even where another thread gives the client up meanwhile."""
        client = self._current
        try:
            yield client
        finally:
            if client is not self._current:
                self._keep(client)

    def leave(self, client: AsyncClient) -> None:
        """Give the client up, because it does not answer: from now on a new one is asked. Calls that still wait for the
        old client end with it."""
        with self._lock:
            if self._current is client:
                self._current = self._opened(True)

    def _keep(self, client: AsyncClient) -> None:
        now = time.monotonic()
        with self._lock:
            self._abandoned.append((now, client))
            while self._abandoned[0][0] < now - KEPT_SECONDS:
                self._abandoned.popleft()
