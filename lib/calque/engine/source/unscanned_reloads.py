"""The requests to targets to compare tables that are not scanned, and whose files an engine found changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from calque.core.events.effects import RELOADED
from calque.errors import CalqueError
from calque.model.journal import Entry
from calque.model.names import TableName
from calque.ports import Clock

LOG = logging.getLogger(__name__)
PAUSE_SECONDS = 600.0
"""Seconds between two comparisons of one table, because each reads the whole table."""
LOOK_SECONDS = 1.0


@dataclass(slots=True)
class UnscannedReloads:
    """The tables to ask for. `takes` says which tables some target has, `interval` how often a table is scanned (None:
    not at all). `ask` makes targets compare tables. One thread calls `note_entries`, and one `run`."""

    takes: Callable[[TableName], bool]
    interval: Callable[[TableName], float | None]
    ask: Callable[[Sequence[TableName]], None]
    clock: Clock
    waiting: dict[TableName, None] = field(default_factory=dict)
    asked_ns: dict[TableName, int] = field(default_factory=dict)
    """The time when each table was asked for; only tables for which this is less than the pause ago."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note_entries(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            name = entry.keys.table
            if entry.event_type != RELOADED or name is None or not self.takes(name) or self.interval(name) is not None:
                continue
            with self.lock:
                self.waiting[name] = None

    def run(self, stopping: threading.Event) -> None:
        """Ask for tables that are due, until `stopping` is set."""
        while not stopping.wait(LOOK_SECONDS):
            try:
                self.look()
            except CalqueError as error:
                LOG.warning("%s", error)

    def look(self) -> None:
        """Ask for the tables that were heard of, and that were not asked for within the pause. Raises what `ask`
        raises; the tables are asked for again at the next call then."""
        now = self.clock.elapsed_ns()
        with self.lock:
            self.asked_ns = {name: at for name, at in self.asked_ns.items() if now - at < PAUSE_SECONDS * 1e9}
            due_names = [name for name in self.waiting if name not in self.asked_ns]
            for name in due_names:
                del self.waiting[name]
        if due_names:
            LOG.info("an engine found files changed (%s): %s are compared", RELOADED, ", ".join(map(str, due_names)))
            try:
                self.ask(due_names)
            except CalqueError:
                with self.lock:
                    self.waiting |= dict.fromkeys(due_names)
                raise
            self.asked_ns |= dict.fromkeys(due_names, now)
