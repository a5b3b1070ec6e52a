"""What `calque check` says where a source takes changes of columns that a target refuses."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from calque.adapters.metastore.faults import settled
from calque.adapters.metastore.messages import ALTER_TABLE, Fault
from calque.engine.check.column_changes import check_column_changes
from calque.engine.check.findings import Findings, Severity
from calque.engine.check.sides import Source, Target
from calque.errors import AlterationRefused
from calque.model.hive import Table
from calque.model.policy import Policy
from calque.ports.services import COLUMN_CHANGES, Listeners
from support.memory.metastore import MemoryCatalog, MemoryLog, MemoryMetastore, MemoryReader
from support.memory.storage import MemoryStorage

STORE = MemoryMetastore()


@dataclass(frozen=True)
class Server:
    forbids: str

    def version(self) -> str:
        return "3"

    def listeners(self) -> Listeners:
        return Listeners(False)

    def setting(self, name: str) -> str:
        return self.forbids if name == COLUMN_CHANGES else ""

    def has_compare_and_swap(self, _: Table) -> bool:
        return True


def told(source: Server, target: Server) -> list[Severity]:
    findings, storage = Findings(), MemoryStorage()
    check_column_changes(
        Source(source, MemoryLog(STORE), MemoryReader(STORE), storage),
        Target(Policy("dr", "hq", warehouse="file:/target"), target, MemoryCatalog(STORE), storage, lambda _: None),
        findings,
    )
    assert all(COLUMN_CHANGES in each.what for each in findings.entries)
    return [each.severity for each in findings.entries]


@pytest.mark.parametrize("source", ["true", ""])
def test_a_source_that_refuses_such_changes_or_does_not_say_has_none(source: str) -> None:
    assert told(Server(source), Server("true")) == []


def test_a_target_that_takes_them_is_told_nothing_of() -> None:
    assert told(Server("false"), Server("false")) == []


@pytest.mark.parametrize("target", ["true", ""])
def test_a_target_that_refuses_them_takes_them_by_the_connection(target: str) -> None:
    assert told(Server("false"), Server(target)) == [Severity.INFO]


def test_a_refusal_that_no_connection_can_avoid_names_the_setting() -> None:
    text = "The following columns have types incompatible with the existing columns in their respective positions"
    error = settled(Fault("InvalidOperation", text), ALTER_TABLE)
    assert isinstance(error, AlterationRefused)
    assert COLUMN_CHANGES in error.todo
