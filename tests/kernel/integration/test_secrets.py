"""A run whose storage, broker and registry ask for passwords: nothing that it leaves, says or starts has one."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from calque.core.events.rows import rows_of_events
from calque.errors import CalqueError
from calque.model.journal import Event
from calque.model.secrets import FileSecret
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.journal import KafkaJournal
from calque.sandbox import Broker, Metastore
from support.services.deployments import NUMBERS, Deployment
from support.services.doors import basic, guarded
from support.services.objects import ObjectStore
from support.services.registry import SchemaRegistry

KAFKA, REGISTRY = "kafka-1c5e07", "registry-9b2d44"
WRONG = "wrong-5e8f21"
"""Passwords; the storage makes its own."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker.start(tmp_path_factory.mktemp("broker"), password=KAFKA) as broker:
        yield broker


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with ObjectStore.start(tmp_path_factory.mktemp("objects")) as store:
        yield store


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Behind a door that asks for a login."""
    with (
        SchemaRegistry.start(tmp_path_factory.mktemp("registry")) as registry,
        guarded(registry.url, basic("calque", REGISTRY)) as door,
    ):
        yield door


@dataclass(frozen=True, slots=True)
class Guarded:
    """A deployment whose secrets lie in `folder`, outside of all that is searched."""

    deployment: Deployment
    folder: Path

    def give(self, name: str, value: str) -> None:
        """Write the value where the configuration says it is."""
        (self.folder / name).write_text(f"{value}\n")

    @contextmanager
    def wrong(self, name: str) -> Iterator[None]:
        """Give a wrong value for as long as the block."""
        right = (self.folder / name).read_text().strip()
        self.give(name, WRONG)
        yield
        self.give(name, right)


@pytest.fixture
def guarded_run(
    broker: Broker,
    store: ObjectStore,
    registry: str,
    servers: Mapping[str, Metastore],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Guarded]:
    root, folder, number = tmp_path / "root", tmp_path / "secrets", next(NUMBERS)
    (root / "tmp").mkdir(parents=True)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(root / "tmp"))
    deployment = Deployment(root, number, servers["source"], {"dr": servers["target"]}, seed=5)
    storage = {**store.options, "secret_file": "../secrets/s3"}
    kafka = {**broker.options, "sasl.password_file": "../secrets/kafka"}
    login = {"user": "calque", "password_file": "../secrets/registry"}
    del storage["secret"], kafka["sasl.password"]
    sections = [
        f"storage = {table(storage)}",
        "[state]",
        f'tables = "s3://{store.bucket}/d{number}/state"',
        f"storage = {table(storage)}",
        "[journal]",
        'format = "kafka"',
        f'brokers = "{broker.address}"',
        f'topic = "t{number}.events"',
        f"options = {table(kafka)}",
        f'registry = "{registry}"',
        f"registry_options = {table(login)}",
    ]
    deployment.config.write_text("\n".join([deployment.config.read_text(), *sections]))
    made = Guarded(deployment, folder)
    for name, value in (("s3", store.secret), ("kafka", KAFKA), ("registry", REGISTRY)):
        made.give(name, value)
    yield made
    deployment.close()


def table(options: Mapping[str, str]) -> str:
    return f"{{ {', '.join(f'{json.dumps(key)} = {json.dumps(value)}' for key, value in options.items())} }}"


def descendants(process: int) -> Iterator[int]:
    """The process and all that it started, and these."""
    yield process
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in task.read_text().split():
            yield from descendants(int(child))


def shown_by_processes(process: int) -> Mapping[str, bytes]:
    """What `ps` shows of the process and those below it: their arguments and their environment."""
    shown = {}
    for number in descendants(process):
        for name in ("cmdline", "environ"):
            try:
                shown[f"{name} of {number}"] = Path(f"/proc/{number}/{name}").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
    return shown


def contents(root: Path) -> Mapping[str, bytes]:
    """All files below."""
    found = {}
    for folder, _, names in os.walk(root):
        for path in (Path(folder) / name for name in names):
            if path.is_file():
                try:
                    found[str(path)] = path.read_bytes()
                except FileNotFoundError:
                    continue
    return found


def leaks(places: Mapping[str, bytes], values: Iterable[str]) -> list[tuple[str, str]]:
    return [(place, value) for place, content in places.items() for value in values if value.encode() in content]


def said(deployment: Deployment, *commands: tuple[str, ...]) -> Mapping[str, bytes]:
    """What commands say, with tracebacks, by the command and its exit code."""
    ended = {command: deployment.calque(*command, "--debug") for command in commands}
    return {
        f"{' '.join(command)}: {done.returncode}": (done.stdout + done.stderr).encode()
        for command, done in ended.items()
    }


@pytest.mark.timeout(600)
def test_no_value_of_a_secret_is_left_said_or_shown(guarded_run: Guarded, store: ObjectStore) -> None:
    deployment, values = guarded_run.deployment, (store.secret, KAFKA, REGISTRY, WRONG)
    deployment.start()
    deployment.write(6)
    deployment.settle()
    assert deployment.process is not None
    deadline = time.monotonic() + 60
    while len(shown := shown_by_processes(deployment.process.pid)) <= 4:  # capture's source is not there yet
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert leaks(shown, values) == []
    assert leaks(contents(deployment.root), values) == []
    assert leaks(said(deployment, ("status", "--json"), ("check", "--json")), values) == []
    assert deployment.end(signal.SIGTERM) == 0, deployment.tail()
    with guarded_run.wrong("registry"):
        refused = said(deployment, ("journal", "create"), ("check", "--json"))
        assert list(refused) == ["journal create: 65", "check --json: 65"], refused
        assert leaks(refused, values) == []
    with guarded_run.wrong("s3"):
        refused = said(deployment, ("epochs", "list"), ("check", "--json"))
        assert list(refused) == ["epochs list: 75", "check --json: 65"], refused
        assert leaks(refused, values) == []
    with guarded_run.wrong("kafka"):
        refused = said(deployment, ("check", "--json"))
        assert list(refused) == ["check --json: 65"], refused
        deployment.start()
        before = deployment.log.stat().st_size
        deadline = time.monotonic() + 60
        while b"Kafka" not in deployment.log.read_bytes()[before:]:
            assert time.monotonic() < deadline, deployment.tail()
            time.sleep(0.1)
        deployment.end(signal.SIGTERM)
        assert leaks({**refused, **contents(deployment.root)}, values) == []


def test_a_client_of_kafka_connects_anew_when_the_file_of_its_password_changes(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "password"
    topic = Topic(
        broker.address, f"t{next(NUMBERS)}.rotated", {**broker.options, "sasl.password": FileSecret(str(file))}
    )
    rows = [rows_of_events([Event(number, 1, "X", "hive", "s", "t", "json-0.2", "{}")]) for number in (1, 2)]
    file.write_text(KAFKA)
    journal = KafkaJournal(topic)
    journal.append(rows[0])
    file.write_text(WRONG)
    with pytest.raises(CalqueError) as caught:
        journal.append(rows[1])
    assert WRONG not in repr((caught.value, caught.value.__cause__))
    file.write_text(KAFKA)
    journal.append(rows[1])
    assert journal.last() == 2
    journal.close()
