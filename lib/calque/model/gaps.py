"""Where the journal does not continue the log: events that it never got, or a log that went back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from calque.model.names import EventId


class GapCause(StrEnum):
    """What the event ids said."""

    PURGED = "purged"
    """Events were removed before they were read."""
    WENT_BACK = "went back"
    """The newest id is below one that was read before: the metastore was restored."""
    REPEATED = "repeated"
    """An id came twice: the log is weak."""
    FORGOTTEN = "forgotten"
    """The journal let events go before a target had taken them. That target alone has such a gap."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The journal ended at event `after` and goes on behind event `at`, which is below `after` where the log went back.
    Gaps are numbered from 1 as they were found; a target's own has the number of the one before it."""

    number: int
    after: EventId
    at: EventId
    cause: GapCause
    found_at: str
    """ISO 8601, UTC."""

    @property
    def span(self) -> tuple[EventId, EventId]:
        """The first and the last event id that a reader of the journal can't rely on."""
        return min(self.after, self.at) + 1, max(self.after, self.at)
