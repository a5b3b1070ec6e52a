"""Fills the cache for tests: the sandbox and the services that only tests start; again does nothing.

`python -m support.services.install tests` brings what tests need, with `interop` in its place also Hive itself.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

from calque.sandbox.install import DELTA, DEMO, TESTS, Bundle, Report, install_as_asked, make_reported
from support.services import hdfs, manifest
from support.services.registry import registry_program

CHECKSUMS = Path(__file__).with_name("checksums.txt")


def unpack_registry(cache: Path) -> None:
    """Unpack the schema registry's program, where it is not there yet."""
    if registry_program(cache).is_dir():
        return
    with tempfile.TemporaryDirectory(prefix="unpack-", dir=cache) as scratch:
        folder = Path(scratch) / "program"
        with tarfile.open(manifest.REGISTRY_DISTRIBUTION.path(cache)) as archive:
            archive.extractall(folder, filter="data")
        folder.replace(registry_program(cache))


def prepare_hdfs(cache: Path, report: Report) -> None:
    """Make the archives that let HDFS start faster."""
    make_reported("HDFS", lambda: hdfs.make_archives(cache), report)


SERVICES = Bundle(
    stamp="installed-services",
    artifacts=manifest.OF_SERVICES,
    checksums=CHECKSUMS,
    unpack=unpack_registry,
    prepare=prepare_hdfs,
)
INTEROP = Bundle(
    stamp="installed-interop",
    artifacts=manifest.OF_INTEROP,
    checksums=CHECKSUMS,
    unpack=lambda _: None,
    prepare=lambda _cache, _report: None,
)
PARTS = {"tests": [DELTA, DEMO, TESTS, SERVICES], "interop": [DELTA, DEMO, TESTS, SERVICES, INTEROP]}

if __name__ == "__main__":
    sys.exit(install_as_asked(sys.argv[1:], PARTS))
