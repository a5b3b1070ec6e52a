"""How long `SHOW CLUSTERS FOR` takes of a table with many partitions, on two metastores and the ledger of a target,
beside the two calls that list the partitions' names.

The table is replicated whole by `calque run --until head`; its partitions are empty directories. `whole process` is
`calque sql`, `asked again` a program that has the clusters open.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from rig import (
    Job,
    arguments,
    copy_partition,
    metastores,
    partition,
    plain_table,
    target,
    tell,
    tell_machine,
    tell_ratio,
    timed,
)

from calque.clusters import open as open_clusters
from calque.model.hive import Database
from calque.model.names import TableName
from calque.sandbox.writer import HiveClient

NAME = TableName("wide", "t")


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, partitions=100_000, rounds=5).parse_args(given)
    with metastores(2) as (root, (primary, secondary)):
        source, there = HiveClient(primary.uri), HiveClient(secondary.uri)
        tell_machine()
        source.create_database(Database(NAME.database, location=f"file:{root}/{NAME.database}.db"))
        table = plain_table(*NAME, root / "t", partitioned=True)
        source.create_table(table)
        source.add_partitions(NAME, [partition(table, "0")])
        copy_partition(primary, NAME, range(1, options.partitions))
        for value in range(options.partitions):
            (root / "t" / f"p={value}").mkdir(parents=True, exist_ok=True)
        job = Job(root / "job", primary, {"dr": target(secondary, root / "warehouse", NAME.database, NAME.database)})
        print(f"replicated in {timed(job.until_head):.0f} s", flush=True)
        config = root / "clusters.toml"
        config.write_text(
            f'[clusters]\ndefault = "C1"\ndeployments = ["{job.config}"]\n'
            f'[clusters.C1]\nmetastore = "{primary.uri}"\n[clusters.C2]\nmetastore = "{secondary.uri}"\n'
        )
        command = [sys.executable, "-m", "calque.cli", "sql", f"SHOW CLUSTERS FOR {NAME}", "-c", str(config)]

        def listed() -> None:
            for client in (source, there):
                assert len(client.catalog.partition_names(NAME)) == options.partitions

        with open_clusters(config) as clusters:
            assert [one.partitions_present for one in clusters.locate(str(NAME))] == [options.partitions] * 2
            bare = [timed(listed) for _ in range(options.rounds)]
            again = [timed(lambda: clusters.locate(str(NAME))) for _ in range(options.rounds)]
        whole = [timed(lambda: subprocess.run(command, check=True, capture_output=True)) for _ in range(options.rounds)]
        middle = tell("bare: names of all partitions at both", bare, "s")
        tell_ratio("asked again / bare", tell("asked again", again, "s") / middle)
        tell_ratio("whole process / bare", tell("whole process", whole, "s") / middle)


if __name__ == "__main__":
    main()
