"""The machine's clock, as far as it is to be believed within a process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

DRIFT = 1.001
"""How much faster than the one that nobody sets a machine's clock may run while it is adjusted."""


def elapsed_ns() -> int:
    """Of a clock that nobody sets, and that goes on while the machine sleeps where there is such a one."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SteadyClock:
    """The machine's clock, but never ahead of what has passed since it was made. Safe from several threads."""

    def __init__(self, now_ns: Callable[[], int] = time.time_ns, elapsed: Callable[[], int] = elapsed_ns) -> None:
        self._now_ns, self._elapsed = now_ns, elapsed
        self._lock = threading.Lock()
        self._wall, self._begun = now_ns(), elapsed()

    def now_ns(self) -> int:
        with self._lock:
            now, elapsed = self._now_ns(), self._elapsed()
            most = self._wall + int((elapsed - self._begun) * DRIFT)
            # One that was set back is taken at its word from then on.
            self._wall, self._begun = min(now, most), elapsed
            return self._wall


STEADY = SteadyClock()
"""Of this process."""
