"""Remote calls for what happened, and the cost of a window that touches few of many tables. All of it in memory.

A hot partition altered again and again costs at most two calls in a window; tables created and dropped in one cost
none. Reads that observe the target are counted apart.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rig import arguments, number, partition, plain_table, tell_machine

from calque.adapters.held_evidence import MemoryEvidence
from calque.core.events.rows import rows_of_events
from calque.engine.replica.replica import Replica
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.model.hive import Database, Table
from calque.model.ledger import TableRow, TableState
from calque.model.names import TableName
from calque.model.policy import Policy
from support.memory.journal import MemoryJournal
from support.memory.ledger import MemoryLedger
from support.memory.metastore import MemoryCatalog, MemoryLog, MemoryMetastore, MemoryReader
from support.memory.storage import MemoryStorage

READS = {"databases", "tables", "functions", "database", "table", "function", "partition_names", "partitions"}
TOUCHED = 10
ROUNDS = 5


@dataclass(slots=True)
class Warehouse:
    """A source, its journal and its replica, whose ledger knows `others` live tables beside those that are created.
    `calls` counts what was asked of the target."""

    others: int = 0
    source: MemoryMetastore = field(default_factory=MemoryMetastore)
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    calls: Counter[str] = field(default_factory=Counter)
    replica: Replica = field(init=False)

    def __post_init__(self) -> None:
        storage = MemoryStorage()
        catalog = MemoryCatalog(MemoryMetastore(), before=lambda method: self.calls.update([method]))
        policy = Policy("dr", "hq", warehouse="file:/target", data="none", start=0)
        log, reader = MemoryLog(self.source), MemoryReader(self.source)
        side = SourceSide("hq", log, reader, self.journal, MemoryEvidence(), storage)
        ledger = MemoryLedger()
        ledger.put_tables([TableRow("sales", f"other{index}", TableState.LIVE, 0) for index in range(self.others)])
        target = TargetSide.of(policy, catalog, ledger, storage)
        self.replica = Replica(side, target, lambda: 0, lambda: None)
        self.replica.open()
        self.source.create_database(Database("sales"))

    def window(self) -> tuple[int, int, float]:
        """Replicate what happened in one window: changing calls, reads, seconds."""
        events = self.source.events(self.journal.last() or 0)
        self.journal.append(rows_of_events(events))
        self.calls.clear()
        begin = time.perf_counter()
        self.replica.window(self.source.current())
        seconds = time.perf_counter() - begin
        reads = sum(count for method, count in self.calls.items() if method in READS)
        return self.calls.total() - reads, reads, seconds

    def last_window(self) -> tuple[int, int, float]:
        cost = self.window()
        self.replica.close()
        return cost


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, alterations=10_000, pairs=1_000, few=1_000, many=100_000).parse_args(given)
    tell_machine()
    print(f"{'in one window':<46}{'calls':>8}{'reads':>8}{'seconds':>10}")
    calls = tell(f"a partition altered {options.alterations:,} times", hot_partition(options.alterations))
    assert calls <= 2, calls
    calls = tell(f"{options.pairs:,} tables created and dropped", short_lives(options.pairs))
    assert calls == 0, calls
    costs = {tell(f"{TOUCHED} of {count:,} tables altered", few_of(count)) for count in (options.few, options.many)}
    assert costs == {TOUCHED}, costs


def tell(label: str, cost: tuple[int, int, float]) -> int:
    """Print a window's cost; its changing calls."""
    calls, reads, seconds = cost
    print(f"{label:<46}{calls:>8,}{reads:>8,}{number(seconds * 1000):>10} ms", flush=True)
    return calls


def hot_partition(count: int) -> tuple[int, int, float]:
    warehouse = Warehouse()
    table = create(warehouse.source, "t", partitioned=True)
    hot = partition(table, "1")
    warehouse.source.add_partitions(TableName("sales", "t"), [hot])
    warehouse.window()
    for change in range(count):
        warehouse.source.alter_partition(TableName("sales", "t"), replace(hot, parameters={"v": str(change)}))
    return warehouse.last_window()


def short_lives(count: int) -> tuple[int, int, float]:
    warehouse = Warehouse()
    warehouse.window()
    for change in range(count):
        create(warehouse.source, f"t{change}")
        warehouse.source.drop_table(TableName("sales", f"t{change}"))
    return warehouse.last_window()


def few_of(count: int) -> tuple[int, int, float]:
    """A window that touches few of so many tables: of several such windows the quickest."""
    warehouse = Warehouse(count - TOUCHED)
    tables = [create(warehouse.source, f"t{index}") for index in range(TOUCHED)]
    warehouse.window()

    def touch(turn: int) -> tuple[int, int, float]:
        for table in tables:
            warehouse.source.alter_table(
                TableName("sales", table.name), replace(table, parameters={"EXTERNAL": "TRUE", "v": str(turn)})
            )
        return warehouse.window()

    found = min((touch(turn) for turn in range(ROUNDS)), key=lambda cost: cost[2])
    warehouse.replica.close()
    return found


def create(source: MemoryMetastore, name: str, *, partitioned: bool = False) -> Table:
    table = plain_table("sales", name, Path("/source") / name, partitioned=partitioned)
    source.create_table(table)
    return table


def test_calls_are_few_and_do_not_grow_with_the_warehouse() -> None:
    main(["--alterations", "1000", "--pairs", "100", "--few", "100", "--many", "1000"])


if __name__ == "__main__":
    main()
