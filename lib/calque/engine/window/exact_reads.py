"""The interface by which windows ask for exact reads, which go on beside them."""

from __future__ import annotations

from typing import Protocol

from calque.model.ledger import NotLiveReason
from calque.model.names import EventId, TableName


class ExactReadRequests(Protocol):
    """The requests by which windows give a table up to exact reads, or set it aside."""

    def need(self, name: TableName, reason: str, event_id: EventId) -> None:
        """Ask that the table is read again, because of `reason` at event `event_id`; does nothing where it is to be
        read already."""

    def need_counted(self, name: TableName, reason: str) -> None:
        """Ask that the table is read again, and that what the target would lose by the read is counted first."""

    def submit(self, name: TableName) -> None:
        """Begin to read a table that must be read."""

    def quarantine(
        self, name: TableName, reason: str, event_id: EventId, why: NotLiveReason = NotLiveReason.OWN
    ) -> None:
        """Set the table aside with its `reason`, as of event `event_id`; everything else goes on."""
