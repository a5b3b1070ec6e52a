"""A batch of Spark's that stays for the events that come soon after its own: `BatchStay`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from calque.adapters.spark.watch import count
from calque.model.names import EventId

STAY_SECONDS, LONGEST_SECONDS = 1.0, 30.0
"""How long a batch stays after events that it took, and for how long in all: Spark's offsets stay behind meanwhile."""


@dataclass(slots=True)
class BatchStay:
    """Another batch takes Spark as long to begin as calque takes for an event. One that waits inside for more ends when
    it `halted`, or when something else than events wakes its query through the file `wake`: that needs a batch."""

    wake: Path
    halted: Callable[[], bool]
    wakes: int = field(init=False)
    ends_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.wakes, self.ends_at = count(self.wake), time.monotonic() + LONGEST_SECONDS

    def next(self, shown: EventId, newest: Callable[[], EventId], pause: float) -> EventId | None:
        """The newest event as soon as it is beyond `shown`, looked for every `pause` seconds; None where the batch is
        to end. Raises what `newest` does."""
        ends_at = min(self.ends_at, time.monotonic() + STAY_SECONDS)
        while time.monotonic() < ends_at and not self.halted() and count(self.wake) == self.wakes:
            if (found := newest()) > shown:
                return found
            time.sleep(pause)
        return None
