"""The privileges that a metastore keeps itself, as port `Privileges` over Thrift.

Servers keep grants by the object's row: a renamed table keeps its grants, and a dropped one loses them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
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
from calque.model.names import TableName, table_name
from calque.plugins.grants.model import USER, Grant
from calque.ports import Conflict

DATABASE, TABLE, PARTITION, COLUMN = 2, 3, 4, 5
"""The numbers of `HiveObjectType`."""
ALL_PARTS = (
    ObjectReference(PARTITION, None),
    ObjectReference(COLUMN, None),
    ObjectReference(COLUMN, None, None, ("any",)),
)
"""References without a database, for which servers return all grants of the kind. Grants on columns of partitions are
returned for a column reference with values, whichever these are."""
ALL_OBJECTS = (ObjectReference(DATABASE, None), ObjectReference(TABLE, None))
CATALOG = "hive"
GRANT, REVOKE = 1, 2
"""The numbers of `GrantRevokeType`."""


class HivePrivileges:
    """The privileges of one metastore, as `Privileges`. The client of a writer asks the lease's `permit` before each
    request goes out."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def all_grants(self) -> Mapping[TableName, frozenset[Grant]]:
        return by_name(row for reference in (*ALL_OBJECTS, *ALL_PARTS) for row in self._list(reference))

    def grants(self, names: Collection[TableName]) -> Mapping[TableName, frozenset[Grant]]:
        parts = ALL_PARTS if any(name.table for name in names) else ()
        found = by_name(
            row for reference in (*(reference_to(name) for name in names), *parts) for row in self._list(reference)
        )
        return {name: found.get(name, frozenset()) for name in names}

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
        """Grant or revoke these grants on the object in one call. Raises `Conflict` where the object has one of them
        already, or lacks one that is revoked. Servers raise one kind of exception for every problem, so the grants that
        are there tell these cases apart."""
        bag = PrivilegeBag(tuple(row_of(name, each) for each in sorted(grants)))
        try:
            self._call(messages.GRANT_REVOKE, GrantRequest(kind, bag, False))
        except (CallFailed, Refused) as error:
            present = {comparable(each) for each in self.grants([name])[name]}
            asked = {comparable(each) for each in grants}
            if (asked & present) if kind == GRANT else (asked - present):
                raise Conflict(f"grants of {name} are not as they were: {error.why}") from error
            raise

    def _list(self, reference: ObjectReference) -> Sequence[ObjectPrivilege]:
        try:
            return self._call(messages.LIST_PRIVILEGES, None, 0, reference) or ()
        except Conflict:
            return ()

    def _call(self, call: Call, *arguments: Any) -> Any:
        try:
            return self.client.call(call, *arguments)
        except CallUnknown as unknown:
            problem = f"The metastore at {self.client.uris} does not take {call.name}"
            raise Refused(problem, str(unknown), 'Write grants = "ignore" for the target') from unknown
        except Fault as fault:
            raise settled(fault, call) from fault


def reference_to(name: TableName, grant: Grant | None = None) -> ObjectReference:
    """Return the reference to a database or table, or to the part of a table that the grant is for."""
    values, column = (grant.partition or None, grant.column or None) if grant else (None, None)
    kind = COLUMN if column else PARTITION if values else TABLE if name.table else DATABASE
    return ObjectReference(kind, name.database, name.table or None, values, column)


def by_name(rows: Iterable[ObjectPrivilege]) -> Mapping[TableName, frozenset[Grant]]:
    """Return the grants in the rows, by object. Rows of other catalogs than `hive` are left out."""
    found: dict[TableName, set[Grant]] = defaultdict(set)
    for row in rows:
        if row.object.catalog in {None, CATALOG}:
            found[table_name(row.object.database or "", row.object.table or "")].add(grant_of(row))
    return {name: frozenset(grants) for name, grants in found.items()}


def row_of(name: TableName, grant: Grant) -> ObjectPrivilege:
    info = PrivilegeInfo(grant.privilege, 0, grant.grantor or None, grant.grantor_kind, grant.grant_option)
    return ObjectPrivilege(reference_to(name, grant), grant.principal, grant.kind, info, grant.authorizer or None)


def grant_of(row: ObjectPrivilege) -> Grant:
    info = row.info
    grantor, authorizer = info.grantor or "", row.authorizer or ""
    return Grant(
        row.principal,
        row.kind,
        info.privilege,
        bool(info.grant_option),
        grantor,
        info.grantor_kind,
        authorizer,
        tuple(row.object.values or ()),
        row.object.column or "",
    )


def comparable(grant: Grant) -> Grant:
    """Return the grant with only those fields by which a server tells the grants of one object apart."""
    return replace(grant, grant_option=False, grantor_kind=USER, authorizer="")
