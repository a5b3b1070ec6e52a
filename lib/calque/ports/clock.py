"""Time."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now_ns(self) -> int:
        """Nanoseconds since the epoch, as the machine has it: it may be set, and jump."""

    def elapsed_ns(self) -> int:
        """Nanoseconds since some moment, of a clock that nobody sets: to wait by."""

    def sleep(self, seconds: float) -> None: ...
