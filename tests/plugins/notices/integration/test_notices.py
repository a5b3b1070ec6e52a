"""A real deployment that tells a real broker what happens, and dies while it does."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from calque.app import APP
from calque.control.status import snapshot
from calque.core.images.image import STATE
from calque.model.names import Span, TableName, partition_name
from calque.sandbox import Broker, Metastore
from support.places import ROOT
from support.services.deployments import NUMBERS, Deployment, whole_table
from support.worlds.subscribers import TYPES, Believer, expected_of, sorted_name, without_repetitions

SECONDS = 120.0


class Announcing(Deployment):
    """With a channel at the source and one at the target, each with topics of its own."""

    def announce(self, broker: Broker) -> None:
        types = json.dumps([one for one in TYPES if one != "gap"])
        self.history, self.shown = f"history.{self.number}", f"shown.{self.number}"
        databases = json.dumps([f"{name}.*" for name in self.databases])
        lines = ["", "[notices.history]", f'url = "kafka://{broker.address}"', f'topic = "{self.history}"']
        lines += [f"types = {types}", f"include = {databases}"]
        lines += ["[notices.shown]", 'at = "dr"', f'url = "kafka://{broker.address}"', f'topic = "{self.shown}"']
        lines += [f'types = {types[:-1]}, "found"]', f"include = {databases}", 'options = { "topic.copies" = "1" }']
        self.config.write_text(self.config.read_text() + "\n".join(lines))

    def channels(self) -> Any:
        return snapshot(APP.wiring(APP.load(self.config)), APP.status())["notices"]

    def wait_for_channels(self) -> None:
        deadline = time.monotonic() + SECONDS
        while not all(one["state"] == "running" and one["lag_events"] == 0 for one in self.channels().values()):
            assert time.monotonic() < deadline, f"{self.channels()}\n{self.tail()}"
            time.sleep(0.1)


@pytest.fixture
def deployment(broker: Broker, servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Announcing]:
    found = Announcing(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=5)
    found.announce(broker)
    yield found
    found.close()


def received(broker: Broker, topic: str) -> list[tuple[str, dict[str, Any]]]:
    """Key and notice of all messages that the topic has."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "test", "enable.auto.commit": False})
    try:
        place = TopicPartition(topic, 0)
        first, end = consumer.get_watermark_offsets(place, timeout=30)
        consumer.assign([TopicPartition(topic, 0, first)])
        found: list[tuple[str, dict[str, Any]]] = []
        deadline = time.monotonic() + SECONDS
        while len(found) < end - first:
            assert time.monotonic() < deadline
            for message in consumer.consume(500, timeout=1.0):
                assert message.error() is None
                found.append(((message.key() or b"").decode(), json.loads(message.value() or b"")))
        return found
    finally:
        consumer.close()


def name_of(values: Mapping[str, str]) -> str:
    return sorted_name(partition_name(list(values), list(values.values())))


def at_target(deployment: Announcing) -> dict[TableName, set[str]]:
    """The tables that the target has, with their partitions, by the source's names."""
    (target,) = deployment.targets
    tables: dict[TableName, set[str]] = {}
    for database in target.catalog.databases():
        for table in target.catalog.tables(database) if database in deployment.databases else ():
            name = target.admission.source_of(TableName(database, table))
            found = whole_table(target.catalog, TableName(database, table))
            keys = [key.name for key in found.table.partition_keys or ()]
            listed = [part for part in found.partitions.values() if STATE not in (part.parameters or {})]
            if name is not None and "calque.source" in (found.table.parameters or {}):
                tables[name] = {sorted_name(partition_name(keys, part.values)) for part in listed}
    return tables


@pytest.mark.timeout(600)
def test_a_broker_hears_the_history_and_what_the_target_shows_through_deaths(
    broker: Broker, deployment: Announcing
) -> None:
    deployment.write(20)
    deployment.start(CALQUE_FAILPOINT="broker.publish.after@6")
    deployment.settle()
    assert deployment.process is not None
    while deployment.process.poll() is None:
        deployment.write(1, pause=0.1)
    assert deployment.process.wait(60) == -signal.SIGKILL, deployment.tail()
    deployment.write(10)
    deployment.start()
    deployment.write(30, pause=0.05)
    deployment.settle()
    deployment.wait_for_channels()
    quarantined = snapshot(APP.wiring(APP.load(deployment.config)))["targets"]["dr"]["quarantined"]
    channels = deployment.channels()
    assert deployment.end(signal.SIGTERM) == 0, deployment.tail()
    assert {name: one["at"] for name, one in channels.items()} == {"history": "source", "shown": "dr"}

    journal = APP.wiring(APP.load(deployment.config)).only_source().side().journal
    heard = received(broker, deployment.history)
    notices = [notice for notice in without_repetitions([notice for _, notice in heard]) if notice["type"] != "done"]
    oldest, last = journal.oldest(), journal.last()
    assert oldest is not None
    assert last is not None
    expected = [
        (entry.event_id, kind, str(entry.keys.table))
        for entry in journal.entries(Span(oldest - 1, last))
        for kind in expected_of(entry)
        if entry.keys.table is not None and entry.keys.table.database in deployment.databases
    ]
    told = [(one["event_id"], one["type"], f"{one['database']}.{one['table']}") for one in notices]
    assert told == expected[len(expected) - len(told) :]
    assert len(told) > 10

    believer, shown_notices = Believer(), without_repetitions([one for _, one in received(broker, deployment.shown)])
    for notice in shown_notices:
        believer.hear(notice, name_of)
    aside = {row["table"] for row in quarantined}
    shown = at_target(deployment)
    assert {name: parts for name, parts in believer.tables.items() if str(name) not in aside} == {
        name: parts for name, parts in shown.items() if str(name) not in aside
    }
    told_by_the_subscriber_on_the_page(broker, deployment.shown, shown_notices)


def test_a_broker_that_is_away_holds_back_nothing(
    servers: Mapping[str, Metastore], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What it missed it is told when it is back."""
    with Broker.start(tmp_path_factory.mktemp("broker")) as broker:
        deployment = Announcing(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=6)
        deployment.announce(broker)
        try:
            deployment.write(10)
            deployment.start()
            deployment.settle()
            deployment.wait_for_channels()
            broker.stop()
            deadline = time.monotonic() + SECONDS
            while not any(one["last_error"] for one in deployment.channels().values()):
                assert time.monotonic() < deadline
                deployment.write(1)
            deployment.settle()
            broker.restart()
            deployment.wait_for_channels()
            believer = Believer()
            for notice in without_repetitions([notice for _, notice in received(broker, deployment.shown)]):
                believer.hear(notice, name_of)
            assert believer.tables.keys() >= at_target(deployment).keys()
        finally:
            deployment.close()


def told_by_the_subscriber_on_the_page(broker: Broker, topic: str, expected: Sequence[Mapping[str, Any]]) -> None:
    """It reads what calque sends, each once."""
    page = (ROOT / "docs" / "notices.md").read_text(encoding="utf-8")
    program, *_ = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    command = [sys.executable, "-c", program, broker.address, topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as subscriber:
        assert subscriber.stdout is not None
        try:
            lines = [subscriber.stdout.readline() for _ in expected]
        finally:
            subscriber.kill()
    assert [line.split()[:3] for line in lines] == [[one["type"], one["database"], one["table"]] for one in expected]
    assert lines
