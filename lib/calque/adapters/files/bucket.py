"""A limit on bytes a second, shared by whoever takes from it: a token bucket."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

BURST_SECONDS = 0.25
"""How much of what was not used may be made up for."""


class Bucket:
    """`rate` bytes a second, in the order in which they are asked for; `rate` may be changed at any time. Whoever asks
    for more than there is waits for all of it, so that large and small pieces get their turn alike."""

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self._now = now
        self._lock = Lock()
        self._free_at = now()
        """When everything that was taken has had its time."""

    def take(self, amount: int) -> float:
        """Seconds to wait until `amount` bytes may go."""
        with self._lock:
            now = self._now()
            self._free_at = max(self._free_at, now - BURST_SECONDS) + amount / self.rate
            return max(0.0, self._free_at - now)
