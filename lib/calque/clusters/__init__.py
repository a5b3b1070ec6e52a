"""Who has which table: the clusters of a configuration, over the deployments that replicate between them.

with calque.clusters.open("clusters.toml") as clusters:
    clusters.locate("sales.orders")                              # where it is, and as of which event
    clusters.resolve("SELECT count(*) FROM sales.orders")        # where that would run, and why
    clusters.table("sales.orders", cluster="C2")                 # its definition there

`matching` says which cluster each source and target of the deployments is at, `presence` what of a table is there,
`lag` how far a replica lags, `api` puts them together.
"""

from calque.clusters.api import OpenClusters
from calque.clusters.api import open_clusters as open  # noqa: A004 - what the document's readers look for
from calque.clusters.presence import Placement

__all__ = ["OpenClusters", "Placement", "open"]
