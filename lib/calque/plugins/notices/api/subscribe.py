"""Marks as they come: first those that are there, then what the broker tells of."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any

from calque.config import Config
from calque.config.plugs import AT_SOURCE
from calque.errors import Refused
from calque.model.names import TableName
from calque.plugins.marks.api.sets import DoneSets
from calque.plugins.marks.model import Mark
from calque.plugins.marks.ports import MarkStore
from calque.plugins.notices.config import NoticeChannel, channels_at
from calque.plugins.notices.core.selection import Selection
from calque.plugins.notices.ports import NoticeBroker, Subscription
from calque.plugins.notices.wiring import named_channel
from calque.wiring.wiring import Wiring

WAIT_SECONDS = 1.0
"""For messages, between two looks at the time-out."""


def subscribed(
    wiring: Wiring, name: TableName, condition: Mapping[str, str], at: str, timeout: float | None
) -> DoneNotices:
    """The marks of the table; see `calque.notices.subscribe`."""
    sets, target = DoneSets(wiring), None if at == AT_SOURCE else at
    partition = sets.question(name, condition, target) if condition else {}
    channel = named_channel(wiring, channel_for(wiring.config, name, at).name)

    def known() -> Iterator[Mark]:
        return (done.mark for done in sets.marks(name, target))

    return DoneNotices(channel.broker(), channel.topics().topic(name), name, partition, known, sets.store, timeout)


class DoneNotices:
    """An iterator over marks. `known` gives those that are done by now; it is asked once, behind the subscription. Use
    it as a context, or `close` it."""

    def __init__(
        self,
        broker: NoticeBroker,
        topic: str,
        table: TableName,
        condition: Mapping[str, str],
        known: Callable[[], Iterable[Mark]],
        store: MarkStore,
        timeout: float | None,
    ) -> None:
        self.broker, self.table, self.condition = broker, table, condition
        self.store, self.timeout = store, timeout
        try:
            self.subscription: Subscription = broker.subscribe([topic])
            self.told: set[int] = set()
            self.waiting = deque(known())
        except BaseException:
            broker.close()
            raise

    def __iter__(self) -> Iterator[Mark]:
        return self

    def __next__(self) -> Mark:
        deadline = time.monotonic() + (self.timeout if self.timeout is not None else float("inf"))
        while True:
            while self.waiting:
                mark = self.waiting.popleft()
                if mark.number not in self.told and mark.covers(self.condition or mark.partition):
                    self.told.add(mark.number)
                    return mark
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise StopIteration
            for message in self.subscription.receive(min(WAIT_SECONDS, remaining)):
                self.hear(json.loads(message.body))

    def hear(self, notice: Mapping[str, Any]) -> None:
        if notice.get("type") != "done" or TableName(notice["database"], notice["table"]) != self.table:
            return
        number = int(str(notice["id"]).rpartition(":")[2])
        if number not in self.told:
            self.waiting.append(self.mark(number, notice))

    def mark(self, number: int, notice: Mapping[str, Any]) -> Mark:
        """As the store has it; one that was forgotten by now, as the notice says it."""
        known = next((mark for mark in self.store.after(number - 1) if mark.number == number), None)
        event_id = int(notice["event_id"])
        return known or Mark(number, self.table, f"r{event_id}", notice["partition"], event_id, 0, 0)

    def __enter__(self) -> DoneNotices:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the subscription up. Idempotent."""
        self.subscription.close()
        self.broker.close()


def channel_for(config: Config, table: TableName, at: str) -> NoticeChannel:
    """The first channel there that sends marks of the table. Raises `Refused`."""
    for channel in channels_at(config, at):
        keys = channel.keys
        if "done" in keys.types and Selection.of(keys.types, keys.include, keys.exclude).takes_table(table):
            return channel
    where = "the source" if at == AT_SOURCE else at
    todo = f'Add a section [notices.NAME] with at = "{at}" and "done" among its types'
    raise Refused(f"No channel tells of sets of {table} that are done at {where}", "None is configured", todo)
