"""Copies of a journal and its evidence into another journal, so that everything goes on there as it was.

Event ids are the same in every journal, and all other records refer to the journal by event ids alone: targets,
checkpoints, gaps, scans and pins stay as they are. A copy that was interrupted goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from calque.core.events.rows import table_of
from calque.engine.sides.journal_reads import AT_ONCE, messages
from calque.errors import Refused
from calque.model.files import Evidence
from calque.model.names import EventId, Span
from calque.ports import EvidenceStore, Journal

TAIL = 8
"""Events, the newest that both journals have, that are compared."""
FIRST_PAGE, LARGEST_PAGE = 100, 5_000
PAGE_BYTES = 16 << 20


class JournalOwner(Enum):
    """The writers whose rows a journal may hold."""

    US = "us"
    """Only this state folder's capture wrote there: rows that do not fit are old, and can be dropped."""
    ANYBODY = "anybody"


@dataclass(frozen=True, slots=True)
class JournalStore:
    """A journal with its evidence; `name` is its name in errors."""

    name: str
    journal: Journal
    evidence: EvidenceStore


@dataclass(frozen=True, slots=True)
class CopiedJournal:
    """The numbers of events and listings that were copied. `last` is the newest event id of the old journal, None if
    nothing was ever captured."""

    events: int
    listings: int
    last: EventId | None


def move(
    old: JournalStore,
    new: JournalStore,
    owner: JournalOwner,
    needed: EventId,
    progress: Callable[[EventId, EventId], None] = lambda *_: None,
) -> CopiedJournal:
    """Copy to `new` what it lacks of `old`. No other process may write to either meanwhile. Some target needs the
    events above `needed`. `progress` is called with the event id that was reached, and with the last one.

    Raises `Refused` where `new` has rows that those of `old` do not continue, unless `owner` says that these can be
    dropped.
    """
    last = old.journal.last()
    if last is None:
        return CopiedJournal(0, 0, None)
    after = first_of(old.journal, last) - 1
    prepare(old, new, owner, needed)
    events = listings = 0
    page = FIRST_PAGE
    while after < last:
        span = Span(after, min(after + page, last))
        copied, size = copy_rows(old.journal, new.journal, span)
        events += copied
        listings += copy_evidence(old.evidence, new.evidence, span)
        progress(span.upto, last)
        page = max(min(page * PAGE_BYTES // max(size, 1), 2 * page, LARGEST_PAGE), 1)
        after = span.upto
    return CopiedJournal(events, listings, last)


def prepare(old: JournalStore, new: JournalStore, owner: JournalOwner, needed: EventId) -> None:
    """Make `new` end where events of `old` continue it. Evidence is dropped first, so that none is left for rows that
    were dropped."""
    old_last, new_last = old.journal.last() or 0, new.journal.last()
    oldest = first_of(old.journal, old_last)
    if new_last is None:
        new.evidence.restart(oldest - 1)
        if oldest > old_last:
            new.journal.restart(old_last)
    elif not continues(old.journal, new.journal, needed):
        if owner is JournalOwner.ANYBODY:
            raise Refused(
                f"{new.name} has {rows_of(new.journal)}, and {rows_of(old.journal)} of {old.name} do not continue them",
                "Of those that both should have some differ, or there are some between that targets need",
                "Name another topic below [journal], or delete that one if nobody needs it",
            )
        new.evidence.restart(oldest - 1)
        new.journal.restart(oldest - 1)


def continues(old: Journal, new: Journal, needed: EventId) -> bool:
    """Tell whether the rows of `old` go on where `new`, which has begun, ends: both have some events in common and
    these are equal, or nothing is left in `new` but its end."""
    old_last, new_last = old.last() or 0, new.last() or 0
    oldest, begin = first_of(old, old_last), first_of(new, new_last)
    if begin > new_last and new_last == oldest - 1:
        return True
    low, high = max(oldest, begin), min(old_last, new_last)
    shared_ids = range(max(low, high - TAIL + 1), high + 1)
    reaches_back = begin <= max(oldest, needed + 1)
    pairs = zip(messages(old, shared_ids), messages(new, shared_ids), strict=True)
    return bool(shared_ids) and reaches_back and all(one == other for one, other in pairs)


def copy_rows(old: Journal, new: Journal, span: Span) -> tuple[int, int]:
    """Append the rows of the span that `new` lacks, and return how many these were, and their bytes."""
    missing = Span(max(span.after, new.last() or 0), span.upto)
    if missing.after >= missing.upto:
        return 0, 0
    keys = {entry.event_id: entry.keys for entry in old.entries(missing)}
    size = 0
    while missing.after < missing.upto:
        events = old.events(range(missing.after + 1, missing.upto + 1), AT_ONCE)
        rows = table_of((event, keys[event_id]) for event_id, event in events.items())
        new.append(rows)
        size += rows.nbytes
        missing = Span(missing.after + len(events), missing.upto)
    return len(keys), size


def copy_evidence(old: EvidenceStore, new: EvidenceStore, span: Span) -> int:
    """Append the evidence for the events of the span that `new` lacks, and return the number of listings."""
    ids = range(span.after + 1, span.upto + 1)
    new_listings = new.evidence(ids)
    missing = [
        Evidence(event_id, listing)
        for (event_id, location), listing in old.evidence(ids).items()
        if new_listings.get((event_id, location)) != listing
    ]
    considered = min(old.considered(), span.upto)
    if missing or considered > new.considered():
        new.append(missing, considered)
    return len(missing)


def first_of(journal: Journal, last: EventId) -> EventId:
    """Return the oldest event id that the journal has; the next one if it has none."""
    oldest = journal.oldest()
    return last + 1 if oldest is None else oldest


def rows_of(journal: Journal) -> str:
    last = journal.last() or 0
    oldest = first_of(journal, last)
    return f"events {oldest} to {last}" if oldest <= last else f"nothing after event {last}"
