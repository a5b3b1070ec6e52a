"""REPL DUMP and REPL STATUS on real metastores, while somebody writes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from calque.cli import main
from calque.model.hive import Database, Function, Resource
from calque.model.names import TableName
from calque.plugins.dumps.core.layout import DumpLayout
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.runs.proofs import one_a_day
from support.runs.seeds import seed
from support.services.servers import Shared
from support.sources.dumped import DatabaseState, DumpedDirectory, KnownSource, loaded

NUMBERS = count()
EAGER = {"hive.repl.run.data.copy.tasks.on.target": "false"}
DEATHS = ("storage.write.before", "storage.write.after@2", "storage.copy.after", "storage.write.before@5")
"""Failpoints of a dump."""


@pytest.fixture(scope="module")
def server(shared: Shared) -> Metastore:
    return shared("source-3")["source-3"]


@pytest.fixture
def sql(server: Metastore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    return statements_on(server, tmp_path, capsys)


def statements_on(server: Metastore, folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs a statement; its rows, or the error of a code other than 0. What is said on stderr is its `said`."""
    config = config_on(server, folder)

    def run(statement: str, code: int = 0, **options: str) -> Any:
        text = statement + with_clause(options)
        found = main(["sql", text, "--json", "-c", str(config)])
        said = capsys.readouterr()
        run.said = said.err  # type: ignore[attr-defined]
        assert found == code, said.err
        return json.loads(said.out)[0]["rows"] if code == 0 else said.err

    return run


def config_on(server: Metastore, folder: Path) -> Path:
    config = folder / "calque.toml"
    config.write_text(
        f'[source]\nname = "hq"\nmetastore = "{server.uri}"\n[repl]\nroot = "{folder}/dumps"\n'
        f'[targets.dr]\nmetastore = "{server.uri}"\nwarehouse = "{folder}/dr"\n'
        'include = ["x*.*"]\nrename = { "x1" = "x1_dr" }\n'
    )
    return config


def with_clause(options: Mapping[str, str]) -> str:
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f" WITH ({pairs})" if pairs else ""


@contextmanager
def writing(source: KnownSource) -> Iterator[None]:
    """While somebody writes."""
    stopping, failures = threading.Event(), list[BaseException]()

    def write() -> None:
        try:
            source.write(stopping)
        except BaseException as error:
            failures.append(error)
            raise

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
    assert not failures


def new_source(server: Metastore, **parameters: str) -> KnownSource:
    number = next(NUMBERS)
    return KnownSource.make(server, f"dumped{number}", number, **parameters)


@pytest.mark.parametrize("layout", one_a_day(list(DumpLayout), seed()))
def test_a_bootstrap_under_a_writer_is_the_source_at_one_event(
    server: Metastore, sql: Callable[..., Any], layout: DumpLayout
) -> None:
    source = new_source(server)
    source.create("a", partitioned=True)
    for value in "12":
        source.add("a", value)
    source.create("b", files=2)
    with writing(source):
        for _ in range(3):
            options = {"calque.repl.layout": layout.value, **EAGER}
            [[directory, event_id]] = sql(f"REPL DUMP {source.database}", **options)
            dump = DumpedDirectory.of(directory, layout)
            assert dump.is_finished
            assert source.is_state_at(event_id, dump.state(source.database))
            assert (dump.metadata.from_event, dump.metadata.to_event) == (event_id, event_id)


def test_a_lazy_bootstrap_names_the_files_and_says_that_they_are_not_stable(
    server: Metastore, sql: Callable[..., Any]
) -> None:
    source = new_source(server)
    source.create("a", partitioned=True)
    source.add("a", "1")
    source.create("b", files=2)
    [[directory, event_id]] = sql(f"REPL DUMP {source.database}", **{"hive.repl.parallel.copy.tasks": "8"})
    assert "are not stable" in sql.said  # type: ignore[attr-defined]
    assert "hive.repl.parallel.copy.tasks" in sql.said  # type: ignore[attr-defined]
    dump = DumpedDirectory.of(directory)
    assert dump.state(source.database) == source.state
    assert event_id == source.client.current()
    listed = Path(dump.directory.objects.table_data(TableName(source.database, "a"), "p=1")) / "_files"
    assert listed.read_text() == f"file:{source.location('a', 'p=1')}/f0###\n"


