"""The look of `calque check` at the topics of a journal on Kafka: what is wrong with them, and how to mend it."""

from __future__ import annotations

from collections.abc import Sequence

from calque.engine.check.findings import Findings, Severity
from calque.errors import AccessRefused, Refused, Unavailable
from calque.ports.services import TOPIC_OPERATIONS, KafkaInfo, RequiredTopic, TopicInfo

WHERE = "journal"
SMALL = 100_000
"""Bytes of a message below which most events would be cut in pieces."""
SAFE_COPIES = 3
SHOWN = 5
"""The most other users who may write that are named."""


def check_topics(cluster: KafkaInfo, required_topics: Sequence[RequiredTopic], findings: Findings) -> None:
    try:
        brokers = cluster.brokers()
        findings.add_expected(WHERE, f"Kafka answers; it has {counted(brokers, 'broker', 'brokers')}")
        for required in required_topics:
            topic = cluster.topic(required.name)
            if topic is None:
                what = f"There is no topic {required.name}"
                why = "calque makes it at the first append, if Kafka lets it"
                findings.add(WHERE, Severity.WARNING, what, why, "Say `calque journal create` to make it now")
            else:
                check_topic(topic, required, brokers, findings)
                check_writers(WHERE, topic, "What others write there is taken for events of the source", findings)
    except (Unavailable, Refused, AccessRefused) as error:
        findings.refused(WHERE, error)


def check_topic(topic: TopicInfo, required: RequiredTopic, brokers: int, findings: Findings) -> None:
    count_before = len(findings.entries)
    check_allowed(topic, findings)
    check_order(topic, required, findings)
    check_kept(topic, required, findings)
    check_copies(topic, brokers, findings)
    check_size(topic, required, findings)
    if len(findings.entries) == count_before:
        findings.add_expected(WHERE, f"Topic {topic.name} is as it should be")


def check_writers(where: str, topic: TopicInfo, why: str, findings: Findings) -> None:
    """Add a finding of who else may write to the topic, by the rules that Kafka has. `why` says what that means for
    calque."""
    if topic.is_open:
        what = f"Everybody who reaches Kafka may write to topic {topic.name}"
        findings.add(where, Severity.INFO, what, f"{why}: the brokers have no access control")
    elif topic.writers:
        shown = ", ".join(topic.writers[:SHOWN])
        more = f" and {len(topic.writers) - SHOWN} more" if len(topic.writers) > SHOWN else ""
        what = f"{shown}{more} may write to topic {topic.name}, too"
        findings.add(where, Severity.WARNING, what, why, "Let calque's user alone write there")


def check_allowed(topic: TopicInfo, findings: Findings) -> None:
    denied_operations = [operation for operation in TOPIC_OPERATIONS if operation in topic.denied]
    if denied_operations:
        findings.add(
            WHERE,
            Severity.ERROR,
            f"The user may not {' or '.join(denied_operations).lower()} topic {topic.name}",
            "Kafka's access control says so",
            f"Allow it {', '.join(TOPIC_OPERATIONS)} there",
        )


def check_order(topic: TopicInfo, required: RequiredTopic, findings: Findings) -> None:
    if topic.partitions != required.partitions:
        partitions = counted(topic.partitions, "partition", "partitions")
        findings.add(
            WHERE,
            Severity.ERROR,
            f"Topic {topic.name} has {partitions} instead of {required.partitions}",
            "The order of events is the order in one partition",
            "Name another topic below [journal], or delete this one; then say `calque journal create`",
        )


def check_kept(topic: TopicInfo, required: RequiredTopic, findings: Findings) -> None:
    policies = {policy.strip() for policy in topic.settings.get("cleanup.policy", "delete").split(",")}
    required_policies = {"compact"} if required.compacted else {"delete"}
    if policies != required_policies:
        findings.add(
            WHERE,
            Severity.ERROR,
            f"Topic {topic.name} has cleanup.policy = {','.join(sorted(policies))}",
            (
                "Its newest records could be removed, which say where the journal ends"
                if required.compacted
                else "Records would go from between others, and events are read one after the other"
            ),
            altering(topic, "cleanup.policy", *required_policies),
        )
    if required.compacted:
        return
    kept_ms, required_ms = topic.number("retention.ms"), int(required.retention * 1000)
    if 0 <= kept_ms < required_ms:
        findings.add(
            WHERE,
            Severity.ERROR,
            f"Topic {topic.name} keeps records for {days(kept_ms)}, and [journal] retention is {days(required_ms)}",
            "A target that stops for longer is compared with the source again",
            f"{altering(topic, 'retention.ms', str(required_ms))}, or shorten [journal] retention",
        )
    if topic.number("retention.bytes") >= 0:
        findings.add(
            WHERE,
            Severity.WARNING,
            f"Topic {topic.name} keeps at most {topic.number('retention.bytes')} bytes",
            "Many changes in a short time push events out before their time",
            altering(topic, "retention.bytes", "-1"),
        )


def check_copies(topic: TopicInfo, brokers: int, findings: Findings) -> None:
    minimum = topic.number("min.insync.replicas")
    if minimum > topic.copies:
        findings.add(
            WHERE,
            Severity.ERROR,
            f"Topic {topic.name} has {counted(topic.copies, 'copy', 'copies')}, and min.insync.replicas is {minimum}",
            "Nothing can be appended",
            altering(topic, "min.insync.replicas", str(max(topic.copies - 1, 1))),
        )
    elif topic.copies == 1:
        severity = Severity.WARNING if brokers > 1 else Severity.INFO
        why = "Its events are lost with the disk of one broker, and tables are read again then"
        findings.add(WHERE, severity, f"Topic {topic.name} has one copy", why, "Give it three")
    elif minimum == topic.copies:
        findings.add(
            WHERE,
            Severity.WARNING,
            f"Topic {topic.name} has min.insync.replicas = {minimum}, as many as it has copies",
            "While one broker is down nothing can be appended, and targets wait",
            altering(topic, "min.insync.replicas", str(minimum - 1)),
        )
    elif minimum == 1 and topic.copies >= SAFE_COPIES:
        findings.add(
            WHERE,
            Severity.WARNING,
            f"Topic {topic.name} has min.insync.replicas = 1",
            "What one broker alone confirmed is lost with it",
            altering(topic, "min.insync.replicas", "2"),
        )
    if topic.settings.get("unclean.leader.election.enable") == "true":
        findings.add(
            WHERE,
            Severity.WARNING,
            f"Topic {topic.name} has unclean.leader.election.enable = true",
            "A broker that lacks events may become its leader, and they are captured again if the log still has them",
            altering(topic, "unclean.leader.election.enable", "false"),
        )


def check_size(topic: TopicInfo, required: RequiredTopic, findings: Findings) -> None:
    limit = topic.number("max.message.bytes")
    if 0 <= limit < SMALL and not required.compacted:
        findings.add(
            WHERE,
            Severity.WARNING,
            f"Topic {topic.name} takes messages of at most {limit} bytes",
            "Larger events are compressed, then cut in pieces, which every reader has to put together",
            altering(topic, "max.message.bytes", "1048588"),
        )


def altering(topic: TopicInfo, setting: str, value: str) -> str:
    return f"Run `kafka-configs.sh --alter --topic {topic.name} --add-config {setting}={value}`"


def days(milliseconds: int) -> str:
    hours = milliseconds / 3_600_000
    return f"{hours / 24:.3g} days" if hours >= 48 else f"{hours:.3g} h"


def counted(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
