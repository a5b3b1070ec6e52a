"""What `calque check` says of grants that a target is to follow."""

from __future__ import annotations

from collections.abc import Sequence

from calque.engine.check.findings import Findings
from calque.errors import Refused
from calque.plugins.grants.checks import check_privileges
from calque.plugins.grants.ports import Privileges
from support.memory.metastore import HIVE_4, MemoryMetastore
from support.memory.privileges import MemoryPrivileges

STORE = MemoryMetastore(HIVE_4)


class Keepless(MemoryPrivileges):
    """Of a metastore that does not know the calls."""

    def roles(self) -> Sequence[str]:
        raise Refused("The metastore does not take get_role_names", "Unknown method", 'Write grants = "ignore"')


def told(source: Privileges | None, target: Privileges) -> list[tuple[str, str]]:
    findings = Findings()
    check_privileges("target dr", source, target, findings)
    return [(each.where, each.what) for each in findings.entries]


def test_grants_that_can_be_read_at_both_sides_are_told_nothing_of() -> None:
    keeps = MemoryPrivileges(STORE)
    assert told(keeps, keeps) == []


def test_a_side_that_keeps_no_grants_is_an_error() -> None:
    keeps, keepless = MemoryPrivileges(STORE), Keepless(STORE)
    assert told(None, keeps) == [("target dr", "There are no grants to follow")]
    assert told(keepless, keeps) == [("source", "The metastore does not take get_role_names")]
    assert told(keeps, keepless) == [("target dr", "The metastore does not take get_role_names")]
