"""What `calque check` says of files that Hive keeps at the source, whatever the source is like."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from calque.engine.check.findings import Findings
from calque.engine.check.kept_files import check_kept_files, kept_seconds, seconds_of
from calque.engine.check.sides import Source
from calque.errors import Refused
from calque.model.hive import Database, Storage, Table
from calque.model.names import TableName
from calque.ports.services import Listeners
from support.memory.metastore import HIVE_3, MemoryLog, MemoryMetastore, MemoryReader
from support.memory.storage import MemoryStorage

ON = {"hive.repl.cm.enabled": "true", "hive.repl.cm.retain": "10d", "hive.repl.cmrootdir": "hdfs://n/cmroot"}
REPLICATED = {"repl.source.for": "policy"}


class Server:
    """A server with these settings."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = settings

    def version(self) -> str:
        return "3"

    def listeners(self) -> Listeners:
        return Listeners(False)

    def setting(self, name: str) -> str:
        return self.settings.get(name, "")

    def has_compare_and_swap(self, _: Table) -> bool:
        return True


class WithoutChecksums(MemoryStorage):
    def system_checksums(self, _: object) -> Mapping[str, str]:
        return {}


def table(location: str) -> Table:
    return Table("t", storage=Storage(location=location))


def told(
    settings: Mapping[str, str] = ON, *, storage: MemoryStorage | None = None, **databases: Mapping[str, str]
) -> list[tuple[str, str, str]]:
    """Severity, what and why of the findings on a source with these databases and their parameters."""
    store = MemoryMetastore(HIVE_3, "file:/warehouse")
    for name, parameters in databases.items():
        store.create_database(Database(name, parameters=parameters))
    server = Server(settings)
    source = Source(server, MemoryLog(store), MemoryReader(store), storage or MemoryStorage())
    findings = Findings()
    check_kept_files(source, server, {TableName(name, "t"): table(f"hdfs://n/{name}") for name in databases}, findings)
    return [(each.severity.value, each.what, each.why) for each in findings.entries]


def test_each_database_is_told_of_by_whether_its_files_are_kept() -> None:
    assert told(a=REPLICATED, b={}, c=REPLICATED) == [
        ("info", "Hive keeps files of managed tables that it removes or replaces in a, c for 10d", ""),
        ("info", "Hive keeps no files that it removes or replaces in b", "repl.source.for is not set there"),
    ]


def test_a_change_manager_that_is_off_is_told_once() -> None:
    [(severity, what, _)] = told({}, a=REPLICATED, b={})
    assert (severity, what) == ("info", "Hive keeps no files that it removes or replaces")


def test_databases_where_events_have_no_checksums_are_not_told_of() -> None:
    store = MemoryMetastore(HIVE_3, "file:/warehouse")
    store.create_database(Database("a", parameters=REPLICATED))
    findings = Findings()
    server = Server(ON)
    source = Source(server, MemoryLog(store), MemoryReader(store), MemoryStorage())
    check_kept_files(source, server, {TableName("a", "t"): table("file:/a"), TableName("a", "v"): Table("v")}, findings)
    assert findings.entries == []


def test_kept_files_that_may_not_be_read_are_a_warning() -> None:
    storage = MemoryStorage()

    def refuse(call: str, about: str) -> None:
        if call == "entries":
            raise Refused(f"Not permitted to list {about}")

    storage.before = refuse
    assert told(storage=storage, a=REPLICATED)[1][:2] == ("warning", "Not permitted to list hdfs://n/cmroot")


@pytest.mark.parametrize("with_checksums", [True, False])
def test_checksums_that_can_not_be_asked_for_are_a_warning(with_checksums: bool) -> None:
    storage = MemoryStorage() if with_checksums else WithoutChecksums()
    storage.write("hdfs://n/cmroot/000000_0_ab", b"x")
    warnings = [what for severity, what, _ in told(storage=storage, a=REPLICATED) if severity == "warning"]
    assert warnings == ([] if with_checksums else ["The checksum of hdfs://n/cmroot/000000_0_ab can't be asked for"])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10d", 864_000.0), ("24h", 86_400.0), ("30 min", 1_800.0), ("5s", 5.0), ("1500ms", 1.5), ("", None), ("x", None)],
)
def test_durations_are_read_as_hive_writes_them(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds
    assert kept_seconds(Server({**ON, "hive.repl.cm.retain": text})) == seconds


def test_nothing_is_kept_without_a_change_manager() -> None:
    assert kept_seconds(Server({"hive.repl.cm.retain": "10d"})) is None
