"""Clusters over real metastores: who has which table, and where a statement would run.

`C1` has the originals of t11 and t12, `C2` of t21 and replicas of t11, `C3` of t31.
"""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import calque
from calque.demo.source import Source
from calque.errors import Refused, Unavailable
from calque.model.hive import Column, Partition, Storage, location_of
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from calque.statements.dbapi import Cursor
from support.judges.documents import read_document
from support.runs.seeds import history_seeds, seed
from support.services.connect import ConnectServer
from support.services.deployments import NUMBERS, Deployment
from support.services.servers import Shared
from support.worlds.small_warehouses import FIRST_KEPT, REPLICAS, Warehouse, drawn

pytestmark = pytest.mark.timeout(900)
"""Three metastores, a run and two engines start for the first test that needs them."""
ID = (Column("id", "bigint"),)
DS = (Column("ds", "string"),)
DAYS = [[f"2024-01-0{day}"] for day in (1, 2, 3)]


class Clustered(Deployment):
    """A source, which is C1, and a target, which is C2: it takes t11, some days of part, and named as another."""

    def policy(self, name: str, index: int) -> Policy:  # noqa: ARG002
        first, _ = self.databases
        rename = {f"{first}.named": f"{first}_c2.otherwise"}
        return Policy(name, "hq", include=(f"{first}.*",), rename=rename, warehouse=f"file://{self.root}/wh_{name}")

    def text(self, source: Metastore) -> str:
        first, _ = self.databases
        lines = [f'exclude = ["{first}.t12"]', f'partitions = {{ "{first}.part" = "ds >= \'2024-01-02\'" }}']
        text = super().text(source).replace(f"{first}.named =", f'"{first}.named" =')
        return "\n".join([text, *lines])


class World:
    """The deployment, and the clusters over it."""

    def __init__(self, deployment: Clustered, folder: Path, uris: dict[str, str]) -> None:
        self.deployment, self.folder, self.uris = deployment, folder, uris
        self.database = deployment.databases[0]
        self.config = self.write()

    def write(self, name: str = "clusters.toml", keys: str = "", **addresses: str) -> Path:
        """`addresses` are other metastores of clusters, or engines."""
        file = self.folder / name
        engines = {name: uri for name, uri in addresses.items() if uri.startswith("sc:")}
        uris = {**self.uris, **{name: uri for name, uri in addresses.items() if name not in engines}}
        sections = [
            f'[clusters.{name}]\nmetastore = "{uri}"\nengine = "{engines.get(name, "")}"' for name, uri in uris.items()
        ]
        deployments = f'deployments = ["{self.deployment.config}"]'
        file.write_text("\n".join(["[clusters]", 'default = "C1"', deployments, keys, *sections]))
        return file

    def sql(self, text: str, config: Path | None = None, code: int = 0) -> Any:
        """The rows of the last statement as documents; for a code that is none of success the error's text."""
        ended = self.ended("sql", text, "--json", config=config, code=code)
        if code:
            return ended.stderr
        last = read_document("sql", ended.stdout)[-1]
        return [dict(zip(last["columns"], row, strict=True)) for row in last["rows"]]

    def run(self, *arguments: str, config: Path | None = None, code: int = 0) -> str:
        return self.ended(*arguments, config=config, code=code).stdout

    def ended(self, *arguments: str, config: Path | None, code: int) -> subprocess.CompletedProcess[str]:
        before, self.deployment.config = self.deployment.config, config or self.config
        try:
            ended = self.deployment.calque(*arguments)
        finally:
            self.deployment.config = before
        assert ended.returncode == code, f"{arguments}: {ended.stdout}{ended.stderr}"
        return ended

    def explained(self, statement: str, before: str = "", config: Path | None = None) -> str | None:
        """The cluster that the statement would run on."""
        rows = self.sql(f"{before} USE {self.database}; EXPLAIN CLUSTER {statement}", config)
        return next((row["cluster"] for row in rows if row["chosen"]), None)


