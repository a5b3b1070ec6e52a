"""A real deployment whose journal is on Kafka: capture and the broker die, the state folder is put back as it was
earlier, and all is equal in the end."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from calque.model.names import Span
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.plugins.kafka.adapters.journal.journal import KafkaJournal
from calque.sandbox import Broker, Metastore
from support.places import ROOT
from support.services.deployments import NUMBERS, Deployment

FOLDERS = ("state", "checkpoints")
SCRATCH = shutil.ignore_patterns("spark")
"""Spark's Java process may still clear its scratch files away."""
JOB = ROOT / "jobs" / "replicate.py"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Everybody logs in, the processes that Spark starts too."""
    with Broker.start(tmp_path_factory.mktemp("broker"), password="hidden-password") as started:
        yield started


@pytest.fixture
def deployment(
    broker: Broker, servers: Mapping[str, Metastore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Deployment]:
    monkeypatch.setenv("KAFKA_PASSWORD", broker.password)
    found = Deployment(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=3)
    text = found.config.read_text()
    named = {**broker.options, "sasl.password_env": "KAFKA_PASSWORD"}
    del named["sasl.password"]
    options = ", ".join(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in named.items())
    journal = f'format = "kafka"\nbrokers = "{broker.address}"\ntopic = "{topic_of(found)}"\noptions = {{ {options} }}'
    found.config.write_text(f"{text}\n[journal]\n{journal}\n")
    yield found
    found.close()


def topic_of(deployment: Deployment) -> str:
    return f"hq.events.{deployment.number}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("capture", ["lives", pytest.param("dies", marks=pytest.mark.prove)])
def test_a_busy_run_survives_deaths_of_capture_and_of_the_broker(
    broker: Broker, deployment: Deployment, capture: str
) -> None:
    """Where capture dies its folder is put back, later, as it was then; `test_kafka_topics.py` kills writers too."""
    if capture == "dies":
        deployment.start(CALQUE_FAILPOINT="journal.append.after@2")
        assert deployment.process is not None
        while deployment.process.poll() is None:
            deployment.write(1, pause=0.1)
        assert deployment.process.wait(60) == -signal.SIGKILL, deployment.tail()
        for folder in FOLDERS:
            shutil.copytree(deployment.root / folder, deployment.root / "copies" / folder, ignore=SCRATCH)
    deployment.start()
    writing = threading.Thread(target=deployment.write, args=(40, 0.1))
    writing.start()
    deployment.settle(timeout=400)
    broker.kill()
    time.sleep(1)
    broker.restart()
    writing.join(120)
    deployment.settle(timeout=400)
    deployment.check_equal()
    journal = KafkaJournal(Topic(broker.address, topic_of(deployment), broker.options))
    oldest, last = journal.oldest(), journal.last()
    assert oldest is not None
    assert last == deployment.source.current()
    assert [entry.event_id for entry in journal.entries(Span(oldest - 1, last))] == list(range(oldest, last + 1))
    other_hub(deployment)
    if capture == "dies":
        assert deployment.end(signal.SIGTERM) == 0, deployment.tail()
        # An older copy of the folder beside a topic and a target that are ahead of it
        for folder in FOLDERS:
            shutil.rmtree(deployment.root / folder)
            (deployment.root / "copies" / folder).rename(deployment.root / folder)
        deployment.start()
        deployment.write(5)
    deployment.settle()
    deployment.check_equal()
    assert deployment.end(signal.SIGTERM) == 0, deployment.tail()
    verified = deployment.calque("verify", "--data", "checksum")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def other_hub(deployment: Deployment) -> None:
    """One with a state folder of its own takes its target from the same topic, and captures nothing."""
    file, target = deployment.root / "other" / "calque.toml", deployment.targets[0]
    renames = ", ".join(f'{name} = "{name}_other"' for name in deployment.databases)
    text = deployment.config.read_text().replace("[targets.dr]", "[targets.other]")
    text = text.replace("rename = {  }", f"rename = {{ {renames} }}").replace(
        target.policy.warehouse, f"{file.parent}/wh"
    )
    file.parent.mkdir()
    file.write_text(text)
    deployment.write(5)
    for command in ([str(JOB), "--until", "head"], ["-m", "calque.cli", "verify", "--data", "checksum"]):
        done = subprocess.run([sys.executable, *command, "-c", str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_run_whose_password_is_refused_ends_and_says_so(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "mistyped-password")
    ended = deployment.calque("run")
    assert ended.returncode == 65, ended.stderr
    assert "Kafka denies that its topics be listed" in ended.stderr
    assert "mistyped-password" not in ended.stdout + ended.stderr
