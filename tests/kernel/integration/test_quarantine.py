"""What real metastores refuse costs what it concerns, and comes back when it is released."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calque.app import APP
from calque.control.status import snapshot
from calque.demo.source import Source
from calque.engine.target.fault_isolation import RELEASE
from calque.model.hive import Column
from calque.model.names import TableName
from calque.sandbox import Metastore, MetastoreSettings
from support.services.deployments import Deployment

STRICT = {
    "metastore.partition.name.whitelist.pattern": "[^!]*",
    "hive.metastore.partition.name.whitelist.pattern": "[^!]*",
}
"""Of both targets: no partition with an exclamation mark."""
SETTINGS = {
    "source": MetastoreSettings(),
    "three": MetastoreSettings(extra=STRICT),
    "four": MetastoreSettings(version="4.2.0", extra=STRICT),
}
ID, DAY = (Column("id", "bigint"),), (Column("day", "string"),)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Metastore]]:
    root = tmp_path_factory.mktemp("quarantine")
    with ThreadPoolExecutor() as pool:
        found = dict(
            zip(SETTINGS, pool.map(lambda name: Metastore.start(SETTINGS[name], root / name), SETTINGS), strict=True)
        )
    yield found
    for server in found.values():
        server.stop()


class Poisoned(Deployment):
    """Two targets, in whose warehouses a file has the place of the second database."""

    def policy(self, name: str, index: int) -> Any:
        return replace(super().policy(name, index), rename={})

    @property
    def places(self) -> list[Path]:
        return [self.root / f"wh_{target.name}" / f"{self.databases[1]}.db" for target in self.targets]

    def wait_for_all(self, reached: Callable[[Mapping[str, Any]], bool], seconds: float) -> None:
        """Until that is true of each target, at the source's newest event."""
        wiring, deadline = APP.wiring(APP.load(self.config)), time.monotonic() + seconds
        while True:
            found, head = snapshot(wiring)["targets"], self.source.current()
            if all(target["position"] == head and reached(target) for target in found.values()):
                return
            assert time.monotonic() < deadline, f"{found}\n{self.tail()}"
            time.sleep(0.1)

    def quarantined(self) -> dict[str, dict[str, str]]:
        """By target and name, why."""
        found = self.calque("quarantine", "list", "--json")
        assert found.returncode == 0, found.stderr
        rows = json.loads(found.stdout)
        return {
            target.name: {row["table"]: row["reason"] for row in rows if row["target"] == target.name}
            for target in self.targets
        }


@pytest.fixture
def deployment(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Poisoned]:
    made = Poisoned(tmp_path, 1, servers["source"], {name: servers[name] for name in ("three", "four")}, seed=1)
    yield made
    made.close()


def test_refusals_of_both_versions_cost_what_they_concern(deployment: Poisoned, tmp_path: Path) -> None:
    source = Source(deployment.source.client, tmp_path / "data")
    one, other = deployment.databases
    good, parted = TableName(one, "good"), TableName(one, "parted")
    inside = TableName(other, "inside")
    for place in deployment.places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("in the way")
    source.create_database(one)
    source.create_table(good, ID)
    source.create_table(parted, ID, DAY)
    source.add_partitions(parted, [["1"]])
    deployment.start()
    deployment.settle(300)
    source.create_database(other)
    source.create_table(inside, ID)
    source.add_partitions(parted, [["2!"]])
    source.insert(good)
    aside = {str(name) for name in (inside, parted)}
    deployment.wait_for_all(lambda target: aside <= {row["table"] for row in target["quarantined"]}, 300)
    for target in deployment.targets:
        assert set(target.catalog.tables(one)) == {"good", "parted"}
        assert target.catalog.partition_names(TableName(one, "parted")) == ("day=1",)
    found = deployment.quarantined()
    assert {name: set(rows) - {other} for name, rows in found.items()} == dict.fromkeys(("three", "four"), aside)
    assert "create_database" in found["four"][other]
    for rows in found.values():
        assert "2!" in rows[str(parted)]
        assert rows[str(parted)].endswith(RELEASE)

    for place in deployment.places:
        place.unlink()
    source.drop_partitions(parted, ["day=2!"])
    released = deployment.calque("quarantine", "release")
    assert released.returncode == 0, released.stderr
    source.insert(good)
    deployment.wait_for_all(lambda target: not target["quarantined"], 180)
    deployment.settle(180)
    verified = deployment.calque("verify")
    assert verified.returncode == 0, verified.stdout
    assert set(deployment.targets[1].catalog.tables(other)) == {"inside"}
    assert deployment.end(signal.SIGTERM) == 0