@pytest.fixture(scope="module")
def world(shared: Shared, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    servers = shared("source-3", "target-3", "target-4")
    folder = tmp_path_factory.mktemp("clusters")
    deployment = Clustered(folder, next(NUMBERS), servers["source-3"], {"dr": servers["target-3"]}, 1)
    database = deployment.databases[0]
    source = Source(deployment.source.client, folder / "c1")
    source.create_database(database)
    for table in ("t11", "t12", "named"):
        source.create_table(TableName(database, table), ID, rows=3)
    source.create_table(TableName(database, "part"), ID, DS)
    source.add_partitions(TableName(database, "part"), DAYS)
    source.create_view(TableName(database, "seen"), TableName(database, "t11"), ID)
    ended = deployment.calque("run", "--until", "head", timeout=280)
    assert ended.returncode == 0, ended.stderr
    Source(HiveClient(servers["target-3"].uri), folder / "c2").create_table(TableName(database, "t21"), ID, rows=3)
    third = Source(HiveClient(servers["target-4"].uri), folder / "c3")
    third.create_database(database)
    third.create_table(TableName(database, "t31"), ID, rows=3)
    uris = {"C1": servers["source-3"].uri, "C2": servers["target-3"].uri, "C3": servers["target-4"].uri}
    yield World(deployment, folder, uris)
    deployment.close()


def test_show_clusters_says_which_there_are_and_which_answer(world: World) -> None:
    away = world.write("away.toml", C4="thrift://127.0.0.1:9")
    assert world.sql("SHOW CLUSTERS", away) == [
        {
            "cluster": name,
            "metastore": uri,
            "engine": None,
            "default": name == "C1",
            "reachable": name != "C4",
        }
        for name, uri in {**world.uris, "C4": "thrift://127.0.0.1:9"}.items()
    ]


def test_show_clusters_for_a_table_says_what_of_it_is_where(world: World) -> None:
    [primary, secondary] = world.sql(f"SHOW CLUSTERS FOR {world.database}.part")
    assert (primary["cluster"], primary["role"], primary["partitions_present"], primary["partitions"]) == (
        "C1",
        "primary",
        3,
        3,
    )
    assert (secondary["cluster"], secondary["role"]) == ("C2", "secondary")
    assert (secondary["partitions_present"], secondary["partitions"], secondary["lag_seconds"]) == (2, 3, 0.0)
    assert secondary["event_id"] <= primary["event_id"]
    assert secondary["location"].startswith(f"file:{world.folder}/wh_dr/")
    [primary, secondary] = world.sql(f"USE {world.database}; SHOW CLUSTERS FOR T11")
    assert (primary["partitions"], secondary["partitions_present"]) == (None, None)
    rows = list(csv.DictReader(io.StringIO(world.run("sql", f"SHOW CLUSTERS FOR {world.database}.t21", "--csv"))))
    assert [(row["cluster"], row["role"]) for row in rows] == [("C2", "primary")]
    nearest = world.sql(f"SHOW CLUSTERS FOR {world.database}.t111", code=65)
    assert f"There is no table {world.database}.t111. The nearest is {world.database}.t11." in nearest


@pytest.mark.parametrize(
    ("statement", "cluster"),
    [
        ("SELECT * FROM t11", "C1"),
        ("SELECT * FROM t11 JOIN t12 ON t11.id = t12.id", "C1"),
        ("SELECT * FROM t21", "C2"),
        ("SELECT * FROM t11 JOIN t21 ON t11.id = t21.id", "C2"),
        ("SELECT * FROM seen JOIN t21 ON seen.id = t21.id", "C2"),
        ("SELECT * FROM t12 JOIN t21 ON t12.id = t21.id", None),
        ("SELECT * FROM t11 JOIN t31 ON t11.id = t31.id", None),
        ("INSERT INTO t13 SELECT * FROM t11", "C1"),
        ("INSERT INTO t21 SELECT * FROM t11", "C2"),
        ("INSERT INTO t11 SELECT * FROM t21", None),
        ("FROM t11 INSERT INTO t12 SELECT id INSERT INTO t21 SELECT id", None),
        ("SELECT * FROM t21 JOIN part ON t21.id = part.id", None),
        ("SELECT * FROM t21 JOIN part ON t21.id = part.id WHERE part.ds > '2024-01-01'", "C2"),
        ("SELECT named.id FROM named JOIN t21 ON named.id = t21.id", "C2"),
        ("SELECT * FROM t21 JOIN named TABLESAMPLE (1 ROWS)", None),
        ("SELECT 1", "C1"),
        ("SELECT * FROM nowhere", "C1"),
        ("SHUFFLE TABLE t21", None),
    ],
)
def test_a_statement_is_explained_as_the_document_says(world: World, statement: str, cluster: str | None) -> None:
    if "nowhere" in statement:
        assert world.explained(statement) is None
    else:
        assert world.explained(statement) == cluster


def test_the_reasons_are_told(world: World) -> None:
    database = world.database
    [first, second] = world.sql(f"USE {database}; EXPLAIN CLUSTER SELECT * FROM t12, t21")
    assert (first["cluster"], first["chosen"], first["reason"]) == ("C1", False, f"{database}.t21 is not there")
    assert (second["cluster"], second["chosen"], second["reason"]) == ("C2", False, f"{database}.t12 is not there")
    [row] = world.sql(f"USE {database}; EXPLAIN CLUSTER SELECT * FROM part WHERE ds > '2024-01-01' -- all")
    assert row["reason"] == f"it is the primary of the input {database}.part"
    [_, row] = world.sql(f"USE {database}; EXPLAIN CLUSTER SELECT * FROM part p, t21 WHERE p.ds > '2024-01-01'")
    assert row["reason"].endswith(
        f"the 1 partitions of {database}.part that are not there can't be read: its conditions on ds leave them out"
    )
    [row] = world.sql("EXPLAIN CLUSTER SHUFFLE TABLE t21")
    assert (row["cluster"], row["chosen"]) == (None, False)
    assert "The parser does not know statements of this kind" in row["reason"]
    [row] = world.sql("USE CLUSTER C2; EXPLAIN CLUSTER SHUFFLE TABLE t21")
    assert (row["cluster"], row["chosen"]) == ("C2", True)


def test_use_cluster_takes_that_one_or_none_until_it_is_taken_back(world: World) -> None:
    assert world.explained("SELECT * FROM t11", "USE CLUSTER C2;") == "C2"
    assert world.explained("SELECT * FROM t12", "USE CLUSTER C2;") is None
    assert world.explained("INSERT INTO t11 SELECT 1", "USE CLUSTER C2;") is None
    assert world.explained("SELECT * FROM t11", "USE CLUSTER C2; USE CLUSTER;") == "C1"
    assert 'There is no cluster "c2". The nearest is C2.' in world.sql("USE CLUSTER c2", code=65)
    assert world.explained("SELECT * FROM t21", config=world.write("default.toml", "use_default = true")) is None
    disabled = world.write("disabled.toml", "enabled = false")
    assert world.explained("SELECT * FROM t21 JOIN t31", config=disabled) == "C1"
    assert "Clusters are disabled." in world.sql("USE CLUSTER C2", disabled, code=65)


def test_programs_ask_likewise(world: World) -> None:
    with calque.clusters.open(world.config) as clusters:
        placements = clusters.locate(f"{world.database}.t11")
        assert [(one.cluster, one.role, one.absent) for one in placements] == [
            ("C1", "primary", ""),
            ("C2", "secondary", ""),
        ]
        resolution = clusters.resolve("SELECT * FROM t11 JOIN t31", database=world.database)
        assert resolution.cluster is None
        assert f"C1: {world.database}.t31 is not there" in resolution.refusal
        here, there = (clusters.table(f"{world.database}.t11", cluster=name) for name in ("C1", "C2"))
        assert here.storage is not None
        assert there.storage is not None
        assert here.storage.columns == there.storage.columns
        assert here.storage.location != there.storage.location
        assert clusters.table(f"{world.database}.t11") == here
        with pytest.raises(Refused, match=r"t12 is not at C2\. .* It is at C1\."):
            clusters.table(f"{world.database}.t12", cluster="C2")
        with pytest.raises(Refused, match=r'There is no cluster "C9"'):
            clusters.table(f"{world.database}.t12", cluster="C9")
    with calque.clusters.open(world.write("away.toml", C4="thrift://127.0.0.1:9")) as clusters:
        assert [one.cluster for one in clusters.locate(f"{world.database}.t21")] == ["C2"]
        with pytest.raises(Unavailable):
            clusters.locate(f"{world.database}.nowhere")


def test_check_finds_addresses_that_lead_elsewhere(world: World) -> None:
    found = read_document("check", world.run("check", "--json"))
    assert found["ok"]
    assert {one["where"] for one in found["findings"] if one["severity"] != "info"} == set()
    swapped = world.write("swapped.toml", C2=world.uris["C3"], C3="thrift://127.0.0.1:9")
    found = read_document("check", world.run("check", "--json", config=swapped, code=75))
    [wrong] = [one for one in found["findings"] if one["where"] == "cluster C2" and one["severity"] == "error"]
    assert wrong["what"] == "The metastore of C2 is no deployment's source or target"
    assert "the target dr of calque.toml" in wrong["todo"]
    alias = world.write("alias.toml", C4=world.uris["C1"].replace("127.0.0.1", "127.1"))
    found = read_document("check", world.run("check", "--json", config=alias, code=65))
    assert "C4 and C1 have one metastore" in {one["what"] for one in found["findings"]}
    world.write("alias.toml", C1=world.uris["C1"].replace("127.0.0.1", "127.1"))
    assert world.explained("SELECT * FROM t11 JOIN t21", config=alias) == "C2"


# Statements that run


@pytest.fixture(scope="module")
def running(world: World, engines: Mapping[str, ConnectServer]) -> Path:
    """The configuration with the engines of C1 and C2; C3 has none."""
    return world.write("engines.toml", C1=engines["source"].url, C2=engines["target"].url)


def test_a_statement_runs_on_the_cluster_that_is_chosen_and_its_rows_come_back(world: World, running: Path) -> None:
    database = world.database
    with calque.connect(running) as connection, connection.cursor() as cursor:

        def rows(statement: str) -> list[tuple[object, ...]]:
            return cursor.execute(statement).fetchall()

        cursor.execute(f"USE {database}")
        here = rows("SELECT id, input_file_name() FROM t11 ORDER BY id")
        cursor.execute("USE CLUSTER C2")
        there = rows("SELECT id, input_file_name() FROM t11 ORDER BY id")
        assert len(here) == 3
        assert [row[0] for row in here] == [row[0] for row in there]
        assert [f"{world.folder}/wh_dr/" in str(row[1]) for row in (*here, *there)] == [False] * 3 + [True] * 3
        cursor.execute("USE CLUSTER")

        # The replica has another name there.
        assert rows("SELECT count(named.id) FROM named CROSS JOIN t21") == [(9,)]
        # t21 is at C2 alone, and so is written there.
        assert rows("SELECT count(*) FROM t11 CROSS JOIN t21") == [(9,)]
        assert cursor.execute("INSERT INTO t21 SELECT id FROM t11").description is None
        assert rows("SELECT count(*) FROM t21") == [(6,)]
        cursor.execute("CREATE TABLE made AS SELECT * FROM t11")
        assert rows("SHOW CLUSTERS FOR made")[0][:2] == ("C1", "primary")
        for statement, said in {
            "INSERT INTO t11 SELECT * FROM t21": f"C1: {database}.t21 is not there",
            "FROM t11 INSERT INTO t12 SELECT id INSERT INTO t21 SELECT id": (
                f"different primary clusters: {database}.t12 at C1, {database}.t21 at C2"
            ),
            "SELECT * FROM t31": r"The cluster C3 has no engine\. Write engine below \[clusters\.C3\]",
            "SHOW FUNCTIONS": "The parser does not know statements of this kind. Say USE CLUSTER",
        }.items():
            with pytest.raises(calque.ProgrammingError, match=said):
                cursor.execute(statement)


class Warehouses(Deployment):
    """A source, which is C1, and a target, which is C2, with what small warehouses keep there."""

    drawn: Sequence[Warehouse] = ()

    def policy(self, name: str, index: int) -> Policy:  # noqa: ARG002
        include = (f"{self.databases[0]}.*",)
        return Policy(name, "hq", include=include, warehouse=f"file://{self.root}/wh_{name}")

    def text(self, source: Metastore) -> str:
        database = self.databases[0]
        tables = [table for warehouse in self.drawn for table in warehouse.tables]
        by_replica = {kind: [f"{database}.{one.name}" for one in tables if one.replica == kind] for kind in REPLICAS}
        renamed = ", ".join(f'"{name}" = "{name}_c2"' for name in by_replica["renamed"])
        days = ", ".join(f'"{name}" = "ds >= \'{FIRST_KEPT}\'"' for name in by_replica["days"])
        return "\n".join(
            [
                super().text(source).replace("rename = {  }", f"rename = {{ {renamed} }}"),
                f"exclude = {json.dumps(by_replica['none'])}",
                f"partitions = {{ {days} }}",
            ]
        )

    def make(self, folder: Path) -> None:
        """Draw 20, in proofs 200, and make them at the source."""
        database, chance = self.databases[0], random.Random(seed())
        self.drawn = [drawn(chance, number) for number in range(len(history_seeds(20, most=200)))]
        source = Source(self.source.client, folder, seed())
        source.create_database(database)
        columns = (*ID, Column("x", "string"))
        for warehouse in self.drawn:
            for table in warehouse.tables:
                name = TableName(database, table.name)
                source.create_table(name, columns, DS if table.keyed else (), rows=0 if table.keyed else 4)
                if table.keyed:
                    source.add_partitions(name, DAYS, rows=3)
            for view in warehouse.views:
                source.create_view(TableName(database, view.name), TableName(database, view.base), columns)


@pytest.mark.prove
def test_a_chosen_cluster_gives_the_rows_of_the_primary(
    shared: Shared, engines: Mapping[str, ConnectServer], tmp_path: Path
) -> None:
    servers = shared("source-3", "target-3")
    deployment = Warehouses(tmp_path, next(NUMBERS), servers["source-3"], {"dr": servers["target-3"]}, 1)
    deployment.make(tmp_path / "c1")
    deployment.config.write_text(deployment.text(servers["source-3"]))
    try:
        ended = deployment.calque("run", "--until", "head", timeout=280)
        assert ended.returncode == 0, ended.stderr
    finally:
        deployment.close()
    uris = {"C1": servers["source-3"].uri, "C2": servers["target-3"].uri}
    config = World(deployment, tmp_path, uris).write(C1=engines["source"].url, C2=engines["target"].url)
    queries = [warehouse.query for warehouse in deployment.drawn]

    def rows(cursor: Cursor, query: str) -> list[str]:
        return sorted(map(repr, cursor.execute(query).fetchall()))

    def compared(queries: Sequence[str]) -> list[tuple[list[str] | None, list[str]]]:
        """The rows of each query at the secondary, None where that can't answer, and then at the primary."""
        with ExitStack() as stack:
            primary, secondary = (
                stack.enter_context(stack.enter_context(calque.connect(config)).cursor()) for _ in range(2)
            )
            for cursor, cluster in ((primary, "C1"), (secondary, "C2")):
                cursor.execute(f"USE {deployment.databases[0]}")
                cursor.execute(f"USE CLUSTER {cluster}")
            both = []
            for query in queries:
                try:
                    found = rows(secondary, query)
                except calque.ProgrammingError as error:
                    if "is not there" not in str(error) and "partitions" not in str(error):
                        raise
                    both.append((None, []))
                else:
                    both.append((found, rows(primary, query)))
            return both

    with ThreadPoolExecutor(2) as pool:
        outcomes = [pair for pairs in pool.map(compared, (queries[::2], queries[1::2])) for pair in pairs]
    answered = [(found, expected) for found, expected in outcomes if found is not None]
    assert len(queries) // 4 < len(answered) < len(queries) * 9 // 10
    assert [found for found, _ in answered] == [expected for _, expected in answered]
    assert sum(bool(found) for found, _ in answered) > len(answered) // 2


def test_values_of_an_engine_are_python_s_for_programs_and_json_for_others(world: World, running: Path) -> None:
    with calque.connect(running) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, DATE '2024-01-01' d, CAST(1.5 AS DECIMAL(4, 2)) x, ARRAY(1, 2) a FROM range(100000)")
        assert [column[0] for column in cursor.description or ()] == ["id", "d", "x", "a"]
        assert cursor.rowcount == -1
        assert cursor.fetchone() == (0, date(2024, 1, 1), Decimal("1.50"), [1, 2])
        assert [row[0] for row in cursor.fetchmany(2)] == [1, 2]
        assert len(cursor.fetchall()) == 99997
        cursor.execute("SELECT ? x, '?' y FROM (SELECT 3 z) WHERE z = ? -- ?", ("it's", 3))
        assert cursor.fetchall() == [("it's", "?")]
    values = "SELECT DATE '2024-01-01' d, MAP('k', ARRAY(1.5)) m, NAMED_STRUCT('b', X'0a') s"
    plain = {"d": "2024-01-01", "m": {"k": ["1.5"]}, "s": {"b": "0a"}}
    assert world.sql(values, running) == [plain]
    [row] = csv.DictReader(io.StringIO(world.run("sql", f"USE CLUSTER C2; {values}", "--csv", config=running)))
    assert row == {"d": "2024-01-01", "m": '{"k": ["1.5"]}', "s": '{"b": "0a"}'}


def test_the_errors_of_an_engine_are_told_as_they_are(world: World, running: Path) -> None:
    error = world.sql("SELECT nothing FROM (SELECT 1 x) t", running, code=65)
    assert "refused the statement. [UNRESOLVED_COLUMN.WITH_SUGGESTION]" in error
    assert "JVM" not in error
    away = world.write("away-engine.toml", C1="sc://127.0.0.1:9")
    assert "No engine answers at sc://127.0.0.1:9." in world.sql("SELECT 1", away, code=75)
    with calque.connect(running) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1 DIV (id - id) FROM range(3)")
        with pytest.raises(calque.ProgrammingError, match="DIVIDE_BY_ZERO") as raised:
            cursor.fetchall()
        assert isinstance(raised.value.__cause__, Refused)


@pytest.mark.prove
def test_rows_of_an_engine_that_dies_are_never_taken_for_all_and_the_next_one_is_asked(
    world: World, tmp_path: Path
) -> None:
    many = "SELECT id FROM range(20000000)"
    with ConnectServer(world.uris["C1"], tmp_path / "engine") as engine:
        config = world.write("dying.toml", C1=engine.url)
        command = [sys.executable, "-m", "calque.cli", "sql", many, "--csv", "-c", str(config)]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as printing,
            calque.connect(config) as connection,
            connection.cursor() as cursor,
        ):
            assert printing.stdout is not None
            assert printing.stderr is not None
            assert printing.stdout.readline() == "id\n"
            assert len(cursor.execute(many).fetchmany(10)) == 10
            engine.stop()
            with pytest.raises(calque.OperationalError, match="No engine answers"):
                cursor.fetchall()
            printed, told = printing.communicate(timeout=120)
            assert (printing.returncode, "No engine answers" in told) == (75, True)
            assert printed.count("\n") < 20_000_000
            with pytest.raises(calque.OperationalError, match="No engine answers"):
                cursor.execute("SELECT 1")


