"""Files that change without an event, and files that are kept for it, on real metastores through `calque run`."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from calque.app import APP
from calque.core.formats.layout import place
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.names import TableName
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment
from support.services.servers import Shared
from support.worlds.worlds import INPUT, OUTPUT, SERDE

SECONDS = 120.0


@pytest.fixture
def deployment(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=7)
    made.config.write_text(made.config.read_text().replace('poll = "50ms"', 'poll = "50ms"\nscan = "500ms"'))
    yield made
    made.close()


class Warehouse:
    """A plain table and a partitioned one at the source, and their files at both sides."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.database = deployment, deployment.databases[0]
        self.root = deployment.root / "outside"
        source = deployment.source.client
        storage = Storage((Column("x", "int"),), None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
        self.parameters = {"EXTERNAL": "TRUE"}
        source.create_database(Database(self.database))
        for name, keys in (("plain", ()), ("parted", (Column("p", "string"),))):
            (self.root / name).mkdir(parents=True)
            at = replace(storage, location=f"file:{self.root}/{name}")
            source.create_table(
                Table(
                    name,
                    self.database,
                    "me",
                    storage=at,
                    partition_keys=keys,
                    parameters=self.parameters,
                    type="EXTERNAL_TABLE",
                )
            )
        for value in "ab":
            self.write(f"parted/p={value}/f", b"1")
            at = replace(storage, location=f"file:{self.root}/parted/p={value}")
            source.add_partitions(
                TableName(self.database, "parted"), [Partition((value,), self.database, "parted", storage=at)]
            )
        self.write("plain/f", b"1")

    def write(self, relative: str, content: bytes) -> None:
        path = self.root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def shown(self, table: str, partition: str = "") -> dict[str, bytes] | None:
        """What a reader of the target finds in the table or partition."""
        catalog, name = self.deployment.targets[0].catalog, TableName(self.database, table)
        found = catalog.partitions(name, [partition]).get(partition) if partition else catalog.table(name)
        if found is None:
            return None
        root = Path(place(location_of(found) or "").path)
        names = [path for path in root.rglob("*") if path.is_file()] if root.exists() else []
        paths = {str(path.relative_to(root)): path for path in names}
        hidden = ("_", ".")
        return {
            name: path.read_bytes()
            for name, path in paths.items()
            if not any(part.startswith(hidden) for part in name.split("/"))
        }

    def wait(self, wanted: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not wanted():
            assert time.monotonic() < deadline, self.deployment.tail()
            time.sleep(0.05)


@pytest.mark.prove
def test_a_table_that_nobody_scans_is_compared_when_an_engine_says_that_its_files_changed(
    shared: Shared, tmp_path: Path
) -> None:
    servers = shared("source-4", "target-4")
    made = Deployment(tmp_path, next(NUMBERS), servers["source-4"], {"dr": servers["target-4"]}, seed=7)
    try:
        warehouse = Warehouse(made)
        made.start()
        made.settle()
        warehouse.write("plain/g", b"2")
        warehouse.write("parted/p=a/g", b"2")
        for table in ("plain", "parted"):
            made.source.client.reload(TableName(warehouse.database, table))
        warehouse.wait(lambda: warehouse.shown("plain") == {"f": b"1", "g": b"2"})
        warehouse.wait(lambda: warehouse.shown("parted", "p=a") == {"f": b"1", "g": b"2"})
        made.settle()
        verified = made.calque("verify", "--data", "checksum")
        assert verified.returncode == 0, verified.stdout + verified.stderr
    finally:
        made.close()


def test_files_that_change_without_events_come_to_the_target_whole(deployment: Deployment) -> None:
    warehouse = Warehouse(deployment)
    deployment.start()
    deployment.settle()
    warehouse.wait(lambda: warehouse.shown("plain") == {"f": b"1"})
    head = deployment.source.current()

    warehouse.write("plain/g", b"2")
    warehouse.write("parted/p=a/g", b"2")
    (warehouse.root / "parted/p=b/f").unlink()
    warehouse.wait(lambda: warehouse.shown("plain") == {"f": b"1", "g": b"2"})
    warehouse.wait(lambda: warehouse.shown("parted", "p=a") == {"f": b"1", "g": b"2"})
    warehouse.wait(lambda: warehouse.shown("parted", "p=b") == {})

    # A job writes for a while, and another writer's file grows: none of it shows before it is complete.
    warehouse.write("plain/_temporary/0/task/part-0", b"half")
    warehouse.write("plain/part-0", b"job")
    warehouse.write("parted/p=a/h.inprogress", b"half")
    seen = []
    for size in range(1, 9):
        warehouse.write("parted/p=b/growing", b"x" * size)
        time.sleep(0.5)
        seen.append((warehouse.shown("plain"), warehouse.shown("parted", "p=a"), warehouse.shown("parted", "p=b")))
    assert seen == [({"f": b"1", "g": b"2"}, {"f": b"1", "g": b"2"}, {})] * len(seen)
    for name in ("plain/_temporary/0/task/part-0", "plain/_temporary/0/task", "plain/_temporary/0", "plain/_temporary"):
        path = warehouse.root / name
        path.unlink() if path.is_file() else path.rmdir()
    (warehouse.root / "parted/p=a/h.inprogress").rename(warehouse.root / "parted/p=a/h")
    warehouse.wait(lambda: warehouse.shown("plain") == {"f": b"1", "g": b"2", "part-0": b"job"})
    warehouse.wait(lambda: warehouse.shown("parted", "p=a") == {"f": b"1", "g": b"2", "h": b"half"})
    warehouse.wait(lambda: warehouse.shown("parted", "p=b") == {"growing": b"x" * 8})
    assert deployment.source.current() == head

    # What changes while calque is down is found when it is up again.
    assert deployment.end(signal.SIGTERM) == 0
    warehouse.write("plain/f", b"another")
    deployment.start()
    warehouse.wait(lambda: warehouse.shown("plain") == {"f": b"another", "g": b"2", "part-0": b"job"})
    deployment.check_equal()
    verified = deployment.calque("verify", "--data", "checksum")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert deployment.end(signal.SIGTERM) == 0


@pytest.mark.prove
def test_a_target_that_was_held_up_catches_up_to_the_files_of_the_event(deployment: Deployment) -> None:
    text = deployment.config.read_text().replace('scan = "500ms"', 'pin = "hardlink"')
    deployment.config.write_text(text)
    warehouse = Warehouse(deployment)
    pins = deployment.root / "state" / "pins"
    name = TableName(warehouse.database, "plain")
    deployment.start()
    deployment.settle()
    warehouse.wait(lambda: warehouse.shown("plain") == {"f": b"1"})
    assert deployment.calque("pause", "--target", "dr").returncode == 0
    (warehouse.root / "plain/f").unlink()
    warehouse.write("plain/g", b"as at the event")
    deployment.source.insert(name, [f"file:{warehouse.root}/plain/g"], replace=True)
    event_id = deployment.source.current()
    evidence = APP.wiring(APP.load(deployment.config)).target("dr").source.side().evidence
    warehouse.wait(lambda: bool(evidence.evidence([event_id])))
    assert any((pins / str(event_id)).rglob("g"))
    (warehouse.root / "plain/g").unlink()
    warehouse.write("plain/h", b"later, and nobody says so")
    assert deployment.calque("resume", "--target", "dr").returncode == 0
    warehouse.wait(lambda: warehouse.shown("plain") == {"g": b"as at the event"})
    deployment.settle()
    warehouse.wait(lambda: not list(pins.iterdir()))
    assert deployment.end(signal.SIGTERM) == 0
