"""A chain and a ring on real metastores: a feeds b, and b feeds c and a again, by two processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from calque.app import APP
from calque.commands import wait
from calque.commands.options import CommandSettings
from calque.core.events.keys import keys_of
from calque.core.images.image import ORIGIN, SOURCE
from calque.engine.verify.verify import verify
from calque.errors import Unavailable
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.names import OURS, TableName
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.writer import HiveClient
from support.services.deployments import RealFiles
from support.worlds.worlds import INPUT, OUTPUT, SERDE

VERSIONS = {"a": "3.1.3", "b": "4.2.0", "c": "3.1.3"}
LINKS = {"a": ("b",), "b": ("c", "a")}
SECONDS = 240.0


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Metastore]]:
    folder = tmp_path_factory.mktemp("rings")

    def start(name: str) -> Metastore:
        return Metastore.start(MetastoreSettings(version=VERSIONS[name]), folder / name)

    with ThreadPoolExecutor() as pool:
        found = dict(zip(VERSIONS, pool.map(start, VERSIONS), strict=True))
    yield found
    for server in found.values():
        server.stop()


@dataclass
class Hub:
    """One process: a source and its targets. They take everything, and leases are renewed each second."""

    root: Path
    name: str
    servers: Mapping[str, Metastore]
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.root.mkdir()
        lines = ["[source]", f'name = "{self.name}"', f'metastore = "{self.servers[self.name].uri}"', 'poll = "50ms"']
        lines += ["[serve]", 'address = ""']
        for target in LINKS[self.name]:
            lines += [
                f"[targets.to_{target}]",
                f'metastore = "{self.servers[target].uri}"',
                f"warehouse = {json.dumps(f'file://{self.root}/at_{target}')}",
                'exclude = ["default.*"]',
                'appends = "new_directory"',
                'lease = "3s"',
            ]
        self.config.write_text("\n".join(lines))

    @property
    def config(self) -> Path:
        return self.root / "calque.toml"

    @property
    def log(self) -> Path:
        return self.root / "run.log"

    def start(self) -> None:
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "calque.cli", "run", "-c", str(self.config)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.root)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(60)

    def tail(self) -> str:
        return "\n".join(self.log.read_text().splitlines()[-30:]) if self.log.exists() else ""

    def settle(self) -> None:
        wiring = APP.wiring(APP.load(self.config))
        for target in LINKS[self.name]:
            try:
                wait.run(
                    CommandSettings(app=APP),
                    wiring.config,
                    f"to_{target}",
                    wiring.only_source().side().log.current(),
                    SECONDS,
                )
            except Unavailable as error:
                raise AssertionError(f"{error}\n{self.tail()}") from error

    def require_equal(self) -> None:
        wiring = APP.wiring(APP.load(self.config))
        for target in LINKS[self.name]:
            found = verify(wiring.only_source().side(), wiring.target(f"to_{target}").side(), data="checksum")
            assert (found.differences, found.set_aside) == ((), ()), f"{self.name} to {target}\n{self.tail()}"


@pytest.fixture
def hubs(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Mapping[str, Hub]]:
    found = {name: Hub(tmp_path / name, name, servers) for name in LINKS}
    yield found
    for hub in found.values():
        hub.close()


@dataclass
class Home:
    """A writer at one of the metastores."""

    client: HiveClient
    root: Path

    def table(self, name: TableName, *values: str) -> None:
        """Partitioned where there are values."""
        self.client.create_table(
            Table(
                name.table,
                name.database,
                storage=self.storage(name.table),
                partition_keys=(Column("p", "string"),) if values else (),
                parameters={"EXTERNAL": "TRUE"},
                type="EXTERNAL_TABLE",
            )
        )
        if not values:
            self.insert(name, "first")
            return
        for value in values:
            RealFiles().write(f"file:{self.root}/{name.table}/p={value}/part", value.encode())
        parts = [
            Partition((value,), *name, storage=self.storage(f"{name.table}/p={value}"), parameters={})
            for value in values
        ]
        self.client.add_partitions(name, parts)

    def storage(self, path: str) -> Storage:
        serde = SerDe(class_name=SERDE, parameters={})
        return Storage((Column("x", "int"),), f"file:{self.root}/{path}", INPUT, OUTPUT, serde=serde)

    def insert(self, name: TableName, file: str) -> None:
        path = f"file:{self.root}/{name.table}/{file}"
        RealFiles().write(path, file.encode())
        self.client.insert(name, [path])

    def rename(self, was: TableName, to: TableName) -> None:
        table = self.client.catalog.table(was)
        assert table is not None
        self.client.alter_table(was, replace(table, database=to.database, name=to.table))


def others_than_leases(client: HiveClient, after: int) -> list[str]:
    """What happened at a metastore but to calque's own objects."""
    keys = [(event, keys_of(event)) for event in client.events(after)]
    return [
        f"{event.event_id} {event.event_type} {keys.table}"
        for event, keys in keys
        if keys.table is None or keys.table.database != OURS
    ]


