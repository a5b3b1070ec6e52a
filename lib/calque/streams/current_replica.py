"""The replica that a target's part has open, with the facts that the pieces of the part share: `CurrentReplica`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from calque.control.pause_rules import is_paused, stamp_of
from calque.control.requests import open_requests
from calque.engine.sides.journal_reads import newest
from calque.model.names import EventId
from calque.model.state_places import TargetPlaces
from calque.ports.records import MISSING, Stamp
from calque.streams.shared import ProcessContext, SourceStream, WakeUpSignal

if TYPE_CHECKING:
    from calque.engine.replica.replica import Replica
    from calque.wiring.target import TargetWiring


class CurrentReplica:
    """The replica of one target while its part runs. The part's own thread writes the attributes; other threads read
    them."""

    def __init__(self, run: ProcessContext, stream: SourceStream, name: str) -> None:
        self.run, self.stream, self.name = run, stream, name
        self.wiring = run.wiring
        self.places = TargetPlaces(name)
        self.source = run.wiring.sources[stream.name]
        self.target: TargetWiring = run.wiring.target(name)
        self.next_target: TargetWiring | None = None
        """The same target under a policy with other links. The next window is to be applied under this policy; None for
        no such change."""
        self.replica: Replica | None = None
        """The open replica; None while none is open."""
        self.gap = 0
        """The number of the newest gap in the source's log when the replica was opened."""
        self.after: EventId = 0
        """The event after which the journal begins, behind that gap."""
        self.rules: Stamp = MISSING
        """The stamp of the record of paused tables that the replica goes by."""
        self.refused: str | None = None
        """Why the operators' last request was refused; None where it was not."""
        self.window_id: str | None = None
        """The name of the newest window, as log lines have it."""
        self.signal = WakeUpSignal()
        self.is_woken = threading.Event()
        """Set when work other than the journal's events waits for a window."""

    def wake(self) -> None:
        """Have a window begin soon, one without events if the journal has none."""
        self.is_woken.set()
        self.signal.send()

    def is_behind(self) -> bool:
        """Tell whether a gap was found since the replica was opened."""
        return newest(self.source.gaps()) != self.gap

    def is_paused(self) -> bool:
        return is_paused(self.wiring.control, self.name)

    def has_requests(self) -> bool:
        """Tell whether operators asked for anything that no window has taken up: a request, or other rules of paused
        tables."""
        return bool(open_requests(self.wiring, self.name)) or stamp_of(self.wiring.control, self.name) != self.rules

    def problem(self) -> str | None:
        """Return why the last request was refused, else what the target's storage has not answered; None where all is
        well."""
        return self.refused or self.target.side().storage_failures.newest()

    def close(self) -> None:
        if self.replica is not None:
            self.replica.close()
            self.replica = None
