"""A backlog that a running calque takes up, against a bare loop that makes the net changes with as many connections.

The process is stopped while the events are made, and goes on then: what is measured is the way from the log to the
epoch, without any start. Mixed events are additions, inserts, alterations and drops of partitions, and tables that are
made, renamed and dropped; hot ones alter one partition. Files are of a few bytes, and are copied.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from rig import (
    Job,
    arguments,
    metastores,
    partition,
    plain_table,
    processor_seconds,
    target,
    tell,
    tell_machine,
    tree,
    wait_until,
    write_file,
)

from calque.adapters.delta.ledger import DeltaLedger
from calque.engine.replica.replica import APPLIERS
from calque.model.hive import Database, Partition, Table, location_of
from calque.model.names import EventId, TableName
from calque.sandbox.writer import HiveClient

DATABASE, COPY = "src", "copy"
KINDS, WEIGHTS = ("add", "insert", "alter", "create", "drop", "rename", "drop_table"), (38, 22, 19, 8, 6, 5, 2)
LOOKS = 0.02
"""Seconds between two looks at the epochs: oftener they would take a part of what is measured."""
ID = "id"
"""The parameter by which the bare loop knows a table under another name."""

TableState = tuple[Table, Mapping[str, Partition]]
State = Mapping[str, TableState]
"""Tables with their partitions, by the tables' ids."""


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, tables=25, partitions=40, events=1000, hot=200, runs=3).parse_args(given)
    with metastores(2) as (root, (source_server, target_server)):
        source = Source(HiveClient(source_server.uri), root / "source")
        source.fill(options.tables, options.partitions)
        bare = Bare(HiveClient(target_server.uri, APPLIERS), root / "bare")
        job = Job(root / "job", source_server, {"dr": target(target_server, root / "warehouse", DATABASE, COPY)})
        with job.running() as process:
            wait_until(epochs_upto(job, source.client.log.current()))
            tell_machine()
            for label, count, make in (("mixed", options.events, source.mix), ("hot", options.hot, source.heat)):
                rates, spent, bare_rates = [], [], []
                for _ in range(options.runs):
                    before = source.state()
                    bare.begin(before)
                    seconds, processor = take_up(job, process.pid, source, lambda make=make, count=count: make(count))
                    rates.append(count / seconds)
                    spent.append(processor)
                    bare_rates.append(count / bare.change(before, source.state()))
                tell(f"{count:,} {label} events, running", rates, "events/s")
                tell("  processor", spent, "s")
                tell("  bare loop of the net changes", bare_rates, "events/s")


def take_up(job: Job, process: int, source: Source, make: Callable[[], None]) -> tuple[float, float]:
    """Seconds from where the process goes on to the epoch of the last event, and of processor time."""
    with stopped(process):
        make()
        spent, head = processor_seconds(process), source.client.log.current()
        begin = time.perf_counter()
        send(process, go_on=True)
        return wait_until(epochs_upto(job, head), LOOKS) - begin, processor_seconds(process) - spent


@contextmanager
def stopped(process: int) -> Iterator[None]:
    """The process and all its descendants do nothing, until they are sent on; at the end of the block they go on."""
    send(process, go_on=False)
    try:
        yield
    finally:
        send(process, go_on=True)


def send(process: int, *, go_on: bool) -> None:
    for each in tree(process):
        os.kill(each, signal.SIGCONT if go_on else signal.SIGSTOP)


def epochs_upto(job: Job, event_id: EventId) -> Callable[[], bool]:
    """What tells whether an epoch shows the event."""
    ledger = DeltaLedger(str(job.root / "state" / "ledgers" / "dr"))

    def shows() -> bool:
        epoch = ledger.last_epoch()
        return epoch is not None and epoch.event_id >= event_id

    return shows