def test_a_chain_and_a_ring_carry_each_object_from_its_home_to_all_others_and_come_to_rest(
    hubs: Mapping[str, Hub], servers: Mapping[str, Metastore], tmp_path: Path
) -> None:
    clients = {name: HiveClient(server.uri) for name, server in servers.items()}
    homes = {name: Home(clients[name], tmp_path / f"home_{name}") for name in ("a", "b")}
    for name, home in homes.items():
        home.client.create_database(Database(f"of_{name}", location=f"file:{home.root}"))
        home.table(TableName(f"of_{name}", "early"), "1", "2")
    for hub in hubs.values():
        hub.start()
    for _ in range(2):
        for hub in hubs.values():
            hub.settle()
    for name, home in homes.items():
        home.table(TableName(f"of_{name}", "late"), "1", "2", "3")
        home.table(TableName(f"of_{name}", "plain"))
        home.insert(TableName(f"of_{name}", "plain"), "second")
        home.rename(TableName(f"of_{name}", "early"), TableName(f"of_{name}", "moved"))
    for _ in range(3):
        for hub in hubs.values():
            hub.settle()

    names = {f"of_{name}": ["late", "moved", "plain"] for name in homes}
    for at, client in clients.items():
        assert {database: sorted(client.catalog.tables(database)) for database in names} == names, at
    paths = {
        (at, database): (table.parameters or {}).get(ORIGIN)
        for at, client in clients.items()
        for database in names
        if (table := client.catalog.table(TableName(database, "late"))) is not None
    }
    assert paths == {
        ("a", "of_a"): None,
        ("b", "of_a"): "a",
        ("c", "of_a"): "a,b",
        ("a", "of_b"): "b",
        ("b", "of_b"): None,
        ("c", "of_b"): "b",
    }
    for name, home in homes.items():
        table = home.client.catalog.table(TableName(f"of_{name}", "moved"))
        assert table is not None
        assert SOURCE not in (table.parameters or {})
        assert (location_of(table) or "").endswith(f"home_{name}/early")
    for hub in hubs.values():
        hub.require_equal()

    heads = {name: client.current() for name, client in clients.items()}
    epochs = {(name, at): epochs_of(hubs[name], at) for name in hubs for at in LINKS[name]}
    time.sleep(4)
    assert {name: others_than_leases(clients[name], heads[name]) for name in clients} == {name: [] for name in clients}
    assert clients["a"].current() > heads["a"]
    grown = [epochs_of(hubs[name], at) - before for (name, at), before in epochs.items()]
    assert max(grown) <= 1
    for hub in hubs.values():
        hub.settle()
        assert hub.process is not None
        hub.process.send_signal(signal.SIGTERM)
    for hub in hubs.values():
        assert hub.process is not None
        assert hub.process.wait(60) == 0, hub.tail()


def epochs_of(hub: Hub, target: str) -> int:
    return len(APP.wiring(APP.load(hub.config)).ledger(f"to_{target}").epochs())
