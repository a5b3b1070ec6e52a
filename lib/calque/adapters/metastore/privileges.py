"""A metastore's own privileges (port `Privileges`), over Thrift.

Servers keep grants by the object's row: they go with a renamed table, and end with a dropped one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from calque.adapters.metastore import messages
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.faults import settled
from calque.adapters.metastore.messages import (
    Call,
    CallUnknown,
    Fault,
    GrantRequest,
    ObjectPrivilege,
    ObjectReference,
    PrivilegeBag,
    PrivilegeInfo,
    Role,
)
from calque.errors import CallFailed, Refused
from calque.model.names import TableName
from calque.model.privileges import Grant
from calque.ports import Conflict

DATABASE, TABLE = 2, 3
"""Of `HiveObjectType`."""
GRANT, REVOKE = 1, 2
"""Of `GrantRevokeType`."""


class HivePrivileges:
    """Requests of a writer ask `permit` before they go out, as the client was made."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def grants(self, name: TableName) -> frozenset[Grant]:
        try:
            rows: Sequence[ObjectPrivilege] = self._call(messages.LIST_PRIVILEGES, None, 0, reference(name)) or ()
        except Conflict:
            return frozenset()
        return frozenset(map(grant_of, rows))

    def grant(self, name: TableName, grants: Collection[Grant]) -> None:
        self._change(GRANT, name, grants)

    def revoke(self, name: TableName, grants: Collection[Grant]) -> None:
        self._change(REVOKE, name, grants)

    def roles(self) -> Sequence[str]:
        return self._call(messages.GET_ROLES) or ()

    def create_role(self, name: str) -> None:
        try:
            self._call(messages.CREATE_ROLE, Role(name, 0, None))
        except CallFailed as error:
            if name in self.roles():
                raise Conflict(f"role {name} exists already") from error
            raise

    def _change(self, kind: int, name: TableName, grants: Collection[Grant]) -> None:
        """Servers declare one kind of exception for everything that may be wrong: what is there tells which it was."""
        bag = PrivilegeBag(tuple(row_of(name, grant) for grant in sorted(grants)))
        try:
            self._call(messages.GRANT_REVOKE, GrantRequest(kind, bag, False))
        except (CallFailed, Refused) as error:
            present = {as_granted(grant) for grant in self.grants(name)}
            asked = {as_granted(grant) for grant in grants}
            if (asked & present) if kind == GRANT else (asked - present):
                raise Conflict(f"grants of {name} are not as they were: {error.why}") from error
            raise

    def _call(self, call: Call, *arguments: Any) -> Any:
        try:
            return self.client.call(call, *arguments)
        except CallUnknown as unknown:
            problem = f"The metastore at {self.client.uris} does not take {call.name}"
            raise Refused(problem, str(unknown), 'Write grants = "ignore" for the target') from unknown
        except Fault as fault:
            raise settled(fault, call) from fault


def reference(name: TableName) -> ObjectReference:
    return ObjectReference(TABLE if name.table else DATABASE, name.database, name.table or None)


def row_of(name: TableName, grant: Grant) -> ObjectPrivilege:
    info = PrivilegeInfo(grant.privilege, 0, grant.grantor or None, grant.grantor_kind, grant.grant_option)
    return ObjectPrivilege(reference(name), grant.principal, grant.kind, info, grant.authorizer or None)


def grant_of(row: ObjectPrivilege) -> Grant:
    info = row.info
    grantor, authorizer = info.grantor or "", row.authorizer or ""
    return Grant(
        row.principal, row.kind, info.privilege, bool(info.grant_option), grantor, info.grantor_kind, authorizer
    )


def as_granted(grant: Grant) -> tuple[str, int, str, str]:
    """What a server tells grants of one object by."""
    return (grant.principal, grant.kind, grant.privilege, grant.grantor)
