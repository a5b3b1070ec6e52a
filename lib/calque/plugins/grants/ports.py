"""Who may do what by a metastore's own privileges, at a source and at a target."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from calque.model.names import TableName
from calque.plugins.grants.model import Grant
from calque.ports.forwarding import Interceptor, direct


class Privileges(Protocol):
    """The grants of databases (a name without a table) and of tables with their partitions and columns, and the names
    of roles. None of the calls leaves an event. Every method raises `Refused` where the metastore keeps no
    privileges."""

    def all_grants(self) -> Mapping[TableName, frozenset[Grant]]:
        """Of all that has any, in a few calls however much there is."""

    def grants(self, names: Collection[TableName]) -> Mapping[TableName, frozenset[Grant]]:
        """One row for each name, in a call for each and a few for all; none where the object is missing."""

    def grant(self, name: TableName, grants: Collection[Grant]) -> None:
        """In one call, all or nothing. `Conflict` where the object has one of them; of one that is missing nothing
        becomes."""

    def revoke(self, name: TableName, grants: Collection[Grant]) -> None:
        """In one call, all or nothing. `Conflict` where the object is missing, or lacks one of them."""

    def roles(self) -> Sequence[str]: ...

    def create_role(self, name: str) -> None:
        """`Conflict` where it is there."""


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
