"""The lag of a table's replica, by the events of its source that the replica does not show."""

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
"""The events that are read together, and the most that are looked at in all. The event after those is taken for one on
the table."""


def lag_seconds(
    source: SourceWiring, log: EventLog, name: TableName, shows: EventId, *, is_running: bool
) -> float | None:
    """Return the seconds since an event on the table that is newer than event `shows`; 0 where there is none. While a
    process keeps the replica (`is_running`) the oldest such event counts, as in `status`; else the newest. Return None
    where the lag is not known, because the source does not answer or has forgotten events."""
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
    """Return the first event on the table in the spans, or the last one for `newest`; None where there is none. Raises
    `Refused` where the journal or the log does not have a whole span any more."""
    step, looked_at = -1 if newest else 1, 0
    for events, span in parts[::step]:
        for after in range(span.after, span.upto, PAGE)[::step]:
            page: Sequence[Entry] = events.entries(Span(after, min(after + PAGE, span.upto)))
            for entry in page[::step]:
                looked_at += 1
                if name in (entry.keys.table, entry.keys.other) or looked_at > MOST_LOOKED_AT:
                    return entry
    return None
