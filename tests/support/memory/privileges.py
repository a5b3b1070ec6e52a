"""Privileges of a metastore in memory (port `Privileges`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from calque.model.names import TableName, table_name
from calque.plugins.grants.model import ROLE, USER, Grant
from calque.ports import Conflict
from support.memory.metastore.store import MemoryMetastore


class MemoryPrivileges:
    """`calls` counts how often the metastore was asked."""

    def __init__(self, metastore: MemoryMetastore) -> None:
        self.metastore = metastore
        self.calls = 0

    def all_grants(self) -> Mapping[TableName, frozenset[Grant]]:
        self.calls += 1
        with self.metastore.locked():
            objects = [
                table_name(database, table)
                for database in self.metastore.databases()
                for table in ("", *self.metastore.tables(database))
            ]
            return {name: frozenset(grants) for name in objects if (grants := self.metastore.grants(name))}

    def grants(self, names: Collection[TableName]) -> Mapping[TableName, frozenset[Grant]]:
        self.calls += 1
        with self.metastore.locked():
            return {name: self._grants(name) for name in names}

    def _has(self, name: TableName, values: tuple[str, ...]) -> bool:
        return values in self.metastore.the_table(name).partitions

    def _grants(self, name: TableName) -> frozenset[Grant]:
        try:
            return frozenset(self.metastore.grants(name))
        except Conflict:
            return frozenset()

    def grant(self, name: TableName, grants: Collection[Grant]) -> None:
        self.calls += 1
        with self.metastore.locked():
            try:
                present = self.metastore.grants(name)
            except Conflict:
                return
            roles = self.metastore.roles()
            if missing := [each.principal for each in grants if each.kind == ROLE and each.principal not in roles]:
                raise Conflict(f"role {missing[0]} does not exist")
            if {held(each) for each in grants} & {held(each) for each in present}:
                raise Conflict(f"grants of {name} are already there")
            present.update(grant for grant in grants if not grant.partition or self._has(name, grant.partition))

    def revoke(self, name: TableName, grants: Collection[Grant]) -> None:
        self.calls += 1
        with self.metastore.locked():
            present = self.metastore.grants(name)
            if not set(grants) <= present:
                raise Conflict(f"grants of {name} are missing")
            present.difference_update(grants)

    def roles(self) -> Sequence[str]:
        self.calls += 1
        return self.metastore.roles()

    def create_role(self, name: str) -> None:
        self.calls += 1
        self.metastore.create_role(name)


def held(grant: Grant) -> Grant:
    """What a metastore tells grants of one object by."""
    return replace(grant, grant_option=False, grantor_kind=USER, authorizer="")
