"""How soon a change is visible at a quiet target, and what an idle process costs.

Lag is from the return of the source's call to the moment at which a reader, who looks every 5 ms, sees it at the
target. The baseline is the bare hop in one process: read the event, make the same call (and copy the same file) at the
target. Idle cost is of the whole process tree, with two targets. `--journal kafka` has the journal on a broker.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import rig
from rig import Job, arguments, metastores, percentile, plain_table, target, tell, tell_machine, tell_ratio, wait_until

from calque.core.formats.layout import place
from calque.model.hive import Database, Table, location_of
from calque.model.names import TableName
from calque.sandbox import Broker, Metastore
from calque.sandbox.writer import HiveClient

DATABASE = "lagging"
NAME = TableName(DATABASE, "events")
EVERY_SECONDS = 0.4
SETTLE_SECONDS = 5.0
CONTENT = b"1,one,1.0\n" * 100


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, changes=40, runs=3, idle=20)
    parser.add_argument("--journal", choices=("delta", "kafka"), default="delta", help=" ")
    options = parser.parse_args(given)
    with metastores(2) as (root, servers), ExitStack() as stack:
        broker = stack.enter_context(Broker.start(root / "broker")) if options.journal == "kafka" else None
        pair = Pair(root, *servers, broker)
        tell_machine()
        bare = {"metadata": [], "files": []}
        lags = {poll: {"metadata": [], "files": []} for poll in ("50ms", "250ms")}
        for _ in range(options.runs):
            for kind in bare:
                bare[kind].append(pair.bare(kind, options.changes))
        for poll, found in lags.items():
            pair.measure(poll, found, options.changes, options.runs)
        for kind in bare:
            print(f"{kind}, {options.changes} changes in each run")
            middles = [percentile(run, 0.5) for run in bare[kind]]
            baseline = tell("  bare hop, p50", middles, "ms")
            for poll, found in lags.items():
                figure = tell(f"  calque, poll {poll}, p50", [percentile(run, 0.5) for run in found[kind]], "ms")
                tell(f"  calque, poll {poll}, p95", [percentile(run, 0.95) for run in found[kind]], "ms")
                tell_ratio(f"  calque, poll {poll} / bare, p50", figure / baseline)
        for poll in lags:
            pair.idle(poll, options.idle, options.runs)


@dataclass
class Pair:
    """A source with one table, a target, and the changes that are made to it."""

    root: Path
    source_server: Metastore
    target_server: Metastore
    broker: Broker | None = None
    numbers: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.source, self.target = HiveClient(self.source_server.uri), HiveClient(self.target_server.uri)
        self.folder = self.root / "source" / NAME.table
        rig.write_file(self.folder / "first", CONTENT)
        self.source.create_database(Database(DATABASE, location=(self.root / "source").as_uri()))
        self.source.create_table(plain_table(DATABASE, NAME.table, self.folder))

    def job(self, poll: str, *databases: str) -> Job:
        sections = {
            name: target(self.target_server, self.root / "warehouse" / name, DATABASE, name) for name in databases
        }
        number, journal = next(self.numbers), ()
        if self.broker is not None:
            journal = ('format = "kafka"', f'brokers = "{self.broker.address}"', f'topic = "job{number}.events"')
        return Job(self.root / f"job{number}", self.source_server, sections, poll, journal)

    def measure(self, poll: str, found: dict[str, list[list[float]]], changes: int, runs: int) -> None:
        """Milliseconds of each change, of each run, under one process."""
        database = f"lag{next(self.numbers)}"
        with self.job(poll, database).running():
            self.settle(database)
            for _ in range(runs):
                for kind, lags in found.items():
                    lags.append(list(self.lags(kind, TableName(database, NAME.table), changes)))

    def settle(self, *databases: str) -> None:
        for database in databases:
            wait_until(lambda at=database: self.target.catalog.table(TableName(at, NAME.table)), 0.1)
        time.sleep(SETTLE_SECONDS)

    def lags(self, kind: str, at: TableName, changes: int) -> list[float]:
        found = []
        for _ in range(changes):
            tick = time.perf_counter()
            returned, visible = self.change(kind, at)
            found.append((wait_until(visible, seconds=30) - returned) * 1000)
            time.sleep(max(0.0, tick + EVERY_SECONDS - time.perf_counter()))
        return found

    def change(self, kind: str, at: TableName) -> tuple[float, Callable[[], bool]]:
        """Change the source; when its call returned, and what to look at."""
        mark = f"n{next(self.numbers)}"
        if kind == "metadata":
            table = the_table(self.source, NAME)
            self.source.alter_table(NAME, replace(table, parameters={**(table.parameters or {}), "mark": mark}))
            returned = time.perf_counter()
            return returned, lambda: (the_table(self.target, at).parameters or {}).get("mark") == mark
        rig.write_file(self.folder / mark, CONTENT)
        self.source.insert(NAME, [(self.folder / mark).as_uri()])
        returned = time.perf_counter()
        copy = folder_of(self.target, at) / mark
        return returned, lambda: copy.exists() or (folder_of(self.target, at) / mark).exists()

    def bare(self, kind: str, changes: int) -> list[float]:
        """Milliseconds from the source's call until the same was done at the target by hand, and was seen."""
        database = f"bare{next(self.numbers)}"
        at, folder = TableName(database, NAME.table), self.root / database / NAME.table
        folder.mkdir(parents=True)
        self.target.create_database(Database(database, location=folder.parent.as_uri()))
        self.target.create_table(plain_table(database, NAME.table, folder))
        found = []
        for _ in range(changes):
            before = self.source.current()
            returned, visible = self.change(kind, at)
            self.source.log.read(before, 10)
            if kind == "metadata":
                there, here = the_table(self.target, at), the_table(self.source, NAME)
                self.target.alter_table(at, replace(there, parameters=here.parameters))
            else:
                for path in self.folder.iterdir():
                    if not (folder / path.name).exists():
                        shutil.copyfile(path, folder / path.name)
            found.append((wait_until(visible) - returned) * 1000)
        return found

    def idle(self, poll: str, seconds: int, runs: int) -> None:
        """Processor time of nothing, and memory."""
        databases = [f"idle{next(self.numbers)}", f"idle{next(self.numbers)}"]
        with self.job(poll, *databases).running() as process:
            self.settle(*databases)
            shares, sizes = [], []
            for _ in range(runs):
                before = rig.processor_seconds(process.pid)
                taken = rig.timed(lambda: time.sleep(seconds))
                shares.append((rig.processor_seconds(process.pid) - before) / taken * 100)
                sizes.append(rig.memory_mib(process.pid))
            print(f"idle, poll {poll}, two targets, {len(rig.tree(process.pid))} processes, {seconds} s in each run")
            tell("  processor", shares, "% of one")
            tell("  RSS of the tree", [rss for rss, _ in sizes], "MiB")
            tell("  PSS of the tree", [pss for _, pss in sizes], "MiB")


def the_table(client: HiveClient, name: TableName) -> Table:
    found = client.catalog.table(name)
    assert found is not None
    return found


def folder_of(client: HiveClient, name: TableName) -> Path:
    return Path(place(location_of(the_table(client, name)) or "").path)


def test_lag_is_measured() -> None:
    main(["--changes", "3", "--runs", "1", "--idle", "2"])


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
