"""REPL LOAD into real metastores: dumps that Hive itself wrote, through `calque sql`."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from copy import copy
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.reader import HiveReader
from calque.app import APP
from calque.cli import main
from calque.control.process_locks import Roles
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, is_view, location_of
from calque.model.names import TableName
from calque.model.state_places import TargetPlaces
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.runs.proofs import one_a_day
from support.runs.seeds import seed
from support.services.servers import Shared
from support.sources.dumped import KnownSource, TableState
from support.sources.loads import unpack_recorded
from support.sources.recorded_dumps import BOOTSTRAP, INCREMENT
from support.sources.writers import INPUT, OUTPUT, SERDE
from support.storages import any_storage

NUMBERS = itertools.count(1)
TEXT = Storage((Column("x", "int"),), None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
CONFIGURATION = """
[source]
name = "hq"
metastore = "thrift://127.0.0.1:1"
[state]
path = "{root}/state"
checkpoints = "{root}/checkpoints"
[targets.dr]
metastore = "{target}"
warehouse = "file:{root}/warehouse"
lease = "5s"
[repl]
root = "{dumps}"
"""


@dataclass
class Loading:
    """A target, and the recorded dumps in a folder of their own; nobody is at the source."""

    root: Path
    metastore: Metastore
    number: int

    def __post_init__(self) -> None:
        self.dumps = unpack_recorded(self.root / "fs")
        self.config = self.root / "calque.toml"
        self.config.write_text(
            CONFIGURATION.format(root=self.root, target=self.metastore.uri, dumps=self.dumps), "utf-8"
        )
        self.database = f"loaded_{self.number}"
        self.reader = HiveReader(Client(self.metastore.uri))

    def sql(self, text: str) -> subprocess.CompletedProcess[str]:
        """The statement's end, in this process."""
        command, said, told = ["sql", "-c", str(self.config), "--json", text], StringIO(), StringIO()
        with redirect_stdout(said), redirect_stderr(told):
            code = main(command)
        return subprocess.CompletedProcess(command, code, said.getvalue(), told.getvalue())

    def killed_at(self, failpoint: str, text: str) -> int:
        """The end of a process that dies there."""
        command = [sys.executable, "-m", "calque.cli", "sql", "-c", str(self.config), text]
        environment = {**os.environ, "CALQUE_FAILPOINT": failpoint}
        return subprocess.run(command, capture_output=True, timeout=280, env=environment, check=False).returncode

    def rows(self, text: str) -> Any:
        done = self.sql(text)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)[-1]["rows"]

    def load(self, dump: str) -> None:
        assert self.rows(f"REPL LOAD {self.database} FROM '{self.dumps}/{dump}'") == []

    def status(self) -> Any:
        return self.rows(f"REPL STATUS {self.database}")

    def under(self, suffix: str) -> Loading:
        """The same target, dumps and state folder, with another name at the target."""
        other = copy(self)
        other.database = f"{self.database}_{suffix}"
        return other

    def tables(self) -> Mapping[str, object]:
        """What is shown, but for the view, of which the text has the name of the database."""
        return {name: shown for name, shown in self.shown().items() if name != "v_plain"}

    def shown(self) -> Mapping[str, object]:
        """Of each table its columns (of a view its text) and the names of its files, by partition."""
        shown: dict[str, object] = {}
        for name in self.reader.tables(self.database):
            table = self.reader.table(TableName(self.database, name))
            assert table is not None
            assert table.storage is not None
            columns = tuple(column.name for column in table.storage.columns or ())
            if is_view(table):
                shown[name] = table.view_expanded_text
            elif table.partition_keys:
                names = self.reader.partition_names(TableName(self.database, name))
                partitions = self.reader.partitions(TableName(self.database, name), names)
                shown[name] = columns, {key: self.files(location_of(part)) for key, part in partitions.items()}
            else:
                shown[name] = columns, self.files(location_of(table))
        return shown

    def files(self, location: str | None) -> list[str]:
        assert location is not None
        return [file.path for file in any_storage().list([location])[location].files]


