"""The stay of a Spark batch for events that come soon after its own: `BatchExtension`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from calque.model.names import EventId

STAY_SECONDS, LONGEST_SECONDS = 1.0, 30.0
"""Seconds that a batch stays after events that it took, and seconds that it stays in all. Spark's committed offset does
not advance meanwhile."""
MOST_EVENTS = 1_000
"""Events that one look takes at most before their own batch. More events than that end the stay, and come as a batch of
their own."""


@dataclass(slots=True)
class BatchExtension:
    """The stay of one batch that takes further events, because Spark needs as long to begin a batch as calque for an
    event.

    A batch that waits for events ends as soon as `halted` returns True. Events that were taken early come again as rows
    of the next batch.
    """

    halted: Callable[[], bool]
    ends_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.ends_at = time.monotonic() + LONGEST_SECONDS

    def next(self, shown: EventId, newest: Callable[[], EventId], pause: float) -> EventId | None:
        """Return the newest event id as soon as it is beyond `shown`, and None when the batch is to end.

        `newest` is asked every `pause` seconds. The batch ends after `STAY_SECONDS` without an event, after
        `LONGEST_SECONDS` in all, when it is halted, or when more than `MOST_EVENTS` have come at once. Raises what
        `newest` raises.
        """
        ends_at = min(self.ends_at, time.monotonic() + STAY_SECONDS)
        while time.monotonic() < ends_at and not self.halted():
            if (found := newest()) > shown:
                return found if found <= shown + MOST_EVENTS else None
            time.sleep(pause)
        return None
