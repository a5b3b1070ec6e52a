"""Which jars a Spark session must get on its class path."""

from pathlib import Path

from calque.resources import cache_folder
from calque.sandbox import manifest
from calque.sandbox.artifacts import installed


def spark_jars(cache: Path | None = None) -> list[Path]:
    """The Delta jars, for `spark.driver.extraClassPath` and the executors'. Raises `Unavailable` without an install."""
    return installed(manifest.DELTA_JARS, cache or cache_folder())
