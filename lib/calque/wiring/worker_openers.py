"""How the processes that Spark starts open the log and the journal. Little is imported: each query starts several.

Arguments are shown in plans. Secrets among them are references, which those processes read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calque.adapters.metastore.first_seen import FirstSeen
    from calque.model.access import MetastoreAccess
    from calque.model.secrets import Options
    from calque.plugins.kafka.adapters.client.topic import Topic
    from calque.ports import EventLog, EvidenceStore, Journal


def open_log(uris: str, access: MetastoreAccess, max_message: int, first_seen: FirstSeen | None = None) -> EventLog:
    """The notification log behind a comma-separated list of addresses, with messages of at most so many bytes."""
    from calque.adapters.metastore.client import Client
    from calque.adapters.metastore.log import HiveLog

    return HiveLog(Client(uris, access, first_seen=first_seen), max_message=max_message)


def open_looks(path: str) -> EventLog:
    """The log of our own in the file of that path."""
    from calque.plugins.remotes.adapters.looks_log import LooksLog

    return LooksLog(Path(path))


def open_topic(topic: Topic) -> tuple[Journal, EvidenceStore]:
    """The journal and the evidence on Kafka."""
    from calque.plugins.kafka.adapters.journal.evidence import KafkaEvidence
    from calque.plugins.kafka.adapters.journal.journal import KafkaJournal

    return KafkaJournal(topic), KafkaEvidence(topic)


def open_journal(journal: str, evidence: str, options: Options) -> tuple[Journal, EvidenceStore]:
    """The journal and the evidence in the tables of these paths or URIs."""
    from calque.adapters.delta.evidence import DeltaEvidence
    from calque.adapters.delta.journal import DeltaJournal

    return DeltaJournal(journal, options), DeltaEvidence(evidence, options)
