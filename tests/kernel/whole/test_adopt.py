"""Objects at a target that are not ours: taken over in place, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from calque.core.formats.deltalog import commit_path
from calque.core.formats.layout import join
from calque.core.images.image import EVENT, INCARNATION, SOURCE, TYPE
from calque.core.records.lifecycle import State
from calque.engine.files.content_proof import prove
from calque.model.hive import Column, Database, Function, Partition, SerDe, Storage, Table, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.model.records import ReadMode, ReadRequest, all_of
from support.memory.metastore import HIVE_4
from support.worlds.handmade import REPL, copy_by_hand
from support.worlds.histories import PLAIN, differences
from support.worlds.worlds import World

PLAIN_TABLE, PARTED = TableName("d1", "plain"), TableName("d1", "parted")
DAYS = ("1", "2", "3")


class HandWorld(World):
    """A source with a plain table of two files and one of three partitions, each with a file."""

    def __init__(self, **policy: object) -> None:
        super().__init__(0, HIVE_4, replace(PLAIN, **policy))  # type: ignore[arg-type]
        self.source.create_database(Database("d1"))
        self.make(PLAIN_TABLE)
        for name in ("x", "y"):
            self.storage.write(f"file:/source/plain/{name}", name.encode())
        self.make(PARTED, (Column("p", "string"),))
        for day in DAYS:
            self.storage.write(f"file:/source/parted/p={day}/x", day.encode())
        parts = [self.partition(day) for day in DAYS]
        self.source.add_partitions(PARTED, parts)
        self.clock.now += 60 * 10**9
        self.note()
        self.begin = self.capture.after = self.source.current()
        self.gatherer.resume(self.begin, self.begin)

    def make(self, name: TableName, keys: tuple[Column, ...] = ()) -> None:
        storage = Storage((Column("x", "int"),), location=f"file:/source/{name.table}", serde=SerDe(parameters={}))
        table = Table(name.table, name.database, storage=storage, partition_keys=keys, type="MANAGED_TABLE")
        self.source.create_table(replace(table, parameters={}))

    def partition(self, day: str) -> Partition:
        storage = Storage((Column("x", "int"),), location=f"file:/source/parted/p={day}", serde=SerDe(parameters={}))
        return Partition((day,), "d1", "parted", storage=storage, parameters={})

    def run(self, *adopted: TableName) -> None:
        """Settle, take over what is said, settle."""
        self.open()
        self.settle()
        found = self.replica.requests.adoption.tables(
            lambda name: name in adopted or not adopted, lambda _: not adopted, "asked for by adopt"
        )
        assert found == sorted(adopted)
        self.settle()

    def at_target(self, name: TableName = PLAIN_TABLE) -> Table:
        return self.target_store.the_table(name).table

    def parts(self) -> dict[str, Partition]:
        stored = self.target_store.the_table(PARTED).partitions
        return {part.values[0]: part for part in stored.values()}

    def copied(self) -> int:
        """Bytes, of all windows."""
        return sum(window.applied.bytes for window in self.windows)

    def quarantined(self) -> dict[TableName, str]:
        rows = self.replica.tables.rows.items()
        return {name: row.reason for name, row in rows if row.state == TableState.QUARANTINED}


def at(name: TableName) -> str:
    return f"file:/handmade/{name.table}"


def test_a_faithful_copy_is_taken_over_where_it_lies_and_nothing_is_copied() -> None:
    world = HandWorld()
    for name in (PLAIN_TABLE, PARTED):
        copy_by_hand(world, name, root=at(name), parameters=REPL)
    world.run(PLAIN_TABLE, PARTED)
    assert world.copied() == 0
    for name in (PLAIN_TABLE, PARTED):
        table = world.at_target(name)
        parameters = dict(table.parameters or {})
        assert (table.type, location_of(table)) == ("EXTERNAL_TABLE", at(name))
        assert parameters[SOURCE] == f"hq:{name}"
        assert parameters[TYPE] == "MANAGED_TABLE"
        assert int(parameters[EVENT]) <= world.source.current()
        assert parameters[INCARNATION].startswith("r")
        assert not REPL.keys() & parameters.keys()
    for part in world.parts().values():
        assert (part.parameters or {})[INCARNATION].startswith("r")
        assert int((part.parameters or {})[EVENT]) <= world.source.current()
        assert not REPL.keys() & (part.parameters or {}).keys()
        assert (location_of(part) or "").startswith(at(PARTED))
    adopted = [row for epoch in world.ledger.epochs() for row in world.ledger.objects(epoch.epoch)]
    assert {row.partition for row in adopted if row.change == "adopt" or row.location} >= {"", "p=1"}
    # What comes then is appended in place.
    world.storage.write("file:/source/plain/z", b"more")
    world.clock.now += 10_000_000
    world.writer.source.insert(PLAIN_TABLE, ["file:/source/plain/z"])
    world.clock.now += 60 * 10**9
    world.settle()
    assert world.copied() == 4
    assert location_of(world.at_target()) == at(PLAIN_TABLE)
    assert world.target_states() == world.source_states()


@pytest.mark.parametrize("fault", ["other content", "other size", "a file more"])
def test_a_directory_that_differs_is_replaced_as_a_whole_and_not_touched(fault: str) -> None:
    world = HandWorld()
    copy_by_hand(world, PLAIN_TABLE, fault, root=at(PLAIN_TABLE))
    copy_by_hand(world, PARTED, fault, root=at(PARTED))
    before = [world.storage.contents(at(name)) for name in (PLAIN_TABLE, PARTED)]
    world.run(PLAIN_TABLE, PARTED)
    assert [world.storage.contents(at(name)) for name in (PLAIN_TABLE, PARTED)] == before
    assert (location_of(world.at_target()) or "").startswith("file:/target/d1.db/")
    moved = [part for part in world.parts().values() if "/handmade/" not in (location_of(part) or "")]
    assert len(moved) == 1
    assert world.copied() == 3
    assert world.target_states()[PARTED] == world.source_states()[PARTED]
    assert world.target_states()[PLAIN_TABLE] == world.source_states()[PLAIN_TABLE]


def test_extra_partitions_go_and_missing_ones_come() -> None:
    world = HandWorld()
    copy_by_hand(world, PARTED, "a partition less", root=at(PARTED))
    world.target_store.add_partitions(PARTED, [replace(world.partition("9"), parameters={})])
    world.run(PARTED)
    assert sorted(world.parts()) == list(DAYS)
    assert world.copied() == 2 + 1


def test_a_table_that_lies_in_the_source_s_own_directory_gets_one_of_its_own() -> None:
    world = HandWorld()
    for name in (PLAIN_TABLE, PARTED):
        copy_by_hand(world, name, "in the source's directory")
    world.run(PLAIN_TABLE, PARTED)
    places = [location_of(world.at_target(name)) for name in (PLAIN_TABLE, PARTED)]
    places += [location_of(part) for part in world.parts().values()]
    assert all((place or "").startswith("file:/target/") for place in places)
    assert world.target_states()[PARTED] == world.source_states()[PARTED]
    assert world.target_states()[PLAIN_TABLE] == world.source_states()[PLAIN_TABLE]


def test_the_replica_of_another_source_is_taken_over_only_when_asked_for() -> None:
    world = HandWorld()
    copy_by_hand(world, PLAIN_TABLE, "of another source", root=at(PLAIN_TABLE))
    copy_by_hand(world, PARTED, "of another source", root=at(PARTED))
    world.run(PLAIN_TABLE)
    assert list(world.quarantined()) == [PARTED]
    assert (world.at_target(PARTED).parameters or {})[SOURCE] == f"elsewhere:{PARTED}"
    assert (world.at_target().parameters or {})[SOURCE] == f"hq:{PLAIN_TABLE}"
    assert world.copied() == 0
    world.replica.requests.adoption.tables(lambda _: True, lambda _: False, "asked for")
    world.settle()
    for thing in (world.at_target(PARTED), *world.parts().values()):
        parameters = thing.parameters or {}
        assert int(parameters[EVENT]) <= world.source.current()
        assert int(parameters[INCARNATION].removeprefix("r")) <= world.source.current()


def test_the_replica_of_another_table_of_the_same_source_stays_a_collision() -> None:
    world = HandWorld()
    copy_by_hand(world, PLAIN_TABLE, root=at(PLAIN_TABLE))
    there = world.at_target()
    world.target_store.alter_table(PLAIN_TABLE, replace(there, parameters={SOURCE: "hq:d1.other"}))
    world.open()
    world.settle()
    assert world.replica.requests.adoption.tables(lambda _: True, lambda _: True, "asked for") == []
    assert "two tables of the source go to one name" in world.quarantined()[PLAIN_TABLE]


def test_a_transactional_table_at_the_target_is_refused_with_what_to_do() -> None:
    world = HandWorld()
    copy_by_hand(world, PLAIN_TABLE, root=at(PLAIN_TABLE), parameters={"transactional": "true"})
    world.run(PLAIN_TABLE)
    assert "can't be taken over" in world.quarantined()[PLAIN_TABLE]
    assert SOURCE not in (world.at_target().parameters or {})


def test_a_table_that_is_being_read_when_it_is_asked_for_is_taken_over() -> None:
    world = HandWorld()
    copy_by_hand(world, PLAIN_TABLE, root=at(PLAIN_TABLE))
    world.open()
    world.capture_all()
    world.read()
    assert world.replica.requests.adoption.tables(lambda _: True, lambda _: False, "asked for") == [PLAIN_TABLE]
    world.settle()
    assert world.quarantined() == {}
    assert world.copied() == len(DAYS)
    assert not world.replica.side.read_requests.requests


def test_a_request_outlives_whoever_took_it() -> None:
    world = HandWorld()
    copy_by_hand(world, PLAIN_TABLE, root=at(PLAIN_TABLE))
    world.open()
    world.settle()
    world.replica.requests.adoption.tables(lambda _: True, lambda _: False, "asked for")
    world.restart_replica(world.ledger)
    world.settle()
    assert world.quarantined() == {}
    assert SOURCE in (world.at_target().parameters or {})
    assert not all_of(world.ledger.records(), ReadRequest)


def test_databases_and_functions_are_taken_over_with_a_pattern_for_all_of_them() -> None:
    world = HandWorld()
    function = Function("f", "d1", "org.example.F", owner="me")
    world.source.create_function(function)
    world.target_store.create_database(Database("d1", "by hand", "file:/handmade/d1.db", {"repl.last.id": "7"}))
    world.target_store.create_function(replace(function, class_name="org.example.Other"))
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.run()
    there = world.target_store.the_database("d1")
    assert (there.parameters or {})[SOURCE] == "hq:d1"
    assert (there.parameters or {})["repl.last.id"] == "7"
    assert there.location == "file:/handmade/d1.db"
    assert differences(world) == []


def test_a_database_and_a_function_are_not_taken_over_as_no_window_has_them_yet() -> None:
    world = HandWorld()
    function = Function("f", "d1", "org.example.F", owner="me")
    world.source.create_function(function)
    world.target_store.create_database(Database("d1", "by hand", "file:/handmade/d1.db", {}))
    world.target_store.create_function(function)
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    world.source.alter_database(
        "d1", replace(world.source.the_database("d1"), description="later", parameters={"k": "v"})
    )
    world.source.drop_function(TableName("d1", "f"))
    world.source.create_function(replace(function, class_name="org.example.Later"))
    world.capture_all()
    world.replica.requests.adoption.tables(lambda _: True, lambda _: True, "asked for")
    there, known = world.target_store.the_database("d1"), world.target_store.function(TableName("d1", "f"))
    assert (there.description, (there.parameters or {})[SOURCE]) == ("by hand", "hq:d1")
    assert known is not None
    assert known.class_name == "org.example.F"
    world.settle()
    assert differences(world) == []


def test_marks_of_another_stream_go_from_partitions_that_are_kept() -> None:
    world = HandWorld()
    copy_by_hand(world, PARTED, root=at(PARTED), parameters={EVENT: "1", INCARNATION: "1"})
    world.open()
    world.settle()
    read_at = world.source.current()
    world.replica.requests.adoption.tables(lambda _: True, lambda _: False, "asked for")
    world.settle()
    marks = {((part.parameters or {})[EVENT], (part.parameters or {})[INCARNATION]) for part in world.parts().values()}
    assert marks == {(str(read_at), f"r{read_at}")}


def test_a_table_that_is_just_taken_over_does_not_claim_to_be_what_it_is_not() -> None:
    world = HandWorld()
    copy_by_hand(world, PLAIN_TABLE, "another comment", root=at(PLAIN_TABLE))
    marks: list[tuple[str | None, str | None]] = []

    def look(_: str) -> None:
        parameters = world.at_target().parameters or {}
        marks.append((parameters.get("comment"), parameters.get(EVENT)))

    world.between = look
    world.run(PLAIN_TABLE)
    assert {event for comment, event in marks if comment == "by hand"} == {None, "0"}


def test_a_file_that_changes_while_it_is_compared_proves_nothing() -> None:
    world = HandWorld()
    copy_by_hand(world, PLAIN_TABLE, "other content", root=at(PLAIN_TABLE))
    here, there = world.storage.list(["file:/source/plain", at(PLAIN_TABLE)]).values()
    for name in ("x", "y"):
        world.storage.write(f"file:/source/plain/{name}", world.storage.read(f"{at(PLAIN_TABLE)}/{name}") or b"")
    assert prove(world.side, [(here, there)], also_known=True) == {}


def test_what_the_source_has_nothing_of_is_left_alone() -> None:
    world = HandWorld()
    name = TableName("d1", "theirs")
    world.target_store.create_database(Database("d1", "", "file:/handmade/d1.db", {}))
    world.target_store.create_table(Table("theirs", "d1", storage=Storage((), location="file:/theirs"), parameters={}))
    world.open()
    world.settle()
    assert world.replica.requests.adoption.tables(lambda _: True, lambda _: True, "asked for") == []
    world.settle()
    assert SOURCE not in (world.target_store.the_table(name).table.parameters or {})


def test_files_that_differ_in_no_size_and_no_time_are_found_where_it_is_asked_for() -> None:
    world = HandWorld()
    world.open()
    world.settle()
    path = join(location_of(world.at_target()) or "", "x")
    listed = world.storage.files([path])[path]
    world.storage.write(path, b"?")
    world.storage.date({path: listed.modified_ns})
    world.replica.reads.reread(lambda _: True, "bootstrap", {State.LIVE})
    world.settle()
    assert world.storage.read(path) == b"?"
    assert location_of(world.at_target()) == "file:/target/d1.db/plain"
    world.replica.reads.reread(lambda _: True, "repair", {State.LIVE}, ReadMode.LOOK)
    world.settle()
    assert world.target_states()[PLAIN_TABLE] == world.source_states()[PLAIN_TABLE]
    assert location_of(world.at_target()) != "file:/target/d1.db/plain"
    assert world.storage.read(path) == b"?"


def test_a_damaged_file_that_can_not_be_dated_is_refused() -> None:
    world = HandWorld()
    world.open()
    world.settle()
    path = join(location_of(world.at_target()) or "", "x")
    listed = world.storage.files([path])[path]
    world.storage.write(path, b"?")
    world.storage.date({path: listed.modified_ns})
    date: Callable[..., None] = world.storage.date
    world.storage.date = lambda _times: None
    try:
        world.replica.reads.reread(lambda name: name == PLAIN_TABLE, "repair", {State.LIVE}, ReadMode.LOOK)
        world.settle()
    finally:
        world.storage.date = date
    assert "its time can't be changed" in world.quarantined()[PLAIN_TABLE]


@pytest.mark.parametrize("damage", ["", "content", "missing", "version"])
def test_a_copied_delta_table_is_kept_where_its_version_and_all_its_files_are_there(damage: str) -> None:
    world = HandWorld()
    name = TableName("d1", "delta")
    world.make(name)
    table = world.source.the_table(name).table
    world.source.alter_table(name, replace(table, parameters={"spark.sql.sources.provider": "DELTA"}))
    for version, part in enumerate("xy"):
        world.storage.write(f"file:/source/delta/{part}", part.encode())
        action = json.dumps({"add": {"path": part}}).encode()
        world.storage.write(f"file:/source/delta/{commit_path(version)}", action)
    world.note()
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    copy_by_hand(world, name, root=at(name))
    for version in range(1 if damage == "version" else 2):
        content = world.storage.read(f"file:/source/delta/{commit_path(version)}")
        assert content is not None
        world.storage.write(f"{at(name)}/{commit_path(version)}", content)
    if damage == "content":
        world.storage.write(f"{at(name)}/x", b"?")
    if damage == "missing":
        world.storage.delete(f"{at(name)}/x")
    world.run(name)
    place = location_of(world.at_target(name)) or ""
    assert (place == at(name)) == (not damage)
    files = {path: world.storage.read(f"{place}/{path}") for path in ("x", "y", commit_path(0), commit_path(1))}
    assert files == {path: world.storage.read(f"file:/source/delta/{path}") for path in files}
