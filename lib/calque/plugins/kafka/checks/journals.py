"""The look of `calque check` at the journals that the configuration puts on Kafka."""

from __future__ import annotations

from calque.engine.check.findings import Findings
from calque.plugins.kafka.checks.registry import check_registry
from calque.plugins.kafka.checks.topics import check_topics
from calque.plugins.kafka.wiring import cluster_of, registry_at, required_topics, topic_of
from calque.wiring.wiring import Wiring


def check_journals(wiring: Wiring, findings: Findings) -> None:
    """Check the topics of each journal on Kafka, and its schema registry where it uses one."""
    for name, source in wiring.sources.items():
        configured = source.journal_location.configured()
        if configured.format == "kafka":
            topic, found = topic_of(source.plug, configured), Findings()
            check_topics(cluster_of(topic), required_topics(topic), found)
            if topic.registry:
                check_registry(registry_at(topic), found)
            findings.add_all(found, f" {name}" if len(wiring.sources) > 1 else "")
