"""Every metastore keeps privileges like this, in memory and real ones."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from calque.adapters.memory.metastore import MemoryMetastore
from calque.adapters.memory.privileges import MemoryPrivileges
from calque.adapters.metastore.privileges import HivePrivileges
from calque.model.names import TableName
from calque.model.privileges import GROUP, ROLE, Grant
from calque.ports import Conflict, Privileges

from .conftest import World

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


def test_grants_of_databases_and_tables_leave_no_event(world: World, privileges: Privileges) -> None:
    database = TableName(world.create_database(), "")
    table = world.created(world.table("t", ("ds",)))
    before = world.log.current()
    for name in (database, table):
        assert privileges.grants(name) == frozenset()
        privileges.grant(name, [ALICE, BOB, STAFF])
        assert privileges.grants(name) == {ALICE, BOB, STAFF}
        privileges.revoke(name, [ALICE, STAFF])
        assert privileges.grants(name) == {BOB}
    assert world.log.current() == before


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
    assert privileges.grants(table) == {ALICE}


def test_what_is_missing_has_no_grants(world: World, privileges: Privileges) -> None:
    database = world.create_database()
    missing = TableName(database, "missing")
    assert privileges.grants(missing) == privileges.grants(TableName(f"{database}_missing", "")) == frozenset()
    privileges.grant(missing, [ALICE])
    assert privileges.grants(missing) == frozenset()
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
    assert (privileges.grants(table), privileges.grants(renamed)) == (frozenset(), {ALICE})
    world.catalog.drop_table(renamed)
    world.created(replace(stored, name="renamed"))
    assert privileges.grants(renamed) == frozenset()


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
    assert privileges.grants(table) == {grant}
