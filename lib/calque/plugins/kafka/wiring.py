"""The topics of a journal on Kafka: opened, made, and described for checks, with the schema of their events at a
registry."""

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
    """Return the cluster of the topic's brokers, to ask about its topics."""
    from calque.plugins.kafka.adapters.client.cluster import KafkaCluster

    return KafkaCluster(topic)


def required_topics(topic: Topic) -> Sequence[RequiredTopic]:
    """Return the journal's topics with the settings that each should have."""
    from calque.plugins.kafka.adapters.client.cluster import wanted_topics

    return wanted_topics(topic)


def registry_at(topic: Topic) -> Registry:
    """Return the registry that the journal names, with the schema of its events."""
    from calque.plugins.kafka.adapters.journal.registry import registry_of

    return registry_of(topic)


def topic_of(source: Source, address: JournalAddress) -> Topic:
    """Return the topic of a source's journal. `address` names it; how it is reached stands in the source's
    configuration."""
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
    """Return the journal and the evidence on Kafka, which connect when they are first used. Raises `Refused` where the
    extra `kafka` is not installed."""
    try:
        from calque.plugins.kafka.adapters.journal.evidence import KafkaEvidence
        from calque.plugins.kafka.adapters.journal.journal import KafkaJournal
    except ModuleNotFoundError as error:
        raise missing("kafka", "[journal]", str(error.name)) from None

    return KafkaJournal(topic), KafkaEvidence(topic)


def make(source: Source, address: JournalAddress) -> MadeJournal:
    """Make the topics that are missing, register the schema of events where the journal names a registry, and report
    both. Raises `AccessRefused`, `Refused` and `Unavailable` as `make_topics` and `Registry.register` do."""
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
