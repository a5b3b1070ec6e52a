"""`permissions = "keep"`: directories and files at the target are whose they are at the source."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

import pytest

from calque.core.formats.layout import join
from calque.core.records.lifecycle import State
from calque.engine.files.permissions import keep
from calque.engine.sides.sides import TargetSide
from calque.engine.verify.verify import verify
from calque.model.hive import Column, Database, Partition, Storage, Table, location_of
from calque.model.names import TableName
from calque.model.permissions import Permissions
from calque.model.policy import Policy, SmallFilesRule
from calque.model.records import ReadMode
from calque.ports.forwarding import ForwardingStorage
from support.memory.storage import NOBODYS
from support.worlds.worlds import INPUT, World

NAME = TableName("d1", "t")
KEEP = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", permissions="keep")
DATABASES, TABLES, PARTITIONS, FILES = (
    Permissions(name, "staff", mode)
    for name, mode in (("dora", 0o700), ("tom", 0o750), ("paul", 0o710), ("fred", 0o640))
)
ACL = replace(PARTITIONS, acl=("default:group::r-x", "default:other::---", "default:user::rwx", "user:eve:r-x"))


def opened(policy: Policy = KEEP) -> World:
    world = World(1, policy=policy)
    world.open()
    source = world.writer.source
    source.create_database(Database("d1"))
    world.storage.make(source.the_database("d1").location or "")
    world.storage.set_permissions({source.the_database("d1").location or "": DATABASES})
    storage = Storage((Column("x", "string"),), input_format=INPUT)
    keys = (Column("p", "string"), Column("q", "string"))
    table = Table(*reversed(NAME), storage=storage, partition_keys=keys, parameters={})
    source.create_table(replace(table, type="MANAGED_TABLE"))
    world.storage.make(root(world))
    world.storage.set_permissions({root(world): TABLES})
    return world


def root(world: World) -> str:
    return location_of(world.source.the_table(NAME).table) or ""


def put(world: World, value: str, *names: str, permissions: Permissions = PARTITIONS) -> list[str]:
    """Files of a partition, with its directory's permissions, and theirs."""
    location = join(root(world), f"p={value}/q=1")
    paths = [join(location, name) for name in names]
    for path in paths:
        world.storage.write(path, path.encode())
    world.storage.set_permissions({join(root(world), f"p={value}"): TABLES, location: permissions})
    world.storage.set_permissions(dict.fromkeys(paths, FILES))
    return paths


def add(world: World, value: str, *names: str, permissions: Permissions = PARTITIONS) -> None:
    put(world, value, *names, permissions=permissions)
    storage = Storage((Column("x", "string"),), join(root(world), f"p={value}/q=1"), INPUT)
    world.writer.source.add_partitions(NAME, [Partition((value, "1"), *NAME, storage=storage, parameters={})])
    world.settle()


def below(world: World, location: str) -> Mapping[str, Permissions]:
    """By paths from there, of data and what is calque's own."""
    location = location.removeprefix("file:")
    paths = [*world.storage.tree(f"file:{location}")]
    return {
        path.removeprefix(f"file:{location}/"): permissions
        for path, permissions in world.storage.permissions(paths).items()
        if "_calque_" not in path and not path.endswith("/_calque")
    }


def place(world: World, value: str) -> str:
    return location_of(world.target_store.the_table(NAME).partitions[(value, "1")]) or ""


def differences(world: World) -> list[tuple[str, str, str, str | None, str | None]]:
    return [
        (one.of, one.partition, one.what, one.source, one.target)
        for one in verify(world.source_side, world.side, data="checksum").differences
    ]


def repair(world: World) -> None:
    world.replica.reads.reread(lambda _: True, "repair", {State.LIVE}, ReadMode.LOOK)
    world.settle()


def test_all_that_is_made_is_whose_it_is_at_the_source() -> None:
    world = opened()
    add(world, "1", "f", "g", permissions=ACL)
    assert below(world, "/target") == {
        "d1.db": DATABASES,
        "d1.db/t": TABLES,
        "d1.db/t/p=1": TABLES,
        "d1.db/t/p=1/q=1": ACL,
        "d1.db/t/p=1/q=1/f": FILES,
        "d1.db/t/p=1/q=1/g": FILES,
    }
    assert differences(world) == []


