"""A running calque whose configuration changes, on real metastores while the source is written to."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.metastore.catalog import HiveCatalog
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.reader import HiveReader
from calque.app import APP
from calque.core.formats.layout import join
from calque.engine.lease.generations import CatalogLeases
from calque.engine.verify.verify import verify
from calque.model.facets import ColumnStatistics, Longs, StatisticsCounts
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.ledger import Epoch, TableState
from calque.model.names import TableName
from calque.model.policy import TargetCapabilities
from calque.sandbox import Metastore
from calque.wiring.wiring import Wiring
from support.services.deployments import NUMBERS, Deployment
from support.worlds.worlds import INPUT, OUTPUT, SERDE

COUNTED = ColumnStatistics("x", "int", StatisticsCounts(longs=Longs(1, 9, 2, 3)))
HELD = Column("p", "string")


@pytest.fixture
def deployment(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Deployment]:
    """Two databases at the source, of which the target takes one."""
    deployment = Deployment(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, 1)
    yield deployment
    deployment.close()


class Source:
    """A writer with a hand for tables of two kinds."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.client = deployment, deployment.source.client

    def storage(self, location: str) -> Storage:
        return Storage((Column("x", "int"),), location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))

    def file(self, location: str, name: str) -> None:
        self.deployment.files.write(join(location, name), f"{location} {name}".encode())

    def plain(self, name: TableName) -> None:
        location = f"file:{self.deployment.root}/source/{name.database}/{name.table}"
        self.file(location, "one")
        self.client.create_table(
            Table(
                name.table,
                name.database,
                storage=self.storage(location),
                parameters={"EXTERNAL": "TRUE"},
                type="EXTERNAL_TABLE",
            )
        )

    def parted(self, name: TableName, values: tuple[str, ...], *, counted: bool = True) -> None:
        location = f"file:{self.deployment.root}/source/{name.database}/{name.table}"
        self.client.create_table(
            Table(
                name.table,
                name.database,
                storage=self.storage(location),
                partition_keys=(HELD,),
                parameters={"EXTERNAL": "TRUE"},
                type="EXTERNAL_TABLE",
            )
        )
        for value in values:
            self.file(f"{location}/p={value}", "one")
        self.client.add_partitions(
            name,
            [
                Partition((value,), *name, storage=self.storage(f"{location}/p={value}"), parameters={})
                for value in values
            ],
        )
        if counted:
            catalog = HiveCatalog(self.client.client, TargetCapabilities())
            catalog.put_statistics(name, {f"p={value}": {"x": COUNTED} for value in values})

    def view(self, name: TableName, text: str) -> None:
        storage = Storage((Column("x", "int"),), None, INPUT, OUTPUT, serde=SerDe(parameters={}))
        self.client.create_table(
            Table(
                name.table,
                name.database,
                storage=storage,
                parameters={},
                view_original_text=text,
                view_expanded_text=text,
                type="VIRTUAL_VIEW",
            )
        )

    def rename(self, was: TableName, to: TableName) -> None:
        table = self.client.catalog.table(was)
        assert table is not None

        self.client.alter_table(was, replace(table, database=to.database, name=to.table))


def configured(deployment: Deployment, target: str, more: str = "") -> None:
    """The file with these keys of the target."""
    source = deployment.config.read_text().split("[targets.")[0]
    at = deployment.targets[0]
    deployment.config.write_text(
        f'{source}[targets.dr]\nmetastore = "{at.uri}"\nwarehouse = "{at.policy.warehouse}"\n{target}\n{more}'
    )


def reloaded(deployment: Deployment) -> None:
    found = deployment.calque("reload")
    assert found.returncode == 0, found.stderr + deployment.tail()


def reopened(deployment: Deployment) -> None:
    """Reloaded, and the target begun with anew: what its policy has to have read is not taken for settled any more."""
    before = openings(deployment)
    reloaded(deployment)
    until(deployment, lambda: openings(deployment) > before)


def tables_at(deployment: Deployment, database: str) -> list[str]:
    return sorted(deployment.targets[0].catalog.tables(database))


