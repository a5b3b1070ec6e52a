"""The times at which a source's newest event ids were first seen, from which the lag of a target in seconds follows:
`HeadTimes`."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right

from calque.model.names import EventId

MOST = 2000
"""The number of event ids that are kept with their times."""


class HeadTimes:
    """The newest event ids of a source, each with when it was first seen, in seconds since 1970.

    Of a long past every other entry is forgotten, so that the lag grows coarse for it, but is never wrong by more than
    the time between two entries. Safe from several threads.
    """

    def __init__(self) -> None:
        self.ids: list[EventId] = []
        self.times: list[float] = []
        self.lock = threading.Lock()

    def note_head(self, head: EventId, seen_at: float) -> None:
        """Note that the source has said that `head` is its newest event. A lower id than the last one is of another
        log, and forgets all before it."""
        with self.lock:
            if self.ids and head < self.ids[-1]:
                self.ids, self.times = [], []
            if not self.ids or head > self.ids[-1]:
                self.ids.append(head)
                self.times.append(seen_at)
            if len(self.ids) > MOST:
                self.ids, self.times = self.ids[::2], self.times[::2]

    def note_event(self, event_id: EventId, seen_at: float) -> None:
        """Note that the event was met. The source may have newer ones."""
        if event_id > (self.newest() or 0):
            self.note_head(event_id, seen_at)

    def newest(self) -> EventId | None:
        with self.lock:
            return self.ids[-1] if self.ids else None

    def newest_at(self) -> float | None:
        """Return when the newest event was first seen, in seconds since 1970; None before any was."""
        with self.lock:
            return self.times[-1] if self.times else None

    def newest_before(self, at: float) -> EventId | None:
        """Return the newest event that was first seen before the time `at`; None where none was."""
        with self.lock:
            place = bisect_left(self.times, at)
            return self.ids[place - 1] if place else None

    def lag_seconds(self, position: EventId, now: float) -> float:
        """Return how many seconds ago an event was first seen that is beyond `position`; 0 where none is."""
        with self.lock:
            place = bisect_right(self.ids, position)
            return max(now - self.times[place], 0.0) if place < len(self.ids) else 0.0
