"""How the processes that Spark starts open the log and the journal. Little is imported: each query starts several."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calque.adapters.kafka.topic import Topic
    from calque.ports import EventLog, EvidenceStore, Journal


def open_log(uris: str) -> EventLog:
    """The notification log behind a comma-separated list of addresses."""
    from calque.adapters.metastore.client import Client
    from calque.adapters.metastore.log import HiveLog

    return HiveLog(Client(uris))


STATE_OPTIONS = "CALQUE_STATE_SECRETS"
"""The environment variable that carries the options of the state's tables: arguments of streams are shown in plans."""
TOPIC_OPTIONS = "CALQUE_TOPIC_SECRETS"
"""The one that carries those of the journal's topic."""
REGISTRY_OPTIONS = "CALQUE_REGISTRY_SECRETS"
"""The one that carries those of its schema registry."""


def open_topic(topic: Topic) -> tuple[Journal, EvidenceStore]:
    """The journal and the evidence on Kafka, reached by the options that `hand_down` left in this process's
    environment."""
    from calque.adapters.kafka.evidence import KafkaEvidence
    from calque.adapters.kafka.journal import KafkaJournal

    reachable_topic = replace(
        topic,
        options=json.loads(os.environ.get(TOPIC_OPTIONS, "{}")),
        registry_options=json.loads(os.environ.get(REGISTRY_OPTIONS, "{}")),
    )
    return KafkaJournal(reachable_topic), KafkaEvidence(reachable_topic)


def open_journal(journal: str, evidence: str) -> tuple[Journal, EvidenceStore]:
    """The journal and the evidence in the tables of these paths or URIs, reached by the options that `hand_down` left
    in this process's environment."""
    from calque.adapters.delta.evidence import DeltaEvidence
    from calque.adapters.delta.journal import DeltaJournal

    options = json.loads(os.environ.get(STATE_OPTIONS, "{}"))
    return DeltaJournal(journal, options), DeltaEvidence(evidence, options)


def hand_down(options: Mapping[str, str], variable: str = STATE_OPTIONS) -> None:
    """Leave options for `open_journal` or `open_topic` in the environment of this process and of those that it
    starts."""
    if options:
        os.environ[variable] = json.dumps(dict(options))
    else:
        os.environ.pop(variable, None)
