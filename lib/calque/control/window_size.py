"""How many events a target's next window may hold: more behind a backlog, up to a bound by memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from calque.config.plugs import Config
from calque.model.state_places import TargetPlaces
from calque.ports.records import Records
from calque.wiring.wiring import Wiring

WINDOW_BYTES = 512 * 2**20
"""What a window's events may take where the configuration does not say how many there may be."""
EVENT_BYTES = 1024
"""What an event takes at most while its window is read and planned, without its message."""
MOST_EVENTS = WINDOW_BYTES // EVENT_BYTES


@dataclass
class WindowSize:
    """A target's, in events: `first`, and twice as many behind each window that left some over, up to `most`.

    The record is written before a window begins, as the process may die in it: what that window showed and dropped
    again carries no mark, and a shorter one would bring it back. So the next window holds no fewer, under whatever
    configuration."""

    records: Records
    record: str
    first: int
    most: int
    recorded: int | None = field(default=None, init=False)
    """As the record says; None while nobody looked."""

    @staticmethod
    def of(wiring: Wiring, target: str) -> WindowSize:
        most = most_events(wiring.config, target)
        return WindowSize(wiring.control, TargetPlaces(target).window_record, wiring.config.window.max_events, most)

    def due(self) -> int:
        """How many events the next window may hold."""
        if self.recorded is None:
            record = self.records.read(self.record) or {}
            self.recorded = int(str(record.get("max_events", 0)))
        return max(self.first, self.recorded)

    def begin(self) -> int:
        """The same, for a window that begins now."""
        self._put(self.due())
        return self.due()

    def end(self, *, is_behind: bool) -> None:
        """The window is through. If the target `is_behind`, events were left over."""
        self._put(min(2 * self.due(), self.most) if is_behind else self.first)

    def _put(self, events: int) -> None:
        if events != self.recorded:
            self.records.put(self.record, {"max_events": events})
            self.recorded = events


def most_events(config: Config, target: str) -> int:
    """Windows grow where the configuration does not set their size, and tables go through them side by side."""
    window = config.window
    grows = "max_events" not in window.model_fields_set and config.targets[target].keys.consistency == "table"
    return max(MOST_EVENTS, window.max_events) if grows else window.max_events
