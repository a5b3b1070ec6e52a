"""The port to a metastore's own privileges, at a source and at a target."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from calque.model.names import TableName
from calque.plugins.grants.model import Grant
from calque.ports.forwarding import Interceptor, direct


class Privileges(Protocol):
    """The grants of databases (a name without a table) and of tables with their partitions and columns, and the names
    of roles. No call leaves an event in the log. Every method raises `Refused` where the metastore keeps no
    privileges."""

    def all_grants(self) -> Mapping[TableName, frozenset[Grant]]:
        """Return the grants of all objects that have any. The number of calls does not grow with the number of
        objects."""

    def grants(self, names: Collection[TableName]) -> Mapping[TableName, frozenset[Grant]]:
        """Return the grants of each of these objects; an empty set for one that is missing. The method makes one call
        for each name, and a few for all together."""

    def grant(self, name: TableName, grants: Collection[Grant]) -> None:
        """Give the object these grants in one call, all or nothing. Raises `Conflict` where it has one of them. Nothing
        happens where the object is missing."""

    def revoke(self, name: TableName, grants: Collection[Grant]) -> None:
        """Take these grants from the object in one call, all or nothing. Raises `Conflict` where it is missing, or
        lacks one of them."""

    def roles(self) -> Sequence[str]: ...

    def create_role(self, name: str) -> None:
        """Make a role. Raises `Conflict` where there is one of this name."""


class ForwardingPrivileges:
    def __init__(self, privileges: Privileges, intercept: Interceptor = direct) -> None:
        self._privileges, self._intercept = privileges, intercept

    def all_grants(self) -> Mapping[TableName, frozenset[Grant]]:
        return self._intercept("all_grants", self._privileges.all_grants)

    def grants(self, names: Collection[TableName]) -> Mapping[TableName, frozenset[Grant]]:
        return self._intercept("grants", self._privileges.grants, names)

    def grant(self, name: TableName, grants: Collection[Grant]) -> None:
        self._intercept("grant", self._privileges.grant, name, grants)

    def revoke(self, name: TableName, grants: Collection[Grant]) -> None:
        self._intercept("revoke", self._privileges.revoke, name, grants)

    def roles(self) -> Sequence[str]:
        return self._intercept("roles", self._privileges.roles)

    def create_role(self, name: str) -> None:
        self._intercept("create_role", self._privileges.create_role, name)
