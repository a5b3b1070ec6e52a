"""Sets of partitions are marked as complete at a real metastore, and looked and waited for at a real target."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

import calque
from calque.adapters.metastore.client import Client
from calque.airflow.local import Local
from calque.airflow.questions import DoneQuestion, StatusQuestion, WaitQuestion, head_of
from calque.airflow.server import Server
from calque.app import APP
from calque.control.processes import processes
from calque.demo.source import Source
from calque.errors import Refused, Unavailable
from calque.model.hive import Column
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.plugins.marks.adapters.partition_events import HivePartitionEvents
from calque.plugins.marks.core import Done, NotDone
from calque.sandbox import Metastore
from support.judges.documents import read_document
from support.services.deployments import NUMBERS, Deployment

ID = (Column("id", "bigint"),)
KEYS = (Column("ds", "date"), Column("hour", "int"))


class Marked(Deployment):
    """One target, which leaves tables out whose names begin with tmp. Metastores are told of marks."""

    def policy(self, name: str, index: int) -> Policy:  # noqa: ARG002 - all targets have the same
        first, _ = self.databases
        return Policy(
            name, "hq", include=(f"{first}.*",), exclude=("*.tmp*",), warehouse=f"file://{self.root}/wh_{name}"
        )

    def text(self, source: Metastore) -> str:
        marks = '[done]\nmetastore = true\nretentions = { "*.short" = "1s" }\n'
        return f'{super().text(source)}\nexclude = ["*.tmp*"]\n{marks}'

    def done(self, *arguments: str, code: int = 0) -> Any:
        """The document of `calque done …`; for an exit code that is none of success the error's text."""
        ended = self.calque("done", *arguments, "--json")
        assert ended.returncode == code, f"{arguments}: {ended.stdout}{ended.stderr}{self.tail()}"
        return json.loads(ended.stdout) if code == 0 else ended.stderr

    def state(self, *arguments: str) -> str:
        """Why a set is not done."""
        ended = self.calque("done", "check", *arguments, "--json")
        assert ended.returncode == 75, f"{arguments}: {ended.stdout}{ended.stderr}{self.tail()}"
        return str(json.loads(ended.stdout)["state"])

    def http(self, **given: str) -> tuple[int, Any]:
        """What `/done` and `/wait` of the running process answer: the status, and the document."""
        path = "/done" if "table" in given else "/wait"
        try:
            with urlopen(f"{self.address()}{path}?{urlencode(given)}", timeout=60) as answer:
                return answer.status, json.load(answer)
        except HTTPError as refused:
            with refused:
                return refused.code, json.load(refused)

    def address(self) -> str:
        """The address of the running process's pages."""
        [process] = processes(APP.wiring(APP.load(self.config)).control)
        return process.serves


@pytest.fixture
def deployment(servers: Mapping[str, Metastore], tmp_path: Path) -> Iterator[Marked]:
    made = Marked(tmp_path, next(NUMBERS), servers["source"], {"dr": servers["target"]}, 1)
    yield made
    made.close()


