"""Delta replicas in whole worlds, to whose logs others write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from calque.core.images.compare import DifferenceKind
from calque.engine.verify.verify import verify
from calque.model.hive import Partition, Storage, is_partitioned, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from support.worlds.delta_reader import Snapshot, snapshot
from support.worlds.histories import AT_FIRST, PLAIN, differences
from support.worlds.worlds import InlineExecutor, World

PARTED, TAKEN = TableName("d1", "tmp"), TableName("d1", "taken")


def pool(_workers: int, _name: str) -> Executor:
    return InlineExecutor()


@pytest.fixture
def world() -> World:
    return new_world()


def new_world() -> World:
    """At rest, with Delta tables; `PARTED` has two partitions."""
    world = World(0, policy=replace(PLAIN, format="delta"))
    with world.uninterrupted():
        for write in AT_FIRST:
            world.writer.rng.seed(write.seed)
            world.writer.run(write.operation)
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    assert len(world.as_listed(PARTED).partitions) == 2
    return world


def root(world: World, name: TableName = PARTED) -> str:
    return location_of(world.target_store.the_table(name).table) or ""


def newest(world: World, name: TableName = PARTED) -> Snapshot:
    at = root(world, name)
    return snapshot(world.storage.read, world.storage.children(f"{at}/_delta_log"), at)


def commit_as_another(world: World, *actions: Mapping[str, Any]) -> None:
    """The next version of the log, with nothing of ours in it."""
    rows = ({"commitInfo": {"operation": "WRITE", "engineInfo": "another"}}, *actions)
    path = f"{root(world)}/_delta_log/{newest(world).version + 1:020}.json"
    world.storage.write(path, "".join(json.dumps(row) + "\n" for row in rows).encode())


def appended(world: World, day: str) -> Mapping[str, Any]:
    """What adds a file of another's."""
    path = f"another/{day}/part-x"
    world.storage.write(f"{root(world)}/{path}", b"rows")
    add = {"path": path, "partitionValues": {"p": day}, "size": 4, "modificationTime": 1, "dataChange": True}
    return {"add": add}


def insert(world: World) -> None:
    """A file that the first partition gets at the source."""
    with world.uninterrupted():
        partition = next(iter(world.source.the_table(PARTED).partitions.values()))
        path = world.writer.put_file(location_of(partition) or "")
        world.writer.source.insert(PARTED, [path], values=partition.values)
    world.capture_all()


def test_a_commit_that_another_makes_first_is_planned_around(world: World) -> None:
    before = newest(world).version
    coming: list[Mapping[str, Any]] = [{"txn": {"appId": "another", "version": 1}}]

    def storage_called(call: str, path: str) -> None:
        if call == "publish" and path.startswith(f"{root(world)}/_delta_log/") and coming:
            commit_as_another(world, coming.pop())

    world.storage.before = storage_called
    insert(world)
    world.settle()
    assert coming == []
    assert newest(world).version == before + 2
    assert (world.problems, differences(world)) == ([], [])


@pytest.mark.parametrize(
    ("day", "kind"), [("1", DifferenceKind.FILES), ("99", DifferenceKind.EXTRA)], ids=["in ours", "beside ours"]
)
def test_rows_that_another_appends_are_reported_and_stay_while_the_table_rests(
    world: World, day: str, kind: DifferenceKind
) -> None:
    assert ("1",) in world.as_listed(PARTED).partitions
    commit_as_another(world, appended(world, day))
    for _ in range(3):
        world.capture_all()
        world.work()
    found = verify(world.source_side, world.side, (), "checksum", pool=pool)
    assert [(one.table, one.partition, one.kind) for one in found.differences] == [(PARTED, f"p={day}", kind)]
    assert f"another/{day}/part-x" in newest(world).files


@pytest.mark.parametrize("is_keyed_first", [False, True])
def test_a_table_that_takes_the_name_of_one_with_other_keys_in_one_window_has_no_file_of_it(
    is_keyed_first: bool,
) -> None:
    """Whenever calque dies meanwhile."""
    for point in count():
        world = new_world()
        take_name(world, is_keyed_first, point)
        [added] = newest(world, TAKEN).files.values()
        assert added["partitionValues"] == ({} if is_keyed_first else {"p": "1"}), point
        assert (world.problems, differences(world)) == ([], []), point
        assert verify(world.source_side, world.side, (), "checksum", pool=pool).differences == (), point
        if not world.deaths:
            break


def take_name(world: World, is_keyed_first: bool, point: int) -> None:
    """Two tables of one name, each with a row, of which only the first was shown before. Calque dies at the point of
    the window that shows the second."""
    writer, keyed = world.writer, world.source.the_table(PARTED).table
    storage, points = replace(keyed.storage or Storage(), location=None), count()
    first, second = [keyed.partition_keys, ()] if is_keyed_first else [(), keyed.partition_keys]
    with world.uninterrupted():
        writer.source.create_table(replace(keyed, name=TAKEN.table, storage=storage, partition_keys=first))
        put_row(world)
    world.capture_all()
    world.settle()
    with world.uninterrupted():
        writer.create_instead(world.source.the_table(TAKEN).table, second)
        put_row(world)
    world.capture_all()
    world.fate = lambda: next(points) == point
    world.settle()


def put_row(world: World) -> None:
    writer, table = world.writer, world.source.the_table(TAKEN).table
    location = location_of(table) or ""
    if is_partitioned(table):
        location += "/p=1"
        row = Partition(("1",), *TAKEN, storage=replace(table.storage or Storage(), location=location))
        writer.source.add_partitions(TAKEN, [row])
    path = writer.put_file(location)
    writer.source.insert(TAKEN, [path], values=("1",) if is_partitioned(table) else None)


FEATURES = ["deletionVectors"]
RAISED = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": FEATURES, "writerFeatures": FEATURES}


@pytest.mark.parametrize(
    ("protocol", "asked"),
    [(RAISED, "deletionVectors"), ({"minReaderVersion": 2, "minWriterVersion": 5}, "version 2 of readers")],
    ids=["features", "version"],
)
def test_a_protocol_that_another_raises_sets_the_table_aside_until_it_is_made_anew(
    world: World, protocol: Mapping[str, Any], asked: str
) -> None:
    commit_as_another(world, {"protocol": protocol})
    before = newest(world).version
    insert(world)
    world.settle()
    row = world.replica.tables.rows[PARTED]
    assert (row.state, asked in row.reason) == (TableState.QUARANTINED, True)
    assert newest(world).version == before
    world.side.catalog.drop_table(PARTED)
    world.replica.reads.reread(lambda _: True, "the test wants it", {TableState.QUARANTINED})
    world.settle()
    assert newest(world).version == 0
    assert newest(world).files.keys() == {"p=1/part-00001", "p=1/part-00002", "p=1/part-00004", "p=3/part-00003"}
    assert verify(world.source_side, world.side, (), "checksum", pool=pool).differences == ()


def test_files_that_another_removes_are_reported(world: World) -> None:
    path = next(path for path in newest(world).files if path.startswith("p=1/"))
    commit_as_another(world, {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}})
    found = verify(world.source_side, world.side, (), "checksum", pool=pool)
    assert [(one.table, one.partition, one.kind) for one in found.differences] == [
        (PARTED, "p=1", DifferenceKind.FILES)
    ]
