"""Publish notices, then record how far: a death between the two repeats notices, and loses none.

Where a process goes on after a call that failed, what the broker has taken by then is not sent again: the sender knows
it until the position is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain

from calque.model.names import TableName
from calque.plugins.notices.core.channel import Channel
from calque.plugins.notices.core.notice import Notice
from calque.plugins.notices.model import Message, TakenMessages
from calque.plugins.notices.ports import NoticeBroker

MESSAGES_AT_ONCE = 2_000
BYTES_AT_ONCE = 4 << 20
"""What one call of `publish` may hold. While the broker takes it the next one is prepared: so many more are held."""


@dataclass(slots=True)
class Sender:
    """A channel and its broker. `tables` are all that there are, for notices that concern every topic. `sent` counts
    the messages that the broker took."""

    channel: Channel
    broker: NoticeBroker
    tables: Callable[[], Iterable[TableName]]
    sent: int = 0
    unrecorded: TakenMessages = field(default_factory=TakenMessages)
    """What the broker took since a position was recorded."""

    def recorded(self) -> None:
        """The position stands behind all that was sent."""
        self.unrecorded = TakenMessages()

    def send(self, notices: Iterable[Notice]) -> None:
        """Have the broker take all of them that the channel sends. Raises `Unavailable` where it is not known that it
        has them all; none of a later call of `publish` arrives before those of an earlier one."""
        batches = self.batches(notices)
        first, second = next(batches, None), next(batches, None)
        if first is None or second is None:
            self.publish(first or [])
            return
        with ThreadPoolExecutor(1, thread_name_prefix=f"publish-{self.channel.name}") as pool:
            under_way = pool.submit(self.publish, first)
            for batch in chain((second,), batches):
                under_way.result()
                under_way = pool.submit(self.publish, batch)
            under_way.result()

    def batches(self, notices: Iterable[Notice]) -> Iterator[list[Message]]:
        """What the channel sends, in order, none of them empty."""
        batch: list[Message] = []
        size = 0
        known = frozenset(self.unrecorded.digests)
        for message in self.channel.messages(notices, self.tables):
            if known and message.digest() in known:
                continue
            batch.append(message)
            size += len(message.body)
            if len(batch) >= MESSAGES_AT_ONCE or size >= BYTES_AT_ONCE:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def publish(self, batch: list[Message]) -> None:
        if batch:
            self.broker.publish(batch)
            self.unrecorded.add(batch)
            self.sent += len(batch)

    def taken(self) -> int:
        """How many messages went since this was asked last."""
        count, self.sent = self.sent, 0
        return count
