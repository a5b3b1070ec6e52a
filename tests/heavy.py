"""Logs and journals that count the bytes of messages that they hand on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from calque.adapters.memory.journal import MemoryJournal
from calque.model.journal import Event
from calque.model.names import EventId

MEGABYTE = 1 << 20


def heavy_events(count: int, size: int) -> list[Event]:
    """Events of no effect, whose messages are one object."""
    message = "x" * size
    return [Event(number, 1, "OPEN_TXN", "hive", "", "", "json-0.2", message) for number in range(1, count + 1)]


@dataclass
class HeavyLog:
    """A log of these events that answers with as many as weigh `page` bytes, yet one. `before` runs before each."""

    events: list[Event]
    page: int
    before: Callable[[], None] = lambda: None
    answers: list[int] = field(default_factory=list)

    def current(self) -> EventId:
        return self.events[-1].event_id

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        self.before()
        found = list[Event]()
        for event in self.events:
            if event.event_id > after and len(found) < limit:
                if found and sum(len(one.message) for one in found) + len(event.message) > self.page:
                    break
                found.append(event)
        self.answers.append(len(found))
        return found


class CountingJournal(MemoryJournal):
    """What was appended at once, as ids; and the bytes of messages that were given at once."""

    def __init__(self) -> None:
        super().__init__()
        self.appended: list[tuple[EventId, EventId]] = []
        self.given: list[int] = []

    def append(self, rows: pa.Table) -> None:
        super().append(rows)
        ids = rows["event_id"].to_pylist()
        self.appended.append((ids[0], ids[-1]))

    def events(self, ids: Iterable[EventId], most: int | None = None) -> Mapping[EventId, Event]:
        found = super().events(ids, most)
        self.given.append(sum(len(event.message) for event in found.values()))
        return found
