"""The evidence in memory (port `EvidenceStore`)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

from calque.model.files import Evidence, Listing
from calque.model.names import EventId


class MemoryEvidence:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: list[Evidence] = []
        self._considered: EventId = 0

    def considered(self) -> EventId:
        return self._considered

    def append(self, evidence: Sequence[Evidence], considered: EventId) -> None:
        with self._lock:
            self._rows.extend(evidence)
            self._considered = max(self._considered, considered)

    def evidence(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], Listing]:
        event_ids = frozenset(ids)
        with self._lock:
            return {
                (row.event_id, row.listing.location): row.listing for row in self._rows if row.event_id in event_ids
            }

    def forget(self, upto: EventId) -> int:
        with self._lock:
            before = len(self._rows)
            self._rows = [row for row in self._rows if row.event_id > upto]
            return before - len(self._rows)

    def restart(self, event_id: EventId) -> None:
        with self._lock:
            self._rows.clear()
            self._considered = event_id
