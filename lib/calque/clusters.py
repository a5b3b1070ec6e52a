"""The clusters of a configuration, which tell who has which table, over the deployments that replicate between them.

with calque.clusters.open("clusters.toml") as clusters:
    clusters.locate("sales.orders")                              # where it is, and as of which event
    clusters.resolve("SELECT count(*) FROM sales.orders")        # where that would run, and why
    clusters.table("sales.orders", cluster="C2")                 # its definition there

A package that adds an engine gives an `Engine`.
"""

from __future__ import annotations

from pathlib import Path

from calque.app import APP
from calque.plugins.clusters.api.open_clusters import OpenClusters
from calque.plugins.clusters.api.presence import Placement
from calque.plugins.clusters.config.sections import require_clusters
from calque.plugins.clusters.ports import Engine

__all__ = ["Engine", "OpenClusters", "Placement", "open"]


def open(config: str | Path = "clusters.toml") -> OpenClusters:  # noqa: A001 - clusters.open reads as what it is
    """Open the clusters of the configuration in the file `config`. Nothing connects before it is asked. Raises
    `Refused` where the configuration has none."""
    loaded = APP.load(config)
    require_clusters(loaded)
    return OpenClusters(APP.wiring(loaded))