def test_a_set_is_marked_asked_and_waited_for_from_every_door(deployment: Marked, tmp_path: Path) -> None:
    source = Source(deployment.source.client, tmp_path / "data")
    database, _ = deployment.databases
    orders, archive, left_out = (TableName(database, name) for name in ("orders", "archive", "tmp_orders"))
    source.create_database(database)
    for name in (orders, left_out):
        source.create_table(name, ID, KEYS)
        source.add_partitions(name, [["2024-01-01", "1"], ["2024-01-01", "2"]])
    day, hour = (str(orders), "ds=2024-1-1"), (str(orders), "hour=01", "ds=2024-01-01")

    told = HivePartitionEvents(deployment.source.client.client)
    told_at_target = HivePartitionEvents(Client(deployment.targets[0].uri))

    # Before anything runs.
    assert deployment.state(*day) == "unmarked"
    marked = deployment.done("mark", *hour)
    assert (marked["partition"], marked["event_id"]) == ("ds=2024-01-01/hour=1", deployment.source.current())
    assert told.is_done(orders, {"ds": "2024-01-01", "hour": "1"})
    assert deployment.done("check", *hour)["done"]
    assert deployment.state(*day) == "unmarked"
    assert deployment.state(*hour, "--target", "dr") == "starting"
    assert "has no partition key dt. Known: ds, hour." in deployment.done("mark", str(orders), "dt=1", code=65)
    assert '"x" is no value of hour' in deployment.done("mark", str(orders), "hour=x", code=65)
    nearest = deployment.done("mark", f"{database}.order", "ds=2024-01-01", code=65)
    assert f"The nearest is {orders}." in nearest
    assert '"x" is no key with a value' in deployment.done("mark", str(orders), "x", code=64)
    assert 'no target "drr". The nearest is dr.' in deployment.done("check", *day, "--target", "drr", code=65)

    # Waiting for a mark that comes only later, at a target that starts only later.
    deployment.done("mark", str(left_out), "ds=2024-01-01")
    waited: list[Any] = []
    config = str(deployment.config)

    def wait() -> None:
        waited.append(calque.done.wait(config, str(orders), ds="2024-01-01", target="dr", timeout=120))

    waiting = threading.Thread(target=wait)
    waiting.start()
    deployment.start()
    deployment.settle()
    assert deployment.done("wait", *hour, "--target", "dr", "--timeout", "60s")["shows"] == deployment.source.current()
    assert not waited
    at_dr = {"table": str(orders), "ds": "2024-01-01", "target": "dr"}
    assert [deployment.http(**at_dr, **more)[0] for more in ({"hour": "1"}, {"hour": "2"}, {})] == [200, 404, 404]
    status, refused = deployment.http(table=str(orders), dt="2024-01-01")
    assert (status, "no partition key dt" in refused["error"]) == (400, True)
    newest = deployment.source.current()
    reached = {"target": "dr", "event_id": newest, "position": newest}
    assert deployment.http(target="dr", event_id=str(newest)) == (200, reached)
    assert deployment.http(target="dr", event_id=str(newest + 1), timeout="0.1")[0] == 504
    with calque.connect(config) as connection, connection.cursor() as cursor:
        cursor.execute(f"MARK SET DONE {orders} PARTITION (ds = ?)", ("2024-01-01",))
        [(event_id,)] = cursor.fetchall()
    waiting.join(120)
    assert [(done.mark.event_id, done.table, done.definitions_only) for done in waited] == [(event_id, orders, False)]
    assert "does not take" in deployment.done("check", str(left_out), "ds=2024-01-01", "--target", "dr", code=65)
    assert isinstance(calque.done.check(config, str(left_out), ds="2024-01-01"), Done)
    everything = deployment.done("list")
    assert [row["table"] for row in everything] == [str(orders), str(left_out), str(orders)]
    at_target = deployment.done("list", str(orders), "--target", "dr")
    assert [row["partition"] for row in at_target] == ["ds=2024-01-01/hour=1", "ds=2024-01-01"]
    listed = deployment.calque("sql", f"USE {database}; SHOW SETS DONE orders AT dr", "--json")
    [_, shown] = read_document("sql", listed.stdout)
    assert shown["columns"] == ["table", "partition", "event_id", "marked_at", "expires_at"]
    assert [dict(zip(shown["columns"], row, strict=True)) for row in shown["rows"]] == at_target

    deadline = time.monotonic() + 60
    while not told_at_target.is_done(orders, {"ds": "2024-01-01", "hour": "1"}):
        assert time.monotonic() < deadline, deployment.tail()
        time.sleep(0.1)
    for metastore in (told, told_at_target):
        assert not metastore.is_done(orders, {"ds": "2024-01-01", "hour": "2"})

    # Tasks of Airflow get the same answers from the process and from the state folder.
    deployment.settle()
    newest = deployment.source.current()
    known = DoneQuestion(str(orders), {"ds": "2024-01-01", "hour": "1"}, "dr")
    unknown, foreign = replace(known, partition={"ds": "2024-01-02"}), replace(known, target="drr")
    for place in (Server(deployment.address()), Local(config)):
        asked = (known, unknown, WaitQuestion("dr", newest), WaitQuestion("dr", newest + 1), foreign)
        assert [place.ask(one).state.value for one in asked] == ["yes", "not_yet", "yes", "not_yet", "refused"]
        assert head_of(place.ask(StatusQuestion()).document, "dr") == newest
    compared = Local(config).verify("dr", [str(orders)], "size")
    assert (compared["differences"], compared["compared"]["partitions"]) == ([], 2)
    assert json.loads(json.dumps(compared)) == compared

    # Writers mark on success alone.
    with pytest.raises(ValueError, match="no"), calque.done.after(config, str(orders), ds="2024-01-02"):
        raise ValueError("no")
    assert isinstance(calque.done.check(config, str(orders), ds="2024-01-02"), NotDone)
    with calque.done.after(config, str(orders), ds="2024-01-02"):
        source.add_partitions(orders, [["2024-01-02", "1"]])
        last = deployment.source.current()
    done = calque.done.check(config, str(orders), ds="2024-01-02", hour=1)
    assert isinstance(done, Done)
    assert done.mark.event_id >= last
    with pytest.raises(Refused, match="no partition key dt"), calque.done.after(config, str(orders), dt="x"):
        raise AssertionError("the block runs though its mark can't be made")

    # What an operator holds back.
    assert deployment.calque("pause", "--target", "dr", "--tables", str(orders)).returncode == 0
    deployment.wait_for(lambda status: [row for row in status["set_aside"] if row["table"] == str(orders)])
    source.add_partitions(orders, [["2024-01-03", "1"]])
    deployment.done("mark", str(orders), "ds=2024-01-03")
    assert deployment.state(str(orders), "ds=2024-01-03", "--target", "dr") == "paused"
    assert deployment.done("check", *day, "--target", "dr")["done"]
    with pytest.raises(Unavailable, match=r"is not done at dr after 0\.5 s.+paused"):
        calque.done.wait(config, str(orders), ds="2024-01-03", target="dr", timeout=0.5)
    assert deployment.calque("resume", "--target", "dr", "--tables", str(orders)).returncode == 0
    deployment.done("wait", str(orders), "ds=2024-01-03", "--target", "dr", "--timeout", "60s")

    # Renamed, expired, dropped and made anew.
    source.rename_table(orders, archive)
    deployment.done("wait", str(archive), "ds=2024-01-01", "--target", "dr", "--timeout", "60s")
    assert {row["table"] for row in deployment.done("list")} == {str(archive), str(left_out)}
    short = TableName(database, "short")
    source.create_table(short, ID, KEYS)
    deployment.done("mark", str(short), "ds=2024-01-01")
    with pytest.raises(Unavailable):
        calque.done.wait(config, str(short), ds="2024-01-09", timeout=1.1)
    assert deployment.state(str(short), "ds=2024-01-01") == "unmarked"
    source.drop_table(archive)
    assert deployment.state(str(archive), "ds=2024-01-01") == "ended"
    source.create_table(archive, ID, KEYS)
    deployment.settle()
    for place in ((), ("--target", "dr")):
        assert deployment.state(str(archive), "ds=2024-01-01", *place) == "ended"
        asked = dict(zip(("target",), place[1:], strict=False))
        assert deployment.http(table=str(archive), ds="2024-01-01", **asked)[0] == 409
    deployment.done("mark", str(archive), "ds=2024-01-01")
    deployment.done("wait", str(archive), "ds=2024-01-01", "--target", "dr", "--timeout", "60s")
    assert deployment.end(signal.SIGTERM) == 0
    assert deployment.calque("sweep").returncode == 0
    assert deployment.done("check", str(archive), "ds=2024-01-01", "--target", "dr")["done"]


