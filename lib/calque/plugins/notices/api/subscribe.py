"""The marks of a table as an iterator: first the marks that are done already, then those that the broker tells of."""

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
"""Seconds that one call waits for messages, between two looks at the time-out."""


def subscribed(
    wiring: Wiring, name: TableName, condition: Mapping[str, str], at: str, timeout: float | None
) -> DoneNotices:
    """Return an iterator over the table's marks that are done at `at`; `calque.notices.subscribe` explains the
    parameters. Raises `Refused` where no channel at that place tells of them."""
    sets, target = DoneSets(wiring), None if at == AT_SOURCE else at
    partition = sets.question(name, condition, target) if condition else {}
    channel = named_channel(wiring, channel_for(wiring.config, name, at).name)

    def known() -> Iterator[Mark]:
        return (done.mark for done in sets.marks(name, target))

    return DoneNotices(channel.broker(), channel.topics().topic(name), name, partition, known, sets.store, timeout)


class DoneNotices:
    """An iterator over marks of one table, each once. It ends when no mark has come for `timeout` seconds; None waits
    for ever. `known` yields the marks that are done by now; it is called once, after the subscription began, so that no
    mark is missed between the two. Use the iterator as a context, or `close` it."""

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
        """Return the mark of that number as the store has it. A mark that the store has forgotten by now is made of the
        notice."""
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
        """End the subscription and close the broker's connection. A second call does nothing."""
        self.subscription.close()
        self.broker.close()


def channel_for(config: Config, table: TableName, at: str) -> NoticeChannel:
    """Return the first channel at `at` that sends marks of the table. Raises `Refused` where there is none."""
    for channel in channels_at(config, at):
        keys = channel.keys
        if "done" in keys.types and Selection.of(keys.types, keys.include, keys.exclude).takes_table(table):
            return channel
    where = "the source" if at == AT_SOURCE else at
    todo = f'Add a section [notices.NAME] with at = "{at}" and "done" among its types'
    raise Refused(f"No channel tells of sets of {table} that are done at {where}", "None is configured", todo)