def test_without_it_a_target_gives_its_own() -> None:
    world = opened(replace(KEEP, permissions="target"))
    add(world, "1", "f")
    assert set(below(world, "/target").values()) == {NOBODYS}
    assert differences(world) == []


def test_files_that_are_appended_and_directories_that_come_with_them() -> None:
    world = opened()
    add(world, "1", "f")
    paths = put(world, "1", "g", "deep/h")
    world.storage.set_permissions({paths[1].rpartition("/")[0]: TABLES})
    world.writer.source.insert(NAME, paths, values=("1", "1"))
    world.settle()
    assert below(world, place(world, "1")) == {
        "f": FILES,
        "g": FILES,
        "deep": TABLES,
        "deep/h": FILES,
    }
    assert differences(world) == []


def test_a_directory_beside_the_table_lets_nobody_in_whom_the_table_keeps_out() -> None:
    world = opened()
    add(world, "1", "f")
    put(world, "1", "g")
    world.storage.delete(join(root(world), "p=1/q=1/f"))
    world.writer.source.insert(NAME, [join(root(world), "p=1/q=1/g")], values=("1", "1"), replace=True)
    world.settle()
    beside = place(world, "1")
    assert "/_calque/t." in beside
    of_incarnation = beside.partition("/p=1/")[0]
    assert below(world, of_incarnation) == {
        "p=1": TABLES,
        "p=1/q=1": PARTITIONS,
        beside.removeprefix(f"{of_incarnation}/"): PARTITIONS,
        f"{beside.removeprefix(f'{of_incarnation}/')}/g": FILES,
    }
    assert world.storage.permissions([of_incarnation]) == {of_incarnation: TABLES}
    assert differences(world) == []


def test_combined_files_are_whose_the_first_of_them_is() -> None:
    world = opened(replace(KEEP, appends="new_directory", compact={"d1.*": SmallFilesRule(files=2, below=100)}))
    add(world, "1", "f", "g", "h")
    combined = [path for path in below(world, place(world, "1")) if not path.startswith("_")]
    assert [below(world, place(world, "1"))[path] for path in combined] == [FILES]
    assert differences(world) == []


@pytest.mark.parametrize("of", ["", "/p=1/q=1", "/p=1/q=1/f"])
def test_what_changes_without_an_event_is_found_by_verify_and_repaired(of: str) -> None:
    world = opened()
    add(world, "1", "f")
    other = Permissions("new", "owners", 0o400, ("group::r--", "user:eve:r--"))
    was = world.storage.permissions([root(world) + of])[root(world) + of]
    world.storage.set_permissions({root(world) + of: other})
    target = f"file:/target/d1.db/t{of}"
    what = f"permissions: {target}"
    [difference] = differences(world)
    assert difference == ("table", "p=1/q=1" if of else "", what, str(other), str(was))
    copied = world.storage.changes
    repair(world)
    assert differences(world) == []
    assert world.storage.permissions([target]) == {target: other}
    assert copied == world.storage.changes


def test_permissions_of_a_database_are_compared_and_follow_with_its_next_event() -> None:
    world = opened()
    add(world, "1", "f")
    directory = world.source.the_database("d1").location or ""
    world.storage.set_permissions({directory: TABLES})
    what = "permissions: file:/target/d1.db"
    assert differences(world) == [("database", "", what, str(TABLES), str(DATABASES))]
    world.writer.source.alter_database("d1", replace(world.source.the_database("d1"), description="x"))
    world.settle()
    assert differences(world) == []


class Denied(ForwardingStorage):
    """Owners are given by nobody."""

    def set_permissions(self, permissions: Mapping[str, Permissions]) -> Mapping[str, str]:
        return {location: f"owner {each.owner}: Operation not permitted" for location, each in permissions.items()}


def test_what_can_not_be_given_is_told_once_for_each_reason(caplog: pytest.LogCaptureFixture) -> None:
    world = opened()
    side = TargetSide.of(KEEP, world.side.catalog, world.ledger, Denied(world.storage))
    add(world, "1", "f")
    location = root(world)
    with caplog.at_level(logging.WARNING):
        keep(side, [(location, "file:/target/d1.db")])
        keep(side, [(location, "file:/target/d1.db"), (join(location, "p=1/q=1"), "file:/target/d1.db/t")])
    lacks = "dr: files or directories lack permissions of the source: owner {}: Operation not permitted"
    assert [record.getMessage() for record in caplog.records] == [lacks.format(name) for name in ("tom", "paul")]