@pytest.fixture(params=one_a_day(["target-3", "target-4"], seed()))
def loading(request: pytest.FixtureRequest, shared: Shared, tmp_path: Path) -> Loading:
    return Loading(tmp_path, shared(request.param)[request.param], next(NUMBERS))


AT_22 = {
    "chi_ld": (("id", "pid"), []),
    "par_ent": (("id", "code"), []),
    "part": (
        ("id", "v"),
        {
            "ds=2024-01-01/hr=0": ["d2.txt"],
            "ds=2024-01-01/hr=1": ["d3.txt"],
            "ds=2024-01-02/hr=0": ["d4.txt"],
            "ds=a b%2Fc%3Dd%23e%25/hr=7": ["d5.txt"],
        },
    ),
    "plain": (("id", "name"), ["d1.txt"]),
    "pq": (("id", "s", "m"), {"d=2024-02-01": []}),
    "todrop": (("a",), []),
    "torename": (("a",), {"p=x": ["d6.txt"]}),
}
AT_90 = {
    "chi_ld": (("id", "pid"), []),
    "n1": (("a", "b"), {"p=1": ["d9.txt"], "p=2": [], "p=3": ["d8.txt"]}),
    "par_ent": (("id", "code"), []),
    "part": (
        ("id", "v"),
        {"ds=2024-01-01/hr=1": [], "ds=2024-01-09/hr=9": ["d2.txt"], "ds=a b%2Fc%3Dd%23e%25/hr=7": ["d5.txt"]},
    ),
    "plain": (("id", "name", "extra"), []),
    "pq": (("id", "s", "m"), {"d=2024-02-01": []}),
    "renamed": (("a",), {"p=x": ["d12.txt", "d6.txt"]}),
    "torename": (("z",), []),
}


def test_what_hive_dumped_is_loaded_and_loading_it_again_changes_nothing(loading: Loading) -> None:
    assert loading.status() == []
    view = f"FROM `{loading.database}`.`plain`"
    loading.load(BOOTSTRAP)
    assert loading.status() == [[22]]
    shown = dict(loading.shown())
    assert view in str(shown.pop("v_plain"))
    assert shown == AT_22
    loading.load(INCREMENT)
    assert loading.status() == [[90]]
    shown = dict(loading.shown())
    assert shown.pop("v_plain") == f"SELECT `plain`.`id` {view}"
    assert shown == AT_90
    epochs = APP.wiring(APP.load(loading.config)).target("dr").ledger_of_load(loading.database, "hq").epochs()
    assert [(epoch.event_id, epoch.bridges) for epoch in epochs] == [(22, ()), (90, ())]
    assert (loading.root / "fs" / "repl" / INCREMENT / "hive" / "_finished_load").exists()

    changes = changes_of(loading)
    loading.load(BOOTSTRAP)
    loading.load(INCREMENT)
    assert loading.rows(f"REPL LOAD src INTO {loading.database}") == []
    assert changes_of(loading) == changes


def test_one_dump_is_loaded_under_several_names_and_as_of_two_sources_each_a_stream_of_its_own(
    shared: Shared, tmp_path: Path
) -> None:
    """The first two as of `[source]`; the third as of another source, from a copy of the dumps."""
    loading = Loading(tmp_path, shared("target-3")["target-3"], next(NUMBERS))
    first, second, other = (loading.under(suffix) for suffix in ("First", "second", "other"))
    other.dumps = unpack_recorded(tmp_path / "elsewhere")

    def load(stream: Loading, dump: str) -> None:
        options = " WITH ('calque.repl.source' = 'far')" if stream is other else ""
        assert stream.rows(f"REPL LOAD {stream.database} FROM '{stream.dumps}/{dump}'{options}") == []

    load(first, BOOTSTRAP)
    load(second, BOOTSTRAP)
    load(other, BOOTSTRAP)
    streams = (first, second, other)
    assert [stream.status() for stream in streams] == [[[22]]] * 3
    load(second, INCREMENT)
    assert [stream.status() for stream in streams] == [[[22]], [[90]], [[22]]]
    assert [stream.tables() for stream in streams] == [AT_22, AT_90, AT_22]
    load(other, INCREMENT)
    load(first, INCREMENT)
    load(second, BOOTSTRAP)
    assert [stream.status() for stream in streams] == [[[90]]] * 3
    assert [stream.tables() for stream in streams] == [AT_90] * 3
    taken = first.sql(f"REPL LOAD {second.database} FROM '{other.dumps}/{INCREMENT}' WITH ('calque.repl.source'='far')")
    assert taken.returncode == 65
    assert "is the replica of hq:src" in taken.stderr


