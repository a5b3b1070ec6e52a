"""Copies of many small and of few big files with calque, verification included, against `cp -r` and `rsync -a`; and
listings of many partitions against a bare loop of os.scandir and stat.

Every run copies to a new directory; before it the disk is synced, not timed. Sources are in the page cache, as files
that were just written, for all alike. Copies of small files are removed at the end only: for minutes after ext4 removed
files, making one costs ten times as much. Contenders take turns, in another order each time, so that they share what
else the machine does. rsync is left out where it isn't installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

from rig import arguments, tell, tell_machine, tell_ratio, timed

from calque.adapters.files import FileStorage, SparkStorage
from calque.adapters.spark.session import session
from calque.core.formats.layout import join
from calque.ports import CopyTask, Storage

CHUNK = 16 << 20
KIB, MIB = 1 << 10, 1 << 20

Copy = Callable[[Path, Path], object]


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(
        __doc__, files=20_000, kib=16, directories=200, big=4, mib=1024, partitions=100_000, repeats=3, listings=3
    )
    parser.add_argument("--folder", help="where to copy; a temporary folder of the machine unless given")
    options = parser.parse_args(given)
    tell_machine()
    with tempfile.TemporaryDirectory(prefix="calque-bench-", dir=options.folder) as name, by_spark() as spark:
        folder, ways = Path(name), contenders(spark)
        small, big = folder / "small", folder / "big"
        fill(small, options.files, options.kib * KIB, options.directories)
        compare(
            f"{options.files:,} files of {options.kib} KiB", ways, small, folder / "copies", options.repeats, big=False
        )
        shutil.rmtree(small)
        fill(big, options.big, options.mib * MIB, 1)
        compare(f"{options.big} files of {options.mib:,} MiB", ways, big, folder / "copies", options.repeats, big=True)
        shutil.rmtree(big)
        partitions(folder / "table", options.partitions, options.listings, spark)


# Copying


@contextmanager
def by_spark() -> Iterator[Storage]:
    """Storage as `calque run` has it, whose workers run already."""
    with tempfile.TemporaryDirectory(prefix="calque-bench-spark-") as scratch:
        running = session("bench", [], Path(scratch), {"spark.driver.memory": "1g"})
        try:
            warm(running.sparkContext)
            yield SparkStorage(FileStorage(), lambda: running)
        finally:
            running.stop()


def contenders(spark: Storage) -> Mapping[str, Copy]:
    """Ways to copy a directory, by name; `cp -r` is the measure."""
    ways: dict[str, Copy] = {"cp -r": command("cp", "-r")}
    if shutil.which("rsync"):
        ways["rsync -a"] = command("rsync", "-a")
    return ways | {"Spark": copied_by(spark), "one process": copied_by(FileStorage())}


def warm(context: object) -> None:
    """Workers run before the first measured copy, as they do in a stream."""
    context.parallelize(range(8), 8).map(str).collect()  # type: ignore[attr-defined]


def command(*words: str) -> Copy:
    return lambda source, target: subprocess.run([*words, f"{source}/.", f"{target}/"], check=True)


def copied_by(storage: Storage) -> Copy:
    """As a window does it: what evidence lists is copied and verified."""

    def copy(source: Path, target: Path) -> None:
        listing = storage.list([str(source)])[str(source)]
        tasks = [
            CopyTask(join(str(source), file.path), join(str(target), file.path), file.size, file.modified_ns)
            for file in listing.files
        ]
        wrong = [done.problem for done in storage.copy(tasks) if not done.checksum]
        assert tasks, listing
        assert not wrong, wrong[:3]

    return copy


def compare(label: str, ways: Mapping[str, Copy], source: Path, target: Path, repeats: int, *, big: bool) -> None:
    print(f"\n{label}, warm cache")
    size = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    order = list(ways)
    for turn in range(repeats):
        for name in order:
            os.sync()
            into = target / f"{turn}.{name}"
            into.mkdir(parents=True)
            seconds[name].append(timed(partial(ways[name], source, into)))
            if big:
                shutil.rmtree(into)
        order = [*order[1:], order[0]]
    if target.exists():
        shutil.rmtree(target)
    middles = {name: tell(name, values, "s") for name, values in seconds.items()}
    for name, middle in middles.items():
        if name != "cp -r":
            tell_ratio(f"{name} / cp -r  ({size / middle / 1e6:,.0f} MB/s)", middle / middles["cp -r"])


def fill(folder: Path, files: int, size: int, directories: int) -> None:
    """Random content, so that nothing on the way can press it together."""
    random = Random(7)
    block = random.randbytes(min(size, CHUNK))
    for number in range(files):
        directory = folder / f"p={number % directories:05}"
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / f"part-{number:05}").open("wb") as file:
            file.write(number.to_bytes(8))
            left = size - 8
            while left > 0:
                left -= file.write(block[:left])


# Listing


def partitions(folder: Path, count: int, repeats: int, spark: Storage) -> None:
    print(f"\n{count:,} partitions of one file, warm cache")
    names = [f"{folder}/p={number:06}" for number in range(count)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one_file, names))
    storage = FileStorage()
    bare = tell("bare scandir and stat", [timed(lambda: bare_listing(names)) for _ in range(repeats)], "s")
    each = tell("each partition's listing", [timed(lambda: storage.list(names)) for _ in range(repeats)], "s")
    spread = tell("each, Spark", [timed(lambda: spark.list(names)) for _ in range(repeats)], "s")
    whole = tell("the table's listing", [timed(lambda: storage.list([str(folder)])) for _ in range(repeats)], "s")
    tell_ratio("each / bare", each / bare)
    tell_ratio("each, Spark / bare", spread / bare)
    tell_ratio("whole / bare", whole / bare)


def one_file(name: str) -> None:
    path = Path(name)
    path.mkdir(parents=True)
    (path / "part-0").write_bytes(b"x")


def bare_listing(names: Sequence[str]) -> int:
    found = 0
    for name in names:
        with os.scandir(name) as entries:
            found += sum(entry.stat().st_mtime_ns > 0 for entry in entries)
    return found


def test_copies_and_listings_are_measured() -> None:
    counts = {"files": 400, "directories": 4, "big": 2, "mib": 32, "partitions": 400, "repeats": 1, "listings": 1}
    main([word for name, count in counts.items() for word in (f"--{name}", str(count))])


if __name__ == "__main__":
    main()
