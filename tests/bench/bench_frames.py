"""The journal's rows as a frame, by calque's own reader and by Delta's: two executors of one core each read, shuffle by
the root of a group and hand over to Python, as large windows do; nothing is folded.

The journal is on a local disk, its events are those of `backlog`. The first turn, in cold processes, is printed alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from backlog import Backlog
from pyspark.sql import DataFrame, SparkSession
from rig import arguments, tell, tell_machine, tell_ratio, timed

from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.spark.delta_jars import delta_jars
from calque.adapters.spark.journal_frame import journal_frame
from calque.adapters.spark.journal_stream import SCHEMA
from calque.adapters.spark.session import DELTA
from calque.model.names import Span
from calque.wiring.spark_windows import ROOT, with_roots
from support.places import ROOT as CHECKOUT
from support.services.spark_cluster import JVM, SparkCluster, spark_environment

SHARES, TABLES, EVENTS_OF_OBJECT = 4, 500, 20
SETTINGS = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "1g",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": JVM,
    "spark.executor.extraJavaOptions": JVM,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    # What is best for Delta's reader on two cores.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.files.maxPartitionBytes": "32m",
}


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, events=1_000_000, runs=5).parse_args(given)
    with TemporaryDirectory() as folder, SparkCluster.start(Path(folder, "cluster")) as cluster:
        journal = DeltaJournal(str(Path(folder, "journal")))
        Backlog(options.events, options.events // EVENTS_OF_OBJECT, TABLES, Path(folder, "source")).fill(journal)
        session, span = session_of(cluster), Span(0, options.events)

        def by_delta() -> DataFrame:
            frame = session.read.format("delta").load(str(Path(folder, "journal")))
            return frame.where(frame["event_id"].between(span.after + 1, span.upto)).select(*SCHEMA.names)

        readers: dict[str, Callable[[], DataFrame]] = {
            "calque": lambda: journal_frame(session, journal.rows, span),
            "Delta": by_delta,
        }
        tell_machine()
        seconds: dict[str, list[float]] = {name: [] for name in readers}
        rows: set[int] = set()
        for _ in range(options.runs + 1):
            for name, frame in readers.items():
                seconds[name].append(timed(lambda frame=frame: rows.add(read(frame()))))  # type: ignore[misc]
        medians = []
        assert len(rows) == 1, rows
        for name, (first, *others) in seconds.items():
            print(f"{options.events} events by {name}, cold {first:.1f} s")
            medians.append(tell(f"{options.events} events by {name}", others, "s"))
        tell_ratio("Delta / calque", medians[1] / medians[0])
        session.stop()


def session_of(cluster: SparkCluster) -> SparkSession:
    os.environ |= spark_environment(cluster.settings)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = ":".join(map(str, delta_jars()))
    settings = {
        **SETTINGS,
        **DELTA,
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.executorEnv.PYTHONPATH": f"{CHECKOUT / 'lib'}:{CHECKOUT / 'tests'}:{Path(__file__).parent}",
    }
    session = SparkSession.builder.master(cluster.url).config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def read(frame: DataFrame) -> int:
    """The number of rows that tasks of Python got."""
    counted = with_roots(frame, {}).repartition(SHARES, ROOT).mapInArrow(count_rows, "rows long").collect()
    return sum(row["rows"] for row in counted)


def count_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"rows": pa.array([sum(batch.num_rows for batch in batches)], pa.int64())})


def test_frames_are_measured() -> None:
    main(["--events", "2000", "--runs", "1"])


if __name__ == "__main__":
    main()
