"""Who has which table: the clusters of a configuration, over the deployments that replicate between them.

with calque.clusters.open("clusters.toml") as clusters:
    clusters.locate("sales.orders")                              # where it is, and as of which event
    clusters.resolve("SELECT count(*) FROM sales.orders")        # where that would run, and why
    clusters.table("sales.orders", cluster="C2")                 # its definition there

A package that adds an engine gives an `Engine`.
"""

from calque.plugins.clusters.api.open_clusters import OpenClusters
from calque.plugins.clusters.api.open_clusters import open_clusters as open  # noqa: A004
from calque.plugins.clusters.api.presence import Placement
from calque.plugins.clusters.ports import Engine

__all__ = ["Engine", "OpenClusters", "Placement", "open"]
