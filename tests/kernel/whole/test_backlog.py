"""A long window: in which order its groups come, and that it is held compactly."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow.compute as pc

from calque.adapters.held_evidence import MemoryEvidence
from calque.core.events.rows import ENTRY_COLUMNS, rows_of_events, table_of
from calque.engine.replica.replica import APPLIERS, Replica
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.window.groups import WindowBounds, prepare_share
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.journal import Event, EventKind, Keys, TableShape
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.wiring.spark_windows import ROOT, by_root
from support.memory.journal import MemoryJournal
from support.memory.ledger import MemoryLedger
from support.memory.metastore import HIVE_3, MemoryCatalog, MemoryLog, MemoryMetastore, MemoryReader
from support.memory.storage import MemoryStorage
from support.worlds.worlds import InlineExecutor

POLICY = Policy("dr", "hq", include=("d1.*",), warehouse="file:/target", data="none", start=0)
STORAGE = Storage((Column("x", "int"),), "file:/source/d1", serde=SerDe(parameters={}))
KEYS = (Column("p", "string"),)


@dataclass
class Late:
    """A source, and a target that has nothing of it yet. `before` and `after` are called around calls at the target."""

    before: Callable[[str], None] = lambda _: None
    after: Callable[[str], None] = lambda _: None
    source: MemoryMetastore = field(default_factory=lambda: MemoryMetastore(HIVE_3))
    target: MemoryMetastore = field(default_factory=lambda: MemoryMetastore(HIVE_3))
    journal: MemoryJournal = field(default_factory=MemoryJournal)

    def __post_init__(self) -> None:
        self.source.create_database(Database("d1"))

    def create(self, name: str, partitions: int = 0) -> None:
        keys = KEYS if partitions else ()
        self.source.create_table(Table(name, "d1", storage=STORAGE, partition_keys=keys, parameters={}))
        parts = [Partition((str(at),), "d1", name, storage=STORAGE, parameters={}) for at in range(partitions)]
        if parts:
            self.source.add_partitions(TableName("d1", name), parts)

    def sides(self) -> tuple[SourceSide, TargetSide]:
        storage = MemoryStorage()
        self.journal.append(rows_of_events(self.source.events(0)))
        log, reader = MemoryLog(self.source), MemoryReader(self.source)
        source = SourceSide("hq", log, reader, self.journal, MemoryEvidence(), storage)
        catalog = MemoryCatalog(self.target, before=self.before, after=self.after)
        side = TargetSide.of(POLICY, catalog, MemoryLedger(), storage)
        return source, side

    def replica(self) -> Replica:
        return Replica(*self.sides(), lambda: 0, lambda: None)


def test_small_tables_of_a_window_wait_for_no_giant_ones() -> None:
    small, in_time, arrived = {f"small{number}" for number in range(20)}, [], threading.Event()

    def before(call: str) -> None:
        if call == "add_partitions":
            in_time.append(arrived.wait(20))

    def after(call: str) -> None:
        if call == "create_table" and small <= {*late.target.tables("d1")}:
            arrived.set()

    late = Late(before, after)
    for number in range(2 * APPLIERS):
        late.create(f"giant{number}", 30)
    for name in sorted(small):
        late.create(name)
    replica = late.replica()
    replica.open()
    replica.window(late.source.current())
    replica.close()
    assert in_time == [True] * 2 * APPLIERS
    assert replica.epochs.position() == late.source.current()


PLANNED, HELD = 40_000, 4000
"""Bytes of a table that was planned, and of an event of one that is just being planned."""


def test_a_long_window_is_planned_in_the_memory_that_its_largest_table_takes() -> None:
    few, many, long = (planned(tables, events) for tables, events in ((5, 300), (20, 300), (5, 600)))
    assert many - few < 15 * PLANNED < 15 * 300 * HELD / 10
    assert long - few < 300 * HELD


def planned(tables: int, events: int) -> int:
    """The most bytes that Python's objects take while a window of so many events of each of the tables is planned."""
    rows, names = [], [TableName("d1", f"t{number}") for number in range(tables)]
    for number in range(tables * events):
        name, place = names[number % tables], number // tables
        parts = () if place == 0 else (f"p={place % 5}",)
        kind = (
            EventKind.CREATE_TABLE
            if place == 0
            else EventKind.ADD_PARTITIONS
            if place <= 5
            else EventKind.ALTER_PARTITIONS
        )
        keys = Keys(kind, name, None, TableShape.PARTITIONED, parts, (), ("file:/source",) * len(parts))
        rows.append((Event(number + 1, 0, kind.value.upper(), "", *name, "", ""), keys))
    columns = table_of(rows).select(ENTRY_COLUMNS)
    rooted = columns.append_column(
        ROOT, pc.binary_join_element_wise(columns["key_database"], columns["key_table"], "\n")
    )
    source, side = Late().sides()
    tracemalloc.start()
    try:
        found = prepare_share(source, side, WindowBounds(0, 0, len(rows), {}), by_root(rooted), InlineExecutor())
        assert [group.ready is not None for group in found] == [True] * tables
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
