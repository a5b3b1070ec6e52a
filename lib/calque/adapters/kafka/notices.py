"""Kafka as a message broker (port `NoticeBroker`)."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as Record

from calque.adapters.kafka.admin import connected
from calque.adapters.kafka.connection import Connection
from calque.adapters.kafka.faults import DENIED, fault
from calque.adapters.kafka.notice_subscription import KafkaSubscription, newest_offsets
from calque.adapters.kafka.notice_topics import MissingTopics, NoticeTopics
from calque.adapters.kafka.partition import producer_of
from calque.adapters.kafka.slot import ClientSlot
from calque.errors import CalqueError, Refused, Unavailable
from calque.model.notices import Message

SILENCE = 10.0
"""Seconds without any answer after which a broker is given up. Another one becomes the leader in less."""
AWAY = 3.0
"""The same where no broker takes connections."""
LOOK = 0.2
"""Seconds between two looks at what was delivered."""
TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_RECORD})
LARGEST = 512 << 20
"""Bytes of a message: topics say what they take."""
LARGEST_BATCH = 64 << 10
"""Bytes of messages that are small; a larger one goes alone."""
GIVEN_UP = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
SILENT = logging.getLogger("calque.kafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False
SETTINGS = {
    # librdkafka writes to standard error, whatever its log level is, when a producer that has no gaps gives up.
    "logger": SILENT,
    # What comes behind a message that did not arrive does not arrive either.
    "enable.gapless.guarantee": True,
    "linger.ms": 5,
    "batch.num.messages": 10_000,
    "batch.size": LARGEST_BATCH,
    "queue.buffering.max.kbytes": 32 << 10,
    "request.timeout.ms": 5_000,
    "topic.metadata.propagation.max.ms": 5_000,
}


class KafkaNoticeBroker:
    """The brokers of a Kafka cluster, with one idempotent producer for all topics.

    silence: seconds without any answer after which brokers are given up.
    A message's partition follows from its key as Java's clients do it; "partitioner" among the options changes that."""

    def __init__(self, connection: Connection, missing: MissingTopics | None = None, silence: float = SILENCE) -> None:
        self._connection, self._silence = connection, silence
        self._topics = NoticeTopics(connection, missing or MissingTopics())
        self._producer: ClientSlot[Producer] = ClientSlot(connection.options)
        self._errors: deque[KafkaError] = deque(maxlen=100)
        self._sending, self._closed = threading.Lock(), False

    def publish(self, messages: Sequence[Message]) -> None:
        with self._sending:
            try:
                self._topics.require([message.topic for message in messages])
                for message in messages:
                    self._topics.require_room(message)
                self._send(messages)
            except CalqueError:
                self._topics.forget()
                self._drop()
                raise

    def subscribe(self, topics: Sequence[str]) -> KafkaSubscription:
        with self._sending:
            self._topics.require(topics)
            admin, _ = connected(self._connection)
            return KafkaSubscription(self._connection, newest_offsets(admin, self._connection, self._topics, topics))

    def close(self) -> None:
        self._closed = True
        held = self._producer.held
        if held is not None:
            # A `publish` of another thread hears that its messages were given up, and drops the producer.
            held.purge()
            if self._sending.acquire(timeout=SILENCE):
                self._drop()
                self._sending.release()

    def _send(self, messages: Sequence[Message]) -> None:
        """Errors of librdkafka are heard beside the answer, which is that there is none."""
        if self._closed:
            raise self._unavailable("The connection was closed")
        producer = self._producer.client(self._new)
        self._errors.clear()
        delivered, last, errors = 0, time.monotonic(), list[tuple[str, KafkaError]]()

        def on_delivery(error: KafkaError | None, record: Record) -> None:
            nonlocal delivered, last
            if error is not None:
                errors.append((record.topic() or "", error))
            else:
                delivered, last = delivered + 1, time.monotonic()
                self._errors.clear()

        def look() -> None:
            if self._closed:
                raise self._unavailable("The connection was closed")
            if errors:
                raise self._fault(*errors[0])
            denied = next((error for error in list(self._errors) if error.code() in DENIED), None)
            if denied is not None:
                raise self._fault("", denied)
            away = any(error.code() == KafkaError._ALL_BROKERS_DOWN for error in list(self._errors))
            if time.monotonic() - last > (AWAY if away else self._silence):
                why = next(iter(self._errors), KafkaError(KafkaError._TIMED_OUT))
                raise self._unavailable(f"Nothing was answered for some seconds ({why.str()})")

        for message in messages:
            while not self._produced(producer, message, on_delivery):
                producer.poll(LOOK)
                look()
            producer.poll(0)
            if errors:
                look()
        while producer.flush(LOOK) or delivered < len(messages):
            look()

    def _produced(self, producer: Producer, message: Message, on_delivery: object) -> bool:
        """False where the producer holds as much as it may."""
        try:
            producer.produce(
                message.topic,
                message.body,
                message.key,
                headers=list(message.headers.items()),
                on_delivery=on_delivery,  # type: ignore[arg-type]
            )
        except BufferError:
            return False
        except KafkaException as error:
            raise self._fault(message.topic, error.args[0]) from error
        return True

    def _new(self) -> Producer:
        chosen = {"partitioner": "murmur2", "compression.type": "lz4"}
        settings = {name: self._connection.options.get(name, value) for name, value in chosen.items()}
        return producer_of(self._connection, LARGEST, {**settings, **SETTINGS, "error_cb": self._errors.append})

    def _drop(self) -> None:
        if self._producer.held is not None:
            self._producer.held.purge()
        self._producer.drop()

    def _fault(self, topic: str, error: KafkaError) -> CalqueError:
        brokers = self._connection.brokers
        if error.code() in TOO_LARGE:
            return Refused(
                f"Kafka at {brokers} does not take a message for topic {topic}",
                f"{error.name()}: {error.str()}",
                f"Raise the topic's max.message.bytes to {LARGEST_BATCH} or more",
            )
        if self._closed or error.code() in GIVEN_UP:
            return self._unavailable("The connection was closed")
        action = f"topic {topic} be written" if topic else "anything be written"
        return fault(action, brokers, error, self._connection.section)

    def _unavailable(self, why: str) -> Unavailable:
        return Unavailable(
            f"Kafka at {self._connection.brokers} does not take what is published",
            why,
            f"Check that its brokers run and {self._connection.section} names them; it is tried again",
        )
