"""One table, one function, one message that calque does not get along with: it is set aside, and `run` goes on.

A real source of 4.2.0 and a target of 3.1.3 that follows it, with objects that used to end a target, hang it, or take
all memory. Beside them are a table, a function and a database that go on.
"""

from __future__ import annotations

import base64
import json
import signal
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from calque.adapters.metastore.catalog import HiveCatalog
from calque.core.records.claims import is_mark
from calque.engine.apply.statistics import ACCURATE
from calque.model.facets import ColumnStatistics, Longs, StatisticsCounts
from calque.model.hive import Column, Database, Function, Resource, SerDe, Storage, Table, location_of
from calque.model.names import TableName
from calque.model.policy import TargetCapabilities
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment
from support.services.servers import Shared
from support.sources.writers import INPUT, OUTPUT, SERDE

ZEROS = 600 << 20
"""Bytes that the message unpacks to."""
MOST_MORE = 400 << 10
"""KiB that the process may hold more than before it."""
ANALYZED = {"x": ColumnStatistics("x", "int", StatisticsCounts(longs=Longs(1, 9, 0, 3)))}
SAID = {"five": '{"COLUMN_STATS": 5}', "null": "null", "deep": "[" * 20_000}
"""What tables say of their statistics, by name."""


class Troubled(Deployment):
    """`d1` has a healthy table; what makes trouble comes while calque runs."""

    def __init__(self, root: Path, source: Metastore, target: Metastore) -> None:
        super().__init__(root, next(NUMBERS), source, {"dr": target}, seed=1)
        self.server = source
        self.database = self.databases[0]
        self.source.create_database(Database(self.database, location=f"file://{root}/data/{self.database}.db"))

    def text(self, source: Metastore) -> str:
        bounds = 'poll = "50ms"\nmax_resource = "1KB"\nmax_schema = "1KB"'
        return super().text(source).replace('poll = "50ms"', bounds) + '\nlease = "10s"'

    def name(self, table: str) -> TableName:
        return TableName(self.database, table)

    def table(self, table: str, parameters: Mapping[str, str] | None = None) -> Table:
        location = self.root / "data" / table
        self.put(table, "f")
        columns = (Column("x", "int"),)
        storage = Storage(columns, f"file:{location}", INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
        made = Table(table, self.database, "me", storage=storage, type="EXTERNAL_TABLE")
        made = replace(made, parameters={"EXTERNAL": "TRUE", **(parameters or {})})
        self.source.create_table(made)
        return made

    def put(self, table: str, name: str) -> None:
        path = self.root / "data" / table / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1\n")

    def insert(self, table: str, name: str) -> None:
        self.put(table, name)
        self.source.insert(self.name(table), [f"file:{self.root}/data/{table}/{name}"])

    def function(self, name: str, uri: str) -> None:
        made = Function(name, self.database, "x.Y", "me", owner_type=1, type=1, resources=(Resource(1, uri),))
        self.source.create_function(made)

    def analyze(self, table: str) -> None:
        HiveCatalog(self.source.client.client, TargetCapabilities()).put_statistics(self.name(table), {"": ANALYZED})

    def waited(self) -> int:
        """The end of waiting for the source's newest event."""
        event_id = str(self.source.current())
        return self.calque("wait", "--target", "dr", "--event-id", event_id, "--timeout", "150s").returncode

    def aside(self) -> dict[str, str]:
        """What is set aside, and why."""
        listed = json.loads(self.calque("quarantine", "list", "--json").stdout)
        return {row.get("table") or row.get("function") or row["database"]: row["reason"] for row in listed}

    def files_at_target(self, table: str) -> set[str]:
        there = self.targets[0].catalog.table(self.name(table))
        location = Path((location_of(there) or "").removeprefix("file:")) if there is not None else self.root / "none"
        files = [path for path in location.iterdir() if path.is_file()] if location.is_dir() else []
        return {path.name for path in files if not is_mark(path.name)}

    def held(self) -> int:
        """KiB that the process has held at most."""
        assert self.process is not None
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@cache
def bomb() -> str:
    packer = zlib.compressobj(9, wbits=31)
    pieces = [packer.compress(bytes(1 << 20)) for _ in range(ZEROS >> 20)]
    return base64.b64encode(b"".join([*pieces, packer.flush()])).decode()


def log_event(server: Metastore, event_type: str, name: TableName, message: str) -> None:
    """As if the server had written it."""
    ((event_id,),) = server.sql('SELECT "NEXT_EVENT_ID" FROM "NOTIFICATION_SEQUENCE"')
    server.sql(
        'INSERT INTO "NOTIFICATION_LOG" ("NL_ID", "EVENT_ID", "EVENT_TIME", "EVENT_TYPE", "CAT_NAME", "DB_NAME",'
        ' "TBL_NAME", "MESSAGE", "MESSAGE_FORMAT")'
        f" VALUES ({event_id + 10**9}, {event_id}, 1700000000, '{event_type}', 'hive', '{name.database}',"
        f" '{name.table}', '{message}', 'gzip(json-2.0)')"
    )
    server.sql(f'UPDATE "NOTIFICATION_SEQUENCE" SET "NEXT_EVENT_ID" = {event_id + 1}')


@pytest.fixture(scope="module")
def world(shared: Shared, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Troubled]:
    """All of the trouble has been made, while calque ran, and something healthy behind each."""
    servers = shared("source-4", "target-3")
    made = Troubled(tmp_path_factory.mktemp("trouble"), servers["source-4"], servers["target-3"])
    made.table("healthy")
    made.table("changed")
    made.start()
    try:
        assert made.waited() == 0, made.tail()
        yield made
    finally:
        made.close()


def goes_on(world: Troubled, name: str) -> None:
    """What comes behind the trouble is at the target."""
    world.insert("healthy", name)
    world.function(f"f_{name}", "ivy://a:b:1")
    assert world.waited() in (0, 75), world.tail()
    assert name in world.files_at_target("healthy"), world.tail()
    assert world.targets[0].catalog.function(world.name(f"f_{name}")) is not None
    assert world.process is not None
    assert world.process.poll() is None


@pytest.mark.prove
def test_statistics_that_say_anything_end_no_target(world: Troubled) -> None:
    for name, said in SAID.items():
        world.table(name)
        world.analyze(name)
        table = world.source.the_table(world.name(name)).table
        parameters = {**table.parameters, ACCURATE: said, "DO_NOT_UPDATE_STATS": "true", "k": "1"}
        world.source.alter_table(world.name(name), replace(table, parameters=parameters))
    goes_on(world, "behind_statistics")
    aside = {name.partition(".")[2]: reason for name, reason in world.aside().items()}
    assert aside.keys() <= {"null", "deep"}, aside
    assert all("did not complete" in reason for reason in aside.values()), aside
    assert all(world.files_at_target(name) == {"f"} for name in SAID.keys() - aside.keys())


def test_a_resource_that_never_ends_is_its_functions_trouble(world: Troubled) -> None:
    (world.root / "large.jar").write_bytes(bytes(1001))
    world.function("endless", "file:///dev/zero")
    world.function("large", f"file://{world.root}/large.jar")
    world.table("schemed", {"avro.schema.url": "file:///dev/zero"})
    world.table("wide", {"avro.schema.url": f"file://{world.root}/large.jar"})
    goes_on(world, "behind_resources")
    reasons = world.aside()
    told = {name.partition(".")[2]: reason for name, reason in reasons.items()}
    assert told.keys() - {*SAID} == {"endless", "large", "schemed", "wide"}
    assert all("regular file" in told[name] or "host's own" in told[name] for name in ("endless", "schemed"))
    assert ("max_resource" in told["large"], "max_schema" in told["wide"]) == (True, True)


def test_a_message_that_unpacks_to_all_memory_has_its_table_read(world: Troubled) -> None:
    before = world.held()
    world.put("changed", "g")
    log_event(world.server, "INSERT", world.name("changed"), bomb())
    goes_on(world, "behind_the_message")
    assert world.held() - before < MOST_MORE
    assert world.files_at_target("changed") == {"f", "g"}
    log_event(world.server, "ALTER_TABLE", world.name("changed"), bomb())
    goes_on(world, "behind_the_other")
    assert "max_message" in world.aside()[str(world.name("changed"))]


@pytest.mark.prove
def test_all_that_is_set_aside_is_told_by_verify_and_outlives_a_death(world: Troubled) -> None:
    before = world.aside()
    verified = world.calque("verify", "--json")
    assert (verified.returncode, json.loads(verified.stdout)["differences"]) == (75, []), verified.stdout
    assert world.end(signal.SIGKILL) == -signal.SIGKILL
    world.start()
    goes_on(world, "behind_the_death")
    assert world.aside().keys() == before.keys()
