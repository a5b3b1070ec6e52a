"""The consumer that the page on Kafka shows reads what calque writes, as it stands there."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from calque.core.events.rows import rows_of_events
from calque.model.journal import Event
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.journal import KafkaJournal
from calque.sandbox import Broker
from support.places import ROOT
from support.services.kafkas import reader
from support.services.registry import SchemaRegistry
from support.sources.logs import Log, part, partitioned, plain

SECONDS = 60.0


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[Topic]:
    with Broker.start(tmp_path / "broker") as broker:
        yield Topic(broker.address, "hq.events")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    with SchemaRegistry.start(tmp_path / "registry") as registry:
        yield registry.url


def consumer() -> str:
    """The program on the page."""
    page = (ROOT / "docs" / "kafka.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return str(program)


def append(journal: KafkaJournal, *events: Event) -> None:
    journal.append(rows_of_events(events))


def write_all_again(topic: Topic, count: int) -> None:
    """As a writer does that did not hear that it had succeeded."""
    consumer, producer = reader(topic), Producer({"bootstrap.servers": topic.brokers})
    for _ in range(count):
        record = consumer.poll(SECONDS)
        assert record is not None
        producer.produce(topic.name, record.value(), record.key(), headers=record.headers())
    assert producer.flush(SECONDS) == 0
    consumer.close()


def test_the_consumer_on_the_page_prints_each_event_once_in_order(topic: Topic, registry: str) -> None:
    log = Log().create(plain("t")).rename(plain("t"), "u").add(partitioned("p"), part(partitioned("p"), "a"))
    noise = "".join(random.Random(1).choices("0123456789abcdefghijklmnopqrstuvwxyz", k=4_000_000))
    large = Event(4, 0, "ALTER_DATABASE", "hive", "large", "", "json-0.2", f'{{"db": "large", "noise": "{noise}"}}')
    journal = KafkaJournal(topic)
    append(journal, *log.events)
    write_all_again(topic, 3)
    append(journal, large)
    journal.restart(20)
    journal.close()
    journal = KafkaJournal(replace(topic, registry=registry))
    append(journal, *Log().at(21).drop(plain("u")).events)
    program = consumer().replace("127.0.0.1:9092", topic.brokers)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-W", "error", "-c", program]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        ended = threading.Timer(SECONDS, process.kill)
        ended.start()
        assert process.stdout is not None
        found = [process.stdout.readline().rstrip("\n") for _ in range(5)]
        append(journal, *Log().at(22).drop(plain("v")).events)
        found.append(process.stdout.readline().rstrip("\n"))
        ended.cancel()
        process.kill()
    journal.close()
    assert found == [
        "1 CREATE_TABLE d1 t []",
        "2 ALTER_TABLE d1 u []",
        "3 ADD_PARTITION d1 p ['p=a']",
        found[3],
        "21 DROP_TABLE d1 u []",
        "22 DROP_TABLE d1 v []",
    ]
    assert found[3].startswith("4 ALTER_DATABASE ")
