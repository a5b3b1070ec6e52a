"""Foreign keys whose parent has no such key at the target yet: whoever brings it adds them.

A child puts its key here before it tries to add it; a parent takes it when it has a key of its own. So neither misses
the other, in whatever order they come, side by side.
"""

from __future__ import annotations

import threading

from calque.core.states.facets import Rows
from calque.model.names import TableName

Child = tuple[TableName, str]
"""A table at the target and the name of its key."""


class WaitingForeignKeys:
    """Rows as the target is to have them. Safe from several threads; nothing of it outlives the process."""

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
        """Those that wait for the table."""
        with self.lock:
            return {child: rows for child, (of, rows) in self.keys.items() if of == parent}
