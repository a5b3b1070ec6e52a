"""The topics of a journal on Kafka: looked at, made, and the schema of their events registered."""

from __future__ import annotations

from collections.abc import Sequence

from calque.plugins.kafka.adapters.client.cluster import KafkaCluster, wanted_topics
from calque.plugins.kafka.adapters.client.create_topics import make_topics
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.registry import registry_of
from calque.ports.services import KafkaInfo, RequiredTopic

__all__ = ["cluster_of", "make_topics", "registry_of", "required_topics"]


def cluster_of(topic: Topic) -> KafkaInfo:
    """The brokers that the journal's topics are on."""
    return KafkaCluster(topic)


def required_topics(topic: Topic) -> Sequence[RequiredTopic]:
    """The journal's topics, as they should be."""
    return wanted_topics(topic)
