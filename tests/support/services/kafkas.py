"""What tests do to topics behind calque's back."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from calque.plugins.kafka.adapters.client.partition import Fetcher, consumer_of
from calque.plugins.kafka.adapters.client.topic import Topic


def ends(topic: Topic, name: str) -> tuple[int, int]:
    """The first offset that is there, and the one after the last."""
    asked = Fetcher(topic, name)
    found = asked.ends()
    asked.close()
    assert found is not None
    return found


def delete_records(topic: Topic, name: str, before: int) -> None:
    """As retention does: what has lower offsets is gone."""
    admin = AdminClient(topic.settings())
    for future in admin.delete_records([TopicPartition(name, 0, before)]).values():
        future.result(60)


def delete_topics(topic: Topic, *names: str) -> None:
    """And wait until they are gone."""
    admin = AdminClient(topic.settings())
    for future in admin.delete_topics(list(names), operation_timeout=10).values():
        future.result(60)
    deadline = time.monotonic() + 60
    while not admin.list_topics(timeout=10).topics.keys().isdisjoint(names):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def reader(topic: Topic) -> Consumer:
    """A consumer at the beginning of the events, as other programs have one."""
    consumer = consumer_of(topic.connection)
    consumer.assign([TopicPartition(topic.name, 0, 0)])
    return consumer
