"""Small files and big ones from one directory of HDFS to another: our copy, each file verified and dated, and a bare
loop of threads over the same client, which verifies nothing and leaves the times as they come."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hdfs_native
from rig import arguments, tell_machine

from calque.ports import CopyTask
from support.services.hdfs import Hdfs
from support.storages import any_storage

THREADS = 16


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, files=1_000, kib=16, big=2, mib=100).parse_args(given)
    tell_machine()
    with tempfile.TemporaryDirectory(prefix="calque-bench-") as folder, Hdfs.start(Path(folder)) as hdfs:
        for name, count, size in (
            ("small", options.files, options.kib << 10),
            ("big", options.big, options.mib << 20),
        ):
            write(hdfs, name, count, size)
            ours, theirs = copied(hdfs, name), bare(hdfs, name)
            print(
                f"{name}: {count} files of {size >> 10} KB: calque {ours:.1f} s ({count / ours:.0f} files/s, "
                f"{count * size / ours / 1e6:.0f} MB/s), a bare loop {theirs:.1f} s; ratio {ours / theirs:.2f}"
            )


def write(hdfs: Hdfs, name: str, count: int, size: int) -> None:
    client, content = hdfs_native.Client(hdfs.uri), os.urandom(size)

    def one(number: int) -> None:
        with client.create(f"/source/{name}/{number:06}") as file:
            file.write(content)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(one, range(count)))


def copied(hdfs: Hdfs, name: str) -> float:
    source, target, storage = f"{hdfs.uri}/source/{name}", f"{hdfs.uri}/ours/{name}", any_storage()
    listing = storage.list([source])[source]
    tasks = [
        CopyTask(f"{source}/{file.path}", f"{target}/{file.path}", file.size, file.modified_ns)
        for file in listing.files
    ]
    start = time.perf_counter()
    done = storage.copy(tasks)
    seconds = time.perf_counter() - start
    assert all(each.checksum and not each.problem for each in done)
    assert storage.list([target])[target].fingerprint() == listing.fingerprint()
    return seconds


def bare(hdfs: Hdfs, name: str) -> float:
    client = hdfs_native.Client(hdfs.uri)
    paths = [status.path for status in client.list_status(f"/source/{name}")]

    def one(path: str) -> None:
        with client.create(path.replace("/source/", "/theirs/")) as file:
            file.write(client.read(path).readall())

    start = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(one, paths))
    return time.perf_counter() - start


def test_copies_inside_hdfs_are_measured() -> None:
    main(["--files", "20", "--mib", "10"])


if __name__ == "__main__":
    main()
