"""A partition of a topic: its ends, its records from one offset to another, and new records.

Clients are made when they are first needed. A `RecordsLost` says that the partition is not as it was. Nothing here is
safe from several threads at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from calque.errors import Broken, Unavailable
from calque.plugins.kafka.adapters.client.admin import connected, require_login
from calque.plugins.kafka.adapters.client.connection import Connection
from calque.plugins.kafka.adapters.client.errors import (
    MISSING,
    MOVING,
    OUTSIDE,
    PATIENCE,
    RecordsLost,
    as_calque_errors,
    fault,
)
from calque.plugins.kafka.adapters.client.lazy_client import ClientSlot, answered
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.headers import Record, record_of

LATE = 5.0
"""Seconds after its own time limit at which a call of librdkafka is given up."""
AT_ONCE = 500
"""The most records that are taken from a consumer in one call."""
ROOM = 2_048
"""Bytes of the largest record that are not its value: key, headers, and those of the batch around it."""
FETCH_WAIT = 20
"""Milliseconds that a broker holds a fetch without news. A fetch from another place begins only after that."""
SLOW = 1_000_000
"""Bytes per second that a connection is expected to take at least. A send may take as long as that."""
NOTING = 0.5
"""Seconds that writing a note may take."""
USUAL_LIMIT = 1_000_000
"""Bytes of a record that are taken for the topic's limit where the user may not ask for it."""


class Fetcher:
    """A reader of one partition: its ends, and its records in order. It goes on fetching ahead of the last record that
    was asked for, until `rest`."""

    def __init__(self, topic: Topic, name: str, partition: int = 0) -> None:
        self._topic, self._name, self._partition = topic, name, partition
        self._consumer: ClientSlot[Consumer] = ClientSlot(topic.options)
        self._next_offset: int | None = None
        self._asker: ClientSlot[Consumer] = ClientSlot(topic.options)
        """A second client, for the ends alone. It fetches nothing, because a broker answers one connection's requests
        in order, and a fetch waits for news."""

    def ends(self) -> tuple[int, int] | None:
        """Ask the broker for the first offset that is there and the offset after the last, anew each time. Return None
        where a broker says that the topic is missing. Raises `Unavailable`, `AccessRefused`."""
        deadline = time.monotonic() + PATIENCE
        while True:
            consumer = self._asker.client(self._new)
            remaining = deadline - time.monotonic()
            partition, limit = TopicPartition(self._name, self._partition), max(remaining, 0.1)
            try:
                return answered(partial(consumer.get_watermark_offsets, partition, limit, cached=False), limit + LATE)
            except TimeoutError as error:
                self._asker.drop()
                raise self._silent("Nobody said where it begins and ends", limit + LATE) from error
            except KafkaException as error:
                if remaining <= 0 or error.args[0].code() not in MOVING:
                    # A client that lost the partition's leader may go on asking the same broker.
                    self._asker.drop()
                    raise fault(f"topic {self._name} be read", self._topic.brokers, error.args[0]) from error
            # A client that lost its broker takes every partition for unknown, until a question for topics makes it look
            # for leaders again.
            with suppress(KafkaException):
                problem = consumer.list_topics(self._name, min(max(remaining, 0.1), 1.0)).topics[self._name].error
                if problem is not None and problem.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    return None
            time.sleep(0.02)

    def records(self, offset: int, upto: int) -> Iterator[Record]:
        """Yield the records from `offset` to before `upto`. Raises `RecordsLost` where some of them are no longer
        there, `Broken` for a record that calque did not write, and `Unavailable`."""
        while offset < upto:
            for message in self._next(offset, min(upto - offset, AT_ONCE)):
                message_offset = message.offset()
                assert message_offset is not None
                yield record_of(message_offset, message.value(), message.headers(), self._name)  # type: ignore[arg-type]
                offset = message_offset + 1

    def rest(self) -> None:
        """Stop fetching ahead."""
        if self._consumer.held is not None and self._next_offset is not None:
            self._consumer.held.unassign()
        self._next_offset = None

    def close(self) -> None:
        self._leave()
        self._asker.drop()

    def _next(self, offset: int, count: int) -> Sequence[Message]:
        """Return at least one and at most `count` of the records from `offset` on. Raises `RecordsLost` where the
        record at `offset` is not there."""
        consumer = self._from(offset)
        deadline = time.monotonic() + PATIENCE
        why: KafkaError | None = None
        while time.monotonic() < deadline:
            try:
                messages = consumer.consume(count, 0.5) if count > 1 else [consumer.poll(0.5)]
            except KafkaException as error:
                self._leave()
                raise fault(f"topic {self._name} be read", self._topic.brokers, error.args[0]) from error
            records: list[Message] = []
            for message in messages:
                if message is None:
                    continue
                problem = message.error()
                if problem is None and message.offset() == offset + len(records):
                    records.append(message)
                elif problem is None or problem.code() in OUTSIDE | MISSING:
                    self.rest()
                    raise RecordsLost
                else:
                    why = problem
            if records:
                self._next_offset = offset + len(records)
                return records
        self._leave()
        if why is not None:
            raise fault(f"topic {self._name} be read", self._topic.brokers, why)
        raise self._silent("No record came", PATIENCE)

    def _silent(self, what: str, seconds: float) -> Unavailable:
        return Unavailable(
            f"Kafka at {self._topic.brokers} does not let topic {self._name} be read",
            f"{what} for {seconds:.0f} seconds",
            "Check that its brokers run; it is tried again",
        )

    def _from(self, offset: int) -> Consumer:
        held = self._consumer.held
        consumer = self._consumer.client(self._new)
        if consumer is not held or self._next_offset != offset:
            with as_calque_errors(f"topic {self._name} be read", self._topic.brokers):
                consumer.assign([TopicPartition(self._name, self._partition, offset)])
            self._next_offset = offset
        return consumer

    def _new(self) -> Consumer:
        return consumer_of(self._topic.connection)

    def _leave(self) -> None:
        self._consumer.drop()
        self._next_offset = None


