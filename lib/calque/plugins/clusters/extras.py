"""The packages that statements at engines need besides calque's own."""

from __future__ import annotations

from calque.config.extras import Extra
from calque.config.plugs import Config
from calque.plugins.clusters.config.sections import SPARK_CONNECT, clusters_of


def engine(config: Config) -> str:
    """Return the section of the first cluster whose engine is reached by Spark Connect; empty where there is none."""
    clusters = clusters_of(config).values()
    return next((f"[clusters.{one.name}]" for one in clusters if one.engine.startswith(f"{SPARK_CONNECT}://")), "")


CLUSTERS = Extra(name="clusters", modules=("grpc", "pandas", "zstandard"), needed=engine)
