"""How the processes that Spark starts open the log and the journal. Little is imported: each query starts several.

Arguments are shown in plans. So what is secret is none of them: those processes read it in the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calque.adapters.kafka.topic import Topic
    from calque.config.plugs import Config
    from calque.model.access import MetastoreAccess
    from calque.ports import EventLog, EvidenceStore, Journal


def open_log(uris: str, access: MetastoreAccess) -> EventLog:
    """The notification log behind a comma-separated list of addresses."""
    from calque.adapters.metastore.client import Client
    from calque.adapters.metastore.log import HiveLog

    return HiveLog(Client(uris, access))


def open_topic(topic: Topic) -> tuple[Journal, EvidenceStore]:
    """The journal and the evidence on Kafka."""
    from calque.adapters.kafka.evidence import KafkaEvidence
    from calque.adapters.kafka.journal import KafkaJournal

    return KafkaJournal(topic), KafkaEvidence(topic)


def open_configured_topic(topic: Topic, config: Path, source: str) -> tuple[Journal, EvidenceStore]:
    """The journal and the evidence on Kafka, with the options that the file gives the source now."""
    from calque.config.keys import revealed

    journal = configured(config).sources[source].journal
    options, registry_options = revealed(journal.options), revealed(journal.registry_options)
    return open_topic(replace(topic, options=options, registry_options=registry_options))


def open_journal(journal: str, evidence: str, options: Mapping[str, str]) -> tuple[Journal, EvidenceStore]:
    """The journal and the evidence in the tables of these paths or URIs."""
    from calque.adapters.delta.evidence import DeltaEvidence
    from calque.adapters.delta.journal import DeltaJournal

    return DeltaJournal(journal, options), DeltaEvidence(evidence, options)


def open_configured_journal(journal: str, evidence: str, config: Path) -> tuple[Journal, EvidenceStore]:
    """The journal and the evidence in these tables, with the options that the file gives the state's storage now."""
    from calque.adapters.files.options import delta_options
    from calque.config.keys import revealed

    state = configured(config).state
    return open_journal(journal, evidence, delta_options(state.table_folder(), revealed(state.storage)))


def configured(config: Path) -> Config:
    """What stands in the file now. Raises `Unavailable` while that is not valid, as it may be again."""
    from calque.config.reader import load
    from calque.errors import Refused, Unavailable

    try:
        return load(config)
    except Refused as refused:
        todo = "Correct it; it is read again"
        raise Unavailable("The configuration is not valid any more", str(refused), todo) from refused
