"""The main flow on real metastores, with real processes: a random writer at the source, readers at the targets."""

from __future__ import annotations

import base64
import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from calque.adapters.metastore.catalog import HiveCatalog
from calque.adapters.metastore.messages import ALTER_TABLE, Context
from calque.app import APP
from calque.control.status import snapshot
from calque.model.facets import ColumnStatistics, Longs, PrimaryKey, StatisticsCounts
from calque.model.hive import Column, Function, Partition, SerDe, Storage, Table
from calque.model.names import DEFAULT_PARTITION, TableName, table_name
from calque.model.policy import TargetCapabilities
from calque.ports.services import COLUMN_CHANGES
from calque.sandbox import Metastore, MetastoreSettings
from support.services.deployments import NUMBERS, Deployment, Target
from support.services.servers import Shared
from support.services.thriftproxy import asked
from support.worlds.worlds import INPUT, OUTPUT, SERDE

STOCK_4 = MetastoreSettings(version="4.2.0", message_format="gzip", stock=True)
Deploy = Callable[..., Deployment]
SILENT_SECONDS = 300.0


@pytest.fixture(scope="module")
def servers(shared: Shared, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Metastore]]:
    with Metastore.start(STOCK_4, tmp_path_factory.mktemp("stock")) as stock:
        yield {"stock-4": stock, **shared("source-3", "target-3", "target-4")}


@pytest.fixture
def deploy(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Deploy]:
    made: list[Deployment] = []

    def deployed(source: str, targets: Mapping[str, str], seed: int) -> Deployment:
        at = {name: servers[server] for name, server in targets.items()}
        made.append(Deployment(tmp_path, next(NUMBERS), servers[source], at, seed))
        return made[-1]

    yield deployed
    for deployment in made:
        deployment.close()


