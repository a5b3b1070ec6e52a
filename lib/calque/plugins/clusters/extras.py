"""What has to be installed for statements that run at engines."""

from __future__ import annotations

from calque.config.extras import Extra
from calque.config.plugs import Config
from calque.plugins.clusters.config.sections import SPARK_CONNECT, clusters_of


def engine(config: Config) -> str:
    """The first cluster whose engine is reached by Spark Connect."""
    clusters = clusters_of(config).values()
    return next((f"[clusters.{one.name}]" for one in clusters if one.engine.startswith(f"{SPARK_CONNECT}://")), "")


CLUSTERS = Extra(name="clusters", modules=("grpc", "pandas", "zstandard"), needed=engine)
