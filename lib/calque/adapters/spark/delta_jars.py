"""Delta's jars, with which a session reads the journal, ledgers and Delta replicas by SQL."""

from __future__ import annotations

from pathlib import Path

import pyspark

from calque.errors import Unavailable
from calque.resources import cache_folder

TO_INSTALL = "Run `python -m calque.sandbox.install delta`"


def delta_folder(cache: Path) -> Path:
    """Return the folder of the jars for this Spark. It has all of them, or is not there."""
    return cache / f"delta-for-spark-{pyspark.__version__}"


def delta_jars(cache: Path | None = None) -> list[Path]:
    """Return the jars, for `spark.driver.extraClassPath` and `spark.executor.extraClassPath`, or for
    `spark-submit --jars`. Raises `Unavailable` without an install."""
    folder = delta_folder(cache or cache_folder())
    if not (jars := sorted(folder.glob("*.jar"))):
        raise Unavailable("Delta's jars are not installed", f"{folder} is missing", TO_INSTALL)
    return jars