class Sender:
    """A writer of records to a topic's one partition, each once and in order (an idempotent producer)."""

    def __init__(self, topic: Topic, name: str) -> None:
        self._topic, self._name = topic, name
        self._producer: ClientSlot[Producer] = ClientSlot(topic.options)
        self._limit = 0

    def limit(self) -> int:
        """Return the most bytes that a record's value may have in the topic."""
        if not self._limit:
            self._limit = limit_of(self._topic.connection, self._name)
        return self._limit

    def send(self, records: Sequence[Record]) -> list[int]:
        """Write the records and return their offsets, in order, once all are durable. Raises `Unavailable`; some of the
        records may be there then, or come later."""
        producer = self._producer.client(self._new)
        offsets: list[int] = []
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                errors.append(error)
            else:
                offsets.append(message.offset() or 0)

        try:
            for record in records:
                key = str(record.mark)
                producer.produce(
                    self._name,
                    record.value or None,
                    key,
                    0,
                    delivered,
                    headers=record.headers(),  # type: ignore[arg-type]
                )
            unsent = producer.flush(PATIENCE + sum(len(record.value) for record in records) / SLOW)
        except (BufferError, KafkaException) as error:
            self._drop()
            reason = error.args[0]
            if isinstance(reason, KafkaError):
                raise fault(f"topic {self._name} be written", self._topic.brokers, reason) from error
            raise
        if errors or unsent:
            self._drop()
            self._limit = 0
            raise fault(
                f"topic {self._name} be written",
                self._topic.brokers,
                errors[0] if errors else KafkaError(KafkaError._TIMED_OUT),
            )
        return offsets

    def note(self, topic: str, partition: int, record: Record) -> None:
        """Write a record to a partition of another topic, within `NOTING` seconds. A failure is ignored. Call it only
        after `send`."""
        producer = self._producer.client(self._new)
        try:
            producer.produce(topic, record.value, b"", partition, headers=record.headers())  # type: ignore[arg-type]
            producer.flush(NOTING)
        except (BufferError, KafkaException):
            self._drop()

    def close(self) -> None:
        if self._producer.held is not None:
            self._producer.held.flush(PATIENCE)
        self._drop()

    def _drop(self) -> None:
        """Purge and drop the producer, so that records which are still to be sent do not arrive after those that are
        sent next."""
        if self._producer.held is not None:
            self._producer.held.purge()
        self._producer.drop()

    def _new(self) -> Producer:
        return producer_of(self._topic.connection, self.limit() + ROOM)


def consumer_of(connection: Connection, more: Mapping[str, object] = MappingProxyType({})) -> Consumer:
    """Make a consumer that belongs to no group and fetches nothing yet. `more` are settings in addition to the usual
    ones, or in their place."""
    require_login(connection)
    settings = connection.settings() | {
        "group.id": "calque",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "queued.max.messages.kbytes": 16_384,
        "fetch.wait.max.ms": FETCH_WAIT,
        "fetch.queue.backoff.ms": 10,
        "fetch.error.backoff.ms": 100,
        **more,
    }
    with as_calque_errors("anything be read", connection.brokers, connection.section):
        return Consumer(settings)


def producer_of(connection: Connection, largest: int, more: Mapping[str, object] = MappingProxyType({})) -> Producer:
    """Make an idempotent producer. Its messages wait for `flush`, whose limit decides how long a send may take.
    `largest` is the most bytes of a message. `more` are settings in addition to the usual ones, or in their place."""
    settings = connection.settings() | {
        "enable.idempotence": True,
        "acks": "all",
        "compression.type": "zstd",
        "linger.ms": 50,
        "batch.num.messages": 100_000,
        "message.max.bytes": largest,
        "message.timeout.ms": 300_000,
        "request.timeout.ms": 60_000,
        "retry.backoff.ms": 50,
        "retry.backoff.max.ms": 200,
        **more,
    }
    with as_calque_errors("anything be written", connection.brokers, connection.section):
        return Producer(settings)


def is_missing(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in MISSING


def limit_of(connection: Connection, name: str) -> int:
    """Return the most bytes that the topic lets a record's value have. Where the user may not ask, that is the usual
    limit. Raises `Unavailable`, `AccessRefused`, and `Broken` where the topic's limit is too small for calque."""
    resource = ConfigResource(ResourceType.TOPIC, name)
    try:
        admin, _ = connected(connection)
        # A topic that was just made is known to its leader before the other brokers hear of it.
        for attempt in Retrying(
            retry=retry_if_exception(is_missing), stop=stop_after_delay(PATIENCE), wait=wait_fixed(0.05), reraise=True
        ):
            with attempt:
                entries = admin.describe_configs([resource], request_timeout=PATIENCE)[resource].result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return USUAL_LIMIT - ROOM
        raise fault(f"topic {name} be looked at", connection.brokers, error.args[0], connection.section) from error
    limit = int(entries["max.message.bytes"].value) - ROOM
    if limit < ROOM:
        raise Broken(
            f"Topic {name} takes records of {limit + ROOM} bytes at most",
            "That is less than calque's own notes on a record need",
            "Raise its max.message.bytes",
        )
    return limit
