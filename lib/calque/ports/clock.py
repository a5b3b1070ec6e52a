"""The clock of a process."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now_ns(self) -> int:
        """Return nanoseconds since the epoch by the machine's clock, which may be set, and jump."""

    def elapsed_ns(self) -> int:
        """Return nanoseconds since a fixed moment, by a clock that is never set. For measuring how long to wait."""

    def sleep(self, seconds: float) -> None: ...
