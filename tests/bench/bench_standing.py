"""A backlog over standing partitions (`data = "none"`), against a bare loop that makes the net changes with as many
connections.

Few tables get most of the events (Zipf): partitions are added, altered, dropped and inserted into, tables are altered.
Both metastores have all partitions beforehand, all but the first of each table by their databases' hands, so that the
bootstrap is short. The process is stopped while the events are made: what is measured has no start in it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench_running import epochs_upto, send, stopped
from rig import (
    Job,
    arguments,
    copy_partition,
    metastores,
    partition,
    plain_table,
    processor_seconds,
    target,
    tell,
    tell_machine,
    tell_ratio,
    wait_until,
)

from calque.engine.replica.replica import APPLIERS
from calque.model.hive import Database, Partition, Table
from calque.model.names import TableName
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient

DATABASE, COPY, BARE = "src", "copy", "bare"
KINDS, WEIGHTS = ("add", "alter", "drop", "insert", "alter_table"), (296, 256, 98, 299, 51)
FIRST_ID = 1_000_000


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, tables=1000, partitions=100, events=20_000, writers=6).parse_args(given)
    with metastores(2) as (root, (source_server, target_server)):
        source, bare = HiveClient(source_server.uri), HiveClient(target_server.uri, APPLIERS)
        tables = [Standing(number, root, options.partitions) for number in range(options.tables)]
        for client, database in ((source, DATABASE), (bare, BARE)):
            client.create_database(Database(database, location=(root / database).as_uri()))
            with ThreadPoolExecutor(options.writers) as pool:
                list(pool.map(lambda table, client=client, database=database: table.create(client, database), tables))
        section = [*target(target_server, root / "warehouse", DATABASE, COPY), 'data = "none"']
        job = Job(root / "job", source_server, {"dr": section})
        with job.running() as process:
            wait_until(epochs_upto(job, source.log.current()))
            places = ((source_server, DATABASE), (target_server, COPY), (target_server, BARE))
            for number, (server, database) in enumerate(places):
                fill(server, database, tables, number)
            tell_machine()
            with stopped(process.pid):
                begin = time.perf_counter()
                make(source, tables, options.events, options.writers)
                tell("writing the events", [options.events / (time.perf_counter() - begin)], "events/s")
                spent, head = processor_seconds(process.pid), source.log.current()
                begin = time.perf_counter()
                send(process.pid, go_on=True)
                seconds = wait_until(epochs_upto(job, head)) - begin
                spent = processor_seconds(process.pid) - spent
        tell(
            f"{options.events:,} events over {options.tables:,} × {options.partitions}",
            [options.events / seconds],
            "events/s",
        )
        tell("  seconds", [seconds], "s")
        tell("  processor", [spent], "s")
        print(job.log.read_text().strip().splitlines()[-1], flush=True)
        with ThreadPoolExecutor(APPLIERS) as pool:
            begin = time.perf_counter()
            calls = sum(pool.map(lambda table: table.net(bare, BARE), tables))
            bare_seconds = time.perf_counter() - begin
        tell("bare loop of the net changes", [bare_seconds], f"s, {calls} calls")
        tell_ratio("calque / bare", seconds / bare_seconds)


def fill(server: Metastore, database: str, tables: Sequence[Standing], number: int) -> None:
    """All standing partitions but the first of each table."""
    for table in tables:
        first_id = FIRST_ID * (number + 1) + table.number * len(table.values)
        copy_partition(server, TableName(database, table.name), range(1, len(table.values)), first_id)


def make(client: HiveClient, tables: Sequence[Standing], events: int, writers: int) -> None:
    """All events, a table's by one writer."""
    chance = random.Random(7)
    chosen = chance.choices(range(len(tables)), [1 / (number + 1) for number in range(len(tables))], k=events)
    kinds = chance.choices(KINDS, WEIGHTS, k=events)

    def write(writer: int) -> None:
        for number, kind in zip(chosen, kinds, strict=True):
            if number % writers == writer:
                tables[number].change(client, kind)

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))


@dataclass
class Standing:
    """One table, its partitions' values, and what became of them since."""

    number: int
    root: Path
    partitions: int
    values: list[str] = field(init=False)
    notes: dict[str, int] = field(default_factory=dict)
    """Of partitions that were altered, and of the table itself (`""`): how often."""
    added: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    made: int = 0

    def __post_init__(self) -> None:
        self.values = [str(value) for value in range(self.partitions)]
        self.made, self.chance = self.partitions, random.Random(self.number)

    @property
    def name(self) -> str:
        return f"t{self.number:04}"

    def table(self, database: str) -> Table:
        table = plain_table(database, self.name, self.root / database / self.name, partitioned=True)
        return replace(table, parameters={**(table.parameters or {}), "note": str(self.notes.get("", 0))})

    def partition(self, database: str, value: str) -> Partition:
        part = partition(self.table(database), value)
        return replace(part, parameters={"note": str(self.notes.get(value, 0))})

    def create(self, client: HiveClient, database: str) -> None:
        client.create_table(self.table(database))
        client.add_partitions(TableName(database, self.name), [self.partition(database, "0")])

    def change(self, client: HiveClient, kind: str) -> None:
        name = TableName(DATABASE, self.name)
        if kind == "alter_table":
            self.notes[""] = self.notes.get("", 0) + 1
            client.alter_table(name, self.table(DATABASE))
            return
        if kind == "add" or not self.values:
            self.made += 1
            value = str(self.made)
            client.add_partitions(name, [self.partition(DATABASE, value)])
            self.values.append(value)
            self.added.add(value)
            return
        place = self.chance.randrange(len(self.values))
        value = self.values[place]
        if kind == "insert":
            client.insert(name, [f"{self.root / DATABASE / self.name}/p={value}/f"], values=[value])
            return
        if kind == "alter":
            self.notes[value] = self.notes.get(value, 0) + 1
            client.alter_partitions(name, [self.partition(DATABASE, value)])
            return
        client.drop_partitions(name, [f"p={value}"], delete_data=False)
        self.values[place] = self.values[-1]
        self.values.pop()
        self.notes.pop(value, None)
        if value in self.added:
            self.added.remove(value)
        else:
            self.dropped.add(value)

    def net(self, client: HiveClient, database: str) -> int:
        """Make the net change in that database; how many calls that took."""
        name, calls = TableName(database, self.name), 0
        altered = [value for value in self.notes if value and value not in self.added]
        if "" in self.notes:
            client.alter_table(name, self.table(database))
            calls += 1
        if self.added:
            client.add_partitions(name, [self.partition(database, value) for value in sorted(self.added)])
            calls += 1
        if altered:
            client.alter_partitions(name, [self.partition(database, value) for value in altered])
            calls += 1
        if self.dropped:
            client.drop_partitions(name, [f"p={value}" for value in sorted(self.dropped)], delete_data=False)
            calls += 1
        return calls


def test_a_backlog_over_standing_partitions_is_measured() -> None:
    main(["--tables", "4", "--partitions", "5", "--events", "60", "--writers", "2"])


if __name__ == "__main__":
    main()
