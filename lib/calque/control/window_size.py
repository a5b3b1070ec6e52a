"""The number of events that a target's next window may hold: more behind a backlog, up to a bound by memory:
`WindowSize`."""

from __future__ import annotations

from dataclasses import dataclass, field

from calque.config.plugs import Config
from calque.model.state_places import TargetPlaces
from calque.ports.records import Records
from calque.wiring.wiring import Wiring

WINDOW_BYTES = 512 * 2**20
"""Bytes that a window's events may take where the configuration does not set their number."""
EVENT_BYTES = 1024
"""Bytes that an event takes at most while its window is read and planned, without its message."""
MOST_EVENTS = WINDOW_BYTES // EVENT_BYTES


@dataclass
class WindowSize:
    """The number of events that a target's windows may hold: `first`, and twice as many after each window that left
    events over, up to `most`.

    The number is recorded before a window begins, and the next window holds no fewer events, under whichever
    configuration. The process may die in a window, and an object that the window showed and dropped again carries no
    mark:

        80 is the position; a window of 20 events applies `DROP TABLE t` (event 93) and dies before its epoch. A next
        window of 10 events would find `t` missing, fold its CREATE and INSERTs up to 90, and show `t` again, which
        readers had seen go.
    """

    records: Records
    record: str
    first: int
    most: int
    recorded: int | None = field(default=None, init=False)
    """The number in the record; None before it was read."""

    @staticmethod
    def of(wiring: Wiring, target: str) -> WindowSize:
        most = most_events(wiring.config, target)
        return WindowSize(wiring.control, TargetPlaces(target).window_record, wiring.config.window.max_events, most)

    def due(self) -> int:
        """Return how many events the next window may hold, and record nothing."""
        if self.recorded is None:
            record = self.records.read(self.record) or {}
            self.recorded = int(str(record.get("max_events", 0)))
        return max(self.first, self.recorded)

    def begin(self) -> int:
        """Record how many events the window may hold that begins now, and return the number."""
        self._put(self.due())
        return self.due()

    def end(self, *, is_behind: bool) -> None:
        """Set the number for the next window, because one has ended. With `is_behind` it has left events over."""
        self._put(min(2 * self.due(), self.most) if is_behind else self.first)

    def _put(self, events: int) -> None:
        if events != self.recorded:
            self.records.put(self.record, {"max_events": events})
            self.recorded = events


def most_events(config: Config, target: str) -> int:
    """Return the most events of a window. Windows grow beyond `max_events` only where the configuration does not set
    it, and where tables go through them side by side (`consistency = "table"`)."""
    window = config.window
    grows = "max_events" not in window.model_fields_set and config.targets[target].keys.consistency == "table"
    return max(MOST_EVENTS, window.max_events) if grows else window.max_events
