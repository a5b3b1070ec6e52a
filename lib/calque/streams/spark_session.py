"""The Spark session of a running process, and how it is begun before all else: its JVM starts beside the imports."""

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
    """The process's session, with its scratch files in the state folder, and with Delta where its jars are installed.
    Raises `Refused`."""
    try:
        jars = delta_jars()
    except Unavailable:
        jars = []
    return session("calque", jars, state / "spark", archive=archive_path(cache_folder(), jars))


def begin(state: Path) -> None:
    """Begin to start it, and come back at once. What goes wrong is met again by who asks for it."""
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
