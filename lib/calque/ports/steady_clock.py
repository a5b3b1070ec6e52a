"""The machine's clock, as far as a process can believe it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

DRIFT = 1.001
"""The greatest rate at which the machine's clock may run against the clock that is never set, while it is adjusted."""


def elapsed_ns() -> int:
    """Return nanoseconds by a clock that is never set, and that goes on while the machine sleeps where the system has
    such a clock."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SteadyClock:
    """The machine's clock, but never ahead of what has passed since the object was made, so that a clock that is set
    forward goes unnoticed. A clock that is set back is believed. Safe from several threads."""

    def __init__(self, now_ns: Callable[[], int] = time.time_ns, elapsed: Callable[[], int] = elapsed_ns) -> None:
        self._now_ns, self._elapsed = now_ns, elapsed
        self._lock = threading.Lock()
        self._wall, self._begun = now_ns(), elapsed()

    def now_ns(self) -> int:
        with self._lock:
            now, elapsed = self._now_ns(), self._elapsed()
            most = self._wall + int((elapsed - self._begun) * DRIFT)
            # A clock that was set back is believed from then on.
            self._wall, self._begun = min(now, most), elapsed
            return self._wall


STEADY = SteadyClock()
"""The clock of this process."""
