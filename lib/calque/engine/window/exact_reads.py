"""What windows ask of exact reads, which go on beside them."""

from __future__ import annotations

from typing import Protocol

from calque.model.ledger import NotLiveReason
from calque.model.names import EventId, TableName


class ExactReadRequests(Protocol):
    """Takes tables out of the windows."""

    def need(self, name: TableName, reason: str, event_id: EventId) -> None:
        """The table must be read again; nothing where it is to be read already."""

    def need_counted(self, name: TableName, reason: str) -> None:
        """The same, and what the target would lose by that is counted first."""

    def submit(self, name: TableName) -> None:
        """Begin to read a table that must be read."""

    def quarantine(
        self, name: TableName, reason: str, event_id: EventId, why: NotLiveReason = NotLiveReason.OWN
    ) -> None:
        """Set the table aside with its reason; everything else goes on."""
