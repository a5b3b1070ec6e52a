"""`compact`: the small files of a new partition are combined on their way to the target."""

from __future__ import annotations

from dataclasses import replace

from calque.core.formats.layout import join
from calque.core.records.lifecycle import State
from calque.core.small_files.combined_note import NOTE
from calque.engine.replica.dry_run import explain_next_window
from calque.engine.verify.verify import verify
from calque.model.files import Listing
from calque.model.hive import Column, Database, Partition, Storage, Table, location_of
from calque.model.names import TableName
from calque.model.policy import Policy, SmallFilesRule
from calque.model.records import ReadMode
from support.judges.recorded import unlike_target
from support.worlds.worlds import INPUT, World, rows_of

NAME = TableName("d1", "logs")
POLICY = Policy(
    "dr",
    "hq",
    include=("d*.*",),
    warehouse="file:/target",
    appends="new_directory",
    compact={"d1.*": SmallFilesRule(files=3, below=20)},
)
ROWS = {"a": b"one\n", "b": b"two", "c": b"", "d": b"three\r", "e": b"\nfour\r\n", "f": b"\x00\xff\n"}


def opened(policy: Policy = POLICY, parameters: dict[str, str] | None = None) -> World:
    world = World(1, policy=policy)
    world.open()
    world.writer.source.create_database(Database("d1"))
    storage = Storage((Column("x", "string"),), input_format=INPUT)
    table = Table(*reversed(NAME), storage=storage, partition_keys=(Column("p", "string"),), parameters=parameters)
    world.writer.source.create_table(replace(table, type="MANAGED_TABLE"))
    return world


def add(world: World, value: str, files: dict[str, bytes]) -> None:
    location = join(location_of(world.source.the_table(NAME).table) or "", f"p={value}")
    for name, content in files.items():
        world.storage.write(f"{location}/{name}", content)
    storage = Storage((Column("x", "string"),), location, INPUT)
    world.writer.source.add_partitions(NAME, [Partition((value,), *NAME, storage=storage, parameters={})])
    world.settle()


def insert(world: World, value: str, files: dict[str, bytes]) -> None:
    location = location_of(world.source.the_table(NAME).partitions[(value,)]) or ""
    for name, content in files.items():
        world.storage.write(f"{location}/{name}", content)
    world.writer.source.insert(NAME, [f"{location}/{name}" for name in files], values=(value,))
    world.settle()


def place(world: World, value: str) -> str:
    return location_of(world.target_store.the_table(NAME).partitions[(value,)]) or ""


def files(world: World, value: str) -> dict[str, bytes]:
    """As a reader of the target finds them."""
    return dict(world.storage.contents(place(world, value)))


def listed(world: World, value: str) -> Listing:
    return world.side.storage.list([place(world, value)])[place(world, value)]


def repair(world: World) -> None:
    world.replica.reads.reread(lambda _: True, "repair", {State.LIVE}, ReadMode.LOOK)
    world.settle()


def differences(world: World, data: str = "checksum") -> list[tuple[str, str]]:
    return [(one.partition, one.what) for one in verify(world.source_side, world.side, data=data).differences]


def test_many_small_files_become_few_with_the_same_rows_in_order() -> None:
    world = opened()
    add(world, "1", ROWS)
    there = files(world, "1")
    assert len(there) == 2
    assert b"".join(there.values()) == b"one\ntwo\nthree\r\n\nfour\r\n\x00\xff\n"
    assert (differences(world), world.problems) == ([], [])
    row = world.ledger.latest_objects([(*NAME, "p=1")])[(*NAME, "p=1")]
    combination = listed(world, "1").combination
    assert combination is not None
    assert row.row_digest == combination.row_digest
    assert [file.path for file in row.files] == sorted(there)
    assert all(file.checksum for file in row.files)


def test_few_files_and_tables_without_a_rule_are_copied_as_they_are() -> None:
    world = opened(replace(POLICY, compact={"d1.other": SmallFilesRule(2, 100), "d1.*": SmallFilesRule(7, 20)}))
    add(world, "1", ROWS)
    assert files(world, "1") == ROWS
    assert differences(world) == []


def test_files_with_header_lines_compressed_files_and_byte_order_marks_are_copied_as_they_are() -> None:
    for parameters, given in (
        ({"skip.header.line.count": "1"}, ROWS),
        ({}, {f"{name}.gz": content for name, content in ROWS.items()}),
        ({}, ROWS | {"b": b"\xef\xbb\xbftwo"}),
    ):
        world = opened(parameters=parameters)
        add(world, "1", given)
        assert files(world, "1") == given
        assert differences(world) == []
        assert world.storage.children(place(world, "1")).count(NOTE) == 0


def test_large_files_are_copied_beside_those_that_are_combined() -> None:
    world = opened()
    large = b"a long line of more than twenty bytes"
    add(world, "1", ROWS | {"m": large})
    there = files(world, "1")
    assert there.pop("m") == large
    assert len(there) == 2
    assert differences(world) == []


