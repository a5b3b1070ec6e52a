"""The times at which tables whose reads failed are read again, and the limit after which they are given up."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from calque.model.names import TableName

TRIES, LAST_TRIES = 9, 4
"""The number of failures at which a read is given up, and how many of these are left to a table that failed in
windows."""


@dataclass(slots=True)
class RetrySchedule:
    """The reads that failed, with how often they did in a row. Failures that are the world's fault do not count against
    a table."""

    failures: dict[TableName, int] = field(default_factory=dict)
    """Failures in a row by the table's own fault."""
    later: dict[TableName, tuple[int, int]] = field(default_factory=dict)
    """Failures in a row by any fault, and the clock's nanosecond at which the read is tried again; 0 while it is
    tried."""

    def failed_in_a_window(self, names: Iterable[TableName]) -> None:
        """Note that the tables failed in a window, so that their reads are given up earlier."""
        self.failures |= dict.fromkeys(names, TRIES - LAST_TRIES)

    def gives_up(self, name: TableName, *, own_fault: bool) -> bool:
        """Tell whether the read of the table, which has just failed, was the last one; count the failure if it is its
        `own_fault`."""
        self.failures[name] = self.failures.get(name, 0) + own_fault
        return self.failures[name] >= TRIES

    def put_off(self, name: TableName, now_ns: int) -> int:
        """Put the next try of the read off for a while that grows with each failure; return how often it failed in a
        row."""
        times = self.later.get(name, (0, 0))[0] + 1
        self.later[name] = times, now_ns + int(pause(name, times) * 1e9)
        return times

    def due(self, now_ns: int) -> Iterator[TableName]:
        """Yield the tables whose reads are to be tried now; each is told once."""
        for name, (times, due_ns) in list(self.later.items()):
            if 0 < due_ns <= now_ns:
                self.later[name] = times, 0
                yield name

    def leave(self, name: TableName) -> None:
        """Take the table off the list of reads to try again. The count of its own failures stays."""
        self.later.pop(name, None)

    def end(self, name: TableName) -> None:
        """Forget all failures of a table that was read or given up."""
        self.failures.pop(name, None)
        self.later.pop(name, None)


def pause(name: TableName, times: int) -> float:
    """Return the seconds until a read that failed `times` times in a row is tried again. They differ from table to
    table, so that tables that failed together are not tried together."""
    return random.Random(f"{name} {times}").uniform(0.5, 1.0) * float(min(0.2 * 2**times, 30.0))
