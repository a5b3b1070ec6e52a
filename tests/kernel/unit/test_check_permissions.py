"""What `calque check` says of permissions that a target is to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from calque.core.policy.admit import Admission
from calque.engine.check.check_permissions import check_permissions
from calque.engine.check.findings import Findings
from calque.engine.check.sides import Target
from calque.model.hive import Storage, Table
from calque.model.names import TableName
from calque.model.permissions import Permissions
from calque.model.policy import Policy
from calque.ports.services import Listeners
from support.memory.metastore import HIVE_4, MemoryCatalog, MemoryMetastore
from support.memory.storage import MemoryStorage

POLICY = Policy("dr", "hq", warehouse="file:/target", permissions="keep")
TABLES = {TableName("d", "t"): Table("t", "d", storage=Storage(location="file:/source/t"))}


class Server:
    def version(self) -> str:
        return "4"

    def listeners(self) -> Listeners:
        return Listeners(False)

    def setting(self, _: str) -> str:
        return ""

    def has_compare_and_swap(self, _: Table) -> bool:
        return True


class WithoutOwners(MemoryStorage):
    """An object store, as far as locations begin with `without`."""

    def __init__(self, without: str) -> None:
        super().__init__()
        self.without = without

    def permissions(self, locations: Sequence[str]) -> Mapping[str, Permissions]:
        return super().permissions([each for each in locations if not each.startswith(self.without)])


class ForSome(MemoryStorage):
    """Who calls owns what it makes."""

    def set_permissions(self, permissions: Mapping[str, Permissions]) -> Mapping[str, str]:
        return {location: f"owner {each.owner}: Operation not permitted" for location, each in permissions.items()}


def told(storage: MemoryStorage, tables: Mapping[TableName, Table] = TABLES) -> list[tuple[str, str]]:
    storage.make_directories(["file:/source/t", "file:/target"])
    target = Target(POLICY, Server(), MemoryCatalog(MemoryMetastore(HIVE_4)), storage, lambda _: None)
    findings = Findings()
    check_permissions(target, Admission(POLICY), tables, findings)
    assert storage.children("file:/target") == []
    return [(each.severity.value, each.what) for each in findings.entries]


def test_what_can_be_given_is_told_nothing_of() -> None:
    assert told(MemoryStorage()) == []
    assert told(ForSome(), {}) == []


@pytest.mark.parametrize("without", ["file:/source/t", "file:/target"])
def test_a_storage_without_owners_is_told_of(without: str) -> None:
    assert told(WithoutOwners(without)) == [("warning", f'permissions = "keep" does nothing for {without}')]


def test_an_owner_that_can_not_be_given_is_named() -> None:
    [(severity, what)] = told(ForSome())
    assert (severity, what.partition(": ")[2]) == ("warning", "owner nobody: Operation not permitted")
