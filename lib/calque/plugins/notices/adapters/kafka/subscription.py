"""A subscription to topics of Kafka, from now on (port `Subscription`)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Record
from confluent_kafka.admin import AdminClient, OffsetSpec

from calque.errors import Unavailable
from calque.plugins.kafka.adapters.client.connection import Connection
from calque.plugins.kafka.adapters.client.errors import DENIED, MOVING, PATIENCE, fault
from calque.plugins.kafka.adapters.client.lazy_client import ClientSlot
from calque.plugins.kafka.adapters.client.partition import consumer_of
from calque.plugins.notices.adapters.kafka.topics import NoticeTopics, batches
from calque.plugins.notices.model import Message

AT_ONCE = 500
"""The most messages that are taken after the first in one call."""
NEW_PARTITIONS = 5.0
"""Seconds between two looks for partitions that were added. A new partition is read from its beginning."""

Offsets = dict[tuple[str, int], int]


class KafkaSubscription:
    """A reader of the topics' partitions from given offsets on, in no consumer group. Where the message at the next
    offset is gone, because the topic was made anew or its retention passed before a call of `receive`, the reader goes
    on with the oldest message that the topic has. Only one thread may call `receive` at a time."""

    def __init__(self, connection: Connection, offsets: Offsets) -> None:
        self._connection, self._offsets = connection, offsets
        self._topics = {topic for topic, _ in offsets}
        self._consumer: ClientSlot[Consumer] = ClientSlot(connection.options)
        self._errors: deque[KafkaError] = deque(maxlen=100)
        self._looked, self._closed = time.monotonic(), False
        self._assigned()

    def receive(self, seconds: float) -> Sequence[Message]:
        deadline = time.monotonic() + seconds
        while not self._closed:
            try:
                consumer = self._assigned()
            except Unavailable:
                if time.monotonic() >= deadline:
                    return ()
                continue
            self._add_partitions(consumer, deadline)
            messages = list(self._messages(consumer, deadline))
            if messages or time.monotonic() >= deadline:
                return messages
        return ()

    def close(self) -> None:
        self._closed = True
        self._consumer.drop()

    def _assigned(self) -> Consumer:
        held = self._consumer.held
        consumer = self._consumer.client(lambda: consumer_of(self._connection, self._settings()))
        if consumer is not held:
            self._errors.clear()
            self._assign(consumer)
        return consumer

    def _settings(self) -> dict[str, Any]:
        return {"auto.offset.reset": "earliest", "fetch.wait.max.ms": 500, "error_cb": self._errors.append}

    def _assign(self, consumer: Consumer) -> None:
        consumer.assign([TopicPartition(topic, number, offset) for (topic, number), offset in self._offsets.items()])

    def _messages(self, consumer: Consumer, deadline: float) -> Iterator[Message]:
        """Yield the messages that are there, after waiting for the first until `deadline`. Brokers that are away are
        waited for; a denied read raises `AccessRefused`."""
        try:
            first = consumer.poll(max(deadline - time.monotonic(), 0.0))
            records = [first, *consumer.consume(AT_ONCE, 0)] if first is not None else []
        except RuntimeError:
            # Another thread closed the consumer.
            if self._closed:
                return
            raise
        for error in [*self._errors, *(record.error() for record in records)]:
            if error is not None and error.code() in DENIED:
                self._consumer.drop()
                raise fault("its messages be read", self._connection.brokers, error, self._connection.section)
        for record in records:
            if record.error() is None:
                self._offsets[record.topic() or "", record.partition() or 0] = (record.offset() or 0) + 1
                yield message_of(record)

    def _add_partitions(self, consumer: Consumer, deadline: float) -> None:
        now = time.monotonic()
        if now < self._looked + NEW_PARTITIONS:
            return
        self._looked = now
        topic = {"topic": next(iter(self._topics))} if len(self._topics) == 1 else {}
        with suppress(KafkaException):
            listed_topics = consumer.list_topics(**topic, timeout=max(min(deadline - now, PATIENCE), 0.1)).topics
            added = {
                (name, number): 0
                for name in self._topics.intersection(listed_topics)
                for number in listed_topics[name].partitions
                if (name, number) not in self._offsets
            }
            if added:
                self._offsets |= added
                self._assign(consumer)


def newest_offsets(admin: AdminClient, connection: Connection, topics: NoticeTopics, names: Sequence[str]) -> Offsets:
    """Return the end of each partition of the topics, which must be there. Raises `Unavailable`, also where a topic is
    missing, and `AccessRefused`."""
    offsets: Offsets = {}
    for batch in batches(list(dict.fromkeys(names))):
        described = topics.described(admin, batch)
        partitions = [
            TopicPartition(name, partition.id)
            for name, topic in described.items()
            if topic is not None
            for partition in topic.partitions
        ]
        offsets |= ends_of(admin, connection, partitions)
        missing = set(batch) - {name for name, _ in offsets}
        if missing:
            raise Unavailable(f"The topic {min(missing)} is missing", "It was removed just now", "It is tried again")
    return offsets


def ends_of(admin: AdminClient, connection: Connection, partitions: Sequence[TopicPartition]) -> Offsets:
    """Return the end offset of each partition. A partition that changes its leader is asked again, for at most twice
    `PATIENCE` seconds. Raises `Unavailable`, `AccessRefused`."""
    deadline, offsets = time.monotonic() + 2 * PATIENCE, Offsets()
    waiting = list(partitions)
    newest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    while waiting:
        futures: Mapping[TopicPartition, Any] = admin.list_offsets(
            dict.fromkeys(waiting, newest), request_timeout=PATIENCE
        )
        waiting = []
        for partition, future in futures.items():
            try:
                offsets[partition.topic, partition.partition] = future.result().offset
            except KafkaException as error:
                if error.args[0].code() not in MOVING or time.monotonic() > deadline:
                    action = f"topic {partition.topic} be read"
                    raise fault(action, connection.brokers, error.args[0], connection.section) from error
                waiting.append(partition)
        if waiting:
            time.sleep(0.05)
    return offsets


def message_of(record: Record) -> Message:
    headers = cast("Sequence[tuple[str, bytes | None]]", record.headers() or ())
    return Message(
        record.topic() or "",
        text(record.key()),
        as_bytes(record.value()),
        {name: text(value) for name, value in headers},
    )


def text(value: str | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""


def as_bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""