def test_what_calque_did_not_write_does_not_count_and_a_second_original_is_told(world: World) -> None:
    database, target = world.database, HiveClient(world.uris["C2"])
    part = TableName(database, "part")
    copied = target.catalog.partitions(part, ["ds=2024-01-02"])["ds=2024-01-02"]
    parameters = {key: value for key, value in (copied.parameters or {}).items() if not key.startswith("calque.")}
    target.add_partitions(part, [replace(copied, values=("2024-01-01",), parameters=parameters)])
    try:
        [_, secondary] = world.sql(f"SHOW CLUSTERS FOR {part}")
        assert secondary["partitions_present"] == 2
    finally:
        target.drop_partitions(part, ["ds=2024-01-01"], delete_data=False)
    third = Source(HiveClient(world.uris["C3"]), world.folder / "c3more")
    third.create_table(TableName(database, "t12"), ID, rows=1)
    rows = world.sql(f"SHOW CLUSTERS FOR {database}.t12")
    assert [(row["cluster"], row["role"]) for row in rows] == [("C1", "primary"), ("C3", "primary")]
    rows = world.sql(f"EXPLAIN CLUSTER SELECT * FROM {database}.t12")
    assert [(row["cluster"], row["chosen"]) for row in rows] == [("C1", False), ("C3", False)]
    assert rows[0]["reason"] == f"{database}.t12 has originals at C1 and C3"
    third.client.drop_table(TableName(database, "t12"))


