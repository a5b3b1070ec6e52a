"""The port `KafkaInfo`, answered by the cluster itself: its brokers, and the settings and rights of its topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ClusterMetadata,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from calque.plugins.kafka.adapters.client.admin import connected
from calque.plugins.kafka.adapters.client.create_topics import names_of
from calque.plugins.kafka.adapters.client.errors import PATIENCE, as_calque_errors
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.ports.services import TOPIC_OPERATIONS, RequiredTopic
from calque.ports.services import TopicInfo as Found

WRITING = frozenset({AclOperation.ALL, AclOperation.WRITE})


class KafkaCluster:
    """The cluster that has a journal's topics. The first question connects and lists the topics; later questions about
    which topics exist use that list."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    def brokers(self) -> int:
        return len(self._listed.brokers)

    def topic(self, name: str) -> Found | None:
        metadata = self._listed.topics.get(name)
        if metadata is None:
            return None
        copies = min((len(partition.replicas) for partition in metadata.partitions.values()), default=0)
        writers, is_open = self._writers(name)
        settings, denied = self._settings(name), self._denied(name)
        return Found(name, len(metadata.partitions), copies, settings, denied, writers, is_open)

    @cached_property
    def _connected(self) -> tuple[AdminClient, ClusterMetadata]:
        return connected(self._topic.connection)

    @property
    def _admin(self) -> AdminClient:
        return self._connected[0]

    @property
    def _listed(self) -> ClusterMetadata:
        return self._connected[1]

    def _settings(self, name: str) -> Mapping[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, name)
        with as_calque_errors(f"the settings of topic {name} be read", self._topic.brokers):
            entries = self._admin.describe_configs([resource], request_timeout=PATIENCE)[resource].result()
        return {setting: entry.value for setting, entry in entries.items() if entry.value is not None}

    def _denied(self, name: str) -> Sequence[str]:
        """Return the operations that calque needs on the topic and may not do; none where Kafka does not tell."""
        with as_calque_errors(f"topic {name} be described", self._topic.brokers):
            futures = self._admin.describe_topics(
                TopicCollection([name]), include_authorized_operations=True, request_timeout=PATIENCE
            )
            allowed_operations = futures[name].result().authorized_operations
        names = {operation.name for operation in allowed_operations or ()}
        return [operation for operation in TOPIC_OPERATIONS if names and operation not in names]

    def _writers(self, name: str) -> tuple[Sequence[str], bool]:
        """Return the other users whom rules let write to the topic, and whether the brokers have no access control.
        Return no users and False where our user may not see the rules."""
        allowed = AclBindingFilter(
            ResourceType.TOPIC,
            name,
            ResourcePatternType.MATCH,
            None,  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            AclOperation.ANY,
            AclPermissionType.ALLOW,
        )
        try:
            rules = self._admin.describe_acls(allowed, request_timeout=PATIENCE).result()
        except KafkaException as error:
            return (), error.args[0].code() == KafkaError.SECURITY_DISABLED
        own = f"User:{self._topic.connection.options.get('sasl.username', '')}"
        writing = {rule.principal for rule in rules if rule.operation in WRITING}
        return sorted(writing - {own}), False


def wanted_topics(topic: Topic) -> Sequence[RequiredTopic]:
    """Return the journal's topics with the settings that each should have."""
    return [
        RequiredTopic(name, 2, True, 0.0) if name == topic.positions else RequiredTopic(name, 1, False, topic.retention)
        for name in names_of(topic)
    ]