def test_an_insert_a_drop_and_a_new_partition_of_the_same_name_go_on_as_ever() -> None:
    world = opened()
    add(world, "1", ROWS)
    insert(world, "1", {"g": b"five", "h": b"six"})
    assert rows_of(files(world, "1").values()) == rows_of((ROWS | {"g": b"five", "h": b"six"}).values())
    assert differences(world) == []
    world.writer.source.drop_partitions(NAME, ["p=1"])
    world.settle()
    add(world, "1", {"z": b"new"})
    assert files(world, "1") == {"z": b"new"}
    assert (differences(world), world.problems) == ([], [])


def test_a_window_played_again_copies_nothing_twice() -> None:
    world = opened()
    add(world, "1", ROWS)
    before, changes = place(world, "1"), world.storage.changes
    repair(world)
    assert (place(world, "1"), world.storage.changes) == (before, changes)


def test_a_changed_row_is_found_by_its_digest_and_repaired() -> None:
    world = opened()
    add(world, "1", ROWS)
    (name, content), *_ = sorted(files(world, "1").items())
    path = join(place(world, "1"), name)
    time = world.storage.files([path])[path].modified_ns
    world.storage.write(path, content.replace(b"two", b"TWO"))
    world.storage.date({path: time})
    assert differences(world, "size") == []
    assert differences(world) == [("p=1", f"other rows: {name}")]
    repair(world)
    assert differences(world) == []
    assert rows_of(files(world, "1").values()) == rows_of(ROWS.values())


def test_a_file_that_is_gone_or_was_put_there_is_found_and_repaired() -> None:
    world = opened()
    add(world, "1", ROWS)
    world.storage.write(join(place(world, "1"), "strange"), b"row")
    assert [what for what, _ in differences(world, "size")] == ["p=1"]
    repair(world)
    assert differences(world) == []
    world.storage.delete(join(place(world, "1"), sorted(files(world, "1"))[0]))
    assert [what for what, _ in differences(world, "size")] == ["p=1"]
    repair(world)
    assert differences(world) == []


def test_a_header_that_is_set_later_is_found_by_verify_and_repaired() -> None:
    world = opened()
    add(world, "1", ROWS)
    table = world.source.the_table(NAME).table
    parameters = {**(table.parameters or {}), "skip.header.line.count": "1"}
    world.writer.source.alter_table(NAME, replace(table, parameters=parameters))
    world.settle()
    assert [what for what, _ in differences(world, "size")] == ["p=1"]
    repair(world)
    assert files(world, "1") == ROWS
    assert differences(world) == []


def test_combined_partitions_stay_when_the_rule_goes_and_appends_are_in_place_again() -> None:
    world = opened()
    add(world, "1", ROWS)
    before = place(world, "1")
    world.policy = replace(POLICY, compact={}, appends="in_place")
    world.side = replace(world.side, policy=world.policy, admission=type(world.side.admission)(world.policy))
    world.restart()
    repair(world)
    assert place(world, "1") == before
    insert(world, "1", {"g": b"five"})
    assert files(world, "1") == ROWS | {"g": b"five"}
    assert [one.what for one in verify(world.source_side, world.side, data="checksum").differences] == []


def test_a_table_that_is_built_in_batches_has_its_combined_files_in_the_ledger() -> None:
    world = World(1, policy=POLICY, batch=1)
    world.source.create_database(Database("d1"))
    storage = Storage((Column("x", "string"),), input_format=INPUT)
    table = Table(*reversed(NAME), storage=storage, partition_keys=(Column("p", "string"),))
    world.source.create_table(replace(table, type="MANAGED_TABLE"))
    for value in ("1", "2"):
        location = join(location_of(world.source.the_table(NAME).table) or "", f"p={value}")
        for name, content in ROWS.items():
            world.storage.write(f"{location}/{name}", content)
        part = Partition((value,), *NAME, storage=Storage((Column("x", "string"),), location, INPUT), parameters={})
        world.source.add_partitions(NAME, [part])
    world.open()
    world.settle()
    for value in ("1", "2"):
        row = world.ledger.latest_objects([(*NAME, f"p={value}")])[(*NAME, f"p={value}")]
        assert [file.path for file in row.files] == sorted(files(world, value))
        assert row.row_digest
    assert differences(world) == []
    assert unlike_target(world) == []


def test_a_plan_counts_the_source_s_files_and_changes_nothing() -> None:
    world = opened()
    location = join(location_of(world.source.the_table(NAME).table) or "", "p=1")
    for name, content in ROWS.items():
        world.storage.write(f"{location}/{name}", content)
    part = Partition(("1",), *NAME, storage=Storage((Column("x", "string"),), location, INPUT), parameters={})
    world.settle()
    world.writer.source.add_partitions(NAME, [part])
    world.capture_all()
    before = world.storage.paths()
    explained = explain_next_window(world.source_side, world.side, lambda: world.begin, None, 100)
    hops = [cost for group in explained.groups for cost in group.costs]
    assert [(hop.files, hop.bytes) for hop in hops] == [(len(ROWS), sum(map(len, ROWS.values())))]
    assert world.storage.paths() == before
    world.settle()
    epoch = world.ledger.last_epoch()
    assert epoch is not None
    assert (epoch.files, epoch.bytes) == (len(ROWS), sum(map(len, ROWS.values())))
