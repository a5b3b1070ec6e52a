"""Message brokers for the contract suite: the one in memory, and real ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from calque.errors import Unavailable
from calque.model.secrets import FileSecret
from calque.plugins.kafka.adapters.client.cluster import KafkaCluster
from calque.plugins.kafka.adapters.client.connection import Connection
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.notices.adapters.kafka.broker import KafkaNoticeBroker
from calque.plugins.notices.adapters.kafka.topics import MissingTopics
from calque.plugins.notices.adapters.stomp.address import StompAddress
from calque.plugins.notices.adapters.stomp.broker import StompNoticeBroker
from calque.plugins.notices.model import Message
from calque.plugins.notices.ports import NoticeBroker, Subscription
from calque.sandbox import Broker
from calque.sandbox.broker import GUEST
from support.memory.notices import MemoryNoticeBroker
from support.services.activemq import USER, ActiveMQ


class Service(Protocol):
    """What a broker runs on. `largest` is the size of a body that it does not take."""

    largest: int

    def connect(self, partitions: int = 3) -> NoticeBroker:
        """A new connection, as calque has it. Topics that it makes have so many partitions, where there are such."""

    def connect_refused(self) -> NoticeBroker:
        """One with a wrong login."""

    def connect_without(self, topics: str) -> NoticeBroker:
        """One that may not use topics whose names begin so and go on with a dot."""

    def stop(self) -> None: ...

    def start(self) -> None: ...


PATIENCE = 90.0


@dataclass(slots=True)
class MemoryService:
    """Its connections share one broker."""

    broker: MemoryNoticeBroker
    largest: int = 2 << 20

    def connect(self, partitions: int = 3) -> NoticeBroker:  # noqa: ARG002 - it has none
        other = MemoryNoticeBroker()
        other.topics, other.faults, other.published = self.broker.topics, self.broker.faults, self.broker.published
        return other

    def connect_refused(self) -> NoticeBroker:
        other = MemoryNoticeBroker()
        other.switch(refused=True)
        return other

    def connect_without(self, topics: str) -> NoticeBroker:
        other = MemoryNoticeBroker()
        other.switch(refused_topics={f"{topics}.sales"})
        return other

    def stop(self) -> None:
        self.broker.switch(away=True)

    def start(self) -> None:
        self.broker.switch(away=False)


@dataclass(slots=True)
class KafkaService:
    """Asks for a login."""

    server: Broker
    largest: int = 2 << 20

    def connect(self, partitions: int = 3) -> NoticeBroker:
        connection = Connection(self.server.address, self.server.options, "[notices.bus]")
        return KafkaNoticeBroker(connection, MissingTopics(partitions))

    def connect_impatient(self, silence: float) -> NoticeBroker:
        """One that gives a broker up which does not answer for that long, in seconds."""
        connection = Connection(self.server.address, self.server.options, "[notices.bus]")
        return KafkaNoticeBroker(connection, MissingTopics(3), silence)

    def connect_refused(self) -> NoticeBroker:
        options = self.server.options | {"sasl.password": f"wrong {uuid4().hex}"}
        return KafkaNoticeBroker(Connection(self.server.address, options, "[notices.bus]"))

    def connect_without(self, topics: str) -> NoticeBroker:
        admin = AdminClient({"bootstrap.servers": self.server.address, **self.server.options})
        rule = (f"{topics}.", ResourcePatternType.PREFIXED, f"User:{GUEST}", "*", AclOperation.ALL)
        denied = AclBinding(ResourceType.TOPIC, *rule, AclPermissionType.DENY)
        for future in admin.create_acls([denied]).values():
            future.result(60)
        options = self.server.options | {"sasl.username": GUEST}
        return KafkaNoticeBroker(Connection(self.server.address, options, "[notices.bus]"))

    def others_who_write(self, topic: str) -> Sequence[str]:
        """To a topic that is there, as `check` is told."""
        found = KafkaCluster(Topic(self.server.address, topic, self.server.options)).topic(topic)
        assert found is not None
        assert not found.is_open
        return found.writers

    def let_write(self, user: str, topics: str) -> None:
        """By a rule for all topics that begin so."""
        admin = AdminClient({"bootstrap.servers": self.server.address, **self.server.options})
        rule = (topics, ResourcePatternType.PREFIXED, f"User:{user}", "*", AclOperation.WRITE)
        for future in admin.create_acls([AclBinding(ResourceType.TOPIC, *rule, AclPermissionType.ALLOW)]).values():
            future.result(60)

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        self.server.restart()


@dataclass(slots=True)
class ActiveMQService:
    """Asks for a login, and lets it use topics below `hq`. `folder` takes files with passwords."""

    server: ActiveMQ
    folder: Path
    largest: int = 2 << 20

    def address(self, password: str = "") -> StompAddress:
        host, port = self.server.address.split(":")
        secret = self.folder / uuid4().hex
        secret.write_text(password or self.server.password)
        return StompAddress(((host, int(port)),), USER, FileSecret(str(secret)), section="[notices.bus]")

    def connect(self, partitions: int = 3) -> NoticeBroker:  # noqa: ARG002 - it has none
        return StompNoticeBroker(self.address())

    def connect_refused(self) -> NoticeBroker:
        return StompNoticeBroker(self.address(f"wrong {uuid4().hex}"))

    def connect_without(self, topics: str) -> NoticeBroker:
        assert topics != "hq"
        return self.connect()

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        self.server.restart()


def threads_and_sockets() -> tuple[int, int]:
    """Of this process."""
    sockets = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            sockets += str(descriptor.readlink()).startswith("socket:")
        except FileNotFoundError:
            continue
    return len(list(Path("/proc/self/task").iterdir())), sockets


def numbered(topic: str, numbers: Sequence[int], key: str = "") -> list[Message]:
    """Their bodies are their numbers; without a key, there are seven."""
    return [
        Message(topic, key or f"key {number % 7}", str(number).encode(), {"number": str(number)}) for number in numbers
    ]


def received(subscription: Subscription, count: int) -> list[Message]:
    """The first ones, which come before the test's patience ends."""
    messages: list[Message] = []
    deadline = time.monotonic() + PATIENCE
    while len(messages) < count:
        assert time.monotonic() < deadline, f"{len(messages)} of {count} came"
        messages += subscription.receive(1.0)
    return messages


def by_key(messages: Sequence[Message]) -> dict[tuple[str, str], list[bytes]]:
    """The bodies of each topic and key, in order, each where it came first."""
    bodies: dict[tuple[str, str], list[bytes]] = {}
    for message in messages:
        of_key = bodies.setdefault((message.topic, message.key), [])
        if message.body not in of_key:
            of_key.append(message.body)
    return bodies


def published(broker: NoticeBroker, messages: Sequence[Message]) -> None:
    """However often the broker has to be asked."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return broker.publish(messages)
        except Unavailable:
            if time.monotonic() > deadline:
                raise
