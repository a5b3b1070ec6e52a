"""Gaps: places where the journal does not continue the log, because events never came or the log went back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from calque.model.names import EventId


class GapCause(StrEnum):
    """The cause of a gap, as the event ids show it."""

    PURGED = "purged"
    """Events were removed before they were read."""
    WENT_BACK = "went back"
    """The newest id is below an id that was read before: the metastore was restored."""
    REPEATED = "repeated"
    """An id came twice: the log is weak."""
    FORGOTTEN = "forgotten"
    """The journal removed events before a target had taken them. That target alone has such a gap."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap between event `after`, where the journal ended, and event `at`, behind which it goes on. Gaps are numbered
    from 1 in the order in which they were found. A gap of one target alone has the number of the log's gap before it.

    Example: a log that lost events 81 to 95 makes a gap with `after` 80 and `at` 95; a log that went back from event 95
    to 80 makes one with `after` 95 and `at` 80.
    """

    number: int
    after: EventId
    at: EventId
    cause: GapCause
    found_at: str
    """The time at which the gap was found, ISO 8601 in UTC."""

    @property
    def span(self) -> tuple[EventId, EventId]:
        """The first and the last event id that a reader of the journal can't rely on."""
        return min(self.after, self.at) + 1, max(self.after, self.at)
