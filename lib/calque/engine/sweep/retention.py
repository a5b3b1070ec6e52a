"""The retention of what capture recorded: events are kept until they are too old, even if a target still needs them.

A target that stays away for longer holds nothing up: it starts again by itself. The journal forgets first, then the
stores of what belongs to its events. A call that is repeated after a failure has the same result.
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
from calque.ports import Journal, Ledger, Pins

LOG = logging.getLogger(__name__)
SECONDS = 5.0
"""Seconds between two looks at the pinned files."""
JOURNAL_SECONDS = 600.0
"""Seconds between two looks at the journal. The first look comes this long after the start, so that targets which were
down together with capture take what they lack before it is forgotten."""
AT_ONCE = 20_000
"""Journal entries that one read looks at."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The bytes of pinned files (`size`) and the seconds (`age`) that are kept at most for a target that still needs
    them."""

    size: int
    age: float


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Counts of deleted rows. `upto` is the last event id that was deleted, None when nothing was."""

    upto: EventId | None = None
    events: int = 0
    evidence: int = 0

    def __add__(self, other: DeletedRows) -> DeletedRows:
        """Return the sum for two sources; `upto` is that of `other` where it has one."""
        upto = self.upto if other.upto is None else other.upto
        return DeletedRows(upto, self.events + other.events, self.evidence + other.evidence)


def nothing() -> None:
    """Do nothing before events are forgotten; the default."""


def disregard(_size: int) -> None:
    pass


def let_go(
    source: SourceSide,
    ledgers: Sequence[Ledger],
    retention: float,
    limits: Limits,
    before: Callable[[], None] = nothing,
    note_pinned: Callable[[int], None] = disregard,
) -> DeletedRows:
    """Forget events that are older than `retention` seconds, their evidence and pins, pins that no target needs or that
    are beyond `limits`, and scans that every target has taken, without regard to targets that must start again.
    `before` is called first. `note_pinned` gets the bytes that stay pinned."""
    before()
    now_ns = source.clock.now_ns()
    deleted_rows = forget_journal(source, now_ns, retention)
    if source.scans is not None:
        forget_taken(source.scans, [ledger for ledger in ledgers if not is_left_behind(source.journal, ledger)])
    if source.pins is not None:
        gap, lost_event = newest(source.gaps), reach(source.journal)
        release(source.pins, ledgers, limits, now_ns, gap, lost_event, note_pinned)
    return deleted_rows


def keep(
    source: SourceSide,
    ledgers: Sequence[Ledger],
    retention: float,
    limits: Limits,
    stopping: threading.Event,
    before: Callable[[], None] = nothing,
    note_pinned: Callable[[int], None] = disregard,
) -> None:
    """Call `release` every `SECONDS` and `let_go` every `JOURNAL_SECONDS`, until `stopping` is set. An error is logged,
    and the next round tries again. `note_pinned` gets the bytes that stay pinned after each round."""
    due_ns = source.clock.elapsed_ns() + int(JOURNAL_SECONDS * 1e9)
    while not stopping.wait(SECONDS):
        try:
            if source.clock.elapsed_ns() >= due_ns:
                let_go(source, ledgers, retention, limits, before, note_pinned)
                due_ns = source.clock.elapsed_ns() + int(JOURNAL_SECONDS * 1e9)
            elif source.pins is not None:
                gap = newest(source.gaps)
                release(source.pins, ledgers, limits, source.clock.now_ns(), gap, note_pinned=note_pinned)
        except CalqueError as error:
            LOG.warning("nothing is let go of: %s", error)


def is_left_behind(journal: Journal, ledger: Ledger) -> bool:
    """Tell whether the journal has forgotten events that the target needs, so that the target starts again."""
    records, epoch = ledger.records(), ledger.last_epoch()
    has_begun = epoch is not None or one_of(records, BootstrapBeginning) is not None
    return has_begun and goes_on_from(records, epoch) < reach(journal)


def forget_journal(source: SourceSide, now_ns: int, retention: float) -> DeletedRows:
    """Delete events that are older than `retention` seconds, with their commits and evidence."""
    journal = source.journal
    oldest, last = journal.oldest(), journal.last()
    if oldest is None or last is None:
        return DeletedRows()
    upto = last_before(journal, oldest, last, now_ns / 1e9 - retention)
    if upto < oldest:
        return DeletedRows()
    events = journal.forget(upto)
    if source.commits is not None:
        source.commits.forget(upto)
    return DeletedRows(upto, events, source.evidence.forget(upto))


def last_before(journal: Journal, oldest: EventId, upto: EventId, seconds: float) -> EventId:
    """Return the last event from `oldest` to `upto` up to which all events are from before the time `seconds` (since
    1970); `oldest - 1` if the first one is younger."""
    after, size = oldest - 1, 1
    while after < upto:
        span = Span(after, min(after + size, upto))
        young_entry = next((entry for entry in journal.entries(span) if entry.event_time >= seconds), None)
        if young_entry is not None:
            return young_entry.event_id - 1
        after, size = span.upto, AT_ONCE
    return after


def release(
    pins: Pins,
    ledgers: Iterable[Ledger],
    limits: Limits,
    now_ns: int,
    gap: int = 0,
    lost_event: EventId = 0,
    note_pinned: Callable[[int], None] = disregard,
) -> Sequence[EventId]:
    """Release pinned files that no target needs any more; then, from the oldest event on, those beyond the limits.
    Return the events whose files were released. `gap` is the newest gap in the log. Files of events up to `lost_event`
    are released, because the journal has forgotten these events. `note_pinned` gets the bytes that stay pinned."""
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
    note_pinned(size)
    return released_events


def shown_by_all(ledger: Ledger, gap: int = 0) -> EventId:
    """Return the last event that no table of a target waits for. Return 0 before the first epoch, and until the target
    has dealt with the gap `gap`: its position belongs to the history before that gap."""
    epoch, records = ledger.last_epoch(), ledger.records()
    if epoch is None or dealt_with(records) < gap:
        return 0
    rows = (row for row in ledger.tables().values() if isinstance(row, TableRow))
    return min([goes_on_from(records, epoch), *(row.shows or 0 for row in rows if row.state is TableState.WAITING)])
