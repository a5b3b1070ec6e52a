"""Every metastore keeps privileges like this, in memory and real ones."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from calque.model.names import TableName
from calque.plugins.grants.adapters import HivePrivileges
from calque.plugins.grants.model import GROUP, ROLE, Grant
from calque.plugins.grants.ports import Privileges
from calque.ports import Conflict
from support.memory.metastore import MemoryMetastore
from support.memory.privileges import MemoryPrivileges
from support.worlds.metastore_worlds import World, partition

ALICE = Grant("alice", 1, "SELECT", False, "hive", 1, "SQL")
BOB = Grant("bob ü", 1, "INSERT", True, "admin", ROLE, "SQL")
STAFF = Grant("staff", GROUP, "DELETE", False, "hive", 1, "SQL")


@pytest.fixture
def privileges(world: World) -> Privileges:
    return privileges_of(world)


def privileges_of(world: World) -> Privileges:
    if isinstance(world.writer, MemoryMetastore):
        return MemoryPrivileges(world.writer)
    return HivePrivileges(world.writer.client)


def grants_of(privileges: Privileges, name: TableName) -> frozenset[Grant]:
    """By name and among all, which must be the same."""
    found = privileges.grants([name])[name]
    assert privileges.all_grants().get(name, frozenset()) == found
    return found


def test_grants_of_databases_and_tables_leave_no_event(world: World, privileges: Privileges) -> None:
    database = TableName(world.create_database(), "")
    table = world.created(world.table("t", ("ds",)))
    before = world.log.current()
    for name in (database, table):
        assert grants_of(privileges, name) == frozenset()
        privileges.grant(name, [ALICE, BOB, STAFF])
        assert grants_of(privileges, name) == {ALICE, BOB, STAFF}
        privileges.revoke(name, [ALICE, STAFF])
        assert grants_of(privileges, name) == {BOB}
    assert world.log.current() == before


def test_partitions_and_columns_have_grants_of_their_own(world: World, privileges: Privileges) -> None:
    world.create_database()
    table = world.created(world.table("t", ("ds", "region")))
    stored, values = world.catalog.table(table), ("2024-01-01", "eu ü/1")
    assert stored is not None
    world.catalog.add_partitions(
        table, [partition(stored, values, world.place("p1")), partition(stored, ("3", "b"), world.place("p2"))]
    )
    of_partition, of_column = replace(ALICE, partition=values), replace(ALICE, column="id")
    of_both = replace(BOB, partition=values, column="id")
    privileges.grant(table, [ALICE, of_partition, of_column, of_both])
    assert grants_of(privileges, table) == {ALICE, of_partition, of_column, of_both}
    with pytest.raises(Conflict):
        privileges.grant(table, [STAFF, of_both])
    privileges.grant(table, [replace(STAFF, partition=("4", "c"))])
    privileges.revoke(table, [ALICE, of_column])
    with pytest.raises(Conflict):
        privileges.revoke(table, [of_column, of_both])
    assert grants_of(privileges, table) == {of_partition, of_both}
    world.catalog.drop_partitions(table, world.catalog.partition_names(table)[1:])
    assert grants_of(privileges, table) == {of_partition, of_both}
    world.catalog.drop_partitions(table, world.catalog.partition_names(table))
    assert grants_of(privileges, table) == frozenset()


def test_one_that_is_there_and_one_that_is_missing_are_conflicts_and_change_nothing(
    world: World, privileges: Privileges
) -> None:
    world.create_database()
    table = world.created(world.table("t", ()))
    privileges.grant(table, [ALICE])
    with pytest.raises(Conflict):
        privileges.grant(table, [BOB, ALICE])
    with pytest.raises(Conflict):
        privileges.grant(table, [replace(ALICE, grant_option=True)])
    with pytest.raises(Conflict):
        privileges.revoke(table, [ALICE, BOB])
    assert grants_of(privileges, table) == {ALICE}


def test_what_is_missing_has_no_grants(world: World, privileges: Privileges) -> None:
    database = world.create_database()
    missing = TableName(database, "missing")
    assert grants_of(privileges, missing) == grants_of(privileges, TableName(f"{database}_missing", "")) == frozenset()
    privileges.grant(missing, [ALICE])
    assert grants_of(privileges, missing) == frozenset()
    with pytest.raises(Conflict):
        privileges.revoke(missing, [ALICE])


def test_grants_go_with_a_renamed_table_and_end_with_a_dropped_one(world: World, privileges: Privileges) -> None:
    world.create_database()
    table = world.created(world.table("t", ("ds",)))
    privileges.grant(table, [ALICE])
    renamed = TableName(table.database, "renamed")
    stored = world.catalog.table(table)
    assert stored is not None
    world.catalog.alter_table(table, replace(stored, name="renamed"))
    assert (grants_of(privileges, table), grants_of(privileges, renamed)) == (frozenset(), {ALICE})
    world.catalog.drop_table(renamed)
    world.created(replace(stored, name="renamed"))
    assert grants_of(privileges, renamed) == frozenset()


def test_roles_come_before_what_is_granted_to_them(world: World, privileges: Privileges) -> None:
    world.create_database()
    table, role = world.created(world.table("t", ())), f"r{uuid4().hex}"
    grant = replace(ALICE, principal=role, kind=ROLE)
    with pytest.raises(Exception, match=role):
        privileges.grant(table, [grant])
    privileges.create_role(role)
    with pytest.raises(Conflict):
        privileges.create_role(role)
    assert role in privileges.roles()
    privileges.grant(table, [grant])
    assert grants_of(privileges, table) == {grant}
