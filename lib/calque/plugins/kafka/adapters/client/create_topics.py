"""The creation of a journal's topics."""

from __future__ import annotations

import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic, TopicMetadata

from calque.errors import Unavailable
from calque.plugins.kafka.adapters.client.admin import connected
from calque.plugins.kafka.adapters.client.connection import Connection
from calque.plugins.kafka.adapters.client.errors import PATIENCE, as_calque_errors, fault
from calque.plugins.kafka.adapters.client.topic import Topic

COPIES = 3
"""The copies of each record, where there are as many brokers."""


def make_topics(topic: Topic) -> tuple[str, ...]:
    """Make the journal's topics that are missing, wait until they can be used, and return their names. With three
    brokers a record is durable on two before it counts. Raises `AccessRefused` where the login is refused or a right is
    missing, `Refused` where the cluster refuses the topics for another reason, and `Unavailable`."""
    admin, cluster = connected(topic.connection)
    missing = tuple(name for name in names_of(topic) if name not in cluster.topics)
    if not missing:
        return ()
    copies = min(COPIES, len(cluster.brokers))
    new_topics = [
        NewTopic(name, 2 if name == topic.positions else 1, copies, config=config_of(topic, name, copies))
        for name in missing
    ]
    create(admin, topic.connection, new_topics)
    wait_for(admin, topic, missing)
    return missing


def create(admin: AdminClient, connection: Connection, new_topics: list[NewTopic]) -> None:
    """Make the topics in one request. A topic that another process made meanwhile is fine. Raises the error that
    `fault` makes of any other failure."""
    futures = admin.create_topics(new_topics, operation_timeout=PATIENCE, request_timeout=2 * PATIENCE)
    for name, future in futures.items():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise fault(f"topic {name} be made", connection.brokers, error.args[0], connection.section) from error


def names_of(topic: Topic) -> tuple[str, ...]:
    """Return the names of all topics of the journal."""
    return topic.name, topic.evidence, topic.positions


def config_of(topic: Topic, name: str, copies: int) -> dict[str, str]:
    """Return the settings with which calque makes the topic, for this number of copies."""
    safe = safe_config(copies)
    if name == topic.positions:
        return safe | {"cleanup.policy": "compact"}
    return safe | {
        "cleanup.policy": "delete",
        "retention.ms": str(int(topic.retention * 1000)),
        "retention.bytes": "-1",
    }


def safe_config(copies: int) -> dict[str, str]:
    """Return the settings by which a record that counts is durable on two brokers, where it has three copies."""
    return {"min.insync.replicas": "2" if copies >= COPIES else "1", "unclean.leader.election.enable": "false"}


def wait_for(admin: AdminClient, topic: Topic, names: tuple[str, ...]) -> None:
    """Wait until each of the topics has a leader. Raises `Unavailable` after `PATIENCE` seconds."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with as_calque_errors("its topics be listed", topic.brokers):
            listed_topics = admin.list_topics(timeout=PATIENCE).topics
        if all(name in listed_topics and is_led(listed_topics[name]) for name in names):
            return
        time.sleep(0.05)
    raise Unavailable(
        f"Kafka made the topics {', '.join(names)}, but they can't be used yet",
        "They have no leader",
        "It is tried again",
    )


def is_led(topic: TopicMetadata) -> bool:
    return bool(topic.partitions) and all(partition.leader >= 0 for partition in topic.partitions.values())
