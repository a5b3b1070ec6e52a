"""The size of one pass of a load, as `hive.repl.approx.max.load.tasks` bounds it.

Copies of external tables and events share this number of tasks. As long as there are events, one of the threads is kept
for them:

    100 external tables, 10,000 events, 200 tasks, 8 threads      at first 7 copies and 193 events

Source: "Apache Hive Replication: Doing right by External Tables".
"""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 1_000
"""Events that a pass has at most, because a window tells at most this many events of one object apart."""


@dataclass(frozen=True, slots=True)
class LoadPass:
    """One pass of a load: the number of external tables that it copies, and of events that it plays."""

    copies: int
    events: int


def next_pass(copies: int, events: int, tasks: int, threads: int) -> LoadPass:
    """Return the next pass, where `copies` external tables and `events` events are left and a pass has at most `tasks`
    of both. The pass has at least one of what is left; both numbers are 0 only where nothing is left."""
    if not events:
        return LoadPass(min(copies, tasks, threads), 0)
    taken_copies = min(copies, max(threads - 1, 0), max(tasks - 1, 0))
    return LoadPass(taken_copies, min(events, tasks - taken_copies, LONGEST))
