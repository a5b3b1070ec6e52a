"""By which time ages are counted: three clocks, none of which is believed alone."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from calque.adapters.delta.columns import INTERNAL
from calque.adapters.delta.snapshot import SnapshotChange
from calque.adapters.delta.table import RangedTable
from calque.adapters.delta.table_log import commit_path
from calque.adapters.files.storage import FileStorage
from calque.core.images.image import EVENT, SOURCE
from calque.core.images.table_layout import with_format
from calque.core.records.state_formats import LEDGER_FORMAT
from calque.engine.sides.calque_database import ensure_own_database
from calque.engine.sides.clocks import FILE, BelievedClock, believed_now_ns, metastore_clock, storage_clock
from calque.model.hive import Column, Database, Table
from calque.model.names import TableName
from calque.plugins.delta_replicas.adapters.catalog import with_delta_replicas
from calque.plugins.delta_replicas.adapters.logs import ReplicaLogs
from calque.ports import TableCommit, parts_of
from calque.ports.forwarding import ForwardingCatalog
from calque.ports.steady_clock import SteadyClock
from support.memory.metastore import HIVE_3, HIVE_4, MemoryCatalog, MemoryMetastore
from support.memory.storage import MemoryStorage
from support.sources.writers import PARQUET

DAY = 86_400 * 10**9
NOW = 1_700_000_000 * 10**9


class SetClock:
    """One that somebody sets: `passed` goes on by itself, `set_by` is what was added by hand."""

    def __init__(self) -> None:
        self.passed = self.set_by = 0

    def now_ns(self) -> int:
        return NOW + self.passed + self.set_by

    def elapsed_ns(self) -> int:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.passed += int(seconds * 1e9)


@pytest.mark.parametrize(
    ("wall", "others", "believed"),
    [
        (NOW, (), NOW),
        (NOW + DAY, (NOW, NOW + 1), NOW + 1),
        (NOW - DAY, (NOW, NOW + 1), NOW),
        (NOW, (NOW + DAY, NOW + 9 * DAY), NOW + DAY),
        (NOW + DAY, (NOW, None), NOW),
        (NOW, (NOW + DAY, None), NOW),
        (NOW, (None, None), NOW),
    ],
)
def test_an_age_is_counted_to_the_median_of_three_clocks_and_to_the_earlier_of_two(
    wall: int, others: tuple[int | None, ...], believed: int
) -> None:
    assert believed_now_ns(wall, [lambda reading=reading: reading for reading in others]) == believed


def test_within_a_process_a_clock_that_ran_ahead_is_not_believed_and_one_that_was_set_back_is() -> None:
    clock = SetClock()
    steady = SteadyClock(clock.now_ns, clock.elapsed_ns)
    clock.passed += 10**9
    assert steady.now_ns() == clock.now_ns()
    clock.set_by = 9 * DAY
    clock.passed += 10**9
    assert NOW + 2 * 10**9 <= steady.now_ns() <= NOW + 2.1 * 10**9
    clock.set_by = -DAY
    assert steady.now_ns() == clock.now_ns()


def test_a_process_that_runs_asks_the_others_at_intervals_and_counts_on_by_itself() -> None:
    clock, asked = SetClock(), []

    def other() -> int:
        asked.append(clock.passed)
        return NOW + clock.passed

    believed = BelievedClock(clock, [other, other], SteadyClock(clock.now_ns, clock.elapsed_ns), seconds=600.0)
    for _ in range(20):
        clock.set_by += DAY
        clock.sleep(60)
        assert believed.now_ns() == NOW + clock.passed
    assert len(asked) == 2 * 2


def test_a_storage_and_a_metastore_say_what_time_it_is_for_them_and_keep_nothing_of_it(tmp_path: Path) -> None:
    catalog = MemoryCatalog(MemoryMetastore(HIVE_3, "file:/warehouse", clock=lambda: NOW / 1e9))
    assert metastore_clock(catalog)() is None
    ensure_own_database(catalog, "file:/target")
    assert metastore_clock(catalog)() == NOW
    assert metastore_clock(catalog)() == NOW
    now = storage_clock(FileStorage(), str(tmp_path))()
    assert now is not None
    assert now > NOW
    assert list(tmp_path.iterdir()) == []
    (tmp_path / FILE).write_bytes(b"left by a death")
    assert (storage_clock(FileStorage(), str(tmp_path))() or 0) > now
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_bytes(b"")
    assert storage_clock(FileStorage(), str(tmp_path / "file"))() is None


def test_the_time_between_two_runs_counts() -> None:
    """A deployment that lives a minute a day sweeps after its grace: each process begins with what its clock says."""
    clock = SetClock()
    first = SteadyClock(clock.now_ns, clock.elapsed_ns).now_ns()
    clock.sleep(86_400)
    assert SteadyClock(clock.now_ns, clock.elapsed_ns).now_ns() - first == DAY


def test_a_file_that_nobody_committed_yet_survives_a_vacuum_by_a_clock_that_is_ahead(tmp_path: Path) -> None:
    table = RangedTable(str(tmp_path), INTERNAL, ("sequence",), None, LEDGER_FORMAT)
    row = {"sequence": 1, "kind": "a", "key": "b", "format": LEDGER_FORMAT, "payload": "{}", "removed": False}
    rows = pa.Table.from_pylist([row], schema=INTERNAL)
    table.commit(lambda _: SnapshotChange(table.write([rows])))
    (uncommitted,) = table.write([rows])
    written, newest = tmp_path / uncommitted.path, tmp_path / commit_path(table.snapshot().version)
    # The machine's clock is a day ahead of the storage's.
    set_back(written, hours=24)
    set_back(newest, hours=24)
    table.vacuum()
    assert written.exists()
    set_back(newest, hours=0)
    table.vacuum()
    assert not written.exists()


def set_back(path: Path, hours: int) -> None:
    seconds = time.time() - hours * 3600
    os.utime(path, (seconds, seconds))


def test_the_commits_of_a_replica_survive_a_clock_that_is_ahead_of_the_storages() -> None:
    for ahead, kept in ((0, True), (9 * DAY, True)):
        storage = MemoryStorage()
        logs = ReplicaLogs(storage, 3600.0, lambda ahead=ahead: (time.time_ns() + ahead) // 10**6, checkpoint_every=2)  # type: ignore[misc]
        catalog = ForwardingCatalog(with_delta_replicas(parts_of(MemoryCatalog(made())), storage, logs, lambda: 1))
        for event in range(1, 6):
            commit(catalog, event)
        assert storage.exists("file:/target/orders/_delta_log/00000000000000000000.json") is kept


def made() -> MemoryMetastore:
    metastore = MemoryMetastore(HIVE_4, "file:/managed")
    metastore.create_database(Database("sales"))
    return metastore


def commit(catalog: ForwardingCatalog, event: int) -> None:
    table = Table(
        "orders",
        "sales",
        storage=replace(PARQUET, columns=(Column("id", "bigint"),), location="file:/target/orders"),
        partition_keys=(Column("day", "string"),),
        parameters={SOURCE: "hq:sales.orders", EVENT: str(event)},
        type="MANAGED_TABLE",
        owner_type=1,
    )
    name = TableName("sales", "orders")
    was = None if catalog.table(name) is None else name
    catalog.commit_table(TableCommit(was, with_format(table, "delta"), {}, (), expected_event="", contents={}))
