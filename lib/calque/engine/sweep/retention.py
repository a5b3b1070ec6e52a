"""How long is kept what capture recorded: until its events are too old, whoever still needs them.

A target that stays away for longer holds nothing up: it starts again by itself. Journal first, then what belongs to its
events; done again, all of it comes to the same.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from calque.core.records.gap_states import dealt_with
from calque.engine.exact_reads.gap_recovery import goes_on_from
from calque.engine.sides.journal_reads import newest, reach
from calque.engine.sides.sides import SourceSide
from calque.engine.window.scan_backlog import forget_taken
from calque.errors import CalqueError
from calque.model.ledger import TableRow, TableState
from calque.model.names import EventId, Span
from calque.model.records import BootstrapBeginning, one_of
from calque.ports import EvidenceStore, Journal, Ledger, Pins

LOG = logging.getLogger(__name__)
SECONDS = 5.0
"""Between two looks at the pinned files."""
JOURNAL_SECONDS = 600.0
"""Between two looks at the journal: after a pause targets that are up take what they lack before it goes."""
AT_ONCE = 20_000
"""Journal entries looked at in one read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many bytes of pinned files are kept, and for how many seconds, though a target still needs them."""

    size: int
    age: float


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Rows that went; `upto` is the last event id that is no longer there, None when nothing went."""

    upto: EventId | None = None
    events: int = 0
    evidence: int = 0

    def __add__(self, other: DeletedRows) -> DeletedRows:
        """Of two sources; `upto` is the later one's where both forgot something."""
        upto = self.upto if other.upto is None else other.upto
        return DeletedRows(upto, self.events + other.events, self.evidence + other.evidence)


def nothing() -> None:
    """What is done before events are forgotten where nobody wants anything."""


def let_go(
    source: SourceSide,
    ledgers: Sequence[Ledger],
    retention: float,
    limits: Limits,
    before: Callable[[], None] = nothing,
) -> DeletedRows:
    """Forget events that are older than `retention` seconds, their evidence and pins, pins that no target needs or that
    are beyond their limits, and scans that every target has taken that does not start again; `before` is called
    first."""
    before()
    now_ns = source.clock.now_ns()
    deleted_rows = forget_journal(source.journal, source.evidence, now_ns, retention)
    if source.scans is not None:
        forget_taken(source.scans, [ledger for ledger in ledgers if not is_left_behind(source.journal, ledger)])
    if source.pins is not None:
        release(source.pins, ledgers, limits, now_ns, newest(source.gaps), reach(source.journal))
    return deleted_rows


def keep(
    source: SourceSide,
    ledgers: Sequence[Ledger],
    retention: float,
    limits: Limits,
    stopping: threading.Event,
    before: Callable[[], None] = nothing,
) -> None:
    """Let go at intervals, until `stopping`."""
    due_ns = source.clock.elapsed_ns() + int(JOURNAL_SECONDS * 1e9)
    while not stopping.wait(SECONDS):
        try:
            if source.clock.elapsed_ns() >= due_ns:
                let_go(source, ledgers, retention, limits, before)
                due_ns = source.clock.elapsed_ns() + int(JOURNAL_SECONDS * 1e9)
            elif source.pins is not None:
                release(source.pins, ledgers, limits, source.clock.now_ns(), newest(source.gaps))
        except CalqueError as error:
            LOG.warning("nothing is let go of: %s", error)


def is_left_behind(journal: Journal, ledger: Ledger) -> bool:
    """Whether the target is past what the journal has, and so starts again."""
    records, epoch = ledger.records(), ledger.last_epoch()
    has_begun = epoch is not None or one_of(records, BootstrapBeginning) is not None
    return has_begun and goes_on_from(records, epoch) < reach(journal)


def forget_journal(journal: Journal, evidence: EvidenceStore, now_ns: int, retention: float) -> DeletedRows:
    """Forget events that are older than `retention` seconds, with their evidence."""
    oldest, last = journal.oldest(), journal.last()
    if oldest is None or last is None:
        return DeletedRows()
    upto = last_before(journal, oldest, last, now_ns / 1e9 - retention)
    return DeletedRows(upto, journal.forget(upto), evidence.forget(upto)) if upto >= oldest else DeletedRows()


def last_before(journal: Journal, oldest: EventId, upto: EventId, seconds: float) -> EventId:
    """The last event of those from `oldest` to `upto` that has only events from before then up to it."""
    after, size = oldest - 1, 1
    while after < upto:
        span = Span(after, min(after + size, upto))
        young_entry = next((entry for entry in journal.entries(span) if entry.event_time >= seconds), None)
        if young_entry is not None:
            return young_entry.event_id - 1
        after, size = span.upto, AT_ONCE
    return after


def release(
    pins: Pins, ledgers: Iterable[Ledger], limits: Limits, now_ns: int, gap: int = 0, lost_event: EventId = 0
) -> Sequence[EventId]:
    """Let go of files that were kept at the source and that no target needs any more, then, oldest first, of what is
    beyond the limits. Returns the events whose files were let go. `gap` is the newest gap in the log; up to event
    `lost_event` nobody can use them."""
    shown_event = min((shown_by_all(ledger, gap) for ledger in ledgers), default=0)
    events = pins.events()
    released_events = [event_id for event_id in events if event_id <= max(shown_event, lost_event)]
    pinned_sizes = {event_id: pins.usage(event_id) for event_id in events if event_id > max(shown_event, lost_event)}
    size = sum(pinned_size for pinned_size, _ in pinned_sizes.values())
    for event_id, (pinned_size, pinned_ns) in pinned_sizes.items():
        if size > limits.size or (pinned_ns and now_ns - pinned_ns > limits.age * 1e9):
            LOG.warning(
                "the files pinned for event %d are let go: the limit is reached before all targets have them", event_id
            )
            released_events.append(event_id)
            size -= pinned_size
    pins.release(released_events)
    return released_events


def shown_by_all(ledger: Ledger, gap: int = 0) -> EventId:
    """The last event that no table of a target waits for; 0 before the first epoch, and while the target has not dealt
    with that gap: its position is of another history then."""
    epoch, records = ledger.last_epoch(), ledger.records()
    if epoch is None or dealt_with(records) < gap:
        return 0
    rows = (row for row in ledger.tables().values() if isinstance(row, TableRow))
    return min([goes_on_from(records, epoch), *(row.shows or 0 for row in rows if row.state is TableState.WAITING)])