def test_loads_go_on_from_what_an_earlier_version_recorded_by_the_name_in_the_dump(
    shared: Shared, tmp_path: Path
) -> None:
    loading = Loading(tmp_path, shared("target-3")["target-3"], next(NUMBERS))
    loading.load(BOOTSTRAP)
    loads = tmp_path / "state" / "loads" / "dr"
    (loads / loading.database / "from" / "hq").rename(loads / "src")
    shutil.rmtree(loads / loading.database)
    named = loading.under("named")
    named.load(BOOTSTRAP)
    loading.load(INCREMENT)
    assert (named.status(), loading.status()) == ([[22]], [[90]])
    assert (named.tables(), loading.tables()) == (AT_22, AT_90)


def test_what_somebody_dropped_is_loaded_again_and_an_increment_on_nothing_is_refused(
    shared: Shared, tmp_path: Path
) -> None:
    loading = Loading(tmp_path, shared("target-3")["target-3"], next(NUMBERS))
    client = HiveClient(loading.metastore.uri)
    loading.load(BOOTSTRAP)
    client.drop_table(TableName(loading.database, "plain"))
    loading.load(BOOTSTRAP)
    assert loading.tables() == AT_22
    for table in loading.reader.tables(loading.database):
        client.drop_table(TableName(loading.database, table))
    for function in loading.reader.functions(loading.database):
        client.drop_function(TableName(loading.database, function))
    client.drop_database(loading.database)
    refused = loading.sql(f"REPL LOAD {loading.database} FROM '{loading.dumps}/{INCREMENT}'")
    assert refused.returncode == 65
    assert "is gone" in refused.stderr
    loading.load(BOOTSTRAP)
    assert (loading.status(), loading.tables()) == ([[22]], AT_22)
    older = loading.sql(f"REPL LOAD {loading.database} FROM '{loading.dumps}/{INCREMENT}'")
    assert older.returncode == 0
    nothing = loading.sql(f"REPL LOAD {loading.database} FROM '{loading.dumps}/{BOOTSTRAP}'")
    assert nothing.returncode == 0
    assert "shows event 90" in nothing.stderr


def changes_of(loading: Loading) -> list[int]:
    """Events at the target on the database."""
    client = HiveClient(loading.metastore.uri)
    try:
        return [event.event_id for event in client.events() if event.database == loading.database]
    finally:
        client.close()


def test_resources_of_functions_go_where_the_statement_says(shared: Shared, tmp_path: Path) -> None:
    loading = Loading(tmp_path, shared("target-3")["target-3"], next(NUMBERS))
    root = f"file:{tmp_path}/functions"
    options = f"WITH ('hive.repl.replica.functions.root.dir' = '{root}')"
    assert loading.rows(f"REPL LOAD {loading.database} FROM '{loading.dumps}/{BOOTSTRAP}' {options}") == []
    functions = [loading.reader.function(TableName(loading.database, name)) for name in functions_of(loading)]
    uris = [resource.uri for function in functions if function for resource in function.resources or ()]
    assert uris
    assert all(str(uri).startswith(root) and any_storage().read(str(uri)) == b"a jar" for uri in uris)


