"""Dumps of a source in memory: what no real writer does on time."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from calque.adapters.files import FileStorage
from calque.adapters.memory.metastore import HIVE_4
from calque.core.decode import thrift_object
from calque.core.dumps.metadata import read_table
from calque.core.dumps.options import DUMP_KEYS, dump_options, known_options
from calque.core.dumps.scope import scope_of
from calque.engine.dump.dump import DumpPlace, dump
from calque.engine.dump.request import DumpRequest, FinishedDump
from calque.engine.verify.log_journal import LogJournal
from calque.errors import Refused, Unavailable
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.names import TableName
from support.programs import program
from support.worlds.dumpworlds import DumpWorld
from support.worlds.histories import PLAIN
from support.worlds.worlds import World

NAMES = (TableName("d1", "busy"), TableName("d1", "quiet"))


def world_of_two() -> World:
    world = World(0, HIVE_4, PLAIN)
    world.source.create_database(Database("d1", parameters={}))
    for name in NAMES:
        storage = Storage((Column("x", "int"),), location=f"file:/source/{name.table}", serde=SerDe(parameters={}))
        world.source.create_table(Table(name.table, "d1", storage=storage, type="MANAGED_TABLE", parameters={}))
        world.storage.write(f"file:/source/{name.table}/f", b"1")
    world.clock.now += 60 * 10**9
    return world


METADATA_ONLY = {"hive.repl.dump.metadata.only": "true"}


def dumped(world: World, folder: Path, options: Mapping[str, str] = METADATA_ONLY) -> FinishedDump:
    side = world.source_side
    source = replace(side, journal=LogJournal(side.log))
    place = DumpPlace(FileStorage(), str(folder / "dumps"), folder / "own", 3, 1e6)
    chosen = dump_options(known_options(options, DUMP_KEYS))
    return dump(source, place, DumpRequest(scope_of("d1", None, None), chosen))


def changing(world: World, name: TableName, times: int) -> Callable[[str], None]:
    """Alters the table whenever one is read, so many times."""
    remaining = [times]

    def change(method: str) -> None:
        if method == "table" and remaining[0]:
            remaining[0] -= 1
            table = world.source.the_table(name).table
            world.source.alter_table(name, replace(table, owner=f"o{remaining[0]}"))

    return change


def test_a_bootstrap_from_170_to_230_has_what_was_there_at_its_event_and_nothing_that_was_not(tmp_path: Path) -> None:
    """The document's example: the dump begins at event 170, and while it reads the table, 184 drops Px, 196 adds Pa,
    204 adds Pb, 216 drops Py. It is consolidated at one event: it has Pa and Pb, neither Px nor Py, and nothing is left
    to the next increment."""
    world = World(0, HIVE_4, PLAIN)
    world.source.create_database(Database("d1", parameters={}))
    storage = Storage((Column("x", "int"),), location="file:/source/t", serde=SerDe(parameters={}))
    name, keys = TableName("d1", "t"), (Column("p", "string"),)
    table = Table("t", "d1", storage=storage, partition_keys=keys, type="MANAGED_TABLE", parameters={})
    world.source.create_table(table)

    def add(value: str) -> None:
        location = f"file:/source/t/p={value}"
        world.storage.write(f"{location}/f", value.encode())
        partition = Partition((value,), *name, storage=replace(storage, location=location), parameters={})
        world.source.add_partitions(name, [partition])

    def until(event_id: int) -> None:
        while world.source.current() < event_id - 1:
            world.source.alter_database("d1", Database("d1", parameters={"n": str(world.source.current())}))

    add("x")
    add("y")
    until(171)
    steps = [
        (184, lambda: world.source.drop_partitions(name, ["p=x"])),
        (196, lambda: add("a")),
        (204, lambda: add("b")),
        (216, lambda: world.source.drop_partitions(name, ["p=y"])),
    ]

    def change(method: str) -> None:
        if method in ("partition_names", "partitions", "few_partitions", "table") and steps:
            event_id, step = steps.pop(0)
            until(event_id)
            step()
            assert world.source.current() == event_id
            if not steps:
                until(231)

    world.clock.now += 60 * 10**9
    world.between = change
    finished = dumped(world, tmp_path, {})
    assert not steps
    assert finished.last_event == 230
    read = read_table([Path(finished.directory.objects.table_metadata(name)).read_bytes()])
    values = [thrift_object(Partition, text).values for text in read.partitions]
    assert sorted(values) == [("a",), ("b",)]


def test_a_table_that_never_rests_ends_a_dump_and_is_named(tmp_path: Path) -> None:
    world = world_of_two()
    world.between = changing(world, NAMES[0], 10**6)
    with pytest.raises(Unavailable, match=r"d1\.busy can't be read at one event"):
        dumped(world, tmp_path)
    assert not list((tmp_path / "dumps").glob("*/*"))
    assert not list((tmp_path / "own").iterdir())


def test_a_table_that_rests_at_last_is_dumped_as_it_is_then(tmp_path: Path) -> None:
    world = world_of_two()
    world.between = changing(world, NAMES[0], 7)
    finished = dumped(world, tmp_path)
    assert finished.last_event == world.source.current()
    assert '\\"str\\":\\"o0\\"' in Path(finished.directory.objects.table_metadata(NAMES[0])).read_text()


def test_an_increment_from_below_what_is_left_of_the_log_is_refused(tmp_path: Path) -> None:
    world = DumpWorld(0, tmp_path, ("insert",))
    for operation in ("create_database", "create_table", "create_table"):
        world.writer.run(operation)
    world.capture_all()
    world.forget(keep=1)
    world.lose(keep=1)
    with pytest.raises(Refused, match=r"Event 2 is not in the journal any more\..* Bootstrap again"):
        world.dump(1)


def test_a_dump_that_dies_at_any_effect_is_whole_or_is_removed_by_the_next(tmp_path: Path) -> None:
    command = [*program("support.faults.dying_dumps"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    deaths = [json.loads(line) for line in done.stdout.splitlines()]
    for is_increment in (False, True):
        of_kind = [death for death in deaths if death["increment"] == is_increment]
        assert len(of_kind) > 20
        # The last one, behind the mark that ends the dump.
        assert [death["left"] for death in of_kind] == [[]] * (len(of_kind) - 1) + [[True]]
        assert [death["directories"] for death in of_kind] == [1] * (len(of_kind) - 1) + [2]
    assert all(death["whole"] and not death["under_way"] for death in deaths)