def test_what_is_replicated_to_a_cluster_changes_by_a_statement_while_run_runs(world: World) -> None:
    deployment, database = world.deployment, world.database
    part = f"{database}.part"

    def present() -> object:
        rows = world.sql(f"SHOW CLUSTERS FOR {part}")
        return rows[1]["partitions_present"] if len(rows) > 1 else None

    def becomes(number: object) -> None:
        deadline = time.monotonic() + 240
        while present() != number:
            assert time.monotonic() < deadline, f"{present()}: {deployment.tail()}"
            time.sleep(0.2)

    # The next run takes what is said while none runs.
    world.sql(f"ALTER TABLE {part} DROP SECONDARY CLUSTER C2 WHERE ds = '2024-01-03'")
    deployment.start()
    try:
        becomes(1)
        world.sql(f"USE {database}; ALTER TABLE part ADD SECONDARY CLUSTER C2 WHERE ds IN ('2024-01-01', '2024-01-03')")
        becomes(3)
        world.sql(f"ALTER TABLE {part} DROP SECONDARY CLUSTER C2")
        becomes(None)
        assert HiveClient(world.uris["C2"]).catalog.table(TableName(database, "part")) is None
        assert deployment.end(signal.SIGTERM) == 0
    finally:
        deployment.close()
    assert len(world.sql(f"SHOW CLUSTERS FOR {part}")) == 1
    world.sql(f"ALTER TABLE {part} ADD SECONDARY CLUSTER C2")
    assert present() == 0
    for statement, said in {
        f"{database}.t12 ADD SECONDARY CLUSTER C2": f"exclude of it leaves the table out: {database}.t12",
        f"{part} ADD SECONDARY CLUSTER C3": "No target of a deployment at C3 follows a source at C1",
        f"{part} ADD SECONDARY CLUSTER C1": "C1 is the primary",
        f"{part} ADD SECONDARY CLUSTER c2": 'There is no cluster "c2". The nearest is C2.',
        f"{part} DROP SECONDARY CLUSTER C2 WHERE hr = 1": "hr is no partition key",
        f"{part} DROP SECONDARY CLUSTER C2 WHERE ds = 1": "'1' is a number, and ds is of type string",
        f"{part} DROP SECONDARY CLUSTER C2 WHERE rand() > 1": "is no predicate that calque knows",
        f"{database}.t11 DROP SECONDARY CLUSTER C2 WHERE ds = '1'": f"{database}.t11 has no partitions",
        f"{database}.t12 DROP SECONDARY CLUSTER C2": "is not replicated to C2",
        f"{database}.nothing ADD SECONDARY CLUSTER C2": f"There is no table {database}.nothing",
    }.items():
        assert said in world.sql(f"ALTER TABLE {statement}", code=65)


