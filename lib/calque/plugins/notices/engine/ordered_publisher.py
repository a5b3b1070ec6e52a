"""The sender of a channel: it publishes notices first and records the position afterwards. A death between the two
repeats notices and loses none.

A process that goes on after a failed call does not send again what the broker took by then, because the sender
remembers it until the position is recorded.
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
"""The most messages, and bytes of them, that one call of `publish` gets. While the broker takes one call's messages the
next ones are prepared, so twice as many are held."""


@dataclass(slots=True)
class OrderedPublisher:
    """A channel and its broker. `tables` returns all tables of the channel's place, for notices that go to every topic.
    `sent` counts the messages that the broker took since `taken` was called last."""

    channel: Channel
    broker: NoticeBroker
    tables: Callable[[], Iterable[TableName]]
    sent: int = 0
    unrecorded: TakenMessages = field(default_factory=TakenMessages)
    """The messages that the broker took since a position was recorded."""

    def recorded(self) -> None:
        """Forget what was sent, because the recorded position now stands behind all of it."""
        self.unrecorded = TakenMessages()

    def send(self, notices: Iterable[Notice]) -> None:
        """Publish the notices that the channel sends, and return when the broker has all of them. Raises `Unavailable`
        where that is not known. No message of a later call of `publish` arrives before those of an earlier one."""
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
        """Yield the messages of the notices in order, in batches for one call of `publish` each. Messages that the
        broker took since the last recorded position are left out; no batch is empty."""
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
        """Return the number of messages that the broker took since the last call of this method."""
        count, self.sent = self.sent, 0
        return count
