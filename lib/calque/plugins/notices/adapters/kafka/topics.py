"""The topics of a Kafka cluster that notices go to: whether they exist, how missing ones are made, and how large their
messages may be."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic, TopicDescription

from calque.errors import Refused, Unavailable
from calque.plugins.kafka.adapters.client.admin import connected
from calque.plugins.kafka.adapters.client.connection import Connection
from calque.plugins.kafka.adapters.client.create_topics import COPIES, create, safe_config
from calque.plugins.kafka.adapters.client.errors import MISSING, PATIENCE, fault
from calque.plugins.kafka.adapters.client.partition import ROOM, limit_of
from calque.plugins.notices.model import Message

NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
AT_ONCE = 200
"""The most topics in one request."""
LEADERLESS = 20.0
"""Seconds in which at least one of several new topics has to get its leader."""
KNOWN = 100_000
"""The most topics whose existence, or whose limit, is remembered."""
SMALL = 32 << 10
"""Bytes up to which a message is sent without asking for its topic's limit, which is 1 MiB unless an operator changed
it."""


@dataclass(frozen=True, slots=True)
class MissingTopics:
    """The settings of topics that calque makes. Without `copies` there are 3, or one on each broker where there are
    fewer brokers. With more than one of `partitions` the messages of one key stay in order, those of the whole topic do
    not. `config` are the topic's own settings."""

    partitions: int = 1
    copies: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)


class NoticeTopics:
    """A memory of topics and their limits: it asks the cluster about each topic once, until `forget`. It is not safe
    from several threads."""

    def __init__(self, connection: Connection, missing: MissingTopics) -> None:
        self._connection, self._missing = connection, missing
        self._known: set[str] = set()
        self._limits: dict[str, int] = {}

    def require(self, names: Collection[str]) -> None:
        """Make the topics that are missing, and wait until they have leaders. Raises `Refused` for a name that no topic
        can have, `AccessRefused`, `Unavailable`."""
        unknown = [name for name in dict.fromkeys(names) if name not in self._known]
        for name in unknown:
            if not NAME.fullmatch(name) or name in (".", ".."):
                raise Refused(
                    f"Kafka takes no topic named {name}",
                    "Its topics have names of at most 249 letters, digits, dots, underscores and hyphens",
                    f"Change the topic below {self._connection.section}",
                )
        if not unknown:
            return
        admin, cluster = connected(self._connection)
        for batch in batches(unknown):
            missing = [name for name, description in self.described(admin, batch).items() if description is None]
            if missing:
                copies = self._missing.copies or min(COPIES, len(cluster.brokers))
                config = {**safe_config(copies), **self._missing.config}
                create(
                    admin,
                    self._connection,
                    [NewTopic(name, self._missing.partitions, copies, config=config) for name in missing],
                )
                self._wait_for_leaders(admin, missing)
            if len(self._known) > KNOWN:
                self._known.clear()
            self._known.update(batch)

    def require_room(self, message: Message) -> None:
        """Check that the message fits its topic, which must exist. Raises `Refused` where the topic never takes a
        message of that size."""
        size = size_of(message)
        if size <= SMALL or size <= self._limits.get(message.topic, 0):
            return
        if len(self._limits) > KNOWN:
            self._limits.clear()
        limit = self._limits[message.topic] = limit_of(self._connection, message.topic) + ROOM
        if size > limit:
            raise Refused(
                f"Kafka takes no message of {size} bytes for topic {message.topic}",
                f"The topic's max.message.bytes is {limit}",
                "Raise it",
            )

    def forget(self) -> None:
        """Forget all topics and limits, so that the cluster is asked again. Called after an error, which may come from
        a topic that changed."""
        self._known.clear()
        self._limits.clear()

    def described(self, admin: AdminClient, names: Sequence[str]) -> dict[str, TopicDescription | None]:
        """Return the cluster's description of each topic, None for a missing one. `names` are at most `AT_ONCE`. Raises
        `AccessRefused`, `Unavailable`."""
        futures = admin.describe_topics(TopicCollection(list(names)), request_timeout=PATIENCE)
        descriptions: dict[str, TopicDescription | None] = {}
        for name, future in futures.items():
            try:
                descriptions[name] = future.result()
            except KafkaException as error:
                if error.args[0].code() not in MISSING:
                    raise self._fault(f"topic {name} be looked at", error.args[0]) from error
                descriptions[name] = None
        return descriptions

    def _wait_for_leaders(self, admin: AdminClient, names: Sequence[str]) -> None:
        deadline = time.monotonic() + LEADERLESS
        waiting = list(names)
        while time.monotonic() < deadline:
            before = len(waiting)
            waiting = [name for name, topic in self.described(admin, waiting).items() if not is_led(topic)]
            if not waiting:
                return
            if len(waiting) < before:
                deadline = time.monotonic() + LEADERLESS
            time.sleep(0.05)
        raise Unavailable(
            f"Kafka made the topics {', '.join(waiting[:5])}, but they can't be used yet",
            "They have no leader",
            "It is tried again",
        )

    def _fault(self, action: str, error: KafkaError) -> Exception:
        return fault(action, self._connection.brokers, error, self._connection.section)


def is_led(topic: TopicDescription | None) -> bool:
    return topic is not None and all(partition.leader is not None for partition in topic.partitions)


def size_of(message: Message) -> int:
    """Return an upper bound of the bytes that the message takes as a record of Kafka."""
    headers = sum(len(name.encode()) + len(value.encode()) + 16 for name, value in message.headers.items())
    return len(message.body) + len(message.key.encode()) + headers + 256


def batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    remaining = iter(names)
    while batch := list(islice(remaining, AT_ONCE)):
        yield batch