@pytest.mark.prove
def test_partitions_that_somebody_copied_by_hand_are_taken_where_they_are_equal(shared: Shared, tmp_path: Path) -> None:
    """As with the document's distcp: one partition as it is at the primary, and one with another file."""
    servers = shared("source-3", "target-3")
    deployment = Clustered(tmp_path, next(NUMBERS), servers["source-3"], {"dr": servers["target-3"]}, 1)
    world = World(deployment, tmp_path, {"C1": servers["source-3"].uri, "C2": servers["target-3"].uri})
    name = TableName(world.database, "part")
    source = Source(deployment.source.client, tmp_path / "c1")
    source.create_database(world.database)
    source.create_table(name, ID, DS)
    source.add_partitions(name, [[f"2024-01-0{day}"] for day in (1, 2, 3, 4)])
    world.sql(f"ALTER TABLE {name} DROP SECONDARY CLUSTER C2")
    world.sql(f"ALTER TABLE {name} ADD SECONDARY CLUSTER C2 WHERE ds >= '2024-01-03'")

    def run() -> None:
        ended = deployment.calque("run", "--until", "head", timeout=280)
        assert ended.returncode == 0, ended.stderr

    try:
        run()
        assert world.sql(f"SHOW CLUSTERS FOR {name}")[1]["partitions_present"] == 2
        there = HiveClient(servers["target-3"].uri)
        table = there.catalog.table(name)
        assert table is not None
        for day in ("2024-01-01", "2024-01-02"):
            copied = Path(str(location_of(table)).removeprefix("file:")) / f"ds={day}"
            shutil.copytree(source.place(name, f"ds={day}"), copied)
            if day == "2024-01-02":
                (copied / "more").write_bytes(b"x")
            storage = replace(table.storage or Storage(), location=f"file:{copied}")
            there.add_partitions(name, [Partition((day,), *name, storage=storage, parameters={})])
        world.sql(f"ALTER TABLE {name} ADD SECONDARY CLUSTER C2")
        run()
        assert world.sql(f"SHOW CLUSTERS FOR {name}")[1]["partitions_present"] == 4
        equal, other = (
            str(location_of(one)) for one in there.catalog.partitions(name, ["ds=2024-01-01", "ds=2024-01-02"]).values()
        )
        assert equal.endswith("/part/ds=2024-01-01")
        assert "/_calque/" in other
        ended = deployment.calque("verify", "--data", "checksum", "--target", "dr")
        assert ended.returncode == 0, ended.stdout
    finally:
        deployment.close()


def test_a_replica_that_lags_more_than_max_lag_counts_as_absent(world: World) -> None:
    """The deployment does not run."""
    source, database = world.deployment.source.client, world.database
    late = TableName(database, "t11")
    table = source.catalog.table(late)
    assert table is not None
    source.alter_table(late, replace(table, parameters={**(table.parameters or {}), "x": "1"}))
    config = world.write("late.toml", 'max_lag = "1ms"')
    deadline = time.monotonic() + 30
    while (lag := world.sql(f"SHOW CLUSTERS FOR {late}")[1]["lag_seconds"]) < 0.1:
        assert time.monotonic() < deadline
    assert lag < 300
    assert world.explained("SELECT * FROM t11 JOIN t21") == "C2"
    assert world.explained("SELECT * FROM t11 JOIN t21", config=config) is None
    rows = world.sql(f"USE {database}; EXPLAIN CLUSTER SELECT * FROM t21 JOIN t11", config)
    assert f"{late} lags" in rows[0]["reason"]
    # Events on other tables make no lag.
    assert world.sql(f"SHOW CLUSTERS FOR {database}.named")[1]["lag_seconds"] == 0.0