def until(deployment: Deployment, reached: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, deployment.tail()
        time.sleep(0.05)


def wiring(deployment: Deployment) -> Wiring:
    return APP.wiring(APP.load(deployment.config))


def epochs(deployment: Deployment) -> Sequence[Epoch]:
    return wiring(deployment).ledger("dr").epochs()


def settle(deployment: Deployment) -> None:
    """Until the target shows the source's newest event, and no table is to be read."""
    ledger, event_id = wiring(deployment).ledger("dr"), deployment.source.current()

    def reached() -> bool:
        epoch, rows = ledger.last_epoch(), ledger.tables().values()
        shown = epoch is not None and epoch.event_id >= event_id
        return shown and all(row.state == TableState.LIVE for row in rows)

    until(deployment, reached)


def check_equal(deployment: Deployment) -> None:
    settle(deployment)
    target = wiring(deployment).target("dr")
    found = verify(target.followed(), target.side(), data="checksum")
    assert (found.differences, found.set_aside) == ((), ())


@pytest.mark.prove
def test_a_policy_that_came_while_nothing_ran_is_taken_up_though_no_event_follows(deployment: Deployment) -> None:
    first, second = deployment.databases
    source, catalog = Source(deployment), deployment.targets[0].catalog
    for database in (first, second):
        source.client.create_database(Database(database, location=f"file:{deployment.root}/source/{database}"))
        source.plain(TableName(database, "plain"))
    parted = TableName(first, "parted")
    source.parted(parted, ("1", "2"))
    partitions = f'partitions = {{ "{parted}" = "p = \'2\'" }}'
    for policy, expected in (
        (f'include = ["{first}.*"]\n{partitions}', (["p=2"], [])),
        (f'include = ["{first}.*"]', (["p=1", "p=2"], [])),
        (f'include = ["{first}.*", "{second}.*"]', (["p=1", "p=2"], ["plain"])),
    ):
        configured(deployment, policy)
        ended = deployment.calque("run", "--until", "head")
        assert ended.returncode == 0, ended.stderr
        assert (sorted(catalog.partition_names(parted)), tables_at(deployment, second)) == expected


@pytest.mark.prove
def test_a_part_of_a_table_is_widened_and_narrowed_under_a_running_calque(deployment: Deployment) -> None:
    first, second = deployment.databases
    source, catalog = Source(deployment), deployment.targets[0].catalog
    for database in (first, second):
        source.client.create_database(Database(database, location=f"file:{deployment.root}/source/{database}"))
    parted, plain = TableName(first, "parted"), TableName(first, "plain")
    source.parted(parted, ("1", "2", "3"))
    source.plain(plain)
    include, where = f'include = ["{first}.*"]', """where = "param('tier') <> 'lead' OR param('tier') IS NULL\""""

    def of(predicate: str) -> str:
        return f'{include}\n{where}\npartitions = {{ "{first}.*" = "{predicate}" }}'

    configured(deployment, of("p >= '2'"))
    deployment.start()
    check_equal(deployment)
    assert sorted(catalog.partition_names(parted)) == ["p=2", "p=3"]

    for predicate, expected in (("p <> '9'", ["p=1", "p=2", "p=3"]), ("p = '3'", ["p=3"])):
        configured(deployment, of(predicate))
        reloaded(deployment)
        until(deployment, lambda expected=expected: sorted(catalog.partition_names(parted)) == expected)
        check_equal(deployment)

    part = partitions(source.client.catalog, parted)["p=1"]
    source.client.rename_partition(parted, ["1"], replace(part, values=("30",)))
    source.parted(TableName(first, "later"), ("3", "4"), counted=False)
    tier = {"tier": "lead"}
    table = source.client.catalog.table(plain)
    assert table is not None
    source.client.alter_table(plain, replace(table, parameters={**(table.parameters or {}), **tier}))
    until(deployment, lambda: tables_at(deployment, first) == ["later", "parted"])
    check_equal(deployment)
    assert sorted(catalog.partition_names(TableName(first, "later"))) == ["p=3"]
    source.client.alter_table(plain, table)
    until(deployment, lambda: tables_at(deployment, first) == ["later", "parted", "plain"])
    check_equal(deployment)
    verified = deployment.calque("verify", "--target", "dr")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_policies_and_targets_change_under_a_running_calque(deployment: Deployment) -> None:
    first, second = deployment.databases
    source, catalog = Source(deployment), deployment.targets[0].catalog
    for database in (first, second, "elsewhere"):
        source.client.create_database(Database(database, location=f"file:{deployment.root}/source/{database}"))
    kept, parted, view = TableName(first, "kept"), TableName(second, "parted"), TableName(second, "v")
    source.plain(kept)
    source.parted(parted, ("1", "2", "3"))
    source.view(view, f"SELECT x FROM {second}.parted")
    configured(deployment, f'include = ["{first}.*"]')
    none = deployment.calque("reload")
    assert (none.returncode, none.stderr.count("\n")) == (75, 1), none.stderr
    deployment.start()
    settle(deployment)
    assert tables_at(deployment, second) == []

    configured(deployment, f'include = ["{first}.*", "{second}.*"]')
    reopened(deployment)
    check_equal(deployment)
    assert tables_at(deployment, second) == ["parted", "v"]

    before = epochs(deployment)[-1].epoch
    where = {name: part.storage.location for name, part in partitions(catalog, parted).items() if part.storage}
    configured(deployment, f'include = ["{first}.*", "{second}.*"]\nrename = {{ "{second}" = "{second}_dr" }}')
    reopened(deployment)
    check_equal(deployment)
    moved = TableName(f"{second}_dr", "parted")
    assert {name: part.storage.location for name, part in partitions(catalog, moved).items() if part.storage} == where
    assert f"{second}_dr.parted" in catalog.table(TableName(f"{second}_dr", "v")).view_expanded_text
    assert second not in catalog.databases()
    assert {(row.files, row.bytes) for row in epochs(deployment) if row.epoch > before} == {(0, 0)}

    good = deployment.config.read_text()
    configured(deployment, 'inclde = ["*.*"]')
    wrong = deployment.calque("reload")
    assert (wrong.returncode, "inclde" in wrong.stderr) == (65, True)
    assert deployment.process is not None
    deployment.process.send_signal(signal.SIGHUP)
    until(deployment, lambda: "not taken over" in deployment.tail())
    deployment.config.write_text(good.replace('name = "hq"', 'name = "other"'))
    refused = deployment.calque("reload")
    assert (refused.returncode, "[source] name" in refused.stderr) == (65, True), refused.stderr
    deployment.config.write_text(good)

    source.rename(kept, TableName("elsewhere", "kept"))
    until(deployment, lambda: tables_at(deployment, first) == [])
    source.rename(TableName("elsewhere", "kept"), kept)
    until(deployment, lambda: tables_at(deployment, first) == ["kept"])

    other = f'[targets.two]\nmetastore = "{deployment.targets[0].uri}"\nwarehouse = "{deployment.root}/two"\n'
    other += f'include = ["{first}.*"]\nrename = {{ "{first}" = "{first}_two" }}\n'
    configured(deployment, f'include = ["{first}.*"]', other)
    deployment.process.send_signal(signal.SIGHUP)
    until(deployment, lambda: f"{second}_dr" not in catalog.databases())
    until(deployment, lambda: tables_at(deployment, f"{first}_two") == ["kept"])
    assert lease_of(deployment, "two") is False
    until(deployment, lambda: openings(deployment) == 4)
    configured(deployment, f'include = ["{first}.*"]')
    reloaded(deployment)
    assert lease_of(deployment, "two") is True
    source.plain(TableName(first, "late"))
    check_equal(deployment)
    assert tables_at(deployment, f"{first}_two") == ["kept"]
    assert openings(deployment) == 4
    assert deployment.end(signal.SIGTERM) == 0
    assert not list((deployment.root / "state" / "control" / "processes").iterdir())


@pytest.mark.prove
def test_files_of_single_tables_stay_at_the_source_and_are_copied_again_while_it_is_written(
    deployment: Deployment,
) -> None:
    first, _ = deployment.databases
    source, catalog = Source(deployment), deployment.targets[0].catalog
    for database in deployment.databases:
        source.client.create_database(Database(database, location=f"file:{deployment.root}/source/{database}"))
    plain, parted, copied = TableName(first, "plain"), TableName(first, "parted"), TableName(first, "copied")
    source.plain(plain)
    source.plain(copied)
    source.parted(parted, ("1", "2", "3"))
    by_table = f'data = {{ "{first}.p*" = "none" }}'
    configured(deployment, f'include = ["{first}.*"]')
    deployment.start()
    check_equal(deployment)

    configured(deployment, f'include = ["{first}.*"]\n{by_table}')
    reopened(deployment)
    check_equal(deployment)
    here = f"file:{deployment.root}/source/"
    assert lying_in(here, catalog, plain, copied, parted) == [True, False, True, True, True, True]
    for_none = tree_of(deployment)

    configured(deployment, f'include = ["{first}.*"]')
    reopened(deployment)
    check_equal(deployment)
    assert lying_in(here, catalog, plain, copied, parted) == [False] * 6
    assert tree_of(deployment) == for_none
    assert deployment.end(signal.SIGTERM) == 0


def lying_in(place: str, catalog: HiveReader, *names: TableName) -> list[bool]:
    """Of each table and each of its partitions whether it lies there."""
    things: list[Table | Partition] = []
    for name in names:
        table = catalog.table(name)
        assert table is not None
        things += [table, *partitions(catalog, name).values()]
    return [(location_of(thing) or "").replace("file:///", "file:/").startswith(place) for thing in things]


def tree_of(deployment: Deployment) -> list[str]:
    """All that lies at the source."""
    return sorted(str(path) for path in (deployment.root / "source").rglob("*"))


def openings(deployment: Deployment) -> int:
    """How often the target was begun with: at the start, and with each change of its own."""
    return deployment.log.read_text().count("dr opens at event")


def lease_of(deployment: Deployment, target: str) -> bool | None:
    """Whether the lease on a target below the deployment's folder was given back; None before the first."""
    catalog = HiveCatalog(Client(deployment.targets[0].uri), TargetCapabilities())
    newest = CatalogLeases(catalog, "hq", target, f"file://{deployment.root}/{target}").newest()
    return newest.released if newest is not None else None


def partitions(catalog: Any, name: TableName) -> dict[str, Partition]:
    return dict(catalog.partitions(name, catalog.partition_names(name)))
