"""What a Delta replica costs beside a plain one, at two targets of one process.

Lag is from the return of the source's call that adds a partition to the moment at which a reader finds it: in the
metastore at the plain target, in the log of the table at the other. Then a backlog of events on standing partitions:
hops and seconds at the plain target, commits and seconds at the other, and bytes of log for an event. In the end all
partitions are read: by the metastore's calls, and by a Delta reader from the log.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from rig import (
    Job,
    arguments,
    copy_partition,
    metastores,
    percentile,
    target,
    tell,
    tell_machine,
    tell_ratio,
    timed,
    wait_until,
)

from calque.app import APP
from calque.core.formats.layout import place
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.names import TableName
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient

DATABASE, PLAIN, DELTA = "lake", "lake_plain", "lake_delta"
NAME = TableName(DATABASE, "events")
PARQUET = "org.apache.hadoop.hive.ql.io.parquet"
FORMATS = f"{PARQUET}.MapredParquetInputFormat", f"{PARQUET}.MapredParquetOutputFormat"
EVERY_SECONDS = 0.4


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, changes=40, events=20_000, standing=1000, partitions=100_000).parse_args(given)
    with metastores(2) as (root, (source, at_target)):
        lake = Lake(root, source, at_target)
        tell_machine()
        lake.lags(options.changes)
        lake.backlog(options.events, options.standing)
        lake.listing(options.partitions)


@dataclass
class Lake:
    """A source with one Parquet table, and a metastore that has both targets in databases of their own."""

    root: Path
    source_server: Metastore
    target_server: Metastore

    def __post_init__(self) -> None:
        self.source, self.target = HiveClient(self.source_server.uri), HiveClient(self.target_server.uri)
        self.folder = self.root / "source" / NAME.table
        self.folder.mkdir(parents=True)
        self.source.create_database(Database(DATABASE, location=(self.root / "source").as_uri()))
        columns, keys = (Column("id", "bigint"),), (Column("p", "string"),)
        self.storage = Storage(
            columns, self.folder.as_uri(), *FORMATS, serde=SerDe(class_name=f"{PARQUET}.serde.ParquetHiveSerDe")
        )
        external = {"EXTERNAL": "TRUE"}
        self.source.create_table(
            Table(NAME.table, DATABASE, "me", None, None, None, self.storage, keys, external, type="EXTERNAL_TABLE")
        )
        self.add("0")
        plain = target(self.target_server, self.root / "plain", DATABASE, PLAIN)
        delta = (*target(self.target_server, self.root / "delta", DATABASE, DELTA), 'format = "delta"')
        self.job = Job(self.root / "job", self.source_server, {"plain": plain, "delta": delta})

    def part(self, value: str) -> Partition:
        storage = replace(self.storage, location=f"{self.folder.as_uri()}/p={value}")
        return Partition((value,), DATABASE, NAME.table, storage=storage, parameters={})

    def add(self, *values: str) -> None:
        for value in values:
            folder = self.folder / f"p={value}"
            folder.mkdir()
            pq.write_table(pa.table({"id": [1, 2, 3]}), folder / "part-0")
        self.source.add_partitions(NAME, [self.part(value) for value in values])

    def delta_table(self) -> DeltaTable:
        found = self.target.catalog.table(TableName(DELTA, NAME.table))
        assert found is not None
        return DeltaTable(place(location_of(found) or "").path)

    def has_plain(self, value: str) -> bool:
        return bool(self.target.catalog.partitions(TableName(PLAIN, NAME.table), [f"p={value}"]))

    def lags(self, changes: int) -> None:
        with self.job.running():
            wait_until(lambda: self.target.catalog.table(TableName(DELTA, NAME.table)), 0.1)
            wait_until(lambda: self.target.catalog.table(TableName(PLAIN, NAME.table)), 0.1)
            time.sleep(5)
            delta = self.delta_table()

            def has_delta(value: str) -> bool:
                delta.update_incremental()
                return any(f"p={value}/" in uri for uri in delta.file_uris())

            lags: dict[str, list[float]] = {"plain": [], "delta": []}
            looks: dict[str, Callable[[str], bool]] = {"plain": self.has_plain, "delta": has_delta}
            for number in range(2 * changes):
                kind, value, tick = ("plain", "delta")[number % 2], f"new{number}", time.perf_counter()
                self.add(value)
                returned = time.perf_counter()
                seen = wait_until(lambda look=looks[kind], value=value: look(value), seconds=60)
                lags[kind].append((seen - returned) * 1000)
                time.sleep(max(0.0, tick + EVERY_SECONDS - time.perf_counter()))
        print(f"lag of a new partition, {changes} changes each")
        for share in (0.5, 0.95):
            plain, delta_lag = (percentile(lags[kind], share) for kind in ("plain", "delta"))
            tell(f"  plain, p{share * 100:.0f}", [plain], "ms")
            tell(f"  delta, p{share * 100:.0f}", [delta_lag], "ms")
            tell_ratio(f"  delta / plain, p{share * 100:.0f}", delta_lag / plain)

    def backlog(self, events: int, standing: int) -> None:
        self.add(*(f"s{number}" for number in range(standing)))
        self.job.until_head()
        chance, version = random.Random(7), self.delta_table().version()
        log_bytes = self.log_bytes()
        for number in range(events):
            value = f"s{min(int(chance.paretovariate(1)), standing) - 1}"
            altered = replace(self.part(value), parameters={"n": str(number)})
            self.source.alter_partition(NAME, altered)
        for name in ("plain", "delta"):
            seconds = timed(lambda name=name: self.until_head(name))
            [epoch] = APP.wiring(APP.load(self.job.config)).ledger(name).epochs()[-1:]
            tell(f"{events} events over {standing} standing partitions, {name}", [seconds], "s")
            print(f"  {epoch.hops} hops, {epoch.calls} calls")
        commits, grown = self.delta_table().version() - version, self.log_bytes() - log_bytes
        print(f"  {commits} commits, {grown / events:.0f} bytes of log for an event")

    def until_head(self, name: str) -> None:
        code = self.job.run("--until", "head", "--target", name).wait(1800)
        assert code == 0, self.job.log.read_text()[-4000:]

    def log_bytes(self) -> int:
        root = self.root / "delta" / f"{DELTA}.db" / NAME.table / "_delta_log"
        return sum(path.stat().st_size for path in root.iterdir())

    def listing(self, partitions: int) -> None:
        """The source's table gets partitions without events or files; both targets read it exactly."""
        copy_partition(self.source_server, NAME, range(10**6, 10**6 + partitions))
        for name in ("plain", "delta"):
            self.job.command("bootstrap", "--target", name)
            tell(
                f"exact read of {partitions} more partitions, {name}",
                [timed(lambda name=name: self.until_head(name))],
                "s",
            )
        at_plain = TableName(PLAIN, NAME.table)
        names = self.target.catalog.partition_names(at_plain)
        tell("all partitions by the metastore", [timed(lambda: self.target.catalog.partitions(at_plain, names))], "s")
        tell("all files by the Delta log", [timed(lambda: self.delta_table().file_uris())], "s")


def test_delta_is_measured() -> None:
    main(["--changes", "3", "--events", "40", "--standing", "5", "--partitions", "50"])


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
