"""Foreign keys whose parent table has no such key at the target yet. They are added once the parent has its key.

A child puts its foreign key here before it tries to add it at the target. A parent asks for waiting keys when it has a
key of its own. So neither misses the other, in whichever order both come, also on two threads.
"""

from __future__ import annotations

import threading

from calque.core.states.facets import Rows
from calque.model.names import TableName

Child = tuple[TableName, str]
"""A table at the target, and the name of its foreign key."""


class WaitingForeignKeys:
    """The foreign keys that wait, as rows that the target is to have. Safe from several threads. They are in memory
    only, so none outlives the process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.keys: dict[Child, tuple[TableName, Rows]] = {}

    def put(self, child: TableName, name: str, parent: TableName, rows: Rows) -> None:
        with self.lock:
            self.keys[child, name] = parent, rows

    def withdraw(self, child: TableName, name: str) -> None:
        with self.lock:
            self.keys.pop((child, name), None)

    def of(self, parent: TableName) -> dict[Child, Rows]:
        """Return the foreign keys that wait for the table `parent`."""
        with self.lock:
            return {child: rows for child, (of, rows) in self.keys.items() if of == parent}
