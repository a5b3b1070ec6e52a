"""What `calque check` says of grants that a target is to follow."""

from __future__ import annotations

from collections.abc import Sequence

from calque.engine.check.findings import Findings
from calque.engine.check.sides import Source, Target
from calque.errors import Refused
from calque.model.hive import Table
from calque.model.policy import Policy
from calque.plugins.grants.checks import check_privileges
from calque.plugins.grants.ports import Privileges
from calque.ports.services import Listeners
from support.memory.metastore import HIVE_4, MemoryCatalog, MemoryLog, MemoryMetastore, MemoryReader
from support.memory.privileges import MemoryPrivileges
from support.memory.storage import MemoryStorage

STORE = MemoryMetastore(HIVE_4)


class Server:
    def version(self) -> str:
        return "4"

    def listeners(self) -> Listeners:
        return Listeners(False)

    def setting(self, _: str) -> str:
        return ""

    def has_compare_and_swap(self, _: Table) -> bool:
        return True


class Keepless(MemoryPrivileges):
    """Of a metastore that does not know the calls."""

    def roles(self) -> Sequence[str]:
        raise Refused("The metastore does not take get_role_names", "Unknown method", 'Write grants = "ignore"')


def told(grants: str, source: Privileges | None, target: Privileges | None) -> list[tuple[str, str]]:
    findings = Findings()
    storage, catalog = MemoryStorage(), MemoryCatalog(STORE)
    policy = Policy("dr", "hq", warehouse="file:/target", grants=grants)
    check_privileges(
        Source(None, MemoryLog(STORE), MemoryReader(STORE), storage, privileges=source),
        Target(policy, Server(), catalog, storage, lambda _: None, privileges=target),
        findings,
    )
    return [(each.where, each.what) for each in findings.entries]


def test_grants_that_can_be_read_at_both_sides_are_told_nothing_of() -> None:
    keeps = MemoryPrivileges(STORE)
    assert told("follow", keeps, keeps) == told("ignore", None, None) == []


def test_a_side_that_keeps_no_grants_is_an_error() -> None:
    keeps, keepless = MemoryPrivileges(STORE), Keepless(STORE)
    assert told("follow", None, keeps) == [("target dr", "There are no grants to follow")]
    assert told("follow", keepless, keeps) == [("source", "The metastore does not take get_role_names")]
    assert told("follow", keeps, keepless) == [("target dr", "The metastore does not take get_role_names")]
