"""Seconds of the one call that renames a hidden build in, by its partitions, on both servers.

The table grows from size to size, and is renamed into another database and back at each. Its partitions are copies of
one that calque's call added, made in the server's database: adding 100,000 takes minutes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rig import arguments, copy_partition, partition, plain_table, tell, tell_machine, timed

from calque.adapters.metastore.catalog import RENAME_SECONDS, HiveCatalog
from calque.model.hive import Database
from calque.model.names import TableName
from calque.model.policy import TargetCapabilities
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.writer import HiveClient

HIDDEN, SHOWN = TableName("_calque", "build"), TableName("shop", "orders")


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, runs=3)
    parser.add_argument("--sizes", default="1000,10000,100000", help=" ")
    parser.add_argument("--versions", default="3.1.3,4.2.0", help=" ")
    options = parser.parse_args(given)
    tell_machine()
    for version in options.versions.split(","):
        with tempfile.TemporaryDirectory(prefix="calque-bench-", ignore_cleanup_errors=True) as folder:
            server = Metastore.start(MetastoreSettings(version=version), Path(folder).resolve())
            try:
                measure(server, Path(folder), [int(size) for size in options.sizes.split(",")], options.runs)
            finally:
                server.stop()


def measure(server: Metastore, root: Path, sizes: Sequence[int], runs: int) -> None:
    client = HiveClient(server.uri)
    for name in (HIDDEN.database, SHOWN.database):
        client.create_database(Database(name, location=(root / name).as_uri()))
    table = plain_table(*HIDDEN, root / "data", partitioned=True)
    client.create_table(table)
    there = 0
    for size in sizes:
        added = timed(lambda wanted=range(there, size): add(server, client, root, wanted))
        there = size
        print(f"{server.settings.version}: {size:,} partitions, the last of them added in {added:.0f} s", flush=True)
        seconds = []
        for _ in range(runs):
            seconds.append(timed(lambda: rename(client, HIDDEN, SHOWN)))
            assert len(client.catalog.partition_names(SHOWN)) == size
            seconds.append(timed(lambda: rename(client, SHOWN, HIDDEN)))
        tell(f"rename of {size:,} partitions (limit {RENAME_SECONDS:.0f} s)", seconds, "s")


def add(server: Metastore, client: HiveClient, root: Path, wanted: range) -> None:
    """Partitions whose values are the numbers; 0 is the one that the others are copied from."""
    if wanted.start == 0:
        client.add_partitions(HIDDEN, [partition(plain_table(*HIDDEN, root / "data", partitioned=True), "0")])
    copy_partition(server, HIDDEN, range(max(1, wanted.start), wanted.stop))


def rename(client: HiveClient, was: TableName, now: TableName) -> None:
    """As `engine.apply.hidden_build` does it."""
    catalog = HiveCatalog(client.client, TargetCapabilities())
    table = catalog.table(was)
    assert table is not None
    catalog.alter_table(was, replace(table, database=now.database, name=now.table))


def test_a_rename_is_measured() -> None:
    main(["--sizes", "3,6", "--versions", "3.1.3", "--runs", "1"])


if __name__ == "__main__":
    main()