WRITER = """
import sys
from pathlib import Path

import calque
from calque.adapters.spark.session import session
from calque.sandbox import spark_jars
from pyspark.sql.functions import col, expr

uri, config, table, root = sys.argv[1:]
spark = session("writer", spark_jars(), Path(root), {
    "spark.sql.catalogImplementation": "hive", "spark.hadoop.hive.metastore.uris": uri,
    "spark.sql.warehouse.dir": f"file:{root}/warehouse", "spark.driver.memory": "1g",
})
spark.sql(f"CREATE TABLE {table} (id BIGINT) PARTITIONED BY (ds STRING, hour INT) STORED AS PARQUET")
rows = spark.range(12).select("id", expr("'d1'").alias("ds"), (col("id") % 3).cast("int").alias("hour"))
calque.done.write(rows, config, table, mark={"ds": "d1"})
broken = rows.select("id", expr("'d2'").alias("ds"), "hour").where(expr("assert_true(id < 11) IS NULL"))
try:
    calque.done.write(broken, config, table, mark={"ds": "d2"})
except Exception as error:
    print(type(error).__name__, file=sys.stderr)
else:
    raise AssertionError("the broken write succeeded")
fewer = rows.where("hour = 1").limit(2)
calque.done.write(fewer, config, table, mark={"ds": "d1", "hour": 1}, mode="overwrite")
assert spark.table(table).where("ds = 'd1'").count() == 10, spark.table(table).collect()
spark.stop()
"""


def test_a_data_frame_s_partitions_are_marked_when_they_are_written_and_not_where_a_task_fails(
    deployment: Marked, servers: Mapping[str, Metastore], tmp_path: Path
) -> None:
    source = Source(deployment.source.client, tmp_path / "data")
    database, _ = deployment.databases
    source.create_database(database)
    table, config = f"{database}.events", str(deployment.config)
    written = subprocess.run(
        [sys.executable, "-c", WRITER, servers["source"].uri, config, table, str(tmp_path / "spark")],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert written.returncode == 0, written.stderr[-4000:]
    assert [row["partition"] for row in deployment.done("list")] == ["ds=d1", "ds=d1/hour=1"]
    assert deployment.state(table, "ds=d2") == "unmarked"
