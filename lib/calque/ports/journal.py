"""What is kept of a source: its events, the gaps of its log, and which files belong to its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from calque.model.files import Evidence, FilesOfEvent, Listing
from calque.model.gaps import Gap
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span
from calque.model.scan import Memory, Scan


class Journal(Protocol):
    """The durable copy of the log: rows in order of event id, without holes between `oldest` and `last`."""

    def last(self) -> EventId | None:
        """The newest event id, or None before the first append. Cheap: called many times a second."""

    def oldest(self) -> EventId | None: ...

    def append(self, rows: pa.Table) -> None:
        """Append rows (`core.events.rows.SCHEMA`) whose first id is `last() + 1` (any id for the first append), durably
        and at once. A writer that lost against another one raises `Broken`."""

    def entries(self, span: Span) -> Sequence[Entry]:
        """The rows of the span without their messages, ascending. `Refused` when the span is not all there,
        `EventsForgotten` when its first rows were removed."""

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        """Whole rows, by id, ascending; with `most` only the first ones, so many that their messages weigh about `most`
        bytes, but one. `Refused` and `EventsForgotten` as for `entries`, whether or not all are given."""

    def forget(self, upto: EventId) -> int:
        """Remove rows at or below `upto`; how many went, 0 where the store keeps rows by a retention of its own.
        `last()` stays, also when no row is left."""

    def restart(self, event_id: EventId) -> None:
        """Remove all rows and begin anew after event `event_id`, above or below `last()`: after a gap in the log, or a
        log that went back."""


class Gaps(Protocol):
    """Where the journal does not continue the log, in the order in which that was found."""

    def recorded(self) -> Sequence[Gap]:
        """All of them, ascending by number. Cheap: called for every window."""

    def add(self, gap: Gap) -> None:
        """Make the next gap durable. `Broken` unless its number is the next one; one that is there already, equal in
        all but `found_at`, is fine."""

    def settled(self) -> int:
        """The number of the newest gap behind which the journal and the evidence have begun anew; 0 before the
        first."""

    def settle(self, number: int) -> None:
        """Record that of a gap which is there. Never goes back."""


class EvidenceStore(Protocol):
    """Listings that belong to states (docs/files.md)."""

    def considered(self) -> EventId:
        """All events up to this id were looked at: what has no evidence by now gets none before a later listing."""

    def append(self, evidence: Sequence[Evidence], considered: EventId) -> None: ...

    def evidence(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], Listing]:
        """By (event id, location)."""

    def forget(self, upto: EventId) -> int:
        """As `Journal.forget`; `considered()` stays."""

    def restart(self, event_id: EventId) -> None:
        """Remove all listings; `considered()` is `event_id` then, above or below what it was. With
        `Journal.restart`."""


class EventFiles(Protocol):
    """Files that came with the log, which is all that happened to the directories."""

    def files(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], FilesOfEvent]:
        """By (event id, location), of the events that say what they did there, if only that they left the files."""


class Pins(Protocol):
    """Files of the source as they were at an event, kept until every target has them."""

    def keep(self, event_id: EventId, location: str, listing: Listing) -> bool:
        """Keep exactly the listed files, as what the event names at `location`, wherever they lie by now; False, and
        nothing kept, where one is not there any more or is another."""

    def at(self, event_id: EventId, location: str) -> str:
        """The directory that keeps what the event names at `location`; empty where none does."""

    def events(self) -> Sequence[EventId]:
        """Those of which something is kept, ascending."""

    def usage(self, event_id: EventId) -> tuple[int, int]:
        """Bytes kept of an event, and since when (nanoseconds; 0: not known)."""

    def release(self, events: Sequence[EventId]) -> None:
        """Keep nothing of these any more."""


class Scans(Protocol):
    """What scans found: changes without an event, numbered from 1 in their order; and what they compare with."""

    def last(self) -> int:
        """The newest number; 0 before the first. Cheap: called many times a second."""

    def append(self, scans: Sequence[Scan]) -> int:
        """Number them one by one and make them durable, all at once. The newest number then."""

    def entries(self, after: int) -> Sequence[Entry]:
        """Those with greater numbers, ascending, as entries of `EventKind.SCAN`."""

    def listings(self, numbers: Iterable[int]) -> Mapping[tuple[int, str], Listing]:
        """By (number, location); those that were forgotten are left out."""

    def forget(self, upto: int) -> int:
        """Remove what has numbers up to that; how many went. `last()` stays."""

    def remembered(self) -> Memory:
        """What was last remembered; an empty memory when that is lost."""

    def remember(self, memory: Memory) -> None:
        """In place of what was remembered before, whole or not at all."""
