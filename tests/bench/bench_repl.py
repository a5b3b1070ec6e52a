"""Dumps and loads by calque, against Hive 4.0.1's own on the same history, in the same sitting and on one metastore.

Source and replicas are databases of one metastore 4.2.0 on PostgreSQL, which both speak to by Thrift; Hive's session
and calque's process are warm. Each event is one of add, alter, insert for a partition, or alter for a table; `--hot`
is how many changes of one partition. Data are named, not held, and lie on this disk.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from rig import arguments, memory_mib, partition, plain_table, tell, tell_machine, tell_ratio, timed, write_file

from calque.cli import main as calque
from calque.engine.replica.replica import APPLIERS
from calque.model.hive import Database, location_of
from calque.model.names import TableName
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.services.hive_driver import HIVE_4_0, Hive, hive

SOURCE, BY_HIVE, BY_CALQUE, BARE = "src", "by_hive", "by_calque", "bare"
LOAD_GOAL, HOT_GOAL, DUMP_GOAL = 20, 100, 5


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, tables=25, partitions=40, events=1_000, hot=200).parse_args(given)
    tell_machine()
    with TemporaryDirectory() as folder:
        root = Path(folder)
        with Metastore.start(HIVE_4_0, root / "metastore") as server, hive(root, server) as program:
            sitting = Sitting(root, server, program)
            sitting.fill(options.tables, options.partitions)
            sitting.compare("bootstrap", options.tables * options.partitions, "partitions")
            sitting.make_bare(options.tables * options.partitions)
            sitting.mix(options.events)
            load, dump = sitting.compare("events", options.events, "events")
            sitting.heat(options.hot)
            hot, _ = sitting.compare("hot partition", options.hot, "events")
            sitting.check()
    print(f"goals: load {LOAD_GOAL} x, hot {HOT_GOAL} x, dump {DUMP_GOAL} x: {load:.1f}, {hot:.1f}, {dump:.1f}")
    print(f"calque's process: {memory_mib(os.getpid())[1]:.0f} MiB at most")


@dataclass
class Sitting:
    root: Path
    server: Metastore
    program: Hive
    last: int | None = None
    bootstrap_seconds: float = 0.0
    """Of the first load by calque."""

    def __post_init__(self) -> None:
        self.client, self.rng = HiveClient(self.server.uri), random.Random(1)
        self.config = self.root / "calque.toml"
        self.config.write_text(
            f'[source]\nname = "hq"\nmetastore = "{self.server.uri}"\n[repl]\nroot = "file:{self.root}/calque"\n'
            f'[targets.dr]\nmetastore = "{self.server.uri}"\nwarehouse = "file:{self.root}/dr"\n'
            f'include = ["{SOURCE}.*"]\nrename = {{ "{SOURCE}" = "{BY_CALQUE}" }}\n'
        )

    def fill(self, tables: int, partitions: int) -> None:
        self.client.create_database(Database(SOURCE, parameters={"repl.source.for": "1"}))
        self.tables, self.values = [f"t{number}" for number in range(tables)], partitions
        for name in self.tables:
            place = self.root / "data" / name
            table = replace(plain_table(SOURCE, name, place, partitioned=True), type="MANAGED_TABLE", parameters={})
            storage = table.storage
            assert storage is not None
            self.client.create_table(replace(table, storage=replace(storage, location=None)))
            self.add(name, range(partitions))

    def add(self, name: str, values: range) -> None:
        table = self.client.catalog.table(TableName(SOURCE, name))
        assert table is not None
        made = [partition(table, str(value)) for value in values]
        for one in made:
            write_file(Path((location_of(one) or "").removeprefix("file:")) / "000000_0", b"1\n")
        self.client.add_partitions(TableName(SOURCE, name), made)

    def mix(self, events: int) -> None:
        for _ in range(events):
            name = self.rng.choice(self.tables)
            match self.rng.choices(["add", "alter", "insert", "table"], [4, 3, 2, 1])[0]:
                case "add":
                    self.add(name, range(self.values, self.values + 1))
                    self.values += 1
                case "alter":
                    self.alter(name, "0")
                case "insert":
                    self.insert(name, "1")
                case _:
                    self.alter_table(name)

    def heat(self, changes: int) -> None:
        for _ in range(changes):
            self.alter(self.tables[0], "0")

    def alter(self, name: str, value: str) -> None:
        table = TableName(SOURCE, name)
        [(_, found)] = self.client.catalog.partitions(table, [self.key(name, value)]).items()
        parameters = {**(found.parameters or {}), "k": str(self.rng.random())}
        self.client.alter_partitions(table, [replace(found, parameters=parameters)])

    def insert(self, name: str, value: str) -> None:
        table = TableName(SOURCE, name)
        [(_, found)] = self.client.catalog.partitions(table, [self.key(name, value)]).items()
        path = f"{location_of(found)}/f{self.rng.randrange(10**9)}"
        write_file(Path(path.removeprefix("file:")), b"2\n")
        self.client.insert(table, [path], values=list(found.values))

    def alter_table(self, name: str) -> None:
        found = self.client.catalog.table(TableName(SOURCE, name))
        assert found is not None
        parameters = {**(found.parameters or {}), "k": str(self.rng.random())}
        self.client.alter_table(TableName(SOURCE, name), replace(found, parameters=parameters))

    def key(self, name: str, value: str) -> str:
        found = self.client.catalog.table(TableName(SOURCE, name))
        assert found is not None
        [key] = found.partition_keys or ()
        return f"{key.name}={value}"

    def compare(self, label: str, count: int, unit: str) -> tuple[float, float]:
        """Both dump and load; how many times as fast calque is in loading, and in dumping."""
        following = f" FROM {self.last}" if self.last is not None else ""
        dumps: dict[str, str] = {}

        def hive_dumps() -> None:
            [row] = self.program.run(f"REPL DUMP {SOURCE}")
            dumps["hive"] = row.split("\t")[0]

        def calque_dumps() -> None:
            [[dumps["calque"], self.last]] = self.sql(f"REPL DUMP {SOURCE}{following}")

        seconds = {
            "dump by Hive": timed(hive_dumps),
            "dump by calque": timed(calque_dumps),
            "load by Hive": timed(lambda: self.program.run(f"REPL LOAD {SOURCE} INTO {BY_HIVE}")),
            "load by calque": timed(lambda: self.sql(f"REPL LOAD {BY_CALQUE} FROM '{dumps['calque']}'")),
        }
        for what, took in seconds.items():
            tell(f"{label}: {what}", [count / took], f"{unit}/s")
        for who, place in dumps.items():
            files = sum(len(names) for _, _, names in os.walk(place.removeprefix("file:")))
            print(f"{label}: {files} files by {who}")
        self.bootstrap_seconds = self.bootstrap_seconds or seconds["load by calque"]
        load = seconds["load by Hive"] / seconds["load by calque"]
        dump = seconds["dump by Hive"] / seconds["dump by calque"]
        tell_ratio(f"{label}: load, Hive / calque", load)
        tell_ratio(f"{label}: dump, Hive / calque", dump)
        return load, dump

    def sql(self, statement: str) -> list[list[object]]:
        said, told = StringIO(), StringIO()
        with redirect_stdout(said), redirect_stderr(told):
            code = calque(["sql", "--json", statement, "-c", str(self.config)])
        assert code == 0, told.getvalue()
        rows: list[list[object]] = json.loads(said.getvalue())[-1]["rows"]
        return rows

    def make_bare(self, count: int) -> None:
        """The same tables, partitions and files by one call for each table and its partitions, with as many
        connections as a load has."""
        self.client.create_database(Database(BARE, parameters={}))

        def make(name: str) -> None:
            client = HiveClient(self.server.uri)
            table = client.catalog.table(TableName(SOURCE, name))
            assert table is not None
            storage = table.storage
            assert storage is not None
            place = self.root / BARE / name
            client.create_table(replace(table, database=BARE, storage=replace(storage, location=f"file:{place}")))
            partitions = client.catalog.partitions(
                TableName(SOURCE, name), [f"p={value}" for value in range(self.values)]
            )
            made = []
            for key, found in partitions.items():
                at = place / key
                at.mkdir(parents=True)
                shutil.copy2(f"{(location_of(found) or '').removeprefix('file:')}/000000_0", at)
                old = found.storage
                assert old is not None
                made.append(replace(found, database=BARE, storage=replace(old, location=f"file:{at}")))
            client.add_partitions(TableName(BARE, name), made)

        def make_all() -> None:
            with ThreadPoolExecutor(APPLIERS) as pool:
                list(pool.map(make, self.tables))

        took = timed(make_all)
        tell("bootstrap: bare calls", [count / took], "partitions/s")
        tell_ratio("bootstrap: load by calque / bare calls", self.bootstrap_seconds / took)

    def check(self) -> None:
        """Both replicas have the source's partitions."""
        for name in self.tables:
            found = [
                sorted(self.client.catalog.partition_names(TableName(at, name))) for at in (SOURCE, BY_HIVE, BY_CALQUE)
            ]
            assert found[0] == found[1] == found[2], name


def test_dumps_and_loads_are_measured_beside_hives() -> None:
    main(["--tables", "5", "--partitions", "20", "--events", "100", "--hot", "30"])


if __name__ == "__main__":
    main()
