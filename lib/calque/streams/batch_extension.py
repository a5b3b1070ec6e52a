"""A batch of Spark's that takes the events that come soon after its own: `BatchExtension`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from calque.model.names import EventId

STAY_SECONDS, LONGEST_SECONDS = 1.0, 30.0
"""How long a batch stays after events that it took, and for how long in all: Spark's offsets stay behind meanwhile."""
MOST_EVENTS = 1_000
"""No more are taken at once before their batch: those come as a batch of their own."""


@dataclass(slots=True)
class BatchExtension:
    """Another batch takes Spark as long to begin as calque takes for an event. A batch that waits inside for more ends
    when it `halted`. What it takes comes again as rows of the next batch."""

    halted: Callable[[], bool]
    ends_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.ends_at = time.monotonic() + LONGEST_SECONDS

    def next(self, shown: EventId, newest: Callable[[], EventId], pause: float) -> EventId | None:
        """The newest event as soon as it is beyond `shown`, looked for every `pause` seconds; None where the batch is
        to end. Raises what `newest` does."""
        ends_at = min(self.ends_at, time.monotonic() + STAY_SECONDS)
        while time.monotonic() < ends_at and not self.halted():
            if (found := newest()) > shown:
                return found if found <= shown + MOST_EVENTS else None
            time.sleep(pause)
        return None
