"""Who is who: deployments whose metastores, directories or state folders are exchanged, on real metastores.

One deployment goes through all of it, so that Spark starts three times only.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.metastore.catalog import HiveCatalog
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.first_seen import FirstSeen
from calque.adapters.metastore.reader import HiveReader
from calque.app import APP
from calque.control.identity import recorded, require_for_removal
from calque.demo.source import Source
from calque.engine.sides.calque_database import ensure_own_database
from calque.engine.sides.clocks import SteadyClock, believed_now_ns, metastore_clock, storage_clock
from calque.errors import AccessRefused
from calque.model.hive import Column, Database
from calque.model.names import OURS, TableName
from calque.model.policy import TargetCapabilities
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment
from support.services.servers import Shared
from support.services.thriftproxy import asked

COLUMNS = (Column("id", "bigint"), Column("name", "string"))
FOLDERS = ("state", "checkpoints")
DAY_NS = 86_400 * 10**9


@pytest.fixture
def servers(shared: Shared) -> Mapping[str, Metastore]:
    return dict(zip(("source", "target", "other"), shared("source-3", "target-3", "target-4").values(), strict=True))


class Exchanged:
    """A deployment whose configuration is written anew: with other metastores, or another spelling of its warehouse."""

    def __init__(self, root: Path, number: int, servers: Mapping[str, Metastore], warehouse: Path) -> None:
        root.mkdir()
        self.deployment = Deployment(root, number, servers["source"], {"dr": servers["target"]}, seed=1)
        self.servers, self.warehouse = servers, warehouse
        self.configure()

    def configure(self, source: str = "source", target: str = "target", warehouse: Path | None = None) -> None:
        self.deployment.config.write_text(
            f'[source]\nname = "hq"\nmetastore = "{self.servers[source].uri}"\npoll = "50ms"\n'
            f'[targets.dr]\nmetastore = "{self.servers[target].uri}"\nwarehouse = "{warehouse or self.warehouse}"\n'
            f'include = ["{self.deployment.databases[0]}.*"]\ngrace = "0s"\nlease = "5s"\n'
        )

    def run(self) -> None:
        done = self.deployment.calque("run", "--until", "head", timeout=280)
        assert done.returncode == 0, done.stderr

    def refused(self, *arguments: str) -> str:
        done = self.deployment.calque(*arguments, timeout=280)
        assert done.returncode == 65, (arguments, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def remembered(self) -> Mapping[str, Any]:
        target: Mapping[str, Any] = recorded(APP.wiring(APP.load(self.deployment.config)))["targets"]["dr"]
        return target

    def accept(self, *arguments: str) -> bool:
        done = self.deployment.calque("identity", "accept", *arguments, "--json")
        assert done.returncode == 0, done.stderr
        has_changed: bool = json.loads(done.stdout)["changed"]
        return has_changed

    def problem(self, side: str) -> str:
        shown = json.loads(self.deployment.calque("identity", "show", "--json").stdout)
        problems = shown["sources"]["hq"]["problem"], shown["targets"]["dr"]["problem"]
        return problems[side == "target"] or ""


@pytest.fixture
def pair(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[tuple[Exchanged, Exchanged]]:
    """Two that have the source and the warehouse in common."""
    number, warehouse = next(NUMBERS), tmp_path / "warehouse"
    one, two = (Exchanged(tmp_path / name, number, servers, warehouse) for name in ("one", "two"))
    yield one, two
    one.deployment.close()
    two.deployment.close()


def id_of(server: Metastore) -> str:
    return HiveReader(Client(server.uri)).identity()


def tree(folder: Path) -> set[Path]:
    """Files: `check` tries to write, and leaves an empty directory."""
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.timeout(600)
def test_nothing_is_written_or_removed_where_another_metastore_or_state_answers_than_is_remembered(
    pair: tuple[Exchanged, Exchanged], servers: Mapping[str, Metastore], tmp_path: Path
) -> None:
    one, two = pair
    ids = {name: id_of(server) for name, server in servers.items()}
    deployment, database = one.deployment, one.deployment.databases[0]
    source = Source(deployment.source.client, tmp_path / "data")
    source.create_database(database)
    for number in range(3):
        source.create_table(TableName(database, f"t{number}"), COLUMNS, form="text")
    catalog = deployment.targets[0].catalog
    of_others = {*catalog.tables(OURS)}
    one.run()
    first = one.remembered()
    assert (first["id"], first["source"], first["generation"]) == (ids["target"], ids["source"], 1)
    assert json.loads(deployment.calque("status", "--json").stdout)["identity"]["targets"]["dr"] == first
    for folder in FOLDERS:
        shutil.copytree(deployment.root / folder, tmp_path / "backup" / folder)
    before = tree(one.warehouse)

    # Another target metastore below the same warehouse, whatever its spelling.
    link = tmp_path / "link"
    link.symlink_to(one.warehouse)
    for spelling, command in ((two.warehouse, "check"), (link, "check"), (link, "sweep"), (link, "run")):
        two.configure(target="other", warehouse=spelling)
        said = two.refused(command)
        assert "Another metastore has its replicas in" in said
        assert ids["target"] in said
        assert ids["other"] in said

    # The target's address leads to another metastore; then the source's.
    one.configure(target="other")
    for command in ("check", "sweep", "run"):
        assert f"remembers {ids['target']}, and {ids['other']} answers" in one.refused(command)
    assert ids["other"] in one.problem("target")
    assert "is not the id" in one.refused("identity", "accept", "--target", "dr", ids["target"])
    one.configure(source="other")
    for command in ("check", "sweep", "run"):
        assert f"remembers {ids['source']}, and {ids['other']} answers" in one.refused(command)
    assert ids["other"] in one.problem("source")
    assert "is not the id" in one.refused("identity", "accept", "--source", "no-such-id")
    assert set(deployment.targets[0].catalog.tables(database)) == {"t0", "t1", "t2"}
    assert tree(one.warehouse) == before

    # The same warehouse by another spelling is the same, and so is the lease.
    one.configure(warehouse=link)
    source.create_table(TableName(database, "t3"), COLUMNS, form="text")
    one.run()
    second = one.remembered()
    assert second["generation"] > first["generation"]
    assert second["ledger"] == first["ledger"]
    (directory,) = second["directories"]
    assert {spelling.rpartition("/")[2] for spelling in directory["spellings"]} == {"warehouse", "link"}
    wiring = APP.wiring(APP.load(deployment.config))
    assert require_for_removal(wiring, "dr").ledger == first["ledger"]
    lying = tree(one.warehouse)
    swept = deployment.calque("sweep")
    assert swept.returncode == 0, swept.stderr
    assert tree(one.warehouse) == lying

    # A state folder that was restored is another ledger.
    for folder in FOLDERS:
        shutil.rmtree(deployment.root / folder)
        shutil.copytree(tmp_path / "backup" / folder, deployment.root / folder)
    one.configure()
    one.run()
    third = one.remembered()
    assert third["generation"] > second["generation"]
    assert third["ledger"] != first["ledger"]
    assert set(deployment.targets[0].catalog.tables(database)) == {"t0", "t1", "t2", "t3"}

    # A target that lost its newest state, until it is accepted.
    leases = [name for name in {*catalog.tables(OURS)} - of_others if "_lease_" in name]
    lease = max(leases, key=lambda name: int(name.split("_")[-1]))
    HiveClientOf(servers["target"]).drop(TableName(OURS, lease))
    for command in ("check", "sweep"):
        assert "has lost its newest state" in one.refused(command)
    assert one.accept("--target", "dr", ids["target"]) is True
    assert one.accept("--target", "dr", ids["target"]) is False
    assert one.problem("target") == ""
    assert one.accept("--source", ids["source"]) is False


class HiveClientOf:
    """Somebody with the right to change a metastore by hand."""

    def __init__(self, server: Metastore) -> None:
        self.catalog = HiveCatalog(Client(server.uri), TargetCapabilities())

    def drop(self, name: TableName) -> None:
        self.catalog.drop_table(name)


def test_a_connection_that_leads_to_another_metastore_is_refused_while_the_process_runs(
    servers: Mapping[str, Metastore],
) -> None:
    with asked(servers["source"].uri) as proxy:
        client = Client(f"{proxy.uri},{servers['other'].uri}", first_seen=FirstSeen())
        reader = HiveReader(client)
        assert "default" in reader.databases()
        proxy.refuse()
        with pytest.raises(AccessRefused) as refused:
            reader.databases()
        for server in ("source", "other"):
            assert id_of(servers[server]) in str(refused.value)
        proxy.heal()
        assert "default" in reader.databases()


def test_a_server_that_takes_connections_and_breaks_them_off_is_passed_over(servers: Mapping[str, Metastore]) -> None:
    """As what stands before a server does that is down. A call that changes something was not sent to it."""
    with asked(servers["other"].uri) as proxy:
        proxy.refuse()
        for number in range(20):
            uris = f"{proxy.uri},{servers['other'].uri}"
            assert "default" in HiveReader(Client(uris)).databases()
            catalog = HiveCatalog(Client(uris), TargetCapabilities())
            name = f"broken_off_{number}"
            catalog.create_database(Database(name, location=f"file:{servers['other'].warehouse}/{name}.db"))
            catalog.drop_database(name)
        assert not proxy.calls


def test_a_machine_whose_clock_is_a_day_ahead_is_not_believed(servers: Mapping[str, Metastore], tmp_path: Path) -> None:
    from calque.adapters.files.storage import FileStorage

    warehouse, catalog = f"file:{tmp_path}/warehouse", HiveClientOf(servers["target"]).catalog
    ensure_own_database(catalog, warehouse)
    others = [
        metastore_clock(catalog),
        storage_clock(FileStorage(), warehouse),
    ]
    began = time.time_ns()
    for ahead in (0, DAY_NS, 9 * DAY_NS, -DAY_NS):
        believed = believed_now_ns(time.time_ns() + ahead, others)
        assert began - 10**9 <= believed <= time.time_ns()
    assert SteadyClock().now_ns() <= time.time_ns()
