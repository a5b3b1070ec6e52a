"""The progress of a target's exact reads, and the time at which they may be done: `ReadProgress`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from calque.model.names import TableName

TABLE_WEIGHT = 16
"""The cost of a table beside its partitions, in partitions."""


@dataclass(frozen=True, slots=True)
class ReadTotals:
    """The tables that are to be read, of which some are done: the target shows them, or they are gone. Partitions and
    bytes are those that are known of by now. Times are nanoseconds since the epoch."""

    began_ns: int
    at_ns: int
    tables: int
    tables_done: int
    partitions: int
    partitions_done: int
    bytes_done: int

    @property
    def ends_ns(self) -> int | None:
        """The time at which all are done if those that were not begun are like those that are done; None before one is
        done."""
        done = self.tables_done * TABLE_WEIGHT + self.partitions_done
        if not done:
            return None
        remaining_tables = self.tables - self.tables_done
        mean = self.partitions_done / self.tables_done if self.tables_done else 0
        remaining_weight = remaining_tables * (TABLE_WEIGHT + mean)
        remaining_weight = max(
            remaining_weight, remaining_tables * TABLE_WEIGHT + self.partitions - self.partitions_done
        )
        return self.at_ns + int((self.at_ns - self.began_ns) * remaining_weight / done)


class ReadProgress:
    """The progress that the readers of one target report, from any thread. Tables that are done count until nothing is
    left to read, so that the totals of a bootstrap grow until its end."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._lock = Lock()
        self._remaining: dict[TableName, tuple[int, int]] = {}
        """Of each table that is to be read: how many of its partitions are built, and how many there are."""
        self._began_ns = 0
        self._tables = self._partitions = self._bytes = 0

    def begin(self, name: TableName) -> None:
        """Note that the table is to be read."""
        with self._lock:
            if not self._remaining:
                self._began_ns = self._now_ns()
                self._tables = self._partitions = self._bytes = 0
            self._remaining.setdefault(name, (0, 0))

    def built(self, name: TableName, built: int, partitions: int) -> None:
        """Note that `built` of the table's `partitions` are built by now."""
        with self._lock:
            if name in self._remaining:
                self._remaining[name] = (built, partitions)

    def landed(self, name: TableName, partitions: int, size: int) -> None:
        """Note that the target shows the table, with so many `partitions`; `size` bytes were copied for it."""
        with self._lock:
            if self._remaining.pop(name, None) is not None:
                self._tables += 1
                self._partitions += partitions
                self._bytes += size

    def leave(self, name: TableName) -> None:
        """Note that the table is not read any more."""
        with self._lock:
            self._remaining.pop(name, None)

    def look(self) -> ReadTotals | None:
        """Return the totals by now; None while nothing is read."""
        with self._lock:
            if not self._remaining:
                return None
            built = sum(done for done, _ in self._remaining.values())
            known_partitions = sum(of for _, of in self._remaining.values())
            return ReadTotals(
                self._began_ns,
                self._now_ns(),
                self._tables + len(self._remaining),
                self._tables,
                self._partitions + known_partitions,
                self._partitions + built,
                self._bytes,
            )
