"""Servers that all tests of a process share: what one of them leaves there is no other's business."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from calque.sandbox import Broker, Metastore
from support.services.connect import ConnectServer, connect_servers
from support.services.servers import Shared, shared_servers


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with shared_servers(tmp_path_factory.mktemp) as servers:
        yield servers


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Kafka broker; tests keep apart by topics, and whoever stops one starts his own."""
    with Broker.start(tmp_path_factory.mktemp("broker")) as started:
        yield started


@pytest.fixture(scope="session")
def servers(shared: Shared) -> Mapping[str, Metastore]:
    """A source and a target of 3.1.3."""
    found = shared("source-3", "target-3")
    return {"source": found["source-3"], "target": found["target-3"]}


@pytest.fixture(scope="session")
def engines(
    servers: Mapping[str, Metastore], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, ConnectServer]]:
    """Spark Connect over the source and the target of 3.1.3."""
    with connect_servers({name: server.uri for name, server in servers.items()}, tmp_path_factory.mktemp) as started:
        yield started
