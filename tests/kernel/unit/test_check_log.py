"""What `calque check` says of a source's log."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from calque.engine.check.check_log import check_log
from calque.engine.check.findings import Findings, Severity
from calque.engine.check.sides import Source
from calque.model.hive import Table
from calque.ports.services import Listeners
from support.memory.metastore import HIVE_4, MemoryLog, MemoryMetastore, MemoryReader
from support.memory.storage import MemoryStorage

STORE = MemoryMetastore(HIVE_4)


@dataclass(frozen=True)
class Server:
    release: str
    dml_events: str = ""

    def version(self) -> str:
        return self.release

    def listeners(self) -> Listeners:
        return Listeners(is_reported=True, transactional=True)

    def setting(self, name: str) -> str:
        return self.dml_events if name == "hive.metastore.dml.events" else ""

    def has_compare_and_swap(self, _: Table) -> bool:
        return True


@pytest.mark.parametrize(("version", "is_told"), [("3", True), ("4.2.0", False)])
def test_the_index_that_hive_4_adds_is_asked_for_where_it_may_be_missing(version: str, is_told: bool) -> None:
    findings = Findings()
    server = Server(version)
    check_log(Source(server, MemoryLog(STORE), MemoryReader(STORE), MemoryStorage()), server, findings)
    told = [one for one in findings.entries if "NOTIFICATION_LOG_EVENT_ID" in one.todo]
    assert [one.severity for one in told] == [Severity.INFO] * is_told


@pytest.mark.parametrize(
    ("setting", "scans", "told"),
    [
        ("true", False, []),
        ("", False, []),
        ("false", False, [(Severity.WARNING, 'or write scan = "1m" below [source]')]),
        ("false", True, [(Severity.INFO, "Set it where statements run and at the metastore")]),
    ],
)
def test_a_source_whose_engines_do_not_tell_of_inserts_is_told_of(
    setting: str, scans: bool, told: list[tuple[Severity, str]]
) -> None:
    findings, server = Findings(), Server("4.2.0", setting)
    source = Source(server, MemoryLog(STORE), MemoryReader(STORE), MemoryStorage(), scans=scans)
    check_log(source, server, findings)
    found = [one for one in findings.entries if one.what == "hive.metastore.dml.events is off at the source"]
    assert [(one.severity, one.todo.rpartition("; ")[2]) for one in found] == told
    assert all("scans alone find them" in one.why for one in found)
