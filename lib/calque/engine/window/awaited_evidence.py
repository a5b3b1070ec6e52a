"""The evidence that windows read, and for which they wait until capture has gathered it: `AwaitedEvidence`."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from calque.model.files import Listing
from calque.model.names import EventId
from calque.ports import Clock, EvidenceStore
from calque.ports.forwarding import ForwardingEvidenceStore

WAIT_SECONDS = 5.0
LOOK_SECONDS = 0.004


class AwaitedEvidence(ForwardingEvidenceStore):
    """An `EvidenceStore` that waits for capture before it answers. Capture appends events to the journal first and
    looks at their files afterwards, so evidence of new events may still be missing. A reader waits `WAIT_SECONDS` at
    most, and not after `stopping` is set; it then gets what evidence there is."""

    def __init__(self, store: EvidenceStore, clock: Clock, stopping: threading.Event) -> None:
        super().__init__(store)
        self._clock, self._stopping = clock, stopping

    def wait(self, newest: EventId) -> None:
        """Block until capture has looked at the files of all events up to `newest`, until `WAIT_SECONDS` have passed,
        or until `stopping` is set."""
        deadline = self._clock.elapsed_ns() + int(WAIT_SECONDS * 1e9)
        while self.considered() < newest:
            if self._clock.elapsed_ns() > deadline or self._stopping.is_set():
                return
            self._clock.sleep(LOOK_SECONDS)

    def evidence(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], Listing]:
        event_ids = set(ids)
        self.wait(max(event_ids, default=0))
        return super().evidence(event_ids)