@pytest.mark.parametrize("layout", one_a_day(list(DumpLayout), seed()))
def test_increments_under_a_writer_lead_from_one_state_to_another(
    server: Metastore, sql: Callable[..., Any], layout: DumpLayout
) -> None:
    source = new_source(server)
    source.create("a", partitioned=True)
    options = {"calque.repl.layout": layout.value}
    [[_, event_id]] = sql(f"REPL DUMP {source.database}", **options)
    state = source.state_at(event_id)
    with writing(source):
        for limit in ("", " LIMIT 3", "", " LIMIT 10", ""):
            [[directory, following]] = sql(f"REPL DUMP {source.database} FROM {event_id}{limit}", **options)
            dump = DumpedDirectory.of(directory, layout)
            assert dump.is_finished
            assert (dump.metadata.from_event, dump.metadata.to_event) == (event_id, following)
            assert not limit or len(dump.events()) <= int(limit.split()[1])
            assert all(event_id < each <= following for each in dump.events())
            state, event_id = names_of(loaded(state, dump, source.database)), following
            assert state == names_of(source.state_at(event_id))


def names_of(state: DatabaseState) -> DatabaseState:
    """With the names of files alone: those of a state that is over may be gone."""
    return {
        table: (k, {each: frozenset((name, b"") for name, _ in content) for each, content in contents.items()})
        for table, (k, contents) in state.items()
    }


def test_an_increment_ends_where_it_is_told_to(server: Metastore, sql: Callable[..., Any]) -> None:
    source = new_source(server)
    begin = source.client.current()
    for table in "abc":
        source.create(table)
    ends = [at for at, _ in source.states[1:]]
    database = source.database

    def dumped(clause: str) -> tuple[list[str], int]:
        [[directory, last]] = sql(f"REPL DUMP {database} FROM {begin} {clause}")
        return list(DumpedDirectory.of(directory).events().values()), last

    assert dumped("") == (["EVENT_CREATE_TABLE"] * 3, ends[2])
    assert dumped(f"TO {ends[1]}") == (["EVENT_CREATE_TABLE"] * 2, ends[1])
    assert dumped(f"TO {ends[2] + 1000}") == (["EVENT_CREATE_TABLE"] * 3, ends[2])
    assert dumped("LIMIT 1") == (["EVENT_CREATE_TABLE"], ends[0])
    assert dumped(f"TO {ends[1]} LIMIT 100") == (["EVENT_CREATE_TABLE"] * 2, ends[1])
    assert dumped(f"TO {begin}") == ([], begin)
    assert "is not there yet" in sql(f"REPL DUMP {database} FROM {ends[2] + 1000}", 65)
    assert "is before FROM" in sql(f"REPL DUMP {database} FROM {begin} TO {begin - 1}", 65)


def test_tables_come_and_go_with_the_policy_and_with_renames(server: Metastore, sql: Callable[..., Any]) -> None:
    source = new_source(server)
    database = source.database
    for table in ("orders", "stores", "t5", "q5", "q6"):
        source.create(table, files=1)
    whole, letters = database, f"{database}.['[a-z]+']"
    [[_, event_id]] = sql(f"REPL DUMP {whole}")
    state = source.state_at(event_id)

    def follow(policy: str, clause: str = "") -> DumpedDirectory:
        nonlocal state, event_id
        [[directory, event_id]] = sql(f"REPL DUMP {policy} {clause} FROM {event_id}")
        dump = DumpedDirectory.of(directory)
        state = loaded(state, dump, database)
        return dump

    source.insert("orders")
    dump = follow(letters, f"REPLACE {whole}")
    assert dump.metadata.scope_changed
    assert state == {table: source.state[table] for table in ("orders", "stores")}
    source.rename("stores", "s1")
    source.rename("t5", "items")
    source.rename("orders", "sales")
    source.insert("items")
    dump = follow(letters)
    assert sorted(dump.events().values()) == ["EVENT_RENAME_DROP_TABLE", "EVENT_RENAME_TABLE"]
    assert state == {table: source.state[table] for table in ("items", "sales")}
    source.insert("q5")
    source.drop("items")
    follow(f"{database}.['[a-z]+', 'Q5']", f"REPLACE {letters}")
    assert state == {table: source.state[table] for table in ("sales", "q5")}


