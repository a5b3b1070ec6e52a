"""When are tables read again whose reads failed, and when are they given up?"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from calque.model.names import TableName

TRIES, LAST_TRIES = 9, 4
"""How often a read may fail, and how often that of a table that failed in the windows already."""


@dataclass(slots=True)
class ReadRetries:
    """Reads that failed in a row. What is the world's fault does not count against a table."""

    failures: dict[TableName, int] = field(default_factory=dict)
    """How often by their own fault."""
    later: dict[TableName, tuple[int, int]] = field(default_factory=dict)
    """How often in all, and when they are tried again; 0 while they are tried."""

    def failed_in_a_window(self, names: Iterable[TableName]) -> None:
        """Their reads are given up earlier."""
        self.failures |= dict.fromkeys(names, TRIES - LAST_TRIES)

    def gives_up(self, name: TableName, *, own_fault: bool) -> bool:
        """Whether the read of the table, which has just failed, was the last one."""
        self.failures[name] = self.failures.get(name, 0) + own_fault
        return self.failures[name] >= TRIES

    def put_off(self, name: TableName, now_ns: int) -> int:
        """Try it again after a while that grows; how often it has failed in a row."""
        times = self.later.get(name, (0, 0))[0] + 1
        self.later[name] = times, now_ns + int(pause(name, times) * 1e9)
        return times

    def due(self, now_ns: int) -> Iterator[TableName]:
        """Those that are to be tried now; each is told once."""
        for name, (times, due_ns) in list(self.later.items()):
            if 0 < due_ns <= now_ns:
                self.later[name] = times, 0
                yield name

    def leave(self, name: TableName) -> None:
        """It is not to be read for now."""
        self.later.pop(name, None)

    def end(self, name: TableName) -> None:
        """It was read, or given up."""
        self.failures.pop(name, None)
        self.later.pop(name, None)


def pause(name: TableName, times: int) -> float:
    """Seconds until a read that failed so many times is tried again; tables that failed together part."""
    return random.Random(f"{name} {times}").uniform(0.5, 1.0) * float(min(0.2 * 2**times, 30.0))
