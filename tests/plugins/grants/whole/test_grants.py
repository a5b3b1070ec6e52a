"""`grants = "follow"`: databases and tables have the privileges that they have at the source."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

import pytest

from calque.engine.sides.sides import TargetSide
from calque.engine.verify.verify import verify
from calque.errors import CallFailed
from calque.model.hive import Column, Database, Partition, Storage, Table
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.plugins.grants.engine.compare import ComparedGrants
from calque.plugins.grants.engine.follow import GrantsFollower
from calque.plugins.grants.model import ROLE, Grant
from calque.plugins.grants.ports import Privileges
from support.memory.privileges import MemoryPrivileges
from support.worlds.worlds import INPUT, World

NAME, DATABASE = TableName("d1", "t"), TableName("d1", "")
FOLLOW = Policy("dr", "hq", include=("d1.*",), rename={"d1": "e1"}, warehouse="file:/target", grants="follow")
THERE, DATABASE_THERE = TableName("e1", "t"), TableName("e1", "")
ALICE = Grant("alice", 1, "SELECT", False, "hive", 1, "SQL")
READERS = Grant("readers", ROLE, "SELECT", False, "hive", 1, "SQL")
BOB = Grant("bob", 1, "INSERT", True, "hive", 1, "SQL")


class Rig:
    def __init__(self, policy: Policy = FOLLOW) -> None:
        self.world = World(1, policy=policy)
        self.source, self.target = (MemoryPrivileges(store) for store in (self.world.source, self.world.target_store))
        self.at_target: Privileges = self.target
        self.world.open()
        self.side = TargetSide.of(policy, self.world.side.catalog, self.world.ledger, self.world.storage)
        self.world.writer.source.create_database(Database("d1"))
        self.create()

    def create(self, name: TableName = NAME) -> None:
        storage = Storage((Column("x", "string"),), input_format=INPUT)
        self.world.writer.source.create_table(
            Table(*reversed(name), storage=storage, parameters={}, type="MANAGED_TABLE")
        )
        self.world.settle()

    def follow(self) -> int:
        """How many objects were changed."""
        return self.follower().run_once()

    def follower(self) -> GrantsFollower:
        return GrantsFollower(self.world.source_side, self.side, self.source, self.at_target)

    def differences(self) -> list[tuple[str, str, str | None, str | None]]:
        compared = [ComparedGrants(self.source, self.at_target)] if self.side.policy.grants == "follow" else []
        found = verify(self.world.source_side, self.side, data="size", others=compared).differences
        return [(one.of, one.what, one.source, one.target) for one in found]


def granted(privileges: MemoryPrivileges, name: TableName) -> frozenset[Grant]:
    return privileges.grants([name])[name]


def test_grants_come_and_go_with_those_of_the_source() -> None:
    rig = Rig()
    rig.source.grant(DATABASE, [ALICE])
    rig.source.create_role("readers")
    rig.source.grant(NAME, [BOB, READERS])
    assert rig.differences() == [
        ("database", "grants", "SELECT to user alice by user hive", None),
        (
            "table",
            "grants",
            "INSERT to user bob with grant option by user hive, SELECT to role readers by user hive",
            None,
        ),
    ]
    assert rig.follow() == 2
    assert (granted(rig.target, DATABASE_THERE), granted(rig.target, THERE)) == ({ALICE}, {BOB, READERS})
    assert (rig.follow(), rig.differences()) == (0, [])
    rig.source.revoke(NAME, [BOB])
    rig.source.grant(NAME, [replace(BOB, grant_option=False)])
    assert rig.follow() == 1
    assert granted(rig.target, THERE) == {replace(BOB, grant_option=False), READERS}


def test_what_is_granted_at_the_target_alone_goes() -> None:
    rig = Rig()
    rig.target.grant(THERE, [ALICE])
    assert rig.differences() == [("table", "grants", None, "SELECT to user alice by user hive")]
    assert rig.follow() == 1
    assert granted(rig.target, THERE) == frozenset()


def test_objects_that_are_not_ours_keep_their_own() -> None:
    rig = Rig(replace(FOLLOW, include=("d1.*",), rename={}))
    rig.world.target_store.create_database(Database("others"))
    rig.target.grant(TableName("others", ""), [ALICE])
    rig.world.writer.source.create_database(Database("others"))
    assert rig.follow() == 0
    assert granted(rig.target, TableName("others", "")) == {ALICE}


def test_grants_of_a_table_that_only_took_the_name_wait_until_the_target_shows_it() -> None:
    rig = Rig()
    rig.source.grant(NAME, [ALICE])
    assert rig.follow() == 1
    rig.world.writer.source.drop_table(NAME)
    storage = Storage((Column("x", "string"),), input_format=INPUT)
    rig.world.writer.source.create_table(Table(*reversed(NAME), storage=storage, parameters={}, type="MANAGED_TABLE"))
    rig.source.grant(NAME, [BOB])
    rig.world.capture_all()
    assert rig.follow() == 0
    assert granted(rig.target, THERE) == {ALICE}
    rig.world.settle()
    assert rig.follow() == 1
    assert granted(rig.target, THERE) == {BOB}


def test_grants_of_a_renamed_table_go_along() -> None:
    rig = Rig()
    rig.source.grant(NAME, [ALICE])
    rig.follow()
    table = rig.world.source.the_table(NAME).table
    rig.world.writer.source.alter_table(NAME, replace(table, name="u"))
    rig.world.settle()
    assert granted(rig.target, TableName("e1", "u")) == {ALICE}
    assert rig.follow() == 0


def test_grants_of_partitions_and_columns_are_followed_and_compared() -> None:
    rig = Rig()
    partitioned = TableName("d1", "p")
    storage = Storage((Column("x", "string"),), input_format=INPUT)
    keys = (Column("ds", "string"),)
    source = rig.world.writer.source
    source.create_table(
        Table(*reversed(partitioned), storage=storage, partition_keys=keys, parameters={}, type="MANAGED_TABLE")
    )
    source.add_partitions(partitioned, [Partition(("1",), *partitioned, storage=storage, parameters={})])
    rig.world.settle()
    of_partition, of_column = replace(ALICE, partition=("1",)), replace(BOB, column="x")
    rig.source.grant(partitioned, [of_partition, of_column])
    of_both = (
        "SELECT of partition 1 to user alice by user hive, "
        "INSERT of column x to user bob with grant option by user hive"
    )
    assert rig.differences() == [("table", "grants", of_both, None)]
    assert rig.follow() == 1
    assert granted(rig.target, TableName("e1", "p")) == {of_partition, of_column}
    assert rig.differences() == []
    rig.target.grant(TableName("e1", "p"), [ALICE])
    rig.source.revoke(partitioned, [of_partition])
    assert rig.follow() == 1
    assert granted(rig.target, TableName("e1", "p")) == {of_column}


def test_what_a_look_costs_does_not_depend_on_what_there_is_but_on_what_differs() -> None:
    rig = Rig()
    for number in range(5):
        rig.create(TableName("d1", f"t{number}"))
        rig.source.grant(TableName("d1", f"t{number}"), [ALICE])
    assert rig.follow() == 5
    before = rig.source.calls + rig.target.calls
    assert rig.follow() == 0
    assert rig.source.calls + rig.target.calls - before == 2


class Refusing(MemoryPrivileges):
    def grant(self, name: TableName, grants: Collection[Grant]) -> None:
        if name == THERE:
            raise CallFailed("The metastore failed in grant_revoke_privileges", "no such user", "Look there")
        super().grant(name, grants)


def test_what_the_target_does_not_take_is_told_once_and_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    rig.target = rig.at_target = Refusing(rig.world.target_store)
    rig.source.grant(NAME, [ALICE])
    rig.source.grant(DATABASE, [BOB])
    follower = rig.follower()
    with caplog.at_level(logging.WARNING):
        assert (follower.run_once(), follower.run_once()) == (1, 0)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert granted(rig.target, DATABASE_THERE) == {BOB}


def test_nothing_is_compared_where_grants_are_ignored() -> None:
    rig = Rig(replace(FOLLOW, grants="ignore"))
    rig.source.grant(NAME, [ALICE])
    assert rig.differences() == []