def test_an_increment_with_data_has_the_files_of_each_event(server: Metastore, sql: Callable[..., Any]) -> None:
    source = new_source(server)
    begin = source.client.current()
    source.create("a", partitioned=True)
    source.add("a", "1")
    source.insert("a", "p=1")
    [[directory, _]] = sql(f"REPL DUMP {source.database} FROM {begin}", **EAGER)
    dump = DumpedDirectory.of(directory)
    assert not list(Path(dump.directory.root).rglob("_files"))
    assert loaded({}, dump, source.database) == source.state
    # Nobody keeps the files of a partition that goes within the increment.
    source.create("b", files=1)
    source.add("a", "2")
    source.insert("a", "p=2")
    source.drop_partition("a", "p=2")
    shutil.rmtree(source.location("a", "p=2"), ignore_errors=True)
    [[directory, _]] = sql(f"REPL DUMP {source.database} FROM {begin}", **EAGER)
    assert f"{source.database}.a is in the dump whole, as it is now" in sql.said  # type: ignore[attr-defined]
    dump = DumpedDirectory.of(directory)
    assert loaded({}, dump, source.database) == source.state


@pytest.mark.prove
def test_a_source_of_4_is_dumped_alike(shared: Shared, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = shared("source-4")["source-4"]
    sql, source = statements_on(server, tmp_path, capsys), new_source(server)
    source.create("a", partitioned=True)
    with writing(source):
        [[directory, event_id]] = sql(f"REPL DUMP {source.database}", **EAGER)
        state = DumpedDirectory.of(directory).state(source.database)
        assert source.is_state_at(event_id, state)
        for _ in range(2):
            [[directory, event_id]] = sql(f"REPL DUMP {source.database} FROM {event_id}")
            state = names_of(loaded(state, DumpedDirectory.of(directory), source.database))
            assert state == names_of(source.state_at(event_id))


def test_a_running_calque_gives_its_journal_and_keeps_hives_mark(
    shared: Shared, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = shared("source-3", "target-3")
    source = new_source(servers["source-3"])
    sql = statements_on(servers["source-3"], tmp_path, capsys)
    config = tmp_path / "calque.toml"
    config.write_text(
        f'[source]\nname = "hq"\nmetastore = "{servers["source-3"].uri}"\npoll = "50ms"\n'
        f'[repl]\nroot = "{tmp_path}/dumps"\n[serve]\naddress = ""\n'
        f'[targets.dr]\nmetastore = "{servers["target-3"].uri}"\nwarehouse = "{tmp_path}/dr"\n'
        f'include = ["{source.database}.*"]\n'
    )
    source.create("a", partitioned=True)
    with running(config):
        begin = source.client.current()
        wait_for(config, begin)
        carry_mark(servers["target-3"], source.database)
        with writing(source):
            [[directory, event_id]] = sql(f"REPL DUMP {source.database}", **EAGER)
            state = DumpedDirectory.of(directory).state(source.database)
            assert source.is_state_at(event_id, state)
            [[directory, event_id]] = sql(f"REPL DUMP {source.database} FROM {event_id}")
        state = names_of(loaded(state, DumpedDirectory.of(directory), source.database))
        assert state == names_of(source.state_at(event_id))
        assert begin < event_id
        while sql(f"REPL STATUS {source.database}")[0][0] < event_id:
            time.sleep(0.5)


@contextmanager
def running(config: Path) -> Iterator[None]:
    """`calque run` beside."""
    with (config.parent / "run.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "calque.cli", "run", "-c", str(config)], stdout=log, stderr=log, cwd=config.parent
        )
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(60) == 0, (config.parent / "run.log").read_text()[-2000:]


def wait_for(config: Path, event_id: int) -> None:
    arguments = ["wait", "--target", "dr", "--event-id", str(event_id), "--timeout", "120", "-c", str(config)]
    assert main(arguments) == 0, (config.parent / "run.log").read_text()[-2000:]


def carry_mark(target: Metastore, name: str) -> None:
    """As Hive's load leaves a database."""
    client = HiveClient(target.uri)
    database = client.catalog.database(name)
    assert database is not None
    client.alter_database(name, replace(database, parameters={**(database.parameters or {}), "repl.last.id": "1"}))


def test_as_hive_4_a_dump_goes_on_from_the_last_loaded_one(server: Metastore, sql: Callable[..., Any]) -> None:
    source = new_source(server)
    source.create("a", files=1)
    source.create("t5", files=1)
    mode = {"calque.repl.mode": "hive4"}
    [[first, event_id]] = sql(f"REPL DUMP {source.database}", **mode)
    assert DumpedDirectory.of(first).metadata.is_bootstrap
    assert sql(f"REPL DUMP {source.database}", **mode) == [[first, event_id]]
    assert "is not loaded yet" in sql.said  # type: ignore[attr-defined]
    Path(DumpedDirectory.of(first).directory.finished_load).touch()
    source.insert("a")
    [[second, last]] = sql(f"REPL DUMP {source.database}.'[a-z]+'", **mode)
    dump = DumpedDirectory.of(second)
    assert (dump.metadata.from_event, dump.metadata.to_event) == (event_id, last)
    assert dump.metadata.scope_changed
    state = loaded(source.state_at(event_id), dump, source.database)
    assert state == {"a": source.state["a"]}
    assert "FROM is not for the mode hive4" in sql(f"REPL DUMP {source.database} FROM 1", 65, **mode)


def test_dumps_that_are_made_at_once_do_not_meet(server: Metastore, tmp_path: Path) -> None:
    source = new_source(server)
    source.create("a", files=1)
    config = config_on(server, tmp_path)
    command = [sys.executable, "-m", "calque.cli", "sql", f"REPL DUMP {source.database}", "--json", "-c", str(config)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    rows = [json.loads(process.communicate(timeout=120)[0])[0]["rows"][0] for process in processes]
    assert len({directory for directory, _ in rows}) == 3
    for directory, event_id in rows:
        dump = DumpedDirectory.of(directory)
        assert dump.is_finished
        assert dump.state(source.database) == source.state_at(event_id)


@pytest.mark.parametrize("failpoint", one_a_day(DEATHS, seed()))
def test_a_dump_that_is_killed_leaves_nothing_that_the_next_one_does_not_remove(
    server: Metastore, sql: Callable[..., Any], tmp_path: Path, failpoint: str
) -> None:
    source = new_source(server)
    source.create("a", partitioned=True)
    source.add("a", "1")
    source.create("b", files=1)
    statement = f"REPL DUMP {source.database}" + with_clause(EAGER)
    command = [sys.executable, "-m", "calque.cli", "sql", statement, "-c", str(tmp_path / "calque.toml")]
    killed = subprocess.run(
        command, env={**os.environ, "CALQUE_FAILPOINT": failpoint}, capture_output=True, timeout=120, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    [left] = (tmp_path / "dumps").glob("*/*") if failpoint != "storage.write.before" else [None]
    assert left is None or not (left / "hive" / "_finished_dump").exists()
    [[directory, _]] = sql(f"REPL DUMP {source.database}", **EAGER)
    assert list((tmp_path / "dumps").glob("*/*")) == [Path(directory.removeprefix("file:"))]
    assert not list((tmp_path / "state" / "dumps").iterdir())
    assert DumpedDirectory.of(directory).state(source.database) == source.state


def test_a_policy_chooses_tables(server: Metastore, sql: Callable[..., Any]) -> None:
    source = new_source(server)
    client = source.client
    for table in ("t3", "orders", "q4", "t40"):
        source.create(table)
    client.create_function(
        Function("f", source.database, "org.example.F", "me", 1, 0, 1, (Resource(1, "hdfs://ns/j.jar"),))
    )
    expected = {
        "": ["orders", "q4", "t3", "t40"],
        ".['.*?']": ["orders", "q4", "t3", "t40"],
        ".['T3', '[a-z]+']": ["orders", "t3"],
        ".['.*?'].['T[0-9]+', 'Q4']": ["orders"],
        ".'t3|q4'": ["q4", "t3"],
        ".[]": [],
    }
    for policy, tables in expected.items():
        [[directory, _]] = sql(f"REPL DUMP {source.database}{policy}")
        dump = DumpedDirectory.of(directory)
        assert dump.tables(source.database) == tables
        assert Path(dump.directory.objects.function_metadata(TableName(source.database, "f"))).exists()
        scope = Path(dump.directory.tables_in_scope(source.database))
        assert (scope.read_text().split() if scope.exists() else None) == (tables if policy else None)


def test_external_tables_are_listed_by_their_directories(
    server: Metastore, sql: Callable[..., Any], tmp_path: Path
) -> None:
    source = new_source(server)
    source.create("m", files=1)
    source.create("e", partitioned=True, external=f"file:{tmp_path}/e")
    source.add("e", "1")
    definition = source.client.catalog.partitions(source.name("e"), ["p=1"])["p=1"]
    storage = definition.storage
    assert storage is not None
    source.client.add_partitions(
        source.name("e"), [replace(definition, values=("2",), storage=replace(storage, location=f"file:{tmp_path}/o"))]
    )
    base = {"hive.repl.replica.external.table.base.dir": "hdfs://dr/base"}
    [[directory, _]] = sql(f"REPL DUMP {source.database}", **base)
    dump = DumpedDirectory.of(directory)
    assert Path(dump.directory.external_directories).read_text().splitlines() == [
        f"file:{tmp_path}/e#hdfs://dr/base{tmp_path}/e#e#FALLBACK_COPY#null",
        f"file:{tmp_path}/o#hdfs://dr/base{tmp_path}/o#e#FALLBACK_COPY#null",
    ]
    without = {"hive.repl.include.external.tables": "false", "hive.repl.dump.metadata.only": "true"}
    [[directory, _]] = sql(f"REPL DUMP {source.database}", **without)
    dump = DumpedDirectory.of(directory)
    assert dump.tables(source.database) == ["m"]
    assert not Path(dump.directory.external_directories).exists()
    assert not (Path(dump.directory.root) / "data").exists()


def test_what_can_t_be_dumped_is_refused(server: Metastore, sql: Callable[..., Any]) -> None:
    source = new_source(server)
    assert "The nearest is" in sql(f"REPL DUMP {source.database}x", 65)
    assert "unknown key" in sql(f"REPL DUMP {source.database}", 65, **{"hive.repl.rootdirr": "/x"})
    assert "character 1" in sql(rf"REPL DUMP {source.database}.['\\p{{Alpha}}']", 65)
    assert "REPLACE is for increments" in sql(f"REPL DUMP {source.database} REPLACE {source.database}", 65)


def test_old_dumps_go_by_number_and_by_age(server: Metastore, sql: Callable[..., Any]) -> None:
    source = new_source(server)
    source.create("a")
    made = [sql(f"REPL DUMP {source.database}")[0][0].removeprefix("file:") for _ in range(5)]
    assert [path for path in made if Path(path).exists()] == made[2:]
    seldom = {"hive.repl.dumpdir.clean.freq": "1h"}
    more = [sql(f"REPL DUMP {source.database}", **seldom)[0][0].removeprefix("file:") for _ in range(3)]
    assert [path for path in [*made, *more] if Path(path).exists()] == [*made[3:], *more]
    [[newest, _]] = sql(f"REPL DUMP {source.database}", **{"hive.repl.dumpdir.ttl": "0s"})
    newest = newest.removeprefix("file:")
    assert [path.name for path in Path(newest).parent.iterdir()] == [Path(newest).name]


def test_status_says_what_the_database_at_the_target_shows(server: Metastore, sql: Callable[..., Any]) -> None:
    client = HiveClient(server.uri)
    client.create_database(Database("loaded", parameters={"repl.last.id": "812"}))
    client.create_database(Database("unloaded", parameters={}))
    assert sql("REPL STATUS loaded") == [[812]]
    assert sql("REPL STATUS unloaded") == []
    assert sql("REPL STATUS nothing") == []
