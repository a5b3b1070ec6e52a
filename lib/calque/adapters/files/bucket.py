"""A limit on bytes a second that several threads share: a token bucket."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

BURST_SECONDS = 0.25
"""The seconds of unused bandwidth that may be made up for."""


class Bucket:
    """A bandwidth of `rate` bytes a second, given in the order of the requests; `rate` may be changed at any time. A
    request for more bytes than there are waits for all of them, so that large and small pieces get their turn alike."""

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self._now = now
        self._lock = Lock()
        self._free_at = now()
        """The time at which everything that was taken has had its share."""

    def take(self, amount: int) -> float:
        """Take `amount` bytes, and return the seconds to wait until they may go."""
        with self._lock:
            now = self._now()
            self._free_at = max(self._free_at, now - BURST_SECONDS) + amount / self.rate
            return max(0.0, self._free_at - now)
