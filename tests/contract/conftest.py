"""Metastores for the contract suites: those in memory, and real ones that start once for the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest

from calque.adapters.files.options import delta_options
from calque.adapters.metastore.catalog import HiveCatalog
from calque.engine.sides.log_reads import events_after
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.journal import Event
from calque.model.names import EventId, TableName
from calque.model.policy import TargetCapabilities
from calque.plugins.kafka.adapters.client.topic import Topic
from calque.ports import Catalog, EventLog
from calque.sandbox import Broker, Metastore, MetastoreSettings
from calque.sandbox.writer import HiveClient
from support.memory.metastore import (
    DELTA_LIKE,
    GLUE_LIKE,
    HIVE_3,
    HIVE_4,
    MemoryCatalog,
    MemoryLog,
    MemoryMetastore,
    ServerHabits,
)
from support.services.hdfs import Hdfs
from support.services.objects import ObjectStore
from support.services.thriftproxy import asked

MEMORY: dict[str, tuple[ServerHabits, TargetCapabilities | None]] = {
    "memory-3": (HIVE_3, None),
    "memory-4": (HIVE_4, None),
    "memory-glue": (HIVE_3, GLUE_LIKE),
    "memory-delta": (HIVE_4, DELTA_LIKE),
}
REAL = {"hive-3.1.3": HIVE_3, "hive-4.2.0": HIVE_4, "hive-4.2.0-stock": HIVE_4}
PROVED = {"hive-4.2.0-stock": pytest.mark.prove}
"""What differs from another of `REAL` in a few tests only; `integration/test_flow.py` replicates from one."""
NUMBERS = count(1)
TEXT = Storage(
    columns=(Column("a", "int", "Größe ☃ 'q' \"d\" \\"), Column("b", "array<string>")),
    input_format="org.apache.hadoop.mapred.TextInputFormat",
    output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    buckets=-1,
    serde=SerDe("text", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", {"field.delim": "\x01", "a b": '="x"'}),
)

Writer = HiveClient | MemoryMetastore


@dataclass(slots=True)
class RecordedDirectories:
    """What a metastore in memory would have done to data."""

    made: list[str] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def make(self, location: str) -> None:
        self.made.append(location)

    def move(self, source: str, target: str) -> None:
        self.moved.append((source, target))

    def remove(self, location: str) -> None:
        self.removed.append(location)

    def files(self, location: str) -> Sequence[str]:  # noqa: ARG002 - data are nobody's here
        return ()


@dataclass(frozen=True, slots=True)
class World:
    """One metastore: its ports, its writer's calls, and how it should behave. `root` is a directory for data that is
    no other test's; names end in a number, since a server is shared by all tests."""

    name: str
    habits: ServerHabits
    catalog: Catalog
    log: EventLog
    writer: Writer
    root: Path
    number: int
    directories: RecordedDirectories | None

    @property
    def real(self) -> bool:
        return self.directories is None

    def database(self, name: str = "sales") -> str:
        return f"{name}_{self.number}"

    def create_database(self, name: str = "sales") -> str:
        self.catalog.create_database(Database(self.database(name), "Käufe", self.place(name)))
        return self.database(name)

    def place(self, *parts: str) -> str:
        return "/".join((f"file:{self.root}", *parts))

    def table(self, name: str, keys: Sequence[str] = (), database: str = "sales", **parameters: str) -> Table:
        """An external table with a directory of its own."""
        return Table(
            name,
            self.database(database),
            "owner",
            storage=replace(TEXT, location=self.place("data", name)),
            partition_keys=tuple(Column(key, "string", "Schlüssel") for key in keys),
            parameters={"EXTERNAL": "TRUE", **parameters},
            type="EXTERNAL_TABLE",
        )

    def managed_table(self, name: str, keys: Sequence[str] = ()) -> Table:
        return replace(self.table(name, keys), storage=TEXT, parameters={}, type="MANAGED_TABLE")

    def view(self, name: str, text: str) -> Table:
        return replace(
            self.table(name),
            storage=TEXT,
            parameters={"comment": "Ansicht"},
            type="VIRTUAL_VIEW",
            view_original_text=text,
            view_expanded_text=text,
        )

    def logged(self, after: EventId) -> list[Event]:
        """All events behind that one."""
        return list(events_after(self.log, after, self.log.current()))

    def created(self, table: Table) -> TableName:
        self.catalog.create_table(table)
        return TableName(table.database, table.name)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Metastore]]:
    """Real metastores by the names of `REAL`, started when first asked for."""
    started: dict[str, Metastore] = {}

    def server(name: str) -> Metastore:
        if name not in started:
            version = "3.1.3" if "3.1.3" in name else "4.2.0"
            settings = MetastoreSettings(version=version, stock="stock" in name)
            started[name] = Metastore.start(settings, tmp_path_factory.mktemp(name))
        return started[name]

    yield server
    for metastore in started.values():
        metastore.stop()


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


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real Kafka broker; tests keep apart by topics."""
    with Broker.start(tmp_path_factory.mktemp("broker")) as started:
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
    writer = HiveClient(request.getfixturevalue("servers")(name).uri)
    real = HiveCatalog(writer.client, TargetCapabilities(compare_and_swap=REAL[name].compare_and_swap))
    yield World(name, REAL[name], real, writer.log, writer, tmp_path, number, None)
    writer.close()


@pytest.fixture(params=["memory", "refuses", "hangs up"])
def narrow(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A metastore that takes lists of at most about 400 partitions, and does not say so before."""
    if request.param == "memory":
        store = MemoryMetastore(HIVE_3, f"file:{tmp_path}/warehouse")
        catalog = MemoryCatalog(store, message_bytes=400 * 650)
        yield World("narrow", HIVE_3, catalog, MemoryLog(store), store, tmp_path, next(NUMBERS), None)
        return
    if request.param == "hangs up":
        with asked(request.getfixturevalue("servers")("hive-3.1.3").uri) as proxy:
            proxy.longest = 400 * 400
            yield from hive_world(proxy.uri, tmp_path)
        return
    settings = MetastoreSettings(extra={"metastore.server.max.message.size": "400"})
    with Metastore.start(settings, tmp_path / "metastore") as metastore:
        yield from hive_world(metastore.uri, tmp_path)


def hive_world(uri: str, root: Path) -> Iterator[World]:
    """Of a 3.1.3 server."""
    writer = HiveClient(uri)
    yield World(
        "narrow",
        HIVE_3,
        HiveCatalog(writer.client, TargetCapabilities()),
        writer.log,
        writer,
        root,
        next(NUMBERS),
        None,
    )
    writer.close()


def partition(table: Table, values: Sequence[str], location: str, **parameters: str) -> Partition:
    storage = replace(table.storage or TEXT, location=location)
    return Partition(tuple(values), table.database, table.name, storage=storage, parameters=parameters)


@pytest.fixture
def build_partition() -> Callable[..., Partition]:
    return partition
