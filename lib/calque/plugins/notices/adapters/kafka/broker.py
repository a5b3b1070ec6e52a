"""Kafka as a message broker (port `NoticeBroker`)."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as Record

from calque.errors import CalqueError, Refused, Unavailable
from calque.plugins.kafka.adapters.client.admin import connected
from calque.plugins.kafka.adapters.client.connection import Connection
from calque.plugins.kafka.adapters.client.errors import DENIED, fault
from calque.plugins.kafka.adapters.client.lazy_client import ClientSlot
from calque.plugins.kafka.adapters.client.partition import producer_of
from calque.plugins.notices.adapters.kafka.subscription import KafkaSubscription, newest_offsets
from calque.plugins.notices.adapters.kafka.topics import MissingTopics, NoticeTopics
from calque.plugins.notices.model import Message

SILENCE = 10.0
"""Seconds without any answer after which a broker is given up. Another broker becomes the leader in less."""
AWAY = 3.0
"""Seconds without any answer after which brokers are given up where none of them takes connections."""
CLOSING = 3.0
"""Seconds in which the end of a connection waits for what is being sent."""
LOOK = 0.2
"""Seconds between two looks at what was delivered."""
TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_RECORD})
LARGEST = 512 << 20
"""The most bytes of a message that the client takes; the topics' own limits decide."""
LARGEST_BATCH = 64 << 10
"""The most bytes of small messages in one batch; a larger message goes alone."""
GIVEN_UP = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
SILENT = logging.getLogger("calque.kafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False
SETTINGS = {
    # librdkafka writes to standard error, at any log level, when a producer that has no gaps gives up.
    "logger": SILENT,
    # No message arrives that was sent after one which did not arrive.
    "enable.gapless.guarantee": True,
    "linger.ms": 5,
    "batch.num.messages": 10_000,
    "batch.size": LARGEST_BATCH,
    "queue.buffering.max.kbytes": 32 << 10,
    "request.timeout.ms": 5_000,
    "topic.metadata.propagation.max.ms": 5_000,
    # Messages have no time limit of their own, because a message that librdkafka gave up may have arrived: the sender's
    # silence decides.
    "message.timeout.ms": 0,
}


class KafkaNoticeBroker:
    """The brokers of a Kafka cluster, with one idempotent producer for all topics. `silence` is the number of seconds
    without any answer after which the brokers are given up. A message's partition follows from its key as in Java's
    clients; the option "partitioner" changes that."""

    def __init__(self, connection: Connection, missing: MissingTopics | None = None, silence: float = SILENCE) -> None:
        self._connection, self._silence = connection, silence
        self._topics = NoticeTopics(connection, missing or MissingTopics())
        self._producer: ClientSlot[Producer] = ClientSlot(connection.options)
        self._errors: deque[KafkaError] = deque(maxlen=100)
        self._sending, self._closed = threading.Lock(), False
        self._delivered: dict[bytes, bool] = {}
        """Messages that the producer has taken and whose sender was not told yet that they arrived, by digest: True for
        those that arrived."""
        self._last, self._given_up = 0.0, threading.Event()
        """When the newest message arrived, in seconds of the monotonic clock; and a flag that is set when the end of
        the connection waits no longer."""
        self._failed: list[tuple[str, KafkaError]] = []
        """Topics and errors of messages that did not arrive. Where there are any, the producer has given up."""

    def publish(self, messages: Sequence[Message]) -> None:
        """Publish as the port says. Messages that the producer still has of an earlier call that timed out are waited
        for, not sent again, because only the producer that sent them can tell the brokers that they have them."""
        with self._sending:
            try:
                self._topics.require([message.topic for message in messages])
                for message in messages:
                    self._topics.require_room(message)
                self._send(messages)
            except CalqueError as error:
                self._topics.forget()
                if self._closed or self._failed or not isinstance(error, Unavailable):
                    if self._producer.held is not None:
                        self._hear(self._producer.held)
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
            # A `publish` of another thread has `CLOSING` seconds to hear that its messages arrived. After that it hears
            # that they were given up, and drops the producer.
            is_free = self._sending.acquire(timeout=CLOSING)
            if not is_free:
                self._given_up.set()
                held.purge()
                is_free = self._sending.acquire(timeout=SILENCE)
            if is_free:
                self._drop()
                self._sending.release()

    def _send(self, messages: Sequence[Message]) -> None:
        """Produce the messages and wait until all arrived. librdkafka does not say why nothing arrives, so its errors
        are collected beside the answers and raised from there."""
        if self._closed:
            raise self._unavailable("The connection was closed")
        producer = self._producer.client(self._new)
        self._errors.clear()
        self._last = time.monotonic()

        def look() -> None:
            if self._given_up.is_set():
                raise self._unavailable("The connection was closed")
            if self._failed:
                raise self._fault(*self._failed[0])
            denied = next((error for error in list(self._errors) if error.code() in DENIED), None)
            if denied is not None:
                raise self._fault("", denied)
            away = any(error.code() == KafkaError._ALL_BROKERS_DOWN for error in list(self._errors))
            if time.monotonic() - self._last > (AWAY if away else self._silence):
                why = next(iter(self._errors), KafkaError(KafkaError._TIMED_OUT))
                raise self._unavailable(f"Nothing was answered for some seconds ({why.str()})")

        digests = [message.digest() for message in messages]
        for message, digest in zip(messages, digests, strict=True):
            if digest in self._delivered:
                continue
            while not self._produced(producer, message, partial(self._arrived, digest)):
                producer.poll(LOOK)
                look()
            self._delivered.setdefault(digest, False)
            producer.poll(0)
            if self._failed:
                look()
        while not self._flushed(producer) or not all(self._delivered[digest] for digest in digests):
            look()
        for digest in digests:
            self._delivered.pop(digest, None)

    def _flushed(self, producer: Producer) -> bool:
        """Tell whether the producer has nothing under way. A producer that has given up raises here, and tells only
        afterwards what became of each message, so this method hears that first and adds the error to `_failed`."""
        try:
            return not producer.flush(LOOK)
        except KafkaException as error:
            self._hear(producer)
            self._failed.append(("", error.args[0]))
            return False

    def _hear(self, producer: Producer) -> None:
        """Poll for the fate of the messages that are under way, for at most `CLOSING` seconds."""
        deadline = time.monotonic() + CLOSING
        while len(producer) and time.monotonic() < deadline and not self._given_up.is_set():
            producer.poll(LOOK)

    def _arrived(self, digest: bytes, error: KafkaError | None, record: Record) -> None:
        """Record the fate of one message. librdkafka calls this for each message, within `poll` or `flush`, so on the
        thread that sends."""
        if error is not None:
            self._failed.append((record.topic() or "", error))
        else:
            self._delivered[digest], self._last = True, time.monotonic()
            self._errors.clear()

    def _produced(self, producer: Producer, message: Message, on_delivery: object) -> bool:
        """Hand the message to the producer. Return False where the producer holds as much as it may."""
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
        # The next producer does not send messages again that are known to have arrived.
        self._delivered = {digest: True for digest, has_arrived in self._delivered.items() if has_arrived}
        self._failed.clear()

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
