"""The liveness probe of a part: it asks a service again and again beside all work, so that silence is noticed when the
part is idle, too."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from calque.errors import CalqueError

PERIOD_SECONDS = 1.5
"""Seconds between two calls."""
PATIENCE_SECONDS = 2.0
"""Seconds that one answer may take. Callers use it as the time-out of their connections."""


class LivenessProbe:
    """The thread that calls `ask` every `period` seconds, and keeps the answer. `ask` should raise `CalqueError` within
    `PATIENCE_SECONDS` when there is no answer."""

    def __init__(self, ask: Callable[[], int], name: str, period: float = PERIOD_SECONDS) -> None:
        self.ask, self.period = ask, period
        self.answer: int | None = None
        self.answered_at: float | None = None
        """Seconds since 1970 when the last answer came; None before the first."""
        self.problem: str | None = None
        """Why the last call was not answered; None where it was."""
        self.failing_since: float | None = None
        """Seconds since 1970 when the first of the calls was not answered that were not answered one after the other;
        None where the last one was."""
        self.failed_calls = 0
        self.next_at: float | None = None
        """When the next call is made, in seconds since 1970; None while one is under way."""
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, name=f"pulse-{name}", daemon=True)

    def begin(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        """Ask no more. A call that is under way is not waited for."""
        self.stopping.set()

    def run(self) -> None:
        while not self.stopping.is_set():
            self.check()
            self.next_at = time.time() + self.period
            self.stopping.wait(self.period)

    def check(self) -> None:
        """Ask once, and keep the answer or the problem."""
        self.next_at = None
        try:
            self.answer = self.ask()
        except CalqueError as error:
            self.failing_since, self.failed_calls = self.failing_since or time.time(), self.failed_calls + 1
            self.problem = str(error)
        else:
            self.answered_at, self.problem = time.time(), None
            self.failing_since, self.failed_calls = None, 0
