"""How fast transactions of a source reach an ACID table of a target, and how soon one is visible there.

Each transaction inserts one small file into an insert-only table. Many are made while calque is stopped by a signal,
and timed from the moment at which it goes on. The baseline is one process that knows them beforehand and makes the same
commits at the target: it opens a transaction, takes the write id, copies the file and commits. Lag is from the return
of the source's commit to the moment at which a reader, who looks every 5 ms, sees the table's mark at the target.
Before each of these there is a SELECT's pair of events.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import rig
from rig import Job, arguments, metastores, percentile, plain_table, target, tell, tell_machine, tell_ratio, wait_until

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.transactions import HiveReplicatedTransactions
from calque.core.images.image import COMMIT_MARK
from calque.model.hive import Database, Table
from calque.model.names import EventId, TableName
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.sources.plain_transactions import HiveTransactions

NAME = TableName("acid", "events")
INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}
CONTENT = b"1,one,1.0\n" * 100


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, transactions=300, lags=40, runs=3).parse_args(given)
    with metastores(2, "4.2.0") as (root, servers):
        pair = Pair(root, *servers)
        tell_machine()
        bare = [pair.bare(options.transactions) for _ in range(options.runs)]
        rates, lags = pair.measure(options.transactions, options.lags, options.runs)
        print(f"{options.transactions} transactions of one table in each run")
        baseline = tell("  bare loop", [options.transactions / seconds for seconds in bare], "a second")
        figure = tell("  calque", [options.transactions / seconds for seconds in rates], "a second")
        tell_ratio("  calque / bare", figure / baseline)
        print(f"lag of an INSERT, {options.lags} in each run")
        tell("  p50", [percentile(run, 0.5) for run in lags], "ms")
        tell("  p95", [percentile(run, 0.95) for run in lags], "ms")


def insert_only(name: TableName, folder: Path) -> Table:
    table = plain_table(*name, folder)
    return replace(table, parameters=dict(INSERT_ONLY), type="MANAGED_TABLE")


@dataclass
class Pair:
    """A source with one ACID table, and a target."""

    root: Path
    source_server: Metastore
    target_server: Metastore
    numbers: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.source, self.target = HiveClient(self.source_server.uri), HiveClient(self.target_server.uri)
        self.transactions = HiveTransactions(Client(self.source_server.uri))
        self.folder = self.root / "source" / NAME.table
        self.folder.mkdir(parents=True)
        self.source.create_database(Database(NAME.database, location=self.folder.parent.as_uri()))
        self.source.create_table(insert_only(NAME, self.folder))
        self.insert()

    def insert(self) -> EventId:
        """Insert a file by one transaction, and return its event."""
        (transaction,) = self.transactions.open()
        write_id = self.transactions.allocate(NAME, [transaction])[transaction]
        rig.write_file(self.folder / f"delta_{write_id:07d}_{write_id:07d}_0000" / "000000_0", CONTENT)
        self.transactions.commit(transaction)
        return self.source.current()

    def bare(self, transactions: int) -> float:
        """Return the seconds of so many commits at the target."""
        name = TableName(f"bare{next(self.numbers)}", NAME.table)
        folder = self.root / name.database / name.table
        folder.mkdir(parents=True)
        self.target.create_database(Database(name.database, location=folder.parent.as_uri()))
        self.target.create_table(insert_only(name, folder))
        writer = HiveReplicatedTransactions(Client(self.target_server.uri), f"{name.database}.*")
        file = next(self.folder.glob("delta_*/*"))
        begin = time.perf_counter()
        for number in range(1, transactions + 1):
            writer.open(number)
            writer.allocate(number, name, number)
            made = folder / f"delta_{number:07d}_{number:07d}_0000"
            made.mkdir()
            shutil.copyfile(file, made / file.name)
            writer.commit(number)
        return time.perf_counter() - begin

    def measure(self, transactions: int, lags: int, runs: int) -> tuple[list[float], list[list[float]]]:
        """Return the seconds of the backlogs, and the milliseconds of the lags, of each run."""
        section = (
            *target(self.target_server, self.root / "warehouse", NAME.database, NAME.database),
            'acid = "native"',
        )
        with Job(self.root / "job", self.source_server, {"dr": section}, "250ms").running() as process:
            self.wait_for(self.insert(), 0.1)
            backlogs = [self.backlog(process, transactions) for _ in range(runs)]
            return backlogs, [[self.lag() for _ in range(lags)] for _ in range(runs)]

    def backlog(self, process: subprocess.Popen[bytes], transactions: int) -> float:
        process.send_signal(signal.SIGSTOP)
        try:
            for _ in range(transactions):
                last = self.insert()
        finally:
            process.send_signal(signal.SIGCONT)
        begin = time.perf_counter()
        return self.wait_for(last) - begin

    def lag(self) -> float:
        (transaction,) = self.transactions.open()
        self.transactions.commit(transaction)
        event_id = self.insert()
        begin = time.perf_counter()
        lag = (self.wait_for(event_id) - begin) * 1000
        time.sleep(0.3)
        return lag

    def wait_for(self, event_id: EventId, pause: float = 0.005) -> float:
        return wait_until(lambda: self.shown() >= event_id, pause)

    def shown(self) -> EventId:
        """Return the event whose rows the target's table shows."""
        table = self.target.catalog.table(NAME)
        return int((table.parameters or {}).get(COMMIT_MARK, 0)) if table is not None else 0


if __name__ == "__main__":
    main()
