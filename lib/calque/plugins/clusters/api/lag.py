"""How far does a replica of a table lag? By the events of the source that it does not show."""

from __future__ import annotations

import time
from collections.abc import Sequence

from calque.engine.verify.log_journal import LogJournal
from calque.errors import AccessRefused, Refused, Unavailable
from calque.model.journal import Entry
from calque.model.names import EventId, Span, TableName
from calque.ports import EventLog, Journal
from calque.wiring.source import SourceWiring

PAGE, MOST_LOOKED_AT = 2_000, 50_000
"""Events that are looked at together, and in all: one behind them is taken for one on the table."""


def lag_seconds(
    source: SourceWiring, log: EventLog, name: TableName, shows: EventId, *, is_running: bool
) -> float | None:
    """Seconds since an event on the table that is newer than what a replica shows; 0 where there is none. The oldest
    such event, as in `status`, while the replica is kept; the newest one where nobody keeps it. None where nobody
    knows: the source does not answer, or has forgotten events."""
    journal = source.side().journal
    try:
        head, captured = log.current(), journal.last() or 0
        captured = min(captured, head)
        parts: list[tuple[Journal | LogJournal, Span]] = []
        if captured > shows:
            parts.append((journal, Span(shows, captured)))
        if head > max(captured, shows):
            parts.append((LogJournal(log), Span(max(captured, shows), head)))
        lacked = found_on(parts, name, newest=not is_running)
    except (Refused, Unavailable, AccessRefused):
        return None
    return 0.0 if lacked is None else round(max(time.time() - lacked.event_time, 0.0), 1)


def found_on(parts: Sequence[tuple[Journal | LogJournal, Span]], name: TableName, *, newest: bool) -> Entry | None:
    """The first event on the table, or the last one. Raises `Refused` where not all of the spans is there."""
    step, looked_at = -1 if newest else 1, 0
    for events, span in parts[::step]:
        for after in range(span.after, span.upto, PAGE)[::step]:
            page: Sequence[Entry] = events.entries(Span(after, min(after + PAGE, span.upto)))
            for entry in page[::step]:
                looked_at += 1
                if name in (entry.keys.table, entry.keys.other) or looked_at > MOST_LOOKED_AT:
                    return entry
    return None
