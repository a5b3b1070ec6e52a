"""When was an event there that a target does not show yet? From looks at the source's newest event id: `HeadTimes`."""

from __future__ import annotations

import threading
from bisect import bisect_right

from calque.model.names import EventId

MOST = 2000


class HeadTimes:
    """Newest event ids with when they were first seen (seconds). Of a long past every other one is forgotten, so that
    what is told of it grows coarse, never wrong by more than a look. Safe from several threads."""

    def __init__(self) -> None:
        self.ids: list[EventId] = []
        self.times: list[float] = []
        self.lock = threading.Lock()

    def note_head(self, head: EventId, seen_at: float) -> None:
        """The source said so; a lower one is of another log."""
        with self.lock:
            if self.ids and head < self.ids[-1]:
                self.ids, self.times = [], []
            if not self.ids or head > self.ids[-1]:
                self.ids.append(head)
                self.times.append(seen_at)
            if len(self.ids) > MOST:
                self.ids, self.times = self.ids[::2], self.times[::2]

    def note_event(self, event_id: EventId, seen_at: float) -> None:
        """The event was met; there may be newer ones."""
        if event_id > (self.newest() or 0):
            self.note_head(event_id, seen_at)

    def newest(self) -> EventId | None:
        with self.lock:
            return self.ids[-1] if self.ids else None

    def lag_seconds(self, position: EventId, now: float) -> float:
        """How long an event has been there that `position` does not reach; 0 where none has."""
        with self.lock:
            place = bisect_right(self.ids, position)
            return max(now - self.times[place], 0.0) if place < len(self.ids) else 0.0
