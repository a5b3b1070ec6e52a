"""Clients of Kafka whose brokers are silent: to end one takes librdkafka until all that it asked is given up."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer

from calque.errors import Unavailable
from calque.plugins.kafka.adapters.client import partition
from calque.plugins.kafka.adapters.client.lazy_client import ClientSlot, answered
from calque.plugins.kafka.adapters.client.partition import Fetcher
from calque.plugins.kafka.adapters.client.topic import Topic

ASKING_SECONDS = 30
MOST_SECONDS = 20.0
"""Of a busy machine; it is one."""
PROGRAM = """
import sys
from confluent_kafka import Producer
from calque.plugins.kafka.adapters.client import partition
from calque.plugins.kafka.adapters.client.partition import Fetcher
from calque.plugins.kafka.adapters.client.lazy_client import ClientSlot, answered
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.errors import Unavailable
slot = ClientSlot()
slot.client(lambda: Producer({"bootstrap.servers": sys.argv[1]})).produce("topic", b"never told")
"""


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a broker that takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def ending() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "kafka-end"}


def test_a_client_that_can_not_end_is_let_go_after_a_moment(silent: str) -> None:
    slot: ClientSlot[Producer] = ClientSlot()
    settings = {"bootstrap.servers": silent, "message.timeout.ms": ASKING_SECONDS * 1000, "log_level": 0}
    slot.client(lambda: Producer(settings)).produce("topic", b"never told")
    before, began = ending(), time.monotonic()
    slot.drop()
    assert time.monotonic() - began < MOST_SECONDS
    assert slot.held is None
    [left] = ending() - before
    assert left.daemon


def test_where_a_partition_ends_is_asked_anew_when_nobody_answers_for_ever(
    silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetcher, asked = Fetcher(Topic(silent, "hq.events"), "hq.events"), threading.Event()

    def never(*_: object, **__: object) -> None:
        asked.set()
        threading.Event().wait(ASKING_SECONDS)

    hanging = SimpleNamespace(get_watermark_offsets=never, close=lambda: None)
    fetcher._asker.client(lambda: hanging)
    monkeypatch.setattr(partition, "PATIENCE", 0.1)
    monkeypatch.setattr(partition, "LATE", 0.1)
    with pytest.raises(Unavailable, match="Nobody said where it begins and ends"):
        fetcher.ends()
    assert asked.is_set()
    assert fetcher._asker.held is None


def test_what_a_call_raises_comes_from_who_waits_for_it() -> None:
    assert answered(lambda: 3, 10) == 3
    with pytest.raises(ZeroDivisionError):
        answered(lambda: 1 // 0, 10)


def test_a_process_ends_though_a_client_of_it_can_not(silent: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, silent], timeout=MOST_SECONDS, check=False)
    assert done.returncode == 0
