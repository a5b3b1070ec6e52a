"""The stores of a source: its events, the gaps of its log, and the files that belong to its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from calque.core.acid.commits import AcidCommit, TransactionMemory
from calque.model.files import Evidence, FilesOfEvent, Listing
from calque.model.gaps import Gap
from calque.model.journal import Entry, Event
from calque.model.names import EventId, Span
from calque.model.scan import Memory, Scan

if TYPE_CHECKING:
    import pyarrow as pa


class Journal(Protocol):
    """The durable copy of the log: rows in order of event id, without holes between `oldest` and `last`."""

    def last(self) -> EventId | None:
        """Return the newest event id, None before the first append. Cheap: it is called many times a second."""

    def oldest(self) -> EventId | None: ...

    def append(self, rows: pa.Table) -> None:
        """Append rows (`core.events.rows.SCHEMA`) whose first id is `last() + 1` (any id for the first append), durably
        and at once. Raises `Broken` where another writer's append came first."""

    def entries(self, span: Span) -> Sequence[Entry]:
        """Return the rows of the span without their messages, ascending. Raises `Refused` when the span is not all
        there, `EventsForgotten` when its first rows were removed."""

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        """Return whole rows, by id, ascending. With `most` only the first ones are returned, so many that their
        messages weigh about `most` bytes, but at least one. Raises `Refused` and `EventsForgotten` as `entries` does,
        also for ids that `most` would leave out."""

    def forget(self, upto: EventId) -> int:
        """Remove rows at or below `upto`, and return how many were removed: 0 where the store keeps rows by a retention
        of its own. `last()` stays, also when no row is left."""

    def restart(self, event_id: EventId) -> None:
        """Remove all rows and begin anew after event `event_id`, above or below `last()`. For a gap in the log, or a
        log that went back."""


class Gaps(Protocol):
    """The record of all gaps, that is of places where the journal does not continue the log, in the order in which they
    were found."""

    def recorded(self) -> Sequence[Gap]:
        """Return all gaps, ascending by number. Cheap: it is called for every window."""

    def add(self, gap: Gap) -> None:
        """Make the gap with the next number durable. A gap that is there already, equal in all but `found_at`, is
        passed over. Raises `Broken` for any other number."""

    def settled(self) -> int:
        """Return the number of the newest gap behind which the journal and the evidence have begun anew; 0 before the
        first."""

    def settle(self, number: int) -> None:
        """Record that the journal and the evidence have begun anew behind the gap of that number, which is recorded.
        `settled()` never goes back."""


class EvidenceStore(Protocol):
    """The evidence of a source: listings that belong to states (docs/files.md)."""

    def considered(self) -> EventId:
        """Return the event id up to which capture has looked at the files of all events. A state at or below it that
        has no evidence gets none before its files are listed again."""

    def append(self, evidence: Sequence[Evidence], considered: EventId) -> None: ...

    def evidence(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], Listing]:
        """Return the listings of these events, by (event id, location)."""

    def forget(self, upto: EventId) -> int:
        """Remove the evidence of events at or below `upto`, and return how many rows were removed, as `Journal.forget`
        does. `considered()` stays."""

    def restart(self, event_id: EventId) -> None:
        """Remove all listings and set `considered()` to `event_id`, above or below what it was. Called together with
        `Journal.restart`."""


class EventFiles(Protocol):
    """The files that come with a log, where nothing but its events ever changes the directories."""

    def files(self, ids: Iterable[EventId]) -> Mapping[tuple[EventId, str], FilesOfEvent]:
        """Return, by (event id, location), the files of those events that say what they did there, also where an event
        says that it left the files as they were."""


class Pins(Protocol):
    """Files of the source as they were at an event, kept until every target has them."""

    def keep(self, event_id: EventId, location: str, listing: Listing) -> bool:
        """Keep exactly the listed files as those that the event has at `location`, wherever they lie by now, and return
        True. Return False, with nothing kept, where a listed file is gone or is another file now."""

    def at(self, event_id: EventId, location: str) -> str:
        """Return the directory that keeps the files that the event has at `location`; empty where none does."""

    def events(self) -> Sequence[EventId]:
        """Return the events of which files are kept, ascending."""

    def usage(self, event_id: EventId) -> tuple[int, int]:
        """Return the bytes that are kept of an event, and since when, in nanoseconds since the epoch (0: not known)."""

    def release(self, events: Sequence[EventId]) -> None:
        """Remove all that is kept of these events."""


class Scans(Protocol):
    """The changes without an event that scans found, numbered from 1 in their order, and the memory that scans compare
    with."""

    def last(self) -> int:
        """Return the newest number; 0 before the first. Cheap: it is called many times a second."""

    def append(self, scans: Sequence[Scan]) -> int:
        """Number the scans one by one, make them durable, all at once, and return the newest number."""

    def entries(self, after: int) -> Sequence[Entry]:
        """Return the scans with numbers above `after`, ascending, as entries of `EventKind.SCAN`."""

    def listings(self, numbers: Iterable[int]) -> Mapping[tuple[int, str], Listing]:
        """Return the listings of the scans of these numbers, by (number, location). Scans that were removed are left
        out."""

    def forget(self, upto: int) -> int:
        """Remove the scans with numbers up to `upto`, and return how many were removed. `last()` stays."""

    def remembered(self) -> Memory:
        """Return the memory that was written last; an empty one when that is lost."""

    def remember(self, memory: Memory) -> None:
        """Write `memory` in the place of the one before, whole or not at all."""


class Commits(Protocol):
    """The commits of transactions that changed ACID tables, and the memory that they are told from."""

    def upto(self) -> EventId:
        """Return the event id up to which all commits are there; 0 before the first append. Cheap: it is called many
        times a second."""

    def append(self, commits: Sequence[AcidCommit], upto: EventId) -> None:
        """Make the commits of events above `upto()` durable, all at once, with the event up to which all are there.
        Commits of other events are there already, and are passed over."""

    def commits(self, span: Span) -> Sequence[AcidCommit]:
        """Return the commits of the span, ascending by event id, those of one event by table."""

    def forget(self, upto: EventId) -> int:
        """Remove the commits of events at or below `upto`, and return how many were removed. `upto()` stays."""

    def restart(self, event_id: EventId) -> None:
        """Remove all commits and set `upto()` to `event_id`, above or below what it was."""

    def remembered(self) -> TransactionMemory | None:
        """Return the memory that was written last; None when there is none, or it is lost."""

    def remember(self, memory: TransactionMemory) -> None:
        """Write `memory` in the place of the one before, whole or not at all."""
