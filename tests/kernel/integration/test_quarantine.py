"""What real metastores refuse costs what it concerns, and comes back when it is released."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
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
from support.runs.proofs import one_a_day
from support.runs.seeds import seed
from support.services.deployments import NUMBERS, Deployment
from support.services.servers import Shared

STRICT = {
    "metastore.partition.name.whitelist.pattern": "[^!]*",
    "hive.metastore.partition.name.whitelist.pattern": "[^!]*",
}
"""Of a target: no partition with an exclamation mark."""
VERSIONS = {"three": "3.1.3", "four": "4.2.0"}
ID, DAY = (Column("id", "bigint"),), (Column("day", "string"),)


class Poisoned(Deployment):
    """A target in whose warehouse a file has the place of the second database."""

    def policy(self, name: str, index: int) -> Any:
        return replace(super().policy(name, index), rename={})

    @property
    def place(self) -> Path:
        return self.root / f"wh_{self.targets[0].name}" / f"{self.databases[1]}.db"

    def wait_at_head(self, reached: Callable[[Mapping[str, Any]], bool], seconds: float) -> None:
        """Until that is true of the target at the source's newest event."""
        wiring, deadline = APP.wiring(APP.load(self.config)), time.monotonic() + seconds
        while True:
            head = self.source.current()
            [target] = snapshot(wiring)["targets"].values()
            if target["position"] == head and reached(target):
                return
            assert time.monotonic() < deadline, f"{target}\n{self.tail()}"
            time.sleep(0.1)

    def quarantined(self) -> dict[str, str]:
        """By name, why."""
        found = self.calque("quarantine", "list", "--json")
        assert found.returncode == 0, found.stderr
        return {row["table"]: row["reason"] for row in json.loads(found.stdout)}


@pytest.fixture(params=one_a_day([*VERSIONS], seed()))
def deployment(request: pytest.FixtureRequest, shared: Shared, tmp_path: Path) -> Iterator[Poisoned]:
    name, source = request.param, shared("source-3")["source-3"]
    with Metastore.start(MetastoreSettings(VERSIONS[name], extra=STRICT), tmp_path / "target") as target:
        made = Poisoned(tmp_path, next(NUMBERS), source, {name: target}, seed=1)
        yield made
        made.close()


def test_refusals_of_a_metastore_cost_what_they_concern(deployment: Poisoned, tmp_path: Path) -> None:
    source, [target] = Source(deployment.source.client, tmp_path / "data"), deployment.targets
    one, other = deployment.databases
    good, parted = TableName(one, "good"), TableName(one, "parted")
    inside = TableName(other, "inside")
    deployment.place.parent.mkdir(parents=True, exist_ok=True)
    deployment.place.write_text("in the way")
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
    deployment.wait_at_head(lambda status: aside <= {row["table"] for row in status["quarantined"]}, 300)
    assert set(target.catalog.tables(one)) == {"good", "parted"}
    assert target.catalog.partition_names(TableName(one, "parted")) == ("day=1",)
    rows = deployment.quarantined()
    assert set(rows) - {other} == aside
    assert target.name == "three" or "create_database" in rows[other]
    assert "2!" in rows[str(parted)]
    assert rows[str(parted)].endswith(RELEASE)

    deployment.place.unlink()
    source.drop_partitions(parted, ["day=2!"])
    released = deployment.calque("quarantine", "release")
    assert released.returncode == 0, released.stderr
    source.insert(good)
    deployment.wait_at_head(lambda status: not status["quarantined"], 180)
    deployment.settle(180)
    verified = deployment.calque("verify")
    assert verified.returncode == 0, verified.stdout
    assert set(target.catalog.tables(other)) == {"inside"}
    assert deployment.end(signal.SIGTERM) == 0
