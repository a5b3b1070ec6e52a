"""Many small files and two big ones from a local disk into S3: our copy, each file verified, a client of S3 (obstore)
that sends as many files at a time, and the bulk client of the server itself (`weed filer.copy`), which speaks the
server's own protocol. The two others verify nothing."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
from obstore.store import S3Store
from rig import arguments, tell_machine

from calque.adapters.files.storage import REMOTE, FileStorage
from calque.adapters.files.systems import FileSystemSet, OwnLocations
from calque.app import APP
from calque.plugins.s3.adapters.store import PART
from calque.ports import CopyTask
from support.services.objects import ObjectStore, weed


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, files=20_000, kib=16, big=2, mib=512).parse_args(given)
    tell_machine()
    with tempfile.TemporaryDirectory(prefix="calque-bench-") as folder, ObjectStore.start(Path(folder)) as store:
        source = Path(folder) / "source"
        for name, count, size in (
            ("small", options.files, options.kib << 10),
            ("big", options.big, options.mib << 20),
        ):
            write(source / name, count, size)
            ours = copied(store, source / name)
            by_s3, theirs = client(store, source / name), bulk(store, source / name)
            print(
                f"{name}: {count} files of {size >> 10} KB: calque {ours:.1f} s ({count / ours:.0f} files/s, "
                f"{count * size / ours / 1e6:.0f} MB/s), obstore {by_s3:.1f} s, weed filer.copy {theirs:.1f} s; "
                f"ratios {ours / by_s3:.2f} and {ours / theirs:.2f}"
            )


def write(folder: Path, count: int, size: int) -> None:
    folder.mkdir(parents=True)
    block = os.urandom(1 << 20)
    for number in range(count):
        with (folder / f"{number:06}").open("wb") as file:
            left = size
            while left > 0:
                left -= file.write(block[:left])
            file.write(b"")


def copied(store: ObjectStore, folder: Path) -> float:
    root = f"s3://{store.bucket}/ours/{folder.name}"
    storage = FileStorage(FileSystemSet(own=OwnLocations((root,), store.options), kinds=APP.file_systems()))
    listing = storage.list([str(folder)])[str(folder)]
    tasks = [
        CopyTask(f"{folder}/{file.path}", f"{root}/{file.path}", file.size, file.modified_ns) for file in listing.files
    ]
    start = time.perf_counter()
    done = storage.copy(tasks)
    seconds = time.perf_counter() - start
    assert not [each for each in done if each.problem]
    assert all(each.checksum for each in done)
    assert storage.list([root])[root].fingerprint() == listing.fingerprint()
    return seconds


def client(store: ObjectStore, folder: Path) -> float:
    endpoint, keys = store.options["endpoint_url"], (store.options["key"], store.options["secret"])
    bucket = S3Store(
        store.bucket,
        endpoint=endpoint,
        access_key_id=keys[0],
        secret_access_key=keys[1],
        region="us-east-1",
        client_options={"allow_http": True},
    )
    start = time.perf_counter()
    with ThreadPoolExecutor(REMOTE.threads) as pool:
        for done in [
            pool.submit(obstore.put, bucket, f"client/{folder.name}/{file.name}", file, chunk_size=PART)
            for file in folder.iterdir()
        ]:
            done.result()
    return time.perf_counter() - start


def bulk(store: ObjectStore, folder: Path) -> float:
    start = time.perf_counter()
    target = f"http://{store.filer}/buckets/{store.bucket}/theirs/"
    subprocess.run(
        [str(weed()), "-logtostderr=true", "filer.copy", str(folder), target], check=True, capture_output=True
    )
    return time.perf_counter() - start


def test_copies_into_an_object_store_are_measured() -> None:
    main(["--files", "20", "--mib", "10"])


if __name__ == "__main__":
    main()
