"""Fixtures that tests of several folders ask for.

Servers are shared by all tests of a process: what one of them leaves there is no other's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from calque.adapters.files.options import delta_options
from calque.adapters.metastore.catalog import HiveCatalog
from calque.model.hive import Partition
from calque.model.policy import TargetCapabilities
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.sandbox import Broker, Metastore, MetastoreSettings
from calque.sandbox.writer import HiveClient
from support.memory.metastore import HIVE_3, MemoryCatalog, MemoryLog, MemoryMetastore
from support.services.connect import ConnectServer, connect_servers
from support.services.hdfs import Hdfs
from support.services.objects import ObjectStore
from support.services.servers import Shared, shared_servers
from support.services.thriftproxy import asked
from support.worlds.metastore_worlds import (
    MEMORY,
    NUMBERS,
    PROVED,
    REAL,
    RecordedDirectories,
    World,
    hive_world,
    partition,
)


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


@pytest.fixture(scope="session")
def metastore_of(shared: Shared) -> Callable[[str], Metastore]:
    """Real metastores by the names of `metastore_worlds.REAL`."""
    return lambda name: next(iter(shared(REAL[name].server).values()))


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """A real S3 server; tests keep apart by prefixes."""
    with ObjectStore.start(tmp_path_factory.mktemp("objects")) as store:
        yield store


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """A real HDFS; tests keep apart by directories."""
    with Hdfs.start(tmp_path_factory.mktemp("hdfs")) as started:
        yield started


@pytest.fixture
def topic(broker: Broker) -> Topic:
    """Of a journal of its own; nothing is made yet."""
    return Topic(broker.address, f"{uuid4().hex}.events")


MANY_COMMITS = frozenset(
    {
        "test_a_reader_that_lags_behind_merges_and_log_clean_up_sees_every_row",
        "test_hundreds_of_epochs_are_read_by_a_handle_that_lagged_behind",
        "test_a_span_across_many_appends_is_read_in_order",
        "test_a_reader_sees_each_append_at_once_and_whole",
        "test_states_put_by_several_threads_are_all_there",
        "test_a_reader_of_states_that_lags_behind_misses_no_removal",
    }
)
"""Tests of what a handle does after many commits, each of which takes a tenth of a second in an object store."""


@pytest.fixture
def tables(request: pytest.FixtureRequest, object_store: ObjectStore) -> tuple[str, dict[str, str]]:
    """A new folder for Delta tables in the S3 server, and delta-rs's options for it."""
    if request.node.originalname in MANY_COMMITS:
        pytest.skip("it takes hundreds of commits; those of a table on disk are the same code")
    folder = f"s3://{object_store.bucket}/state/{uuid4().hex}"
    return folder, delta_options(folder, object_store.options)


@pytest.fixture(params=[*MEMORY, *(pytest.param(name, marks=PROVED.get(name, ())) for name in REAL)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    name = request.param
    number = next(NUMBERS)
    if name in MEMORY:
        directories = RecordedDirectories()
        habits, abilities = MEMORY[name]
        store = MemoryMetastore(habits, f"file:{tmp_path}/warehouse", directories=directories, identity=str(number))
        catalog = MemoryCatalog(store, abilities)
        yield World(name, habits, catalog, MemoryLog(store), store, tmp_path, number, directories)
        return
    writer = HiveClient(request.getfixturevalue("metastore_of")(name).uri)
    real = HiveCatalog(writer.client, TargetCapabilities(compare_and_swap=REAL[name].habits.compare_and_swap))
    yield World(name, REAL[name].habits, real, writer.log, writer, tmp_path, number, None)
    writer.close()


@pytest.fixture(params=["memory", pytest.param("refuses", marks=pytest.mark.prove), "hangs up"])
def narrow(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A metastore that takes lists of at most about 400 partitions, and does not say so before."""
    if request.param == "memory":
        store = MemoryMetastore(HIVE_3, f"file:{tmp_path}/warehouse")
        catalog = MemoryCatalog(store, message_bytes=400 * 650)
        yield World("narrow", HIVE_3, catalog, MemoryLog(store), store, tmp_path, next(NUMBERS), None)
        return
    if request.param == "hangs up":
        with asked(request.getfixturevalue("metastore_of")("hive-3.1.3").uri) as proxy:
            proxy.longest = 400 * 400
            yield from hive_world(proxy.uri, tmp_path)
        return
    settings = MetastoreSettings(extra={"metastore.server.max.message.size": "400"})
    with Metastore.start(settings, tmp_path / "metastore") as metastore:
        yield from hive_world(metastore.uri, tmp_path)


@pytest.fixture
def build_partition() -> Callable[..., Partition]:
    return partition
