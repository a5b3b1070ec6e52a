"""Clients of Kafka whose brokers are silent: to end one takes librdkafka until all that it asked is given up."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from calque.adapters.kafka.slot import ClientSlot

ASKING_SECONDS = 30
MOST_SECONDS = 20.0
"""Of a busy machine; it is one."""
PROGRAM = """
import sys
from confluent_kafka import Producer
from calque.adapters.kafka.slot import ClientSlot
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


def test_a_process_ends_though_a_client_of_it_can_not(silent: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, silent], timeout=MOST_SECONDS, check=False)
    assert done.returncode == 0
