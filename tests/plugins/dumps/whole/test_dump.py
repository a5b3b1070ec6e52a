"""Dumps of a source in memory: what no real writer does on time."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from calque.adapters.files import FileStorage
from calque.core.defects import DEFECT
from calque.core.events.decode import thrift_object
from calque.engine.verify.log_journal import LogJournal
from calque.errors import Refused, Unavailable
from calque.model.hive import Column, Database, Function, Partition, SerDe, Storage, Table, location_of
from calque.model.names import TableName
from calque.plugins.dumps.core.layout import policy_directory
from calque.plugins.dumps.core.metadata import read_table
from calque.plugins.dumps.core.options import DUMP_KEYS, dump_options, known_options
from calque.plugins.dumps.core.scope import scope_of
from calque.plugins.dumps.engine.dump import DumpPlace, dump
from calque.plugins.dumps.engine.request import DumpRequest, FinishedDump
from kernel.whole.test_defects import evidence, source_catalog, source_storage
from support.faults.defects import Defect
from support.memory.metastore import HIVE_4
from support.programs import program
from support.worlds.dumpworlds import EVERYTHING, DumpWorld
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


@pytest.mark.parametrize("error", [KeyError("x"), Refused("Not permitted to list it")], ids=["defect", "refusal"])
@pytest.mark.parametrize("method", ["table", "few_partitions", "constraints", "list"])
def test_tables_that_can_not_be_dumped_end_a_dump_and_all_of_them_are_named(
    tmp_path: Path, method: str, error: Exception
) -> None:
    world = world_of_two()
    storage = Storage((Column("x", "int"),), serde=SerDe(parameters={}))
    keys = (Column("p", "string"),)
    for name in ("odd", "other"):
        parts = replace(storage, location=f"file:/source/{name}")
        table = Table(name, "d1", storage=parts, type="MANAGED_TABLE", parameters={}, partition_keys=keys)
        world.source.create_table(table)
        at = replace(storage, location=f"file:/source/{name}/p=1")
        world.source.add_partitions(TableName("d1", name), [Partition(("1",), "d1", name, storage=at, parameters={})])
    world.clock.now += 60 * 10**9
    defect = Defect(method, error, on=True, about=lambda one: any(name in repr(one) for name in ("odd", "other")))
    place = source_storage if method == "list" else source_catalog
    place(world, defect)
    with pytest.raises(Refused if isinstance(error, Refused) else Unavailable) as raised:
        dumped(world, tmp_path, {})
    assert raised.value.what == "d1.odd, d1.other can't be dumped"
    assert isinstance(error, Refused) or DEFECT in raised.value.why
    assert list((tmp_path / "dumps").rglob("_finished_dump")) == []
    defect.on = False
    assert dumped(world, tmp_path, {}).last_event == world.source.current()


def test_a_function_that_can_not_be_dumped_ends_a_dump_and_is_named(tmp_path: Path) -> None:
    world = world_of_two()
    for name in ("f1", "f2"):
        world.source.create_function(Function(name, "d1", "x.Y"))
    source_catalog(world, Defect("function", KeyError("x"), on=True, about=lambda one: "f1" in repr(one)))
    with pytest.raises(Unavailable, match=r"^function d1.f1 can't be dumped"):
        dumped(world, tmp_path)


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


def test_an_increment_of_a_database_that_is_not_there_is_refused_unless_events_of_the_span_are_on_it(
    tmp_path: Path,
) -> None:
    world = DumpWorld(0, tmp_path, ())
    world.source.create_database(Database("d1", parameters={}))
    first = world.dump()
    assert world.dump(first.last_event).last_event == first.last_event
    world.scope = scope_of("d11", None, None)
    with pytest.raises(Refused, match="The source has no database d11"):
        world.dump(first.last_event)
    assert not [path for path in world.storage._files if path.startswith(policy_directory("file:/dumps", "d11"))]
    world.scope = EVERYTHING
    world.source.drop_database("d1")
    gone = world.dump(first.last_event)
    assert gone.last_event == world.source.current()
    with pytest.raises(Refused, match="The source has no database d1"):
        world.dump(gone.last_event)


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


WITH_DATA = dump_options(known_options({"hive.repl.run.data.copy.tasks.on.target": "false"}, DUMP_KEYS))


@pytest.mark.parametrize("error", [KeyError("x"), Refused("Not permitted to read it")], ids=["defect", "refusal"])
@pytest.mark.parametrize(("place", "method"), [(source_storage, "files"), (evidence, "evidence")])
def test_events_that_can_not_be_dumped_end_an_increment_that_names_them_and_leaves_nothing(
    tmp_path: Path, place: Callable[[World, Defect], None], method: str, error: Exception
) -> None:
    world = DumpWorld(0, tmp_path / "own", ())
    world.source.create_database(Database("d1", parameters={}))

    def create(name: str) -> None:
        storage = Storage((Column("x", "int"),), location=f"file:/source/{name}", serde=SerDe(parameters={}))
        world.source.create_table(Table(name, "d1", storage=storage, type="MANAGED_TABLE", parameters={}))

    names = ("good", "odd", "other")
    if method == "files":
        for name in names:
            create(name)
    loose = {"options": WITH_DATA, "change_root": "", "keeps_files": False}
    first = world.dump(**loose)
    before, wrong = sorted(world.storage._files), {}
    for name in names:
        world.storage.write(f"file:/source/{name}/f", b"1")
        if method == "files":
            world.source.insert(TableName("d1", name), [f"file:/source/{name}/f"])
        else:
            create(name)
        wrong[name] = world.source.current()
    world.clock.now += 60 * 10**9
    del wrong["good"]
    texts = [f"/{name}/" for name in wrong] if method == "files" else [f"[{event_id}]" for event_id in wrong.values()]
    defect = Defect(method, error, on=True, about=lambda one: any(text in repr(one) for text in texts))
    world.capture_all()
    place(world, defect)
    with pytest.raises(Refused if isinstance(error, Refused) else Unavailable) as raised:
        world.dump(first.last_event, **loose)
    named = ", ".join(f"Event {event_id} on d1.{name}" for name, event_id in wrong.items())
    assert raised.value.what == f"{named} can't be dumped"
    assert isinstance(error, Refused) or DEFECT in raised.value.why
    written = [path for path in sorted(world.storage._files) if path.startswith("file:/dumps")]
    assert written == [path for path in before if path.startswith("file:/dumps")]
    assert not list((tmp_path / "own").rglob("*.part"))
    defect.on = False
    assert world.dump(first.last_event, **loose).last_event == world.source.current()


def test_a_table_of_which_an_events_files_are_gone_is_in_the_increment_whole(tmp_path: Path) -> None:
    """No change manager: the files of a partition that was dropped within the increment are nowhere."""
    world = DumpWorld(0, tmp_path, ())
    source, storage = world.source, world.storage
    source.create_database(Database("d1", parameters={}))
    lost, other = TableName("d1", "lost"), TableName("d1", "other")
    for name in (lost, other):
        columns = Storage((Column("x", "int"),), location=f"file:/source/{name.table}", serde=SerDe(parameters={}))
        keys = (Column("p", "string"),)
        source.create_table(
            Table(name.table, "d1", storage=columns, partition_keys=keys, type="MANAGED_TABLE", parameters={})
        )
    world.clock.now += 60 * 10**9
    loose = {"options": WITH_DATA, "change_root": "", "keeps_files": False}
    first = world.dump(**loose)
    assert world.load(first) == []

    def add(name: TableName, value: str) -> None:
        location = f"file:/source/{name.table}/p={value}"
        part = Storage((Column("x", "int"),), location=location, serde=SerDe(parameters={}))
        source.add_partitions(name, [Partition((value,), *name, storage=part, parameters={})])
        storage.write(f"{location}/f", value.encode())
        source.insert(name, [f"{location}/f"], values=(value,))

    add(lost, "gone")
    add(lost, "kept")
    add(other, "kept")
    source.drop_partitions(lost, ["p=gone"])
    storage.remove(["file:/source/lost/p=gone"])
    world.clock.now += 60 * 10**9
    second = world.dump(first.last_event, **loose)
    assert [note for note in second.notes if "is in the dump whole" in note] == [
        "d1.lost is in the dump whole, as it is now: file:/source/lost/p=gone/f of event 5 is gone"
    ]
    assert world.load(second) == []
    for name in (lost, other):
        shown = world.target_store.the_table(TableName("d1_dr", name.table)).partitions
        assert {values: storage.read(f"{location_of(one)}/f") for values, one in shown.items()} == {("kept",): b"kept"}
