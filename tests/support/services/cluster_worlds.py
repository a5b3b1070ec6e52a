"""A deployment of calque's jobs on a cluster of Spark's: a source, a target, and what dies on the way.

with cluster_world(shared, tmp_path) as world:
    world.submit(CAPTURE)
    world.create()
    files = world.insert_files()
    driver = world.replicate()
    world.kill_in_the_middle(driver, "copy")    # a worker, and then the driver
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from calque.app import APP
from calque.core.formats.layout import place
from calque.demo.files import storage
from calque.demo.source import Source, location_at
from calque.model.hive import Column, Partition, location_of
from calque.model.names import TableName
from calque.sandbox import Metastore, MetastoreSettings
from calque.sandbox.writer import HiveClient
from support.services.environments import make_environment
from support.services.servers import Shared
from support.services.spark_cluster import SparkCluster
from support.services.spark_jobs import ClusterJob, History

DATABASE = "spark_cluster"
WIDE, PARTS = TableName(DATABASE, "wide"), TableName(DATABASE, "parts")
FILES, FILE_BYTES, PARTITIONS = 160, 16 << 10, 1010
"""More files than a driver copies by itself, and more directories than it lists."""
BUSY, ROUNDS = 24, 1060
"""Tables that change, and how often each goes to another state and back: more than 50,000 events."""
SECONDS = 180.0
THROTTLE = 'bandwidth = "1MB"'
CAPTURE = "capture.py"
"""The job whose Python travels as an archive."""
Files = frozenset[str]


class ClusterWorld:
    """A source of its own, a target, the cluster, and the configuration over them."""

    def __init__(self, root: Path, source: Metastore, target: Metastore, cluster: SparkCluster, archive: Path) -> None:
        self.root, self.server, self.cluster, self.archive = root, source, cluster, archive
        self.source, self.target = HiveClient(source.uri), HiveClient(target.uri)
        self.config = archive.parent / "calque.toml"
        self.jobs: list[ClusterJob] = []
        self.numbers = count(1)
        self.shown: list[Files] = []
        """States of the wide table that the reader saw, each once for as long as it lasted."""
        self.ending = threading.Event()
        self.config.write_text(
            f'[source]\nname = "hq"\nmetastore = "{source.uri}"\n[state]\npath = "{root}/state"\n'
            f'[targets.dr]\nmetastore = "{target.uri}"\nwarehouse = "file://{root}/dr"\n'
            f'include = ["{DATABASE}.*"]\nappends = "new_directory"\n{THROTTLE}\n'
        )

    # What the source does

    def create(self) -> None:
        source, columns = Source(self.source, self.root / "data"), (Column("a", "bigint"),)
        source.create_database(DATABASE)
        source.create_table(WIDE, columns, form="text", external=True)
        source.create_table(PARTS, columns, (Column("p", "string"),), form="text", external=True)
        for number in range(BUSY):
            source.create_table(busy(number), columns, form="text", external=True)
            source.alter_table(busy(number), {"note": "0"})
        top = place_of(self.source, PARTS)
        parts = []
        for number in range(PARTITIONS):
            directory = top / f"p={number}"
            directory.mkdir()
            (directory / "f").write_text(f"{number}\n")
            parts.append(Partition((str(number),), *PARTS, storage=storage("text", columns, location_at(directory))))
        self.source.add_partitions(PARTS, parts)

    def insert_files(self, file_bytes: int = FILE_BYTES, *, overwrite: bool = False) -> Files:
        """One INSERT of many files into the wide table; all files that it has then."""
        top, number = place_of(self.source, WIDE), next(self.numbers)
        if overwrite:
            shutil.rmtree(top)
            top.mkdir()
        names = [f"f{number}-{file}" for file in range(FILES)]
        for name in names:
            draft = top / f".{name}"
            draft.write_text("7\n" * (file_bytes // 2))
            draft.rename(top / name)
        self.source.insert(WIDE, [location_at(top / name) for name in names], replace=overwrite)
        return frozenset(path.name for path in top.iterdir())

    def change_many_times(self, rounds: int = ROUNDS) -> None:
        """Two real changes of each busy table, and then the same again and again, written into the log by SQL."""
        first = self.source.current() + 1
        for note in ("1", "0"):
            for number in range(BUSY):
                table = self.source.catalog.table(busy(number))
                assert table is not None
                assert table.parameters is not None
                table.parameters["note"] = note  # type: ignore[index]
                self.source.alter_table(busy(number), table)
        last = self.source.current()
        assert last == first + 2 * BUSY - 1
        columns = '"EVENT_TIME", "EVENT_TYPE", "CAT_NAME", "DB_NAME", "TBL_NAME", "MESSAGE", "MESSAGE_FORMAT"'
        self.server.sql(
            f'INSERT INTO "NOTIFICATION_LOG" ("NL_ID", "EVENT_ID", {columns}) SELECT 1000000 + "EVENT_ID" + n * %s, '
            f'"EVENT_ID" + n * %s, {columns} FROM "NOTIFICATION_LOG", generate_series(1, %s) n '
            'WHERE "EVENT_ID" BETWEEN %s AND %s',
            (2 * BUSY, 2 * BUSY, rounds, first, last),
        )
        self.server.sql('UPDATE "NOTIFICATION_SEQUENCE" SET "NEXT_EVENT_ID" = %s', (last + 2 * BUSY * rounds + 1,))

    # Processes

    def submit(self, job: str, *arguments: str, settings: Mapping[str, str] | None = None) -> ClusterJob:
        started = ClusterJob(self.cluster, self.archive.parent, f"{len(self.jobs)}-{job}")
        self.jobs.append(started)
        archive = self.archive if job == CAPTURE else None
        started.start(job, archive, "-c", str(self.config), *arguments, settings=settings)
        return started

    def replicate(self, *arguments: str, settings: Mapping[str, str] | None = None) -> ClusterJob:
        return self.submit("replicate.py", "--target", "dr", *arguments, settings=settings)

    def calque(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "calque.cli", *words, "-c", str(self.config)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)

    def until(self, reached: Callable[[], object], job: ClusterJob) -> None:
        """Looks until it is so. The job must not end before."""
        deadline = time.monotonic() + SECONDS
        while not reached():
            assert job.process.poll() is None, log_of(job)
            assert time.monotonic() < deadline, log_of(job)
            time.sleep(0.2)

    def kill_worker(self, driver: ClusterJob, verb: str) -> None:
        """Kills a worker with its executors while Spark's jobs of that kind run on both, and waits until the driver has
        noticed that."""
        self.until(lambda: len(driver.history().executors()) == 2 and driver.history().running(verb), driver)
        killed = next(worker for worker in reversed(self.cluster.workers) if worker.process.running)
        killed.kill()
        self.until(lambda: driver.history().removed_while_running(verb), driver)

    def kill_in_the_middle(self, driver: ClusterJob, verb: str) -> History:
        """Kills a worker, and then the driver while such jobs still run. Another worker takes the place. What Spark did
        by then."""
        self.kill_worker(driver, verb)
        self.until(lambda: driver.history().running(verb), driver)
        driver.kill()
        self.cluster.add_worker()
        return driver.history()

    # What readers see

    def read_on(self) -> None:
        while not self.ending.wait(0.05):
            shown = shown_files(self.target)
            if shown is not None and (not self.shown or self.shown[-1] != shown):
                self.shown.append(shown)

    def close(self) -> None:
        self.ending.set()
        for job in self.jobs:
            job.kill()
        self.source.close()
        self.target.close()


def busy(number: int) -> TableName:
    return TableName(DATABASE, f"busy{number}")


def place_of(client: HiveClient, name: TableName) -> Path:
    table = client.catalog.table(name)
    assert table is not None
    return Path(place(location_of(table) or "").path)


def shown_files(client: HiveClient) -> Files | None:
    """What a reader of the wide table finds between two equal looks at its definition; None where it changed."""
    before = client.catalog.table(WIDE)
    if before is None:
        return frozenset()
    try:
        files = frozenset(path.name for path in Path(place(location_of(before) or "").path).iterdir())
    except FileNotFoundError:
        files = frozenset()
    return frozenset(name for name in files if name[0] not in "._") if client.catalog.table(WIDE) == before else None


def log_of(job: ClusterJob) -> str:
    return "\n".join(job.log.read_text(errors="replace").splitlines()[-60:])


@contextmanager
def cluster_world(shared: Shared, tmp_path: Path) -> Iterator[ClusterWorld]:
    (tmp_path / "driver").mkdir()
    with ThreadPoolExecutor() as pool:
        starting = pool.submit(SparkCluster.start, tmp_path / "cluster")
        server = pool.submit(Metastore.start, MetastoreSettings(version="3.1.3"), tmp_path / "source")
        archive = pool.submit(make_environment, tmp_path / "driver")
        target = shared("target-3")["target-3"]
        with starting.result() as cluster, server.result() as source:
            made = ClusterWorld(tmp_path, source, target, cluster, archive.result())
            try:
                yield made
            finally:
                made.close()


def newest_captured(world: ClusterWorld) -> int | None:
    return APP.wiring(APP.load(world.config)).sources["hq"].side().journal.last()
