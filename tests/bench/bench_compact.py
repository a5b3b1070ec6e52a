"""Small files of partitions, combined on their way against copied as they are: files, bytes and time, in one process
and in Spark's tasks.

Each way takes all partitions to a new directory, verification included; the ways take turns. Sources are in the page
cache for all alike. What is compared is what a target does before it shows partitions: the calls at its metastore are
the same.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from rig import arguments, tell, tell_machine, tell_ratio, timed

from calque.adapters.files import FileStorage, SparkStorage
from calque.adapters.spark.session import session
from calque.core.formats.layout import join
from calque.core.small_files.grouping import group_files
from calque.engine.files.combine_files import DirectoryToCombine, combine
from calque.engine.files.copies import copied, copy_tasks
from calque.engine.sides.sides import TargetSide
from calque.model.files import Listing, RowLayout
from calque.model.policy import Policy, SmallFilesRule
from calque.ports import Storage
from support.memory.ledger import MemoryLedger
from support.memory.metastore import HIVE_4, MemoryCatalog, MemoryMetastore

Way = Callable[[Sequence[Listing], RowLayout, Path], object]
RULE = SmallFilesRule(files=2, below=128 * 10**6)
COPY = "copied, one process"


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, partitions=1_000, files=50, kib=64, repeats=3).parse_args(given)
    tell_machine()
    with tempfile.TemporaryDirectory(prefix="calque-bench-") as name, contenders() as ways:
        for layout in RowLayout:
            source = Path(name, layout.value)
            fill(source, layout, options.partitions, options.files, options.kib << 10)
            compare(layout, ways, source, Path(name, "target"), options.repeats)
            shutil.rmtree(source)


@contextmanager
def contenders() -> Iterator[Mapping[str, Way]]:
    with tempfile.TemporaryDirectory(prefix="calque-bench-spark-") as scratch:
        running = session("bench", [], Path(scratch), {"spark.driver.memory": "1g"})
        try:
            running.sparkContext.parallelize(range(8), 8).map(str).collect()
            here, spark = side_of(FileStorage()), side_of(SparkStorage(FileStorage(), lambda: running))
            yield {
                COPY: partial(copy_all, here),
                "combined, one process": partial(combine_all, here),
                "copied, Spark": partial(copy_all, spark),
                "combined, Spark": partial(combine_all, spark),
            }
        finally:
            running.stop()


def side_of(storage: Storage) -> TargetSide:
    catalog = MemoryCatalog(MemoryMetastore(HIVE_4, "file:/nowhere"))
    return TargetSide.of(Policy("dr", "hq"), catalog, MemoryLedger(), storage)


def place(listing: Listing, target: Path) -> str:
    return join(str(target), listing.location.rsplit("/", 1)[1])


def copy_all(side: TargetSide, listings: Sequence[Listing], _layout: RowLayout, target: Path) -> None:
    tasks = [
        task
        for listing in listings
        for task in copy_tasks(listing, ((file, join(place(listing, target), file.path)) for file in listing.files))
    ]
    assert len(copied(side, tasks)) == len(tasks)


def combine_all(side: TargetSide, listings: Sequence[Listing], layout: RowLayout, target: Path) -> None:
    directories = []
    for listing in listings:
        grouped = group_files(RULE, layout, listing.files)
        assert grouped is not None
        directories.append(DirectoryToCombine(listing, place(listing, target), grouped))
    assert len(combine(side, directories)) == len(directories)


def compare(layout: RowLayout, ways: Mapping[str, Way], source: Path, target: Path, repeats: int) -> None:
    listings = list(FileStorage().list([str(path) for path in sorted(source.iterdir())]).values())
    files, size = sum(len(listing.files) for listing in listings), sum(listing.size for listing in listings)
    print(
        f"\n{layout.value}: {len(listings):,} partitions, {files:,} files, {size / 1e6:,.0f} MB, warm cache", flush=True
    )
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    amounts: dict[str, tuple[int, int]] = {}
    order = list(ways)
    for turn in range(repeats):
        for name in order:
            os.sync()
            into = target / f"{turn}.{name}"
            into.mkdir(parents=True)
            seconds[name].append(timed(partial(ways[name], listings, layout, into)))
            found = [path for path in into.rglob("*") if path.is_file() and not path.name.startswith("_")]
            amounts[name] = len(found), sum(path.stat().st_size for path in found)
            shutil.rmtree(into)
        order = [*order[1:], order[0]]
    middles = {name: tell(name, values, "s") for name, values in seconds.items()}
    for name, (count, total) in amounts.items():
        print(f"{name:<46}{count:>10,} files   {total / 1e6:,.0f} MB", flush=True)
    for name, middle in middles.items():
        if name != COPY:
            tell_ratio(f"{name} / {COPY}  ({size / middle / 1e6:,.0f} MB/s)", middle / middles[COPY])


def fill(folder: Path, layout: RowLayout, partitions: int, files: int, size: int) -> None:
    """Files of about that size, of one content for each of a few, as writers of one batch leave them."""
    contents = [content_of(layout, size, Random(number)) for number in range(16)]
    for partition in range(partitions):
        directory = folder / f"p={partition:05}"
        directory.mkdir(parents=True)
        for number in range(files):
            (directory / f"part-{number:05}").write_bytes(contents[(partition + number) % len(contents)])


def content_of(layout: RowLayout, size: int, random: Random) -> bytes:
    if layout is RowLayout.TEXT:
        return b"".join(f"{random.getrandbits(60)}\x01{random.random()}\n".encode() for _ in range(size // 38))
    rows = size // 22
    table = pa.table(
        {
            "id": pa.array([random.getrandbits(60) for _ in range(rows)], pa.int64()),
            "price": pa.array([random.random() for _ in range(rows)], pa.float64()),
            "name": pa.array([f"name {random.randrange(200)}" for _ in range(rows)]),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def test_copies_and_combinations_are_measured() -> None:
    counts = {"partitions": 20, "files": 20, "kib": 16, "repeats": 1}
    main([word for name, count in counts.items() for word in (f"--{name}", str(count))])


if __name__ == "__main__":
    main()
