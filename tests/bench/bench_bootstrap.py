"""Seconds of `calque run --until head` on an empty target, against a bare loop of the same reads and writes.

The bare loop has as many connections as calque: so many threads each take a table, read its definition, partitions,
column statistics and constraints, copy its files, and create the same at a database of its own on the same target. Of a
single table the threads take batches of partitions. With `--data none` there are no files. With `--writes` partitions
are added to tables while calque reads them, so many a second, and what is read beyond once is counted in the source's
own log.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from rig import (
    Job,
    arguments,
    copy_partition,
    memory_mib,
    metastores,
    partition,
    plain_table,
    processor_seconds,
    target,
    tell,
    tell_machine,
    tell_ratio,
    timed,
)

from calque.core.plan.limits import batches
from calque.model.hive import Database, Partition, Table, location_of
from calque.model.names import TableName
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient

Thing = TypeVar("Thing", Table, Partition)
DATABASE = "wide"
CONTENT = b"x" * 1024
CONNECTIONS = 4
"""What `[source] connections` is when left out."""
READ, WRITTEN, MADE = 1000, 5000, 8
"""Partitions of a call, and tables that are made at a time."""
OPENS = re.compile(r"^(\S+ \S+) INFO .* opens at event", re.MULTILINE)
HEADER = re.compile(rf"get_table : tbl=(?:hive\.)?{DATABASE}\.(t\d+)")


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, tables=1000, partitions=20, runs=1, writes=0)
    parser.add_argument("--data", choices=["copy", "none"], default="copy", help=" ")
    options = parser.parse_args(given)
    with metastores(2) as (root, (source_server, target_server)):
        source, there = HiveClient(source_server.uri, connections=MADE), HiveClient(target_server.uri, connections=MADE)
        tell_machine()
        files = options.data == "copy"
        made = timed(lambda: make(source_server, source, root / "source", options.tables, options.partitions, files))
        size = "1 file of 1 KB" if files else "no file"
        objects = options.tables * (1 + options.partitions)
        print(f"{options.tables} tables × {options.partitions} partitions × {size}, made in {made:.0f} s", flush=True)
        bare, whole, opened, memory, processor, spent = [], [], [], [], [], []
        for number in range(options.runs):
            place = root / f"bare{number}"
            begin = processor_seconds(os.getpid())
            bare.append(timed(lambda at=place: copy_all(source, there, at, files)))
            of_bare = processor_seconds(os.getpid()) - begin
            section = [*target(target_server, root / f"warehouse{number}", DATABASE, f"copy{number}")]
            job = Job(root / f"job{number}", source_server, {"dr": [*section, f'data = "{options.data}"']})
            before, begin = headers_read(source_server), processor_seconds(os.getpid())
            with watched(job) as most, writing(source, root / "source", options.writes, options.tables) as written:
                whole.append(timed(job.until_head))
            opened.append(time.time() - opened_at(job))
            spent.append((processor_seconds(os.getpid()) - begin) / of_bare)
            memory.append(most["memory"])
            processor.append(most["processor"])
            again = {table: count for table, count in (headers_read(source_server) - before).items() if count > 1}
            if options.writes:
                print(f"{written['partitions']} partitions written meanwhile, {len(again)} of {options.tables} tables "
                      f"read more than once, {sum(again.values()) - len(again)} rounds in all", flush=True)  # fmt: skip
            else:
                require_same(source, there, f"copy{number}", options.partitions)
        baseline = tell(f"bare loop, {CONNECTIONS} threads", bare, "s")
        figure = tell("calque run --until head", whole, "s")
        since = tell('calque, from "opens at" to exit', opened, "s")
        tell("  its processes' processor time", processor, "s")
        tell("  their memory at most (RSS)", memory, "MiB")
        tell('objects of calque from "opens at"', [objects / since], "1/s")
        tell_ratio("processor time of all, servers included", statistics.median(spent))
        tell_ratio("calque / bare", figure / baseline)
        tell_ratio('calque from "opens at" / bare (goal 1.5)', since / baseline)


def make(server: Metastore, source: HiveClient, root: Path, tables: int, partitions: int, files: bool) -> None:
    """Without files most partitions come into the server's database by SQL, so that 100,000 take seconds."""
    source.create_database(Database(DATABASE, location=root.as_uri()))

    def one(number: int) -> None:
        name = f"t{number:04}"
        table = plain_table(DATABASE, name, root / name, partitioned=True)
        for value in range(partitions) if files else ():
            folder = root / name / f"p={value}"
            folder.mkdir(parents=True)
            (folder / "data").write_bytes(CONTENT)
        source.create_table(table)
        for values in batches(list(range(partitions if files else 1)), WRITTEN):
            source.add_partitions(TableName(DATABASE, name), [partition(table, str(value)) for value in values])

    with ThreadPoolExecutor(MADE) as pool:
        list(pool.map(one, range(tables)))
    if not files:
        for number in range(tables):
            first_id = 1_000_000 + number * partitions
            copy_partition(server, TableName(DATABASE, f"t{number:04}"), range(1, partitions), first_id)


