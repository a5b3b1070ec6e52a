"""Does somebody answer? Asked all the time, beside all that is done, so that silence is noticed when idle too."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from calque.errors import CalqueError

PERIOD_SECONDS = 1.5
PATIENCE_SECONDS = 2.0
"""How long one answer may take, and be asked for once more."""


class Heartbeat:
    """`ask` should raise `CalqueError` within `PATIENCE_SECONDS` when nobody answers; its result is kept."""

    def __init__(self, ask: Callable[[], int], name: str, period: float = PERIOD_SECONDS) -> None:
        self.ask, self.period = ask, period
        self.answer: int | None = None
        self.answered_at: float | None = None
        """Seconds since the epoch."""
        self.problem: str | None = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, name=f"pulse-{name}", daemon=True)

    def begin(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        """Ask no more; an answer that is still to come is waited for by nobody."""
        self.stopping.set()

    def run(self) -> None:
        while not self.stopping.is_set():
            self.look()
            self.stopping.wait(self.period)

    def look(self) -> None:
        """Ask once."""
        try:
            self.answer = self.ask()
        except CalqueError as error:
            self.problem = str(error)
        else:
            self.answered_at, self.problem = time.time(), None
