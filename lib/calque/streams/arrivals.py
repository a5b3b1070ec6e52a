"""Events that capture has seen and is about to append: `Arrivals`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from calque.adapters.spark.watch import announced
from calque.model.names import EventId
from calque.ports import Journal
from calque.streams.batch_stay import BatchStay

SECONDS, LOOK_SECONDS = 1.0, 0.004
"""For which an announced event is waited for, and how often it is looked whether it came."""


@dataclass
class Arrivals:
    """A batch of Spark's takes as long to begin as capture takes to append: a target's begins when events are announced
    in the file `coming`, and waits for them then. `awaited` is the newest one that was waited for."""

    coming: Path
    awaited: EventId = 0

    def wait(self, journal: Journal, upto: EventId, stopped: Callable[[], bool]) -> EventId:
        """How far the journal goes, where events beyond `upto` were announced; else `upto`. Each announcement is waited
        for once: capture may have ended."""
        newest = announced(self.coming)
        if newest <= max(upto, self.awaited):
            return upto
        self.awaited, deadline = newest, time.monotonic() + SECONDS
        while (last := journal.last() or 0) <= upto and time.monotonic() < deadline and not stopped():
            time.sleep(LOOK_SECONDS)
        return max(upto, last)

    def go_on(self, shown: EventId, stay: BatchStay) -> bool:
        """Whether an event beyond `shown` is announced, that was not waited for, before the batch is to end."""
        return stay.next(max(shown, self.awaited), lambda: announced(self.coming), LOOK_SECONDS) is not None
