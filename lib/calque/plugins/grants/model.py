"""The privileges that a metastore keeps of its databases, tables, partitions and columns."""

from __future__ import annotations

from dataclasses import dataclass

USER, ROLE, GROUP = 1, 2, 3
"""Kinds of principals, by the metastore's numbers."""
KINDS = {USER: "user", ROLE: "role", GROUP: "group"}


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """A privilege of one principal on a database, or on a table: on all of it, on one partition (`partition` has its
    values), on one `column`, or on a column of a partition. Times are no part of it. A metastore holds at most one
    grant for a principal, a privilege and a grantor; `authorizer` is the plug-in of Hive's that the grant is for."""

    principal: str
    kind: int
    privilege: str
    grant_option: bool = False
    grantor: str = ""
    grantor_kind: int = USER
    authorizer: str = ""
    partition: tuple[str, ...] = ()
    column: str = ""

    def __str__(self) -> str:
        of = f" of column {self.column}" if self.column else ""
        of += f" of partition {'/'.join(self.partition)}" if self.partition else ""
        option = " with grant option" if self.grant_option else ""
        kind, of_grantor = KINDS.get(self.kind, str(self.kind)), KINDS.get(self.grantor_kind, str(self.grantor_kind))
        return f"{self.privilege}{of} to {kind} {self.principal}{option} by {of_grantor} {self.grantor}"