def functions_of(loading: Loading) -> list[str]:
    return list(loading.reader.functions(loading.database))


def test_what_does_not_fit_is_refused_with_a_reason(loading: Loading) -> None:
    increment = loading.sql(f"REPL LOAD {loading.database} FROM '{loading.dumps}/{INCREMENT}'")
    assert increment.returncode == 65
    assert "goes on from event 22, and nothing of its database was loaded" in increment.stderr
    default = loading.sql(f"REPL LOAD default FROM '{loading.dumps}/{BOOTSTRAP}'")
    assert default.returncode == 65
    assert "Database default exists at the target, and carries no repl.last.id" in default.stderr
    unknown = loading.sql(f"REPL LOAD x FROM '{loading.dumps}/{BOOTSTRAP}' WITH ('hive.repl.rootdri' = '/a')")
    assert unknown.returncode == 65
    assert "hive.repl.rootdir" in unknown.stderr
    (loading.root / "fs" / "repl" / BOOTSTRAP / "hive" / "_finished_dump").unlink()
    torn = loading.sql(f"REPL LOAD {loading.database} FROM '{loading.dumps}/{BOOTSTRAP}'")
    assert torn.returncode == 65
    assert "is not complete" in torn.stderr
    assert loading.database not in loading.reader.databases()


DEATHS = (
    "catalog.create_table.after@4",
    "storage.copy.after@3",
    "ledger.publish.before",
    "catalog.alter_database.before",
)
"""Failpoints of a load."""


@pytest.mark.parametrize("failpoint", one_a_day(DEATHS, seed()))
def test_a_load_that_is_killed_goes_on(shared: Shared, tmp_path: Path, failpoint: str) -> None:
    loading = Loading(tmp_path, shared("target-3")["target-3"], next(NUMBERS))
    dump = f"REPL LOAD {loading.database} FROM '{loading.dumps}/{BOOTSTRAP}'"
    assert loading.killed_at(failpoint, dump) == -signal.SIGKILL
    loading.load(BOOTSTRAP)
    assert loading.status() == [[22]]
    assert (loading.root / "fs" / "repl" / BOOTSTRAP / "hive" / "_finished_load").exists()
    assert {name: shown for name, shown in loading.shown().items() if name != "v_plain"} == AT_22


def test_while_another_process_writes_to_the_target_a_load_is_unavailable(shared: Shared, tmp_path: Path) -> None:
    loading = Loading(tmp_path, shared("target-3")["target-3"], next(NUMBERS))
    with Roles(loading.root / "state") as roles:
        roles.take({TargetPlaces("dr").role: 5.0})
        refused = loading.sql(f"REPL LOAD {loading.database} FROM '{loading.dumps}/{BOOTSTRAP}'")
    assert refused.returncode == 75, refused.stderr
    assert loading.database not in loading.reader.databases()


FOLLOWED = """
[source]
name = "hq"
metastore = "{source}"
[state]
path = "{root}/state"
checkpoints = "{root}/checkpoints"
[targets.dr]
metastore = "{target}"
warehouse = "file:{root}/warehouse"
include = ["{database}.*"]
rename = {{ "{database}" = "{database}_dr" }}
[repl]
root = "file:{root}/dumps"
"""


