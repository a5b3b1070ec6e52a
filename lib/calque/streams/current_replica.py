"""The replica that a target's part has open, and what the pieces of the part share about it: `CurrentReplica`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from calque.control.pause_rules import is_paused, stamp_of
from calque.control.requests import open_requests
from calque.engine.sides.journal_reads import newest
from calque.model.names import EventId
from calque.model.state_places import TargetPlaces
from calque.ports.records import MISSING, Stamp
from calque.streams.shared import Bell, RunForParts, SourceStream

if TYPE_CHECKING:
    from calque.engine.replica.replica import Replica
    from calque.wiring.target import TargetWiring


class CurrentReplica:
    """Written by the thread of the part, read by others, too."""

    def __init__(self, run: RunForParts, stream: SourceStream, name: str) -> None:
        self.run, self.stream, self.name = run, stream, name
        self.wiring = run.wiring
        self.places = TargetPlaces(name)
        self.source = run.wiring.sources[stream.name]
        self.target: TargetWiring = run.wiring.target(name)
        self.next_target: TargetWiring | None = None
        """The same target under a policy with other links, which the next window is of."""
        self.replica: Replica | None = None
        """None while none is open."""
        self.gap = 0
        """The newest gap that the replica knows."""
        self.after: EventId = 0
        """The event after which the journal begins, behind that gap."""
        self.rules: Stamp = MISSING
        """Of the record of held back tables that the replica goes by."""
        self.refused: str | None = None
        """Why what was asked for last is not done."""
        self.window_id: str | None = None
        """Of the newest window."""
        self.bell = Bell()
        self.is_woken = threading.Event()
        """Something beside the journal's events wants a window."""

    def wake(self) -> None:
        """Have a window begin, one without events if there are none."""
        self.is_woken.set()
        self.bell.ring()

    def is_behind(self) -> bool:
        """Whether a gap was found that the replica does not know."""
        return newest(self.source.gaps()) != self.gap

    def is_paused(self) -> bool:
        return is_paused(self.wiring.control, self.name)

    def is_told(self) -> bool:
        """Whether operators want something that no window has taken up."""
        return bool(open_requests(self.wiring, self.name)) or stamp_of(self.wiring.control, self.name) != self.rules

    def problem(self) -> str | None:
        """What was refused, or what the storage does not answer."""
        return self.refused or self.target.side().troubles.newest()

    def close(self) -> None:
        if self.replica is not None:
            self.replica.close()
            self.replica = None
