"""Symlink tables: readers at a target follow its manifests to the target's own copies of the files that the source's
manifests name."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calque.core.formats.layout import join
from calque.core.formats.symlinks import COPIES
from calque.core.records.lifecycle import State
from calque.engine.check.check_source import check_kinds
from calque.engine.check.findings import Findings
from calque.engine.replica.dry_run import explain_next_window
from calque.engine.sweep.sweep import sweep_target
from calque.engine.verify.verify import verify
from calque.errors import Refused
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.model.plan import CreateTable
from calque.model.policy import Policy
from calque.model.records import ReadMode
from support.memory.metastore import HIVE_3, HIVE_4
from support.worlds.disks import Death, DiskWorld
from support.worlds.policies import PolicyWorld
from support.worlds.worlds import INPUT, OUTPUT, SERDE, Died, World

T = TableName("d1", "t")
SYMLINKS = "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"
PATH = "file:/data/t"
RAW = "file:/raw"


class FollowingWorld(World):
    """Its readers, at both sides, follow manifests."""

    def content(self, location: str) -> Any:
        return tuple(sorted(named(self, location), key=str))


def named(world: World, location: str) -> list[tuple[str, bytes | None]]:
    """What a reader of a symlink table finds: the files that the manifests name, by their own names."""
    return [(line.rsplit("/", 1)[-1], content_at(world, line)) for line in lines(world, location)]


def content_at(world: World, line: str) -> bytes | None:
    try:
        return world.storage.read(line)
    except Refused:
        return None


def world_of(*, habits: Any = HIVE_3, opened: bool = True, **policy: Any) -> World:
    fields = {"include": ("d1.*",), "warehouse": "file:/target", **policy}
    world = FollowingWorld(1, habits, Policy("dr", "hq", **fields))
    world.source.create_database(Database("d1", location="file:/source/d1.db"))
    if opened:
        world.open()
    return world


def table(location: str = PATH, **more: Any) -> Table:
    storage = Storage((Column("a", "string"),), location, SYMLINKS, OUTPUT, serde=SerDe(class_name=SERDE))
    fields = {"storage": storage, "parameters": {"EXTERNAL": "TRUE"}, "type": "EXTERNAL_TABLE", **more}
    return Table("t", "d1", **fields)


def raw(world: World, **contents: bytes) -> str:
    """Files with rows; a manifest of them."""
    for name, content in contents.items():
        world.storage.write(f"{RAW}/{name}", content)
    return "".join(f"{RAW}/{name}\n" for name in contents)


def manifest(world: World, text: str | bytes, name: str = "manifest", location: str = PATH) -> None:
    content = text.encode() if isinstance(text, str) else text
    path = f"{location}/{name}"
    world.storage.remove([path])
    world.storage.write(path, content)


def create(world: World, made: Table) -> None:
    world.source.create_table(made)
    world.note()


def alter(world: World, at: TableName = T, **changes: Any) -> None:
    world.source.alter_table(at, replace(world.source.the_table(at).table, **changes))
    world.note()


def inserted(world: World, *names: str) -> None:
    """An event that says so, of an engine that wrote manifests."""
    world.source.insert(T, [f"{PATH}/{name}" for name in names or ("manifest",)])
    world.note()


def shown(world: World, name: TableName = T) -> Table:
    found: Table = world.target_store.the_table(name).table
    return found


def read(world: World, name: TableName = T) -> dict[str, bytes | None]:
    return dict(named(world, location_of(shown(world, name)) or ""))


def lines(world: World, location: str) -> list[str]:
    contents = [content.decode(errors="replace") for _, content in world.storage.contents(location)]
    return [line for content in contents for line in content.splitlines()]


def differences(world: World, data: str = "checksum") -> list[tuple[str, str]]:
    found = verify(world.source_side, world.side, data=data).differences
    return [(difference.kind.value, difference.what) for difference in found]


def require_equal(world: World) -> None:
    assert (differences(world), world.problems) == ([], [])


@pytest.mark.parametrize("at_boot", [True, False])
@pytest.mark.parametrize("habits", [HIVE_3, HIVE_4])
def test_files_that_manifests_name_come_along_and_manifests_name_the_copies(at_boot: bool, habits: Any) -> None:
    world = world_of(habits=habits, opened=not at_boot)
    manifest(world, raw(world, a=b"1", b=b"22") + f"{RAW}/a\n", "one")
    manifest(world, raw(world, c=b"3"), "two")
    create(world, table())
    if at_boot:
        world.open()
    world.settle()
    place = location_of(shown(world)) or ""
    assert sorted(named(world, place)) == [("a", b"1"), ("a", b"1"), ("b", b"22"), ("c", b"3")]
    assert all(line.startswith(f"{place}/{COPIES}/") for line in lines(world, place))
    require_equal(world)


@pytest.mark.parametrize("appends", ["in_place", "new_directory"])
def test_manifests_that_are_added_or_replaced_follow(appends: str) -> None:
    world = world_of(appends=appends)
    create(world, table())
    world.settle()
    assert read(world) == {}
    manifest(world, raw(world, a=b"1"))
    inserted(world)
    world.settle()
    assert read(world) == {"a": b"1"}
    manifest(world, raw(world, b=b"2"), "more")
    inserted(world, "more")
    world.settle()
    assert read(world) == {"a": b"1", "b": b"2"}
    require_equal(world)
    manifest(world, raw(world, a=b"1", c=b"3"))
    inserted(world)
    manifest(world, raw(world, d=b"4"), "last")
    inserted(world, "last")
    world.settle()
    assert read(world) == {"a": b"1", "b": b"2", "c": b"3", "d": b"4"}
    require_equal(world)


def test_it_keeps_its_rows_under_another_name_and_has_those_of_another_place() -> None:
    world = world_of()
    manifest(world, raw(world, a=b"1"))
    create(world, table())
    world.settle()
    alter(world, name="u")
    world.settle()
    other = TableName("d1", "u")
    assert read(world, other) == {"a": b"1"}
    require_equal(world)
    manifest(world, raw(world, b=b"2"), location="file:/elsewhere")
    alter(world, other, storage=table("file:/elsewhere").storage)
    world.settle()
    assert read(world, other) == {"b": b"2"}
    require_equal(world)


def test_where_files_stay_at_the_source_manifests_stay_as_they_are() -> None:
    world = world_of(data="none")
    manifest(world, raw(world, a=b"1"))
    create(world, table())
    world.settle()
    assert (location_of(shown(world)), read(world)) == (PATH, {"a": b"1"})
    assert lines(world, PATH) == [f"{RAW}/a"]
    alter(world, owner="other")
    world.settle()
    require_equal(world)


def partition(value: str, input_format: str = SYMLINKS) -> Partition:
    storage = replace(table(f"{PATH}/p={value}").storage or Storage(), input_format=input_format)
    return Partition((value,), *T, storage=storage, parameters={})


@pytest.mark.parametrize("appends", ["in_place", "new_directory"])
def test_partitions_are_followed_each_by_its_own_input_format(appends: str) -> None:
    world = world_of(appends=appends)
    create(world, table(partition_keys=(Column("p", "string"),)))
    manifest(world, raw(world, a=b"1"), location=f"{PATH}/p=1")
    world.storage.write(f"{PATH}/p=2/plain", b"")
    world.source.add_partitions(T, [partition("1"), partition("2", INPUT)])
    world.note()
    world.settle()
    first, second = (location_of(world.target_store.the_table(T).partitions[value,]) or "" for value in "12")
    assert named(world, first) == [("a", b"1")]
    assert [path for path, _ in world.storage.contents(second)] == ["plain"]
    manifest(world, raw(world, b=b"2"), "more", location=f"{PATH}/p=1")
    world.source.insert(T, [f"{PATH}/p=1/more"], values=("1",))
    world.note()
    world.settle()
    first = location_of(world.target_store.the_table(T).partitions["1",]) or ""
    assert sorted(named(world, first)) == [("a", b"1"), ("b", b"2")]
    require_equal(world)


@pytest.mark.parametrize("content", [b"9", b"", None])
def test_what_differs_behind_a_manifest_is_told_and_repaired(content: bytes | None) -> None:
    world = world_of()
    manifest(world, raw(world, a=b"1"))
    create(world, table())
    world.settle()
    [line] = lines(world, location_of(shown(world)) or "")
    world.storage.remove([line])
    if content is not None:
        world.storage.write(line, content)
    assert [kind for kind, _ in differences(world)] == (["content"] if content == b"9" else ["files"])
    if content != b"9":
        assert [kind for kind, _ in differences(world, "size")] == ["files"]
    world.replica.reads.reread(lambda _: True, "repair", [State.LIVE], how=ReadMode.LOOK)
    world.settle()
    assert (read(world), differences(world)) == ({"a": b"1"}, [])


def test_a_file_that_is_written_anew_behind_a_manifest_is_told_and_repaired() -> None:
    world = world_of()
    manifest(world, raw(world, a=b"1"))
    create(world, table())
    world.settle()
    world.storage.remove([f"{RAW}/a"])
    raw(world, a=b"1 and more")
    assert [kind for kind, _ in differences(world, "size")] == ["files"]
    world.replica.reads.reread(lambda _: True, "repair", [State.LIVE])
    world.settle()
    assert (read(world), differences(world)) == ({"a": b"1 and more"}, [])


def test_a_manifest_that_leads_to_the_source_is_told_and_repaired() -> None:
    world = world_of()
    manifest(world, raw(world, a=b"1"))
    create(world, table())
    world.settle()
    place = location_of(shown(world)) or ""
    [(name, _)] = world.storage.contents(place)
    world.storage.remove([join(place, name)])
    world.storage.write(join(place, name), f"{RAW}/a\n".encode())
    assert [kind for kind, _ in differences(world, "size")] == ["files"]
    world.replica.reads.reread(lambda _: True, "repair", [State.LIVE])
    world.settle()
    assert lines(world, location_of(shown(world)) or "") != [f"{RAW}/a"]
    assert (read(world), differences(world)) == ({"a": b"1"}, [])


def test_a_manifest_that_is_altered_within_its_size_and_time_is_told_and_repaired() -> None:
    world = world_of()
    manifest(world, raw(world, a=b"1"))
    create(world, table())
    world.settle()
    place = location_of(shown(world)) or ""
    [(name, content)] = world.storage.contents(place)
    path = join(place, name)
    time_ns = world.storage.files([path])[path].modified_ns
    world.storage.remove([path])
    world.storage.write(path, content[:-2] + b"z\n")
    world.storage.date({path: time_ns})
    assert [kind for kind, _ in differences(world, "size")] == ["files"]
    world.replica.reads.reread(lambda _: True, "repair", [State.LIVE])
    world.settle()
    assert (read(world), differences(world)) == ({"a": b"1"}, [])


def test_a_table_whose_input_format_turns_is_read_anew() -> None:
    world = world_of()
    manifest(world, raw(world, a=b"1"))
    create(world, table())
    world.settle()
    alter(world, storage=replace(table().storage or Storage(), input_format=INPUT))
    world.settle()
    assert lines(world, location_of(shown(world)) or "") == [f"{RAW}/a"]
    assert differences(world) == []
    alter(world, storage=table().storage)
    world.settle()
    assert (read(world), differences(world)) == ({"a": b"1"}, [])


HOSTILE = {
    "a relative path": ("raw/a\n", "Line 1 of file:/data/t/manifest"),
    "a pattern": (f"{RAW}/a\n{RAW}/*\n", "Line 2 of file:/data/t/manifest"),
    "a directory": (f"{RAW}\n", "Line 1 of file:/data/t/manifest"),
    "a file that is gone": (f"{RAW}/a\n{RAW}/gone\n", "Line 2 of file:/data/t/manifest"),
    "upwards": (f"{RAW}/../etc/passwd\n", "Line 1 of file:/data/t/manifest"),
    "an empty line": (f"{RAW}/a\n\n{RAW}/a\n", "Line 2 of file:/data/t/manifest"),
    "not UTF-8": (b"file:/raw/a\n\xff\xfe\n", "Line 2 of file:/data/t/manifest"),
    "no text": (b"\x00\x01", "Line 1 of file:/data/t/manifest"),
}


@pytest.mark.parametrize("at_boot", [True, False])
@pytest.mark.parametrize("shape", HOSTILE)
def test_a_table_whose_manifest_can_t_be_followed_is_set_aside_with_the_line(shape: str, at_boot: bool) -> None:
    text, reason = HOSTILE[shape]
    world = world_of(opened=not at_boot)
    raw(world, a=b"1")
    manifest(world, text)
    create(world, table())
    manifest(world, raw(world, b=b"2"), location="file:/data/u")
    create(world, replace(table("file:/data/u"), name="u"))
    if at_boot:
        world.open()
    world.settle()
    row = world.replica.tables.rows[T]
    assert (row.state, reason in row.reason) == (TableState.QUARANTINED, True), row.reason
    assert world.side.catalog.table(T) is None
    assert read(world, TableName("d1", "u")) == {"b": b"2"}


def test_a_manifest_in_a_directory_below_and_one_beyond_the_bound_set_the_table_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_of()
    manifest(world, raw(world, a=b"1"), "below/manifest")
    create(world, table())
    world.settle()
    assert "below/manifest is not read" in world.replica.tables.rows[T].reason
    monkeypatch.setattr("calque.engine.files.symlink_manifests.MANIFESTS", 10)
    manifest(world, raw(world, a=b"1"), location="file:/data/u")
    create(world, replace(table("file:/data/u"), name="u"))
    world.settle()
    assert "file:/data/u/manifest is not read" in world.replica.tables.rows[TableName("d1", "u")].reason


def test_a_place_that_may_not_be_read_sets_the_table_aside() -> None:
    world = world_of()

    def refuse(call: str, about: str) -> None:
        if call == "files" and about == f"{RAW}/b":
            raise Refused(f"{about} is not read", "It is a place of this host's own")

    world.storage.before = refuse
    manifest(world, raw(world, a=b"1", b=b"2"))
    create(world, table())
    world.settle()
    reason = world.replica.tables.rows[T].reason
    assert ("Line 2 of file:/data/t/manifest" in reason, "this host's own" in reason) == (True, True)


def test_a_named_file_that_changes_while_it_is_copied_is_taken_as_it_is_then() -> None:
    world = world_of()
    changes = iter([b"changed meanwhile"])

    def change(call: str, about: str) -> None:
        if call == "copy" and about == f"{RAW}/a" and (content := next(changes, None)) is not None:
            world.storage.write(f"{RAW}/a", content)

    world.storage.before = change
    manifest(world, raw(world, a=b"1"))
    create(world, table())
    world.settle()
    assert (read(world), differences(world)) == ({"a": b"changed meanwhile"}, [])


def test_a_manifest_that_is_replaced_before_it_is_read_is_not_taken_for_the_one_that_was_listed() -> None:
    world = world_of()
    world.settle()
    manifest(world, raw(world, a=b"1"))
    create(world, table())
    world.capture_all()
    changes = iter([raw(world, b=b"2")])

    def change(call: str, about: str) -> None:
        if call == "create" and about.startswith("file:/target/") and (text := next(changes, None)) is not None:
            manifest(world, text)

    world.storage.before = change
    world.window()
    assert (next(changes, None), world.side.catalog.table(T)) == (None, None)
    inserted(world)
    world.settle()
    assert read(world) == {"b": b"2"}
    require_equal(world)


class FollowingPolicyWorld(PolicyWorld):
    def content(self, location: str) -> Any:
        return tuple(sorted(named(self, location), key=str))


def test_a_table_whose_files_are_copied_no_more_and_again_leads_where_the_policy_says() -> None:
    copied = Policy("dr", "hq", include=("d1.*",), warehouse="file:/target")
    world = FollowingPolicyWorld((copied, replace(copied, data="none")), HIVE_3)
    world.source.create_database(Database("d1"))
    manifest(world, raw(world, a=b"1"))
    create(world, table())
    manifest(world, raw(world, b=b"2"), location=f"{PATH}_parts/p=1")
    parts = TableName("d1", "parts")
    keyed = table(f"{PATH}_parts", partition_keys=(Column("p", "string"),))
    create(world, replace(keyed, name="parts"))
    storage = replace(keyed.storage or Storage(), location=f"{PATH}_parts/p=1")
    world.source.add_partitions(parts, [Partition(("1",), *parts, storage=storage, parameters={})])
    world.note()
    world.open()
    for policy, beginning in ((0, "file:/target/"), (1, RAW), (0, "file:/target/")):
        world.change(policy)
        world.settle()
        places = [location_of(shown(world)), location_of(world.target_store.the_table(parts).partitions["1",])]
        found = [line for place in places for line in lines(world, place or "")]
        assert [line.startswith(beginning) for line in found] == [True, True]
        assert [named(world, place or "") for place in places] == [[("a", b"1")], [("b", b"2")]]
        assert differences(world) == []


def test_calque_may_die_anywhere() -> None:
    deaths = 0
    for seed in range(40):
        world = world_of()
        world.rng = random.Random(seed)
        manifest(world, raw(world, a=b"1"))
        create(world, table())
        world.deadliness = 0.04

        def perhaps(_call: str, _about: str, world: World = world) -> None:
            if world.mortal and world.fate():
                world.mortal = False
                world.deaths += 1
                raise Died

        world.storage.before = perhaps
        world.settle()
        manifest(world, raw(world, b=b"2"), "more")
        inserted(world, "more")
        world.settle()
        manifest(world, raw(world, c=b"3"))
        inserted(world)
        alter(world, name="u")
        world.settle()
        world.storage.before = lambda _call, _about: None
        assert read(world, TableName("d1", "u")) == {"b": b"2", "c": b"3"}
        require_equal(world)
        deaths += world.deaths
    assert deaths > 40


class FollowingDisk(DiskWorld):
    def content(self, location: str) -> Any:
        return tuple(sorted(named(self, location), key=str))


def test_manifests_on_a_disk_that_change_without_an_event_are_found_by_a_scan(tmp_path: Path) -> None:
    world = FollowingDisk(tmp_path, Death(), scanned=True)
    world.source.create_database(Database("d1"))
    place, rows = f"file:{tmp_path}/data/t", tmp_path / "raw"
    for name in "ab":
        world.storage.write(f"file:{rows}/{name}", name.encode())
    manifest(world, f"{rows}/a\n", location=place)
    create(world, table(place))
    world.start()
    world.settle()
    assert read(world) == {"a": b"a"}
    manifest(world, f"{rows}/b\n", "more", location=place)
    world.note()
    for _ in range(5):
        world.clock.now += 10**10
        world.settle()
    assert read(world) == {"a": b"a", "b": b"b"}
    assert all(str(tmp_path / "target") in line for line in lines(world, location_of(shown(world)) or ""))
    assert differences(world) == []


def test_a_plan_says_what_would_be_done_and_changes_nothing() -> None:
    world = world_of()
    world.settle()
    manifest(world, raw(world, a=b"1"))
    create(world, table())
    world.capture_all()
    changes = world.storage.changes
    explained = explain_next_window(world.source_side, world.side, lambda: world.begin, None, 100)
    assert (explained.quarantined, explained.reads) == ((), ())
    assert [type(hop.operation) for group in explained.groups for hop in group.plan.hops] == [CreateTable]
    assert (world.storage.changes, world.side.catalog.table(T)) == (changes, None)


def test_what_was_copied_by_hand_leads_to_the_source_and_is_not_taken_over_as_it_is() -> None:
    world = world_of(opened=False)
    manifest(world, raw(world, a=b"1"))
    create(world, table())
    by_hand = "file:/by_hand/t"
    manifest(world, f"{RAW}/a\n", location=by_hand)
    world.target_store.create_database(Database("d1"))
    world.target_store.create_table(table(by_hand))
    times = world.storage.files([f"{PATH}/manifest"])[f"{PATH}/manifest"].modified_ns
    world.storage.date({f"{by_hand}/manifest": times})
    world.open()
    world.settle()
    world.replica.requests.adoption.tables(lambda name: name == T, lambda _: False, "asked for by adopt")
    world.settle()
    assert world.replica.tables.rows[T].state is State.LIVE
    place = location_of(shown(world)) or ""
    assert place != by_hand
    assert all(line.startswith(place) for line in lines(world, place))
    assert (read(world), differences(world)) == ({"a": b"1"}, [])


def test_what_a_replaced_manifest_named_is_swept_with_its_directory() -> None:
    world = world_of()
    manifest(world, raw(world, a=b"1"))
    create(world, table())
    world.settle()
    old = location_of(shown(world)) or ""
    manifest(world, raw(world, b=b"2"))
    inserted(world)
    world.settle()
    world.source.drop_table(T)
    world.note()
    world.settle()
    sweep_target(world.side, world.journal, time.time_ns() + 10**15)
    assert [path for path in world.storage.children("file:/target/d1.db") if path == "t"] == []
    assert world.storage.children(old) == []


def test_check_has_nothing_against_it() -> None:
    findings = Findings()
    check_kinds({T: table()}, [], findings)
    assert findings.entries == []
