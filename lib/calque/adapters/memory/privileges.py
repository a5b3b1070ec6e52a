"""Privileges of a metastore in memory (port `Privileges`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from calque.adapters.memory.metastore.store import MemoryMetastore
from calque.model.names import TableName
from calque.model.privileges import ROLE, Grant
from calque.ports import Conflict

Held = tuple[str, int, str, str]


class MemoryPrivileges:
    """`calls` counts how often the metastore was asked."""

    def __init__(self, metastore: MemoryMetastore) -> None:
        self.metastore = metastore
        self.calls = 0

    def grants(self, name: TableName) -> frozenset[Grant]:
        self.calls += 1
        with self.metastore.locked():
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
            present.update(grants)

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


def held(grant: Grant) -> Held:
    """What a metastore tells grants of one object by."""
    return (grant.principal, grant.kind, grant.privilege, grant.grantor)
