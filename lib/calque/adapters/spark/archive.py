"""An archive of the classes that calque's sessions load (Java's AppCDS), made once by a rehearsal.

With it a session starts in half the time (measured: 154 MB, and it needs the very class path it was made with). Java
checks that itself, and goes on without an archive that does not fit.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyspark
from pyspark import SparkContext

from calque.adapters.spark.log_stream import log_stream
from calque.adapters.spark.query import start
from calque.adapters.spark.session import java_options, session
from calque.errors import Unavailable
from calque.model.journal import Event
from calque.model.names import EventId


def archive_path(cache: Path, jars: Sequence[Path]) -> Path:
    """Return the path in `cache` of the archive for these jars, this Spark and this Java; another path when any of them
    changes."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    digest = hashlib.blake2b(digest_size=6)
    for file in (java.resolve(), Path(pyspark.__file__).resolve(), *jars):
        status = file.stat() if file.exists() else None
        digest.update(f"{file}\0{status and (status.st_size, status.st_mtime_ns)}\n".encode())
    return cache / f"spark-{pyspark.__version__}-{digest.hexdigest()}.jsa"


def make_archive(cache: Path, jars: Sequence[Path]) -> Path:
    """Return the archive's path. Unless the archive is there, it is made by running a small query in a session of
    another process (about half a minute). Raises `Unavailable`; sessions work without the archive."""
    path = archive_path(cache, jars)
    if path.is_file():
        return path
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="archive-", dir=cache) as folder:
        temporary = Path(folder, "classes.jsa")
        command = [sys.executable, "-m", __name__, folder, str(temporary), *map(str, jars)]
        process = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        if process.returncode or not temporary.is_file():
            raise Unavailable(
                "The archive of Spark's classes was not made",
                last_line(process.stderr) or "Java wrote none",
                "Go on without it: sessions start a few seconds later",
            )
        temporary.replace(path)
    return path


def last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def rehearse(folder: Path, archive: Path, jars: Sequence[Path]) -> None:
    """Run a small query, and let Java write `archive` at the process's end, which must be an orderly one."""
    options = (*java_options(folder), f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:disable", "-Xlog:all=error:stderr")
    spark = session("rehearsal", jars, folder, {"spark.driver.extraJavaOptions": shlex.join(options)})
    played = threading.Event()
    stream = log_stream(partial(RehearsalLog, 30), 0, 0.25)
    query = start(spark, stream, lambda _: played.set(), name="rehearsal", checkpoint=str(folder / "checkpoint"))
    while not played.is_set() and not query.join(0.1):
        pass
    query.stop()
    gateway = SparkContext._gateway
    spark.stop()
    assert gateway is not None
    gateway.proc.stdin.close()
    gateway.proc.wait()


class RehearsalLog:
    """A log of events that mean nothing."""

    def __init__(self, current: EventId) -> None:
        self._current = current

    def current(self) -> EventId:
        return self._current

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        ids = range(after + 1, min(after + limit, self._current) + 1)
        return [Event(event_id, 0, "OPEN_TXN", "hive", "", "", "json-2.0", "{}") for event_id in ids]


if __name__ == "__main__":
    rehearse(Path(sys.argv[1]), Path(sys.argv[2]), [Path(argument) for argument in sys.argv[3:]])
