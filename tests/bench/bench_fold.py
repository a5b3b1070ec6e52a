"""Journal rows folded and planned per second, window by window, against a bare loop that only reads their key columns.

The journal is a real one of messages of 5 KB over 5,000 tables (Zipf), a third of them with 1,000 partitions. The
target shows every table as the first window finds it, and no hop is applied. Each size runs in a process of its own;
peak memory is that process's.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from rig import arguments, number, plain_table, tell_machine, timed

from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.held_evidence import MemoryEvidence
from calque.core.events.rows import ENTRY_COLUMNS, SCHEMA
from calque.core.images.image import EVENT, INCARNATION, SOURCE, source_mark
from calque.core.states.fold import fold
from calque.engine.replica.replica import Replica
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.window.prepare import Positions, prepare
from calque.model.hive import Partition, Table
from calque.model.journal import Entry, EventKind, Keys, TableShape
from calque.model.names import EventId, TableName
from calque.model.policy import Policy
from support.memory.ledger import MemoryLedger
from support.memory.metastore import MemoryCatalog, MemoryLog, MemoryMetastore
from support.memory.storage import MemoryStorage

WINDOW = 100_000
BATCH = 20_000
MESSAGE_BYTES = 5_000
TABLES = 5_000
PARTITIONS = 1_000
EVERY = 3
"""Every so many tables one is partitioned."""

T = TypeVar("T")


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, most=100_000)
    parser.add_argument("--measure", metavar="JOURNAL", help="measure the one journal in this folder")
    options = parser.parse_args(given)
    if options.measure:
        measure(options.measure)
        return
    tell_machine()
    print(f"{'events':>9}" + "".join(f"{label:>13}" for label in (*STAGES, "peak MiB")) + "   thousand events/s")
    with tempfile.TemporaryDirectory(prefix="calque-bench-") as folder:
        for count in (10_000, 100_000, 1_000_000):
            if count <= options.most:
                written = f"{folder}/{count}"
                fill(DeltaJournal(written), count)
                subprocess.run([sys.executable, __file__, "--measure", written], check=True)


# The journal


def fill(journal: DeltaJournal, count: int) -> None:
    """Append `count` events in batches as capture does."""
    history = History(random.Random(7))
    for start in range(1, count + 1, BATCH):
        journal.append(history.rows(range(start, min(start + BATCH, count + 1))))


@dataclass(slots=True)
class History:
    """What happens to the tables: inserts and statistics above all, some alterations, additions and drops."""

    chance: random.Random
    weights: list[float] = field(default_factory=lambda: [1 / rank**1.1 for rank in range(1, TABLES + 1)])
    added: dict[int, list[str]] = field(default_factory=dict)

    def rows(self, ids: range) -> pa.Table:
        tables = self.chance.choices(range(TABLES), self.weights, k=len(ids))
        keys = [self.keys(event_id, table) for event_id, table in zip(ids, tables, strict=True)]
        filler = self.chance.randbytes(1 << 19).hex()
        starts = [self.chance.randrange(len(filler) - MESSAGE_BYTES) for _ in ids]
        columns: dict[str, object] = {
            "event_id": list(ids),
            "event_time": [1_700_000_000 + event_id // 100 for event_id in ids],
            "event_type": [each.kind.value.upper().rstrip("S") for each in keys],
            "kind": [each.kind.value for each in keys],
            "key_database": [each.table.database for each in keys if each.table],
            "key_table": [each.table.table for each in keys if each.table],
            "shape": [each.shape.value for each in keys],
            "partitions": [each.partitions for each in keys],
            "others": [each.others for each in keys],
            "locations": [each.locations for each in keys],
            "facets_only": [each.facets_only for each in keys],
            "replaces": [False] * len(keys),
            "columns_changed": [False] * len(keys),
            "transactional": [False] * len(keys),
            "defect": [""] * len(keys),
            "message_format": ["json-0.2"] * len(keys),
            "message": [filler[start : start + MESSAGE_BYTES] for start in starts],
        }
        columns |= {name: columns[f"key_{name}"] for name in ("database", "table")} | {"catalog": ["hive"] * len(keys)}
        return pa.table([pa.array(columns.get(each.name, [None] * len(keys)), each.type) for each in SCHEMA], SCHEMA)

    def keys(self, event_id: int, table: int) -> Keys:
        name, location = name_of(table), f"hdfs://warehouse/sales/t{table}"
        what = self.chance.random()
        if table % EVERY:
            if what < 0.5:
                return Keys(EventKind.INSERT, name, shape=TableShape.PLAIN, locations=(location,))
            return Keys(
                EventKind.ALTER_TABLE, name, shape=TableShape.PLAIN, locations=(location,), facets_only=what < 0.9
            )
        kind, facets = EventKind.INSERT if what < 0.4 else EventKind.ALTER_PARTITIONS, 0.4 <= what < 0.75
        partition = f"p={self.chance.randrange(PARTITIONS)}"
        added = self.added.setdefault(table, [])
        if what > 0.85:
            kind, partition = EventKind.ADD_PARTITIONS, f"p=n{event_id}"
            added.append(partition)
        elif what > 0.8 and added:
            return Keys(EventKind.DROP_PARTITIONS, name, shape=TableShape.PARTITIONED, partitions=(added.pop(),))
        locations = (f"{location}/{partition}",)
        return Keys(
            kind, name, shape=TableShape.PARTITIONED, partitions=(partition,), locations=locations, facets_only=facets
        )


def name_of(table: int) -> TableName:
    return TableName("sales", f"t{table}")


# The target


class Standing(MemoryCatalog):
    """Shows every table, and the partitions that were there at `at`; remembers nothing."""

    at: EventId = 0

    def table(self, name: TableName) -> Table | None:
        partitioned = not int(name.table[1:]) % EVERY
        table = plain_table(name.database, name.table, Path("/replica") / name.table, partitioned=partitioned)
        return replace(table, parameters=MARKS | {SOURCE: source_mark("hq", name)})

    def partitions(self, name: TableName, names: Sequence[str]) -> Mapping[str, Partition]:
        there = [each for each in names if not each.startswith("p=n") or int(each[3:]) <= self.at]
        return {each: Partition((each[2:],), name.database, name.table, parameters=MARKS) for each in there}


MARKS = {EVENT: "0", INCARNATION: "0"}


# Measuring

STAGES = ("bare loop", "entries", "groups", "fold", "fold, plan", "all")
"""Seconds. `all` is entries, groups and the plan."""


def measure(location: str) -> None:
    """Print one line of figures."""
    journal = DeltaJournal(location)
    upto = journal.last() or 0
    spent = dict.fromkeys(STAGES, 0.0)
    spent["bare loop"] = timed(lambda: read_keys(location))
    catalog = Standing(MemoryMetastore())
    storage = MemoryStorage()
    source = SourceSide("hq", MemoryLog(catalog.metastore), catalog, journal, MemoryEvidence(), storage)
    policy = Policy("dr", "hq", warehouse="file:/target", data="none", start=0)
    replica = Replica(source, TargetSide.of(policy, catalog, MemoryLedger(), storage), lambda: 0, lambda: None)
    replica.open()
    hops = 0
    for after in range(0, upto, WINDOW):
        replica.tables.cursor = catalog.at = after
        hops += window(replica, min(after + WINDOW, upto), spent)
    replica.close()
    spent["all"] = spent["entries"] + spent["groups"] + spent["fold, plan"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = "".join(f"{number(each):>13}" for each in (*spent.values(), peak))
    print(f"{upto:>9,}{figures}   {upto / spent['all'] / 1000:.1f}, {hops:,} hops", flush=True)


def window(replica: Replica, upto: EventId, spent: dict[str, float]) -> int:
    """Fold and plan everything to `upto`, adding up the seconds of each stage; how many hops were planned."""

    def spend(stage: str, action: Callable[[], T]) -> T:
        begin = time.perf_counter()
        found = action()
        spent[stage] += time.perf_counter() - begin
        return found

    entries = spend("entries", lambda: replica.player.entries(upto))
    groups = spend("groups", lambda: replica.player.live_groups(entries))
    spend("fold", lambda: [fold(group) and None for group in groups])
    return spend("fold, plan", lambda: sum(hops_of(replica, group, upto) for group in groups))


def hops_of(replica: Replica, group: Sequence[Entry], upto: EventId) -> int:
    prepared = prepare(replica.source, replica.side, group, Positions(replica.cursor), upto)
    return len(prepared.solution.plan.hops)


def read_keys(location: str) -> None:
    for file in Path(location).glob("*.parquet"):
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(columns=list(ENTRY_COLUMNS)):
                for _ in batch["event_id"].to_pylist():
                    pass


def test_windows_are_folded_and_planned() -> None:
    main(["--most", "10000"])


if __name__ == "__main__":
    main()
