"""The topics of a journal on Kafka: looked at, made, and the schema of their events registered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from calque.config.extras import missing
from calque.config.plugs import Source
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.ports import EvidenceStore
from calque.ports.services import KafkaInfo, RequiredTopic
from calque.wiring.journal_location import JournalAddress
from calque.wiring.kinds import JournalKind, JournalTable, MadeJournal, OpenJournal
from calque.wiring.state_folder import StateFolder

if TYPE_CHECKING:
    from calque.plugins.kafka.adapters.journal.registry import Registry


def cluster_of(topic: Topic) -> KafkaInfo:
    """The brokers that the journal's topics are on."""
    from calque.plugins.kafka.adapters.client.cluster import KafkaCluster

    return KafkaCluster(topic)


def required_topics(topic: Topic) -> Sequence[RequiredTopic]:
    """The journal's topics, as they should be."""
    from calque.plugins.kafka.adapters.client.cluster import wanted_topics

    return wanted_topics(topic)


def registry_at(topic: Topic) -> Registry:
    """The registry that has the schema of the journal's events."""
    from calque.plugins.kafka.adapters.journal.registry import registry_of

    return registry_of(topic)


def topic_of(source: Source, address: JournalAddress) -> Topic:
    """The topic of a source's journal; how it is reached stands in the configuration."""
    journal = source.journal
    return Topic(
        address.brokers or journal.brokers,
        address.topic,
        journal.options,
        journal.retention,
        journal.registry,
        journal.registry_options,
    )


def opener(source: Source, _folder: StateFolder, address: JournalAddress) -> OpenJournal:
    return partial(open_topic, topic_of(source, address))


def open_topic(topic: Topic) -> tuple[JournalTable, EvidenceStore]:
    """The journal and the evidence on Kafka. Raises `Refused` where the extra `kafka` is not installed."""
    try:
        from calque.plugins.kafka.adapters.journal.evidence import KafkaEvidence
        from calque.plugins.kafka.adapters.journal.journal import KafkaJournal
    except ModuleNotFoundError as error:
        raise missing("kafka", "[journal]", str(error.name)) from None

    return KafkaJournal(topic), KafkaEvidence(topic)


def make(source: Source, address: JournalAddress) -> MadeJournal:
    """The topics, and the schema of events at the registry where there is one. Raises `Refused`, `Unavailable`."""
    from calque.plugins.kafka.adapters.client.create_topics import make_topics

    topic = topic_of(source, address)
    new_topics = make_topics(topic)
    document: dict[str, object] = {"made": new_topics}
    lines = [f"Made {', '.join(new_topics)}." if new_topics else "All topics are there."]
    if topic.registry:
        registry = registry_at(topic)
        schema_id = registry.register()
        document["schema"] = {"subject": registry.subject, "id": schema_id}
        lines.append(f"The schema registry has the schema of events as id {schema_id} of {registry.subject}.")
    return MadeJournal(document, lines)


KAFKA = JournalKind(format="kafka", opener=opener, make=make)
