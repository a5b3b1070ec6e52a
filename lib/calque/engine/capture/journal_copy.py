"""Copy a journal and its evidence into another one, so that everything goes on there as it was.

Event ids are the same in every journal, and nothing outside it says more of it than event ids: targets, checkpoints,
gaps, scans and pins stay as they are. A copy that was ended goes on where it was.
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
"""Events of both that are compared, the newest that both have."""
FIRST_PAGE, LARGEST_PAGE = 100, 5_000
PAGE_BYTES = 16 << 20


class JournalOwner(Enum):
    """Whose rows a journal may hold."""

    US = "us"
    """Only what this state folder's capture wrote: rows that do not fit are of the past, and can go."""
    ANYBODY = "anybody"


@dataclass(frozen=True, slots=True)
class JournalStore:
    """A journal with its evidence; `name` is how it is called in errors."""

    name: str
    journal: Journal
    evidence: EvidenceStore


@dataclass(frozen=True, slots=True)
class CopiedJournal:
    """What was copied; `last` is the newest event id, None where nothing was ever captured."""

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
    """Copy what `new` lacks; nothing else may write to either meanwhile. Some target needs the events above `needed`.
    `progress` is told the event id that was reached, and the last one.

    Raises `Refused` where `new`, of which `owner` says whose it is, has rows that the old ones do not continue."""
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
    """Let `new` end where events of `old` continue it. Evidence goes first: none is left of rows that went."""
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
    """Whether the rows of `old` go on where `new`, which has begun, ends: both have some event in common, and the same
    in its place, or nothing is left in `new` but its end."""
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
    """Append those that `new` lacks: how many, and their bytes."""
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
    """Append what `new` lacks of the events: how many listings."""
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
    """The oldest event id that is there; the next one when none is."""
    oldest = journal.oldest()
    return last + 1 if oldest is None else oldest


def rows_of(journal: Journal) -> str:
    last = journal.last() or 0
    oldest = first_of(journal, last)
    return f"events {oldest} to {last}" if oldest <= last else f"nothing after event {last}"
