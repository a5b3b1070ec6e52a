"""The Spark session of a running process. Its JVM starts on a thread while Python still imports modules."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from calque.adapters.spark.archive import archive_path
from calque.adapters.spark.delta_jars import delta_jars
from calque.adapters.spark.session import session
from calque.errors import CalqueError, Unavailable
from calque.resources import cache_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOG = logging.getLogger(__name__)


def own_session(state: Path) -> SparkSession:
    """Return the process's Spark session, started at the first call. Its scratch files lie in the state folder, and it
    reads Delta tables where their jars are installed. Raises `Refused` when no JVM can be started."""
    try:
        jars = delta_jars()
    except Unavailable:
        jars = []
    return session("calque", jars, state / "spark", archive=archive_path(cache_folder(), jars))


def begin(state: Path) -> None:
    """Start the session on a thread, and return at once. An error is not raised here: the first caller of `own_session`
    meets it."""
    try:
        delta_jars()
    except Unavailable as missing:
        LOG.info("The Spark session reads no Delta tables, which calque itself reads without Spark: %s", missing)

    def start() -> None:
        try:
            own_session(state)
        except (CalqueError, OSError):
            return

    threading.Thread(target=start, name="spark", daemon=True).start()
