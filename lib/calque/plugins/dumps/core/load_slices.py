"""How much of a dump is loaded at a time: `hive.repl.approx.max.load.tasks`.

Copies of external tables and steps of events share it. While there are events, one of the threads is theirs:

    100 external tables, 10,000 events, 200 tasks, 8 threads      at first 7 copies and 193 events

Source: "Apache Hive Replication: Doing right by External Tables".
"""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 1_000
"""Events that a pass has at most: of one object, so many are told apart in a window."""


@dataclass(frozen=True, slots=True)
class LoadPass:
    """How many external tables are copied, and how many events played."""

    copies: int
    events: int


def next_pass(copies: int, events: int, tasks: int, threads: int) -> LoadPass:
    """The next pass, where so many copies and events are left: some of what is left, and nothing where nothing is."""
    if not events:
        return LoadPass(min(copies, tasks, threads), 0)
    taken_copies = min(copies, max(threads - 1, 0), max(tasks - 1, 0))
    return LoadPass(taken_copies, min(events, tasks - taken_copies, LONGEST))
