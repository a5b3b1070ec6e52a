"""The weaknesses of a source's log that its newest rows show, what each costs, and the cure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from calque.core.events.keys import entry_of
from calque.engine.sides.log_reads import events_after
from calque.model.journal import Entry, EventKind
from calque.model.names import EventId
from calque.ports import EventLog

ROWS = 500
LAW_1 = "that a replica equals its source at its position (law 1)"
LAW_2 = "that only states of the source are shown, one after the other (law 2)"
Weakness = tuple[str, str, str]
"""The parts of a finding: what is weak, why that matters, and what to do."""
CURE = "Let one transactional DbNotificationListener alone write the log, and nobody delete its rows but the cleaner"


def newest_rows(log: EventLog, current: EventId) -> Sequence[Entry]:
    events = events_after(log, max(current - ROWS, 0), current)
    return [entry_of(event) for event in events]


def weaknesses(rows: Sequence[Entry], current: EventId) -> Iterator[Weakness]:
    """Yield the weaknesses that `rows`, the newest of the log, show. `current` is the id of the newest event as the
    metastore says."""
    ids = [entry.event_id for entry in rows]
    repeated_ids = [before for before, after in pairwise(ids) if before == after]
    holes = [(before + 1, after - 1) for before, after in pairwise(ids) if after > before + 1]
    if ids and ids[-1] < current:
        holes.append((ids[-1] + 1, current))
    if repeated_ids:
        yield (
            f"The log gave event id {repeated_ids[0]} to two events" + others(len(repeated_ids)),
            f"It costs the promise {LAW_1} until all tables are compared, which each such id asks for",
            CURE,
        )
    if holes:
        first, last = holes[0]
        yield (
            f"The log lacks events {first} to {last}" + others(len(holes)),
            f"It costs the promise {LAW_1} until all tables are compared, if calque has not read them yet",
            CURE,
        )
    bare_entries = [entry for entry in rows if entry.keys.kind is EventKind.UNKNOWN]
    if bare_entries:
        kinds = ", ".join(sorted({entry.event_type for entry in bare_entries}))
        yield (
            (
                f"{len(bare_entries)} of the log's newest {len(rows)} events do not say what they made of their object "
                f"({kinds}; event {bare_entries[0].event_id} first)"
            ),
            f"It costs the promise {LAW_2}: their tables are read again, and what was between is passed over",
            "Let the source's metastore write messages with objects (metastore.event.message.factory of Hive's own)",
        )


def others(count: int) -> str:
    return f", and {count - 1} others" if count > 1 else ""
