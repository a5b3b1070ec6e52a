"""Logs and journals that count the bytes of messages that they hand on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from calque.model.journal import Event
from calque.model.names import EventId
from support.memory.journal import MemoryJournal
from support.sources.logs import Log, part, partitioned

MEGABYTE = 1 << 20


def heavy_events(count: int, size: int) -> list[Event]:
    """Events of no effect, whose messages are one object."""
    message = "x" * size
    return [Event(number, 1, "OPEN_TXN", "hive", "", "", "json-0.2", message) for number in range(1, count + 1)]


@dataclass
class HeavyLog:
    """A log of these events that answers with as many as weigh `page` bytes, yet one. `before` runs before each."""

    events: list[Event]
    page: int = 1 << 60
    before: Callable[[], None] = lambda: None
    answers: list[int] = field(default_factory=list)

    def current(self) -> EventId:
        return self.events[-1].event_id

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        self.before()
        found, weight = list[Event](), 0
        for event in self.events:
            if event.event_id > after and len(found) < limit:
                weight += len(event.message)
                if found and weight > self.page:
                    break
                found.append(event)
        self.answers.append(len(found))
        return found


class WideLog:
    """One table whose definition weighs `size` bytes, made by the first event; a partition is added by each of the next
    `parts`, whose messages have the table, too; then come events without effect, of the same weight, `count` in all.
    Messages are made when they are read."""

    def __init__(self, count: int, parts: int, size: int) -> None:
        self.count, self.parts = count, parts
        self.filler = heavy_events(1, size)[0]
        table = partitioned(parameters={"padding": "x" * size})
        log = Log().create(table).add(table, part(table, "VALUE"))
        self.made, self.added = log.events

    def current(self) -> EventId:
        return self.count

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        return [self.event(number) for number in range(after + 1, min(after + limit, self.count) + 1)]

    def event(self, number: EventId) -> Event:
        if number > 1 + self.parts:
            return replace(self.filler, event_id=number)
        message = self.added.message.replace("VALUE", str(number))
        return replace(self.added, event_id=number, message=message) if number > 1 else self.made


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
