"""Say of which tables an engine found the files changed although nobody scans them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from calque.core.keys import RELOADED
from calque.model.journal import Entry
from calque.model.names import TableName

LOG = logging.getLogger(__name__)
MOST_NAMED = 1000


@dataclass(slots=True)
class UnscannedReloads:
    """`takes` says which tables some target has, `interval` how often a table is scanned (None: not at all). Each table
    is named once in a process, and at most `MOST_NAMED` of them."""

    takes: Callable[[TableName], bool]
    interval: Callable[[TableName], float | None]
    named: set[TableName] = field(default_factory=set)

    def hear(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            name = entry.keys.table
            if entry.event_type != RELOADED or name is None or name in self.named or len(self.named) >= MOST_NAMED:
                continue
            if self.takes(name) and self.interval(name) is None:
                self.named.add(name)
                LOG.warning(
                    "%s: event %d says that an engine looked at its files anew (%s), and nothing is done: the table is "
                    "not scanned. Write scan, or a pattern of scans, below [source] if files change there without "
                    "events",
                    *(name, entry.event_id, RELOADED),
                )