@dataclass
class Followed:
    """A source, and a target that is of one of its databases alone."""

    root: Path
    source: Metastore
    target: Metastore
    database: str

    @classmethod
    def of(cls, root: Path, source: Metastore, target: Metastore, database: str) -> Followed:
        """Of a database that is there."""
        followed = cls.__new__(cls)
        followed.root, followed.source, followed.target, followed.database = root, source, target, database
        followed.configure()
        return followed

    def configure(self) -> None:
        self.config = self.root / "calque.toml"
        names = {"source": self.source.uri, "target": self.target.uri, "root": self.root, "database": self.database}
        self.config.write_text(FOLLOWED.format(**names), "utf-8")

    def __post_init__(self) -> None:
        self.configure()
        self.client, self.reader = HiveClient(self.source.uri), HiveReader(Client(self.target.uri))
        self.days = TableName(self.database, "days")
        self.client.create_database(Database(self.database))
        keys = (Column("day", "string"),)
        self.client.create_table(
            Table("days", self.database, "me", storage=TEXT, partition_keys=keys, parameters={}, type="MANAGED_TABLE")
        )
        self.add_day("1")

    def add_day(self, day: str) -> None:
        table = HiveReader(Client(self.source.uri)).table(self.days)
        location = f"{location_of(table) if table is not None else ''}/day={day}"
        any_storage().write(f"{location}/000000_0", f"of day {day}".encode())
        partition = Partition((day,), *self.days, storage=replace(TEXT, location=location), parameters={})
        self.client.add_partitions(self.days, [partition])

    def sql(self, text: str) -> list[list[Any]]:
        said = StringIO()
        with redirect_stdout(said):
            assert main(["sql", "-c", str(self.config), "--json", text]) == 0
        rows: list[list[Any]] = json.loads(said.getvalue())[-1]["rows"]
        return rows

    def run(self) -> None:
        command = [sys.executable, "-m", "calque.cli", "run", "-c", str(self.config), "--until", "head"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stderr

    def dump_and_load(self, after: int | None = None) -> int:
        following = f" FROM {after}" if after is not None else ""
        ((directory, last),) = self.sql(f"REPL DUMP {self.database}{following}")
        self.sql(f"REPL LOAD {self.database}_dr FROM '{directory}'")
        assert self.sql(f"REPL STATUS {self.database}_dr") == [[last]]
        return int(last)

    def shown(self, table: str = "days") -> dict[str, bytes | None]:
        name = TableName(f"{self.database}_dr", table)
        partitions = self.reader.partitions(name, self.reader.partition_names(name))
        return {day: any_storage().read(f"{location_of(part)}/000000_0") for day, part in partitions.items()}


def test_run_and_loads_take_turns_and_nothing_is_read_again(shared: Shared, tmp_path: Path) -> None:
    servers = shared("source-3", "target-3")
    followed = Followed(tmp_path, servers["source-3"], servers["target-3"], f"turns_{next(NUMBERS)}")
    expected = {"day=1": b"of day 1"}
    first = followed.dump_and_load()
    assert followed.shown() == expected
    for turn, day in enumerate("234"):
        followed.add_day(day)
        expected[f"day={day}"] = f"of day {day}".encode()
        if turn % 2:
            followed.dump_and_load(after=followed.sql(f"REPL STATUS {followed.database}_dr")[0][0])
        else:
            followed.run()
        assert followed.shown() == expected
    epochs = APP.wiring(APP.load(followed.config)).ledger("dr").epochs()
    assert epochs[0].event_id == first
    assert [epoch.kind for epoch in epochs] == ["bootstrap", *["window"] * (len(epochs) - 1)]
    assert [epoch.from_event_id for epoch in epochs[1:]] == [epoch.event_id for epoch in epochs[:-1]]
    assert not any(epoch.rereads or epoch.bridges or epoch.gap for epoch in epochs)
    assert sum(epoch.files for epoch in epochs) == len(expected)


def test_another_policy_at_the_event_that_is_shown_brings_and_takes_tables(shared: Shared, tmp_path: Path) -> None:
    servers = shared("source-3", "target-3")
    site = Followed(tmp_path, servers["source-3"], servers["target-3"], f"policies_{next(NUMBERS)}")
    hours = Table("hours", site.database, "me", storage=TEXT, parameters={}, type="MANAGED_TABLE")
    site.client.create_table(hours)
    whole, days = site.database, f"{site.database}.['days']"
    shown = []
    for policy in (days, whole, whole, days):
        ((directory, last),) = site.sql(f"REPL DUMP {policy}")
        site.sql(f"REPL LOAD {site.database}_dr FROM '{directory}'")
        shown.append((last, sorted(site.reader.tables(f"{site.database}_dr"))))
    assert [tables for _, tables in shown] == [["days"], ["days", "hours"], ["days", "hours"], ["days"]]
    assert len({last for last, _ in shown}) == 1
    assert site.shown() == {"day=1": b"of day 1"}
    site.sql(f"REPL LOAD {days} INTO {site.database}_dr")
    assert main(["sql", "-c", str(site.config), f"REPL LOAD {site.database}.['hours'] INTO {site.database}_dr"]) == 65


def test_views_of_spark_are_loaded_under_another_name(shared: Shared, tmp_path: Path) -> None:
    servers = shared("source-3", "target-3")
    site = Followed(tmp_path, servers["source-3"], servers["target-3"], f"viewed_{next(NUMBERS)}")
    current = {
        "view.default.database": site.database,
        "view.catalogAndNamespace.numParts": "2",
        "view.catalogAndNamespace.part.0": "spark_catalog",
        "view.catalogAndNamespace.part.1": site.database,
    }
    text = "SELECT x FROM days"
    view = Table("seen", site.database, "me", storage=TEXT, parameters=current, type="VIRTUAL_VIEW")
    site.client.create_table(replace(view, view_original_text=text, view_expanded_text=text))
    ((directory, _),) = site.sql(f"REPL DUMP {site.database}")
    for local in (f"{site.database}_dr", f"{site.database}_copy"):
        site.sql(f"REPL LOAD {local} FROM '{directory}'")
        shown = site.reader.table(TableName(local, "seen"))
        assert shown is not None
        assert shown.view_expanded_text == text
        expected = {key: local if value == site.database else value for key, value in current.items()}
        assert {key: (shown.parameters or {}).get(key) for key in current} == expected


def test_external_tables_need_a_base_directory_and_are_where_it_says(
    shared: Shared, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = shared("source-3", "target-3")
    site = Followed(tmp_path, servers["source-3"], servers["target-3"], f"external_{next(NUMBERS)}")
    outside = f"file:{tmp_path}/outside/far"
    site.client.create_table(
        Table(
            "far",
            site.database,
            "me",
            storage=replace(TEXT, location=outside),
            parameters={"EXTERNAL": "TRUE"},
            type="EXTERNAL_TABLE",
        )
    )
    any_storage().write(f"{outside}/000000_0", b"far")
    ((directory, _),) = site.sql(f"REPL DUMP {site.database}")
    load = f"REPL LOAD {site.database}_dr FROM '{directory}'"
    assert main(["sql", "-c", str(site.config), load]) == 65
    assert "has external tables, and nothing says where they go" in capsys.readouterr().err
    assert f"{site.database}_dr" not in site.reader.databases()
    base = f"file:{tmp_path}/base"
    site.sql(f"{load} WITH ('hive.repl.replica.external.table.base.dir' = '{base}')")
    table = site.reader.table(TableName(f"{site.database}_dr", "far"))
    assert table is not None
    assert location_of(table) == f"{base}{tmp_path}/outside/far"
    assert any_storage().read(f"{location_of(table)}/000000_0") == b"far"


@pytest.mark.parametrize("sides", one_a_day(["source-3 target-4", "source-4 target-3"], seed()))
def test_a_table_is_exported_and_imported(shared: Shared, tmp_path: Path, sides: str) -> None:
    source, target = sides.split()
    servers = shared(source, target)
    site = Followed(tmp_path, servers[source], servers[target], f"exported_{next(NUMBERS)}")
    site.add_day("2")
    HiveClient(site.target.uri).create_database(Database(f"{site.database}_dr"))
    site.sql(f"EXPORT TABLE {site.database}.days TO 'file:{tmp_path}/export'")
    into = f"IMPORT TABLE {site.database}_dr.copy"
    site.sql(f"{into} PARTITION (day = '1') FROM 'file:{tmp_path}/export'")
    assert site.shown("copy") == {"day=1": b"of day 1"}
    site.sql(f"{into} PARTITION (day = '2') FROM 'file:{tmp_path}/export'")
    assert site.shown("copy") == {"day=1": b"of day 1", "day=2": b"of day 2"}
    outside = f"file:{tmp_path}/outside"
    external = f"IMPORT EXTERNAL TABLE {site.database}_dr.outside FROM 'file:{tmp_path}/export' LOCATION '{outside}'"
    site.sql(external)
    table = site.reader.table(TableName(f"{site.database}_dr", "outside"))
    assert table is not None
    assert (table.type, location_of(table)) == ("EXTERNAL_TABLE", outside)
    assert site.shown("outside") == site.shown("copy")


@pytest.mark.prove
def test_a_thousand_reads_while_dumps_are_loaded_see_states_of_the_source_alone(shared: Shared, tmp_path: Path) -> None:
    """A read is judged where nothing happened at the target while it was made."""
    servers = shared("source-3", "target-3")
    source = KnownSource.make(servers["source-3"], f"bracketed_{next(NUMBERS)}", seed=1)
    followed = Followed.of(tmp_path, servers["source-3"], servers["target-3"], source.database)
    source.create("a", partitioned=True)
    for value in "123":
        source.add("a", value)
    source.create("b", files=1)
    rng, stopping = random.Random(1), threading.Event()
    reader = BracketedReader(servers["target-3"], f"{source.database}_dr", stopping)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(reader.read)
        try:
            last = None
            while reader.judged < 1000 and not reading.done():
                for _ in range(rng.randrange(2, 9)):
                    change(source, rng)
                last = followed.dump_and_load(last)
        finally:
            stopping.set()
        seen = reading.result()
    assert reader.judged >= 1000
    allowed = {(table, names(state)) for _, states in source.states for table, state in states.items()}
    assert seen <= allowed, seen - allowed
    assert len({table for table, _ in seen}) > 1


def change(source: KnownSource, rng: random.Random) -> None:
    """What removes no file: nobody keeps these."""
    match rng.choice(["insert", "insert", "add", "add", "alter", "create"]):
        case "insert":
            source.insert(*rng.choice([("b", ""), ("a", rng.choice(sorted(source.state["a"][1])))]))
        case "add":
            source.add("a", str(next(source.numbers)))
        case "alter":
            source.alter(rng.choice(["a", "b"]))
        case _:
            source.create(f"t{next(source.numbers)}", files=1)


Names = tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]
"""A table's parameter `k`, and the names of its files by partition."""


def names(state: TableState) -> Names:
    k, contents = state
    return k, tuple(sorted((each, tuple(sorted(name for name, _ in files))) for each, files in contents.items()))


@dataclass
class BracketedReader:
    """Reads tables again and again, each between two looks at the target's newest event."""

    server: Metastore
    database: str
    stopping: threading.Event
    judged: int = 0

    def read(self) -> set[tuple[str, Names]]:
        client, seen = HiveClient(self.server.uri), set[tuple[str, Names]]()
        while not self.stopping.is_set():
            for table in client.catalog.tables(self.database) if client.catalog.database(self.database) else ():
                before = client.current()
                state = self.state(client, TableName(self.database, table))
                if state is not None and client.current() == before:
                    seen.add((table, state))
                    self.judged += 1
        return seen

    def state(self, client: HiveClient, name: TableName) -> Names | None:
        table = client.catalog.table(name)
        if table is None or name.table.startswith("_"):
            return None
        if not table.partition_keys:
            return names(((table.parameters or {}).get("k", ""), {"": files_at(location_of(table))}))
        partitions = client.catalog.partitions(name, client.catalog.partition_names(name))
        contents = {each: files_at(location_of(one)) for each, one in partitions.items()}
        return names(((table.parameters or {}).get("k", ""), contents))


def files_at(location: str | None) -> frozenset[tuple[str, bytes]]:
    folder = Path((location or "").removeprefix("file:"))
    return frozenset((path.name, b"") for path in folder.glob("[!._]*"))
