"""The look of `calque check` at the broker of each channel, and at what calque may do there."""

from __future__ import annotations

from collections.abc import Iterable

from calque.engine.check.findings import Findings, Severity
from calque.errors import AccessRefused, CalqueError, Refused, Unavailable
from calque.plugins.kafka.checks.topics import check_writers
from calque.plugins.kafka.wiring import cluster_of
from calque.plugins.notices.ports import NoticeBroker
from calque.plugins.notices.wiring import channels
from calque.ports.services import KafkaInfo
from calque.wiring.wiring import Wiring

NEEDED = ("DESCRIBE", "WRITE")
SHOWN = 20
"""The most topics of a channel that are looked at. A few tell of the rest, because rights are mostly given by
prefix."""


def check_channels(wiring: Wiring, findings: Findings) -> None:
    """Look at every channel of the configuration and add what is found to `findings`."""
    for name, channel in channels(wiring).items():
        try:
            topics = channel.topics().topics(filter(channel.channel().selection.takes_table, channel.tables()))
        except CalqueError as error:
            findings.refused(f"notices {name}", error)
            continue
        kafka_topic = channel.kafka_topic()
        if kafka_topic is not None:
            check_kafka_channel(name, cluster_of(kafka_topic), topics, findings)
        else:
            check_channel(name, channel.broker(), next(iter(topics), name), findings)


def check_kafka_channel(name: str, cluster: KafkaInfo, topics: Iterable[str], findings: Findings) -> None:
    """Look whether the cluster answers, what it denies calque on the topics, and who else may write there. No topic is
    made and no message is sent."""
    where = f"notices {name}"
    try:
        brokers = cluster.brokers()
        findings.add_expected(where, f"Kafka answers; it has {brokers} broker{'s' if brokers != 1 else ''}")
        for topic_name in list(topics)[:SHOWN]:
            topic = cluster.topic(topic_name)
            if topic is None:
                continue
            denied_operations = [operation for operation in NEEDED if operation in topic.denied]
            if denied_operations:
                what = f"The user may not {' or '.join(denied_operations).lower()} topic {topic_name}"
                todo = f"Allow it {', '.join(NEEDED)} there"
                findings.add(where, Severity.ERROR, what, "Kafka's access control says so", todo)
            check_writers(where, topic, "Subscribers take what others write there for notices", findings)
            if topic.partitions > 1:
                what = f"Topic {topic_name} has {topic.partitions} partitions"
                why = "Each table's notices stay in order there, those of the topic do not"
                findings.add(where, Severity.INFO, what, why)
    except (Unavailable, Refused, AccessRefused) as error:
        findings.refused(where, error)


def check_channel(name: str, broker: NoticeBroker, topic: str, findings: Findings) -> None:
    """Subscribe for a moment, to see whether the broker answers and takes the login, and close the connection."""
    where = f"notices {name}"
    try:
        broker.subscribe([topic]).close()
    except (Unavailable, Refused, AccessRefused) as error:
        findings.refused(where, error)
    else:
        findings.add_expected(where, "The broker answers, and takes the login")
    finally:
        broker.close()
