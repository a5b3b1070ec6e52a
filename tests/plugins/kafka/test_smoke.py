"""Kafka: a configuration names it, and a journal on a real broker keeps events."""

from __future__ import annotations

from pathlib import Path

from calque.app import APP
from calque.core.events.rows import table_of
from calque.model.journal import Event, EventKind, Keys
from calque.model.names import Span, TableName
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.journal import KafkaJournal

CONFIGURATION = """
[source]
name = "hq"
metastore = "thrift://hq:9083"
[journal]
format = "kafka"
brokers = "broker:9092"
topic = "hq.events"
[targets.dr]
metastore = "thrift://dr:9083"
warehouse = "file:///data"
"""


def test_it_works_at_all(tmp_path: Path, topic: Topic) -> None:
    (tmp_path / "calque.toml").write_text(CONFIGURATION)
    assert APP.load(tmp_path / "calque.toml").only_source().journal.topic == "hq.events"
    journal = KafkaJournal(topic)
    event = Event(7, 1_700_000_000, "CREATE_TABLE", "hive", "sales", "t", "json-0.2", "{}")
    journal.append(table_of([(event, Keys(EventKind.CREATE_TABLE, table=TableName("sales", "t")))]))
    assert KafkaJournal(topic).last() == 7
    assert [entry.event_id for entry in journal.entries(Span(6, 7))] == [7]