def test_readers_see_only_states_of_the_source_while_calque_is_killed_and_its_checkpoints_are_damaged_and_lost(
    deploy: Deploy,
) -> None:
    deployment = deploy("source-3", {"three": "target-3", "four": "target-4"}, seed=1)
    deployment.write(25)
    deployment.watch()
    checkpoints = deployment.root / "checkpoints"
    for looks, number in ((20, signal.SIGKILL), (40, signal.SIGTERM), (61, signal.SIGKILL)):
        deployment.start()
        until = time.monotonic() + 6
        while (
            time.monotonic() < until
            or not list(checkpoints.glob("capture/offsets/*"))
            or min(target.proof.observations for target in deployment.targets) < looks
        ):
            assert time.monotonic() < until + 60
            deployment.write(1, pause=0.03)
        code = deployment.end(number)
        assert code == (0 if number is signal.SIGTERM else -number)
        if number is signal.SIGTERM:
            shutil.rmtree(checkpoints, ignore_errors=True)
    for path in (*checkpoints.glob("capture/offsets/*"), *checkpoints.glob("*/metadata")):
        path.write_bytes(b"")  # as a machine leaves them that lost its power
    deployment.start()
    deployment.write(10, pause=0.03)
    deployment.settle()
    deployment.check_equal()
    deployment.wait_for_readers()
    assert not (problems := deployment.problems()), "\n".join([problems[0], *deployment.writer.done])
    verified = deployment.calque("verify", "--data", "checksum", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert deployment.end(signal.SIGTERM) == 0


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_a_target_whose_server_is_silent_delays_neither_capture_nor_another_target(
    deploy: Deploy, servers: Mapping[str, Metastore]
) -> None:
    """For minutes. `test_faults.py` has the disk of one of two targets full, and the other goes on."""
    deployment = deploy("source-3", {"three": "target-3", "four": "target-4"}, seed=4)
    with asked(servers["target-4"].uri) as four:
        configuration = deployment.config.read_text()
        deployment.config.write_text(configuration.replace(servers["target-4"].uri, four.uri))
        deployment.write(25)
        deployment.start()
        deployment.settle()
        four.answering.clear()
        before, until = position(deployment, "four"), time.monotonic() + SILENT_SECONDS
        for number in count(1):
            deployment.write(1)
            deployment.settle(names=["three"])
            if number >= 10 and time.monotonic() > until:
                break
        assert position(deployment, "four") == before < position(deployment, "three")
        four.answering.set()
        deployment.settle()
        deployment.check_equal()
        assert deployment.end(signal.SIGTERM) == 0


def position(deployment: Deployment, name: str) -> int:
    found: int = snapshot(APP.wiring(APP.load(deployment.config)))["targets"][name]["position"]
    return found


def test_a_hive_4_with_its_stock_settings_is_replicated_to_another(deploy: Deploy) -> None:
    deployment = deploy("stock-4", {"four": "target-4"}, seed=2)
    deployment.write(25)
    assert deployment.calque("run", "--until", "head").returncode == 0
    deployment.write(50)
    found = deployment.calque("run", "--until", "head", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["targets"]["four"]["position"] == deployment.source.current()
    deployment.check_equal()
    written = [with_facets(deployment, name) for name in ("first", "second")]
    deployment.start()
    deployment.settle()
    target = deployment.targets[0]
    described_without_an_event(deployment, target)
    change_columns_as_no_default_permits(deployment)
    assert deployment.end(signal.SIGTERM) == 0
    for name in written:
        at = target.admission.name_at_target(name)
        assert [row.name for row in target.catalog.constraints(at)] == [f"pk_{name.table}"]
        assert target.catalog.table_statistics(at, ["x"]) == {"x": COUNTED}
    verified = deployment.calque("verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def described_without_an_event(deployment: Deployment, target: Target) -> None:
    source, name = HiveCatalog(deployment.source.client.client, TargetCapabilities()), deployment.databases[0]
    database, head = source.database(name), deployment.source.current()
    assert database is not None
    source.alter_database(name, replace(database, description="without an event"))
    assert deployment.source.current() == head
    at_target, deadline = target.admission.name_at_target(table_name(name)).database, time.monotonic() + 60
    while (shown := target.catalog.database(at_target)) is None or shown.description != "without an event":
        assert time.monotonic() < deadline, f"{shown}\n{deployment.tail()}"
        time.sleep(0.1)


def change_columns_as_no_default_permits(deployment: Deployment) -> None:
    """At the source, whose connection permits it: the first column goes, then the type of another narrows. The target,
    which has the default, comes to both without anybody's help."""
    source, target, name = deployment.source.client, deployment.targets[0], TableName(deployment.databases[0], "wide")
    table = plain(deployment, name.table)
    assert table.storage
    columns = (Column("a", "int"), Column("b", "bigint"), Column("c", "string"))
    source.create_table(replace(table, storage=replace(table.storage, columns=columns)))
    for following in (columns, columns[1:], (Column("b", "int"), columns[2])):
        table = deployment.source.the_table(name).table
        assert table.storage
        if following != table.storage.columns:
            changed = replace(table, storage=replace(table.storage, columns=following))
            source.client.call(ALTER_TABLE, *name, changed, Context(), setting=(COLUMN_CHANGES, "false"))
        deployment.wait_for(lambda status: status["position"] == source.current())
        at_target = target.admission.name_at_target(name)
        deadline = time.monotonic() + 60
        while (shown := columns_of(target.catalog.table(at_target))) != following:
            assert time.monotonic() < deadline, f"{shown}\n{status_of(deployment)}\n{deployment.tail()}"
            time.sleep(0.1)
    assert str(name) not in {row["table"] for row in status_of(deployment)["quarantined"]}


def columns_of(table: Table | None) -> tuple[Column, ...] | None:
    return table.storage.columns if table is not None and table.storage is not None else None


COUNTED = ColumnStatistics("x", "int", StatisticsCounts(longs=Longs(1, 9, 2, 3)))


def with_facets(deployment: Deployment, name: str) -> TableName:
    """A table with a key and column statistics at the source."""
    source = HiveCatalog(deployment.source.client.client, TargetCapabilities())
    source.create_table(plain(deployment, name))
    table = TableName(deployment.databases[0], name)
    source.add_constraints([PrimaryKey(*table, "x", 1, f"pk_{name}", False, False, True)])
    source.put_statistics(table, {"": {"x": COUNTED}})
    return table


@pytest.mark.prove
def test_names_with_capitals_are_those_that_the_server_keeps(deploy: Deploy) -> None:
    deployment = deploy("source-3", {"dr": "target-4"}, seed=4)
    writer, database = deployment.source.client, deployment.databases[0]
    while database not in deployment.source.databases():
        deployment.writer.create_database()
    assert deployment.calque("run", "--until", "head").returncode == 0
    written, kept = TableName(database.upper(), "Spelled"), TableName(database, "spelled")
    table = replace(plain(deployment, "Spelled"), database=database.upper())
    assert table.storage
    storage = replace(table.storage, columns=(Column("Amount", "int"),))
    writer.create_table(replace(table, storage=storage, partition_keys=(Column("Dt", "string"),)))
    values = ("1", "")
    added = [replace(storage, location=f"{storage.location}/{number}") for number, _ in enumerate(values)]
    writer.add_partitions(
        written, [Partition((value,), *written, storage=one) for value, one in zip(values, added, strict=True)]
    )
    writer.create_function(Function("RaTe", database.upper(), "org.example.Rate", "me", 1, None, 1, ()))
    assert deployment.calque("run", "--until", "head").returncode == 0
    names = ["dt=1", f"dt={DEFAULT_PARTITION}"]
    at_target = deployment.targets[0].catalog
    assert sorted(at_target.partition_names(kept)) == names
    assert [part.values for part in at_target.partitions(kept, names).values()] == [("1",), ("",)]
    assert list(at_target.functions(database)) == ["rate"]
    verified = deployment.calque("verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    writer.drop_partitions(kept, names[1:])
    writer.alter_table(written, replace(deployment.source.the_table(kept).table, name="SPELLED_2"))
    assert deployment.calque("run", "--until", "head").returncode == 0
    assert list(at_target.partition_names(TableName(database, "spelled_2"))) == names[:1]


def acid(deployment: Deployment) -> Table:
    storage = Storage((Column("x", "int"),), None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
    parameters = {"transactional": "true", "transactional_properties": "insert_only"}
    return Table("acid", deployment.databases[0], storage=storage, parameters=parameters, type="MANAGED_TABLE")


def plain(deployment: Deployment, name: str, **parameters: str) -> Table:
    location = f"file:{deployment.root}/plain/{name}"
    storage = Storage((Column("x", "int"),), location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
    parameters = {"EXTERNAL": "TRUE"} | parameters
    return Table(name, deployment.databases[0], "me", storage=storage, parameters=parameters, type="EXTERNAL_TABLE")


def test_what_goes_wrong_with_one_table_costs_that_table_alone(
    deploy: Deploy, servers: Mapping[str, Metastore]
) -> None:
    deployment = deploy("source-3", {"three": "target-3"}, seed=3)
    database = deployment.databases[0]
    deployment.writer.rng.seed(3)
    while database not in deployment.source.databases():
        deployment.writer.create_database()
    source, target = deployment.source.client, deployment.targets[0]
    for name in ("good", "poison", "taken"):
        source.create_table(plain(deployment, name))
    there = deployment_writer(target.uri)
    there.create_database(deployment.source.the_database(database))
    there.create_table(plain(deployment, "taken"))
    deployment.start()
    try:
        deployment.wait_for(lambda status: status["position"] is not None)
        poison(servers["source-3"], TableName(database, "poison"))
        source.create_table(acid(deployment))
        source.create_table(plain(deployment, "after"))
        deployment.wait_for(lambda status: status["position"] == source.current())
        rows = {row["table"]: row["reason"] for row in status_of(deployment)["quarantined"]}
        assert set(rows) == {f"{database}.taken", f"{database}.poison", f"{database}.acid"}
        assert "not ours" in rows[f"{database}.taken"]
        assert "can't be read" in rows[f"{database}.poison"]
        assert "ACID" in rows[f"{database}.acid"]
        for name in ("good", "after"):
            assert target.catalog.table(TableName(database, name)) is not None
        taken = target.catalog.table(TableName(database, "taken"))
        assert taken is not None
        assert "calque.source" not in (taken.parameters or {})
        event_id = str(source.current())
        waited = deployment.calque("wait", "--target", "three", "--event-id", event_id, "--timeout", "5s")
        assert (waited.returncode, waited.stderr.count("\n")) == (75, 1)
        assert f"{database}.taken" in waited.stderr
        listed = deployment.calque("quarantine", "list", "--json")
        assert {row["table"] for row in json.loads(listed.stdout)} == set(rows)
        shown = deployment.calque("sql", f"USE {database}; SHOW TABLES AT three LIKE '*'", "--json")
        states = {row[0]: row[2] for row in json.loads(shown.stdout)[1]["rows"]}
        shown_tables = {f"{database}.good": "live", f"{database}.after": "live"}
        assert states == {**shown_tables, **dict.fromkeys(rows, "quarantined")}
        there.drop_table(TableName(database, "taken"), delete_data=False)
        assert deployment.calque("quarantine", "release", "--tables", f"{database}.taken").returncode == 0
        deployment.wait_for(lambda status: f"{database}.taken" not in {row["table"] for row in status["quarantined"]})
        deployment.wait_for(lambda _: target.catalog.table(TableName(database, "taken")) is not None)
        change_columns_as_no_default_permits(deployment)
    finally:
        deployment.close()


@pytest.mark.prove
def test_a_target_that_does_not_answer_is_tried_again_and_told(
    deploy: Deploy, tmp_path_factory: pytest.TempPathFactory, servers: Mapping[str, Metastore]
) -> None:
    lost = Metastore.start(MetastoreSettings(version="3.1.3"), tmp_path_factory.mktemp("lost"))
    try:
        deployment = deploy("source-3", {"three": "target-3"}, seed=4)
        text = deployment.config.read_text().replace(servers["target-3"].uri, lost.uri)
        deployment.config.write_text(text)
        lost.kill()
        deployment.write(10)
        deployment.start()
        deployment.wait_for(lambda status: status["last_error"] and "metastore" in status["last_error"].lower())
        assert deployment.process is not None
        assert deployment.process.poll() is None
        lost.restart()
        event_id = str(deployment.source.current())
        waited = deployment.calque("wait", "--target", "three", "--event-id", event_id, "--timeout", "60")
        assert waited.returncode == 0, waited.stderr + deployment.tail()
        deployment.wait_for(lambda status: status["last_error"] is None)
        assert deployment.end(signal.SIGTERM) == 0
    finally:
        deployment.close()
        lost.stop()


def deployment_writer(uri: str) -> object:
    from calque.sandbox.writer import HiveClient

    return HiveClient(uri)


def poison(server: Metastore, name: TableName) -> None:
    """An event whose message nobody can read."""
    server.sql('UPDATE "NOTIFICATION_SEQUENCE" SET "NEXT_EVENT_ID" = "NEXT_EVENT_ID" + 1')
    [(event_id,)] = server.sql('SELECT "NEXT_EVENT_ID" - 1 FROM "NOTIFICATION_SEQUENCE"')
    message = base64.b64encode(b"no json").decode()
    server.sql(
        'INSERT INTO "NOTIFICATION_LOG" ("NL_ID", "EVENT_ID", "EVENT_TIME", "EVENT_TYPE", "CAT_NAME", "DB_NAME",'
        ' "TBL_NAME", "MESSAGE", "MESSAGE_FORMAT") VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)',
        (1_000_000 + event_id, event_id, int(time.time()), "ALTER_TABLE", "hive", *name, message, "json-0.2"),
    )


def status_of(deployment: Deployment) -> dict[str, object]:
    found = deployment.calque("status", "--json")
    assert found.returncode == 0, found.stderr
    [target] = json.loads(found.stdout)["targets"].values()
    return target


@pytest.mark.prove
def test_a_source_with_a_weak_log_is_refused_and_one_that_is_gone_is_waited_for(
    deploy: Deploy, tmp_path: Path, servers: Mapping[str, Metastore]
) -> None:
    weak = Metastore.start(MetastoreSettings(version="3.1.3", listener="plain"), tmp_path / "weak")
    try:
        deployment = deploy("source-3", {"three": "target-3"}, seed=5)
        text = deployment.config.read_text().replace(servers["source-3"].uri, weak.uri)
        deployment.config.write_text(text)
        refused = deployment.calque("run", "--until", "head")
        assert (refused.returncode, refused.stderr.splitlines()[-1].count("transactional")) == (65, 1), refused.stderr
        deployment.config.write_text(text.replace("[targets.", "allow_weak_log = true\n[targets.", 1))
        weak.kill()
        deployment.start()
        deployment.wait_for(lambda status: status["state"] == "starting")
        document = json.loads(deployment.calque("status", "--json").stdout)
        assert (document["source"]["reachable"], document["source"]["head"]) == (False, None)
        assert deployment.process is not None
        assert deployment.process.poll() is None
        weak.restart()
        deployment.wait_for(lambda status: status["state"] == "running")
    finally:
        deployment.close()
        weak.stop()
