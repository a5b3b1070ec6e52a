"""Seconds to converge after a gap over an idle warehouse, against a full bootstrap of the same.

The engine in this process, on two real metastores: every fourth table has four partitions, every directory one file.
Exact reads and surveys share four threads. A target is converged when all tables are live; column statistics and
constraints, which cost many calls for each table, are compared after that, and told of by themselves. Processor seconds
are those of calque and of both servers; `--partitions` makes other tables than the smallest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rig import (
    SOURCE,
    arguments,
    metastores,
    partition,
    plain_table,
    processor_seconds,
    tell,
    tell_machine,
    tell_ratio,
    timed,
)

from calque.adapters.delta.ledger import DeltaLedger
from calque.adapters.files.storage import FileStorage
from calque.adapters.held_evidence import MemoryEvidence
from calque.adapters.metastore.catalog import HiveCatalog
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.reader import HiveReader
from calque.core.events.rows import rows_of_events
from calque.core.records.lifecycle import State
from calque.engine.replica.replica import Replica
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.model.gaps import Gap, GapCause
from calque.model.hive import Database
from calque.model.names import TableName
from calque.model.policy import Policy, TargetCapabilities
from calque.model.records import DropReview
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from calque.streams.target import LANDING_SECONDS
from support.memory.gaps import MemoryGaps
from support.memory.journal import MemoryJournal

DATABASE = "idle"
PARTITIONS = 4
LOADERS = 8
GOAL = 0.1
POLL_SECONDS = 0.25
"""As often as `calque run` asks for news when nothing wakes it."""


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, tables=10_000, partitions=PARTITIONS, changed=0).parse_args(given)
    with metastores(2) as (root, (source_server, target_server)):
        tell_machine()
        writer = HiveClient(source_server.uri, connections=LOADERS)
        made = timed(lambda: make(writer, root / "source", options.tables, options.partitions))
        print(f"{options.tables} tables, every fourth with {options.partitions} partitions, made in {made:.0f} s",
              flush=True)  # fmt: skip
        world = Replicated(root, source_server, target_server)
        bootstrap = measured("bootstrap", world.open)
        before = HiveClient(target_server.uri).log.current()
        for number in range(options.changed):
            name = TableName(DATABASE, table_called(number))
            table = writer.catalog.table(name)
            assert table is not None
            writer.create_table(plain_table(DATABASE, f"late{number}", root / "source" / f"late{number}"))
        writer.create_database(Database("elsewhere", location=(root / "elsewhere").as_uri()))
        world.lose_log()
        mended = measured("after a gap, to all tables live", world.converge)
        facets = measured("  then until facets are compared", world.until_repaired)
        calls = HiveClient(target_server.uri).log.current() - before
        print(f"{calls} events at the target's own metastore since the bootstrap", flush=True)
        for what, number in (("time", 0), ("processor time", 1)):
            tell_ratio(f"{what} after a gap / bootstrap (goal {GOAL})", mended[number] / bootstrap[number])
            tell_ratio("  with facets", (mended[number] + facets[number]) / bootstrap[number])
        world.close()
        assert options.changed or not calls


def measured(label: str, action: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and processor seconds of this process and its servers."""
    begin = processor_seconds(os.getpid())
    seconds = tell(label, [timed(action)], "s")
    return seconds, tell("  processor time", [processor_seconds(os.getpid()) - begin], "s")


class Replicated:
    """A source and a target with calque's engine between them; the journal is in memory."""

    def __init__(self, root: Path, source: Metastore, target: Metastore) -> None:
        client, there = Client(source.uri), Client(target.uri)
        self.log, self.journal, self.gaps, storage = HiveLog(client), MemoryJournal(), MemoryGaps(), FileStorage()
        self.begin = self.log.current()
        self.source = SourceSide(
            SOURCE, self.log, HiveReader(client), self.journal, MemoryEvidence(), storage, gaps=self.gaps
        )
        policy = Policy("dr", SOURCE, include=(f"{DATABASE}.*",), warehouse=(root / "warehouse").as_uri())
        ledger = DeltaLedger(str(root / "ledger"))
        self.side = TargetSide.of(policy, HiveCatalog(there, TargetCapabilities()), ledger, FileStorage())
        self.replica = Replica(self.source, self.side, self.beginning, lambda: None, pace=LANDING_SECONDS)

    def beginning(self) -> int:
        found = self.gaps.recorded()
        return found[-1].at if found else self.begin

    def capture(self) -> int:
        """The journal's last event, after what the log has was appended."""
        last = self.journal.last() or self.beginning()
        while page := self.log.read(last, 1000):
            self.journal.append(rows_of_events(page))
            last = page[-1].event_id
        return last

    def open(self) -> None:
        self.replica.open()
        self.converge()

    def converge(self) -> None:
        """Windows until every table is live."""
        while True:
            self.replica.window(self.capture())
            tables = self.replica.tables
            if not tables.in_state(*set(State) - {State.LIVE}) and not tables.positions:
                return
            time.sleep(POLL_SECONDS)

    def until_repaired(self) -> None:
        while self.replica.comparing.recovery.drops is not DropReview.REPAIRED:
            self.replica.window(self.capture())
            time.sleep(POLL_SECONDS)

    def lose_log(self) -> None:
        """What capture does when events were purged before it read them."""
        at = self.log.current()
        self.gaps.add(Gap(1, self.journal.last() or self.begin, at, GapCause.PURGED, ""))
        self.journal.restart(at)

    def close(self) -> None:
        self.replica.close()


def make(source: HiveClient, root: Path, tables: int, partitions: int) -> None:
    source.create_database(Database(DATABASE, location=root.as_uri()))

    def one(number: int) -> None:
        name = table_called(number)
        table = plain_table(DATABASE, name, root / name, partitioned=number % 4 == 0)
        values = [str(value) for value in range(partitions)] if number % 4 == 0 else []
        for folder in [root / name / f"p={value}" for value in values] or [root / name]:
            folder.mkdir(parents=True)
            (folder / "data").write_bytes(b"x" * 1024)
        source.create_table(table)
        if values:
            source.add_partitions(TableName(DATABASE, name), [partition(table, value) for value in values])

    with ThreadPoolExecutor(LOADERS) as pool:
        list(pool.map(one, range(tables)))


def table_called(number: int) -> str:
    return f"t{number:05}"


def test_what_a_gap_costs_is_measured() -> None:
    main(["--tables", "20"])
    main(["--tables", "20", "--changed", "3"])


if __name__ == "__main__":
    main()
