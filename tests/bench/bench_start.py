"""Seconds from the start of `calque run` until a table that was created while it was down is visible at the target.

The baseline is a process that starts a bare Spark session on this machine and ends.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence

from rig import Job, arguments, metastores, plain_table, target, tell, tell_machine, tell_ratio, timed, wait_until

from calque.model.hive import Database
from calque.model.names import TableName
from calque.sandbox.writer import HiveClient

DATABASE, AT_TARGET = "early", "early_copy"
BARE = (
    "import os; from pyspark.sql import SparkSession;"
    "SparkSession.builder.master('local[*]').config('spark.ui.enabled', 'false').getOrCreate(); os._exit(0)"
)


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, runs=3).parse_args(given)
    with metastores(2) as (root, (source_server, target_server)):
        source, there = HiveClient(source_server.uri), HiveClient(target_server.uri)
        source.create_database(Database(DATABASE, location=(root / "source").as_uri()))
        section = target(target_server, root / "warehouse", DATABASE, AT_TARGET)
        job = Job(root / "job", source_server, {"dr": section})
        job.until_head()
        tell_machine()
        bare, hops = [], []
        for number in range(options.runs):
            bare.append(timed(lambda: subprocess.run([sys.executable, "-c", BARE], check=True, capture_output=True)))
            name = f"t{number}"
            source.create_table(plain_table(DATABASE, name, root / "source" / name))
            begin = time.perf_counter()
            with job.running():
                seen = wait_until(lambda at=name: there.catalog.table(TableName(AT_TARGET, at)), 0.02)
            hops.append(seen - begin)
        baseline = tell("bare Spark session", bare, "s")
        figure = tell("calque run, to the first hop", hops, "s")
        tell_ratio("calque / bare", figure / baseline)


def test_a_start_is_measured() -> None:
    main(["--runs", "1"])


if __name__ == "__main__":
    main()