def copy_all(source: HiveClient, there: HiveClient, root: Path, files: bool) -> None:
    """Every table and partition of the source; their files in `root`, or where they are."""
    there.create_database(Database(root.name, location=root.as_uri()))
    names = [TableName(DATABASE, name) for name in source.catalog.tables(DATABASE)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        spread = pool.map if len(names) == 1 else map
        one: Callable[[TableName], None] = lambda name: copy_one(source, there, root, name, files, spread)  # noqa: E731
        list(map(one, names) if len(names) == 1 else pool.map(one, names))


def copy_one(
    source: HiveClient, there: HiveClient, root: Path, name: TableName, files: bool, spread: Callable[..., object]
) -> None:
    table = source.catalog.table(name)
    assert table is not None
    columns = [column.name for column in (table.storage.columns if table.storage else None) or ()]
    source.catalog.table_statistics(name, columns)
    source.catalog.constraints(name)
    source.catalog.foreign_keys_to(name)
    there.create_table(moved(table, root, files))

    def some(names: Sequence[str]) -> None:
        found = source.catalog.partitions(name, names)
        source.catalog.partition_statistics(name, columns, names)
        for path, part in found.items() if files else ():
            shutil.copytree(str(location_of(part)).removeprefix("file:"), root / name.table / path)
        there.add_partitions(TableName(root.name, name.table), [moved(part, root, files) for part in found.values()])

    for _ in spread(some, batches(source.catalog.partition_names(name), READ)):  # type: ignore[attr-defined]
        pass


def moved(thing: Thing, root: Path, files: bool) -> Thing:
    """In the database called as `root`, at the files there."""
    assert thing.storage is not None
    place = str(location_of(thing))
    at = root / place.split("/source/", 1)[1]
    return replace(thing, database=root.name, storage=replace(thing.storage, location=at.as_uri() if files else place))


@contextmanager
def watched(job: Job) -> Iterator[dict[str, float]]:
    """The most memory, in MiB, and the processor seconds of the job's processes."""
    most, ended = {"memory": 0.0, "processor": 0.0}, threading.Event()

    def look() -> None:
        while not ended.wait(0.5):
            if job.process is not None and job.process.poll() is None:
                most["memory"] = max(most["memory"], memory_mib(job.process.pid)[0])
                most["processor"] = max(most["processor"], processor_seconds(job.process.pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


@contextmanager
def writing(source: HiveClient, root: Path, rate: int, tables: int) -> Iterator[Counter[str]]:
    """Adds a partition to one table after the other, `rate` a second, until the end of the block; how many."""
    done, ended = Counter[str](), threading.Event()

    def write() -> None:
        while rate and not ended.wait(1 / rate):
            number = done["partitions"]
            name = f"t{number % tables:04}"
            table = plain_table(DATABASE, name, root / name, partitioned=True)
            source.add_partitions(TableName(DATABASE, name), [partition(table, f"late{number}")])
            done["partitions"] += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield done
    finally:
        ended.set()
        thread.join()


def headers_read(server: Metastore) -> Counter[str]:
    """How often each table's definition was read, as the server's own log says: once in each round of a read."""
    text = (server.directory / "metastore.log").read_text(errors="replace")
    return Counter(HEADER.findall(text))


def opened_at(job: Job) -> float:
    """When the target's replica was open, as the log says."""
    found = OPENS.search(job.log.read_text())
    assert found, job.log.read_text()
    return datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S,%f").timestamp()


def require_same(source: HiveClient, there: HiveClient, database: str, partitions: int) -> None:
    tables = there.catalog.tables(database)
    assert sorted(tables) == sorted(source.catalog.tables(DATABASE))
    assert all(len(there.catalog.partition_names(TableName(database, name))) == partitions for name in tables)


def test_a_bootstrap_is_measured() -> None:
    main(["--tables", "4", "--partitions", "5"])
    main(["--tables", "1", "--partitions", "30", "--data", "none", "--writes", "5"])


if __name__ == "__main__":
    main()