@dataclass
class Source:
    """Who writes to the source; knows the partitions of each table."""

    client: HiveClient
    root: Path
    tables: dict[str, list[str]] = field(default_factory=dict)
    made: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    def fill(self, tables: int, partitions: int) -> None:
        self.client.create_database(Database(DATABASE, location=self.root.as_uri()))
        for _ in range(tables):
            self.add(self.create(), partitions)

    def mix(self, events: int) -> None:
        while events > 0:
            (kind,) = self.chance.choices(KINDS, WEIGHTS)
            name = self.chance.choice(list(self.tables))
            events -= 1
            match kind:
                case "create":
                    self.create()
                case "rename":
                    table = self.table(name)
                    new = self.new_name()
                    self.client.alter_table(TableName(DATABASE, name), replace(table, name=new))
                    self.tables[new] = self.tables.pop(name)
                case "drop_table" if len(self.tables) > 1:
                    self.client.drop_table(TableName(DATABASE, name))
                    del self.tables[name]
                case "drop" if self.tables[name]:
                    value = self.tables[name].pop(self.chance.randrange(len(self.tables[name])))
                    self.client.drop_partitions(TableName(DATABASE, name), [f"p={value}"])
                case "alter" if self.tables[name]:
                    self.alter(name, self.chance.choice(self.tables[name]))
                case "insert" if self.tables[name]:
                    self.insert(name, self.chance.choice(self.tables[name]))
                case _:
                    self.add(name, 1)

    def heat(self, events: int) -> None:
        name = next(name for name, values in self.tables.items() if values)
        for _ in range(events):
            self.alter(name, self.tables[name][0])

    def create(self) -> str:
        name = self.new_name()
        table = plain_table(DATABASE, name, self.root / name, partitioned=True)
        parameters = {**(table.parameters or {}), ID: name}
        self.client.create_table(replace(table, parameters=parameters))
        self.tables[name] = []
        return name

    def add(self, name: str, count: int) -> None:
        table, values = self.table(name), [str(self.made + number) for number in range(count)]
        self.made += count
        parts = [partition(table, value) for value in values]
        for part in parts:
            write_file(path_of(part) / "000000_0", b"1\n")
        self.client.add_partitions(TableName(DATABASE, name), parts)
        self.tables[name] += values

    def alter(self, name: str, value: str) -> None:
        part = self.partition(name, value)
        parameters = {**(part.parameters or {}), "k": str(self.chance.random())}
        self.client.alter_partitions(TableName(DATABASE, name), [replace(part, parameters=parameters)])

    def insert(self, name: str, value: str) -> None:
        path = path_of(self.partition(name, value)) / f"f{self.chance.randrange(10**9)}"
        write_file(path, b"2\n")
        self.client.insert(TableName(DATABASE, name), [str(path)], values=[value])

    def table(self, name: str) -> Table:
        table = self.client.catalog.table(TableName(DATABASE, name))
        assert table is not None
        return table

    def partition(self, name: str, value: str) -> Partition:
        return self.client.catalog.partitions(TableName(DATABASE, name), [f"p={value}"])[f"p={value}"]

    def new_name(self) -> str:
        self.made += 1
        return f"t{self.made}"

    def state(self) -> State:
        found = {}
        for name, values in self.tables.items():
            parts = self.client.catalog.partitions(TableName(DATABASE, name), [f"p={value}" for value in values])
            table = self.table(name)
            found[(table.parameters or {})[ID]] = table, parts
        return found


@dataclass
class Bare:
    """Makes what differs between two states, in a database of its own, table by table."""

    client: HiveClient
    root: Path
    begun: int = 0

    @property
    def database(self) -> str:
        return f"bare{self.begun}"

    def begin(self, state: State) -> None:
        """Have that state in a new database."""
        self.begun += 1
        self.client.create_database(Database(self.database, location=(self.root / self.database).as_uri()))
        self.change({}, state)

    def change(self, before: State, after: State) -> float:
        """Seconds that it takes to come from one state to the other."""
        begin = time.perf_counter()
        with ThreadPoolExecutor(APPLIERS) as pool:
            list(pool.map(lambda key: self.move(before.get(key), after.get(key)), before.keys() | after.keys()))
        return time.perf_counter() - begin

    def move(self, was: TableState | None, now: TableState | None) -> None:
        """One table, from what it was to what it is."""
        if now is None:
            if was is not None:
                self.client.drop_table(TableName(self.database, was[0].name), delete_data=False)
            return
        table, parts = now
        name, known = TableName(self.database, table.name), {} if was is None else was[1]
        if was is None:
            self.client.create_table(self.moved(table))
        elif was[0].name != table.name:
            self.client.alter_table(TableName(self.database, was[0].name), self.moved(table))
        added = [self.copied(table, parts[key]) for key in parts.keys() - known.keys()]
        changed = [
            self.copied(table, parts[key])
            for key in parts.keys() & known.keys()
            if parts[key].parameters != known[key].parameters or more_files(parts[key], self.place(table, key))
        ]
        if added:
            self.client.add_partitions(name, added)
        if changed:
            self.client.alter_partitions(name, changed)
        if gone := sorted(known.keys() - parts.keys()):
            self.client.drop_partitions(name, gone, delete_data=False)

    def moved(self, table: Table) -> Table:
        assert table.storage is not None
        place = (self.root / self.database / (table.parameters or {})[ID]).as_uri()
        return replace(table, database=self.database, storage=replace(table.storage, location=place))

    def place(self, table: Table, partition_name: str) -> Path:
        return self.root / self.database / (table.parameters or {})[ID] / partition_name

    def copied(self, table: Table, part: Partition) -> Partition:
        place = self.place(table, f"p={part.values[0]}")
        place.mkdir(parents=True, exist_ok=True)
        for path in path_of(part).iterdir():
            if not (place / path.name).exists():
                shutil.copyfile(path, place / path.name)
        assert part.storage is not None
        return replace(
            part, database=self.database, table=table.name, storage=replace(part.storage, location=place.as_uri())
        )


def more_files(part: Partition, place: Path) -> bool:
    return len(os.listdir(path_of(part))) != len(os.listdir(place))  # noqa: PTH208 - the fastest way


def path_of(part: Partition) -> Path:
    return Path((location_of(part) or "").removeprefix("file:"))


def test_a_running_process_takes_a_backlog_up() -> None:
    main(["--tables", "3", "--partitions", "4", "--events", "30", "--hot", "5", "--runs", "1"])


if __name__ == "__main__":
    main()
