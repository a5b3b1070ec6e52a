"""The live objects of one cluster, and the deployments of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.reader import HiveReader
from calque.adapters.metastore.server import MetastoreServer
from calque.errors import Refused
from calque.plugins.clusters.config.sections import ENGINES, SPARK_CONNECT, HiveCluster, clusters_of
from calque.plugins.clusters.ports import Engine
from calque.wiring.wiring import Wiring


@dataclass(slots=True)
class ClusterWiring:
    """The live objects of one cluster, made when they are first asked for. None of them writes at its metastore."""

    plug: HiveCluster
    _client: Client | None = None

    def catalog(self) -> HiveReader:
        return HiveReader(self.client())

    def log(self) -> HiveLog:
        return HiveLog(self.client())

    def client(self) -> Client:
        if self._client is None:
            self._client = self._opened()
        return self._client

    def impatient_server(self, seconds: float) -> MetastoreServer:
        """Open a connection of its own to the metastore, on which connecting and each call wait at most `seconds`, and
        return it for questions about the metastore itself."""
        return MetastoreServer(self._opened(connect_timeout=seconds, call_timeout=seconds, connections=1))

    def engine(self) -> Engine:
        """Make a new session at the cluster's engine, which connects when a statement is run. Raises `Refused` where
        the cluster has no engine."""
        name, address = self.plug.name, self.plug.engine
        if not address:
            raise Refused(f"The cluster {name} has no engine", todo=f"Write engine below [clusters.{name}]")
        scheme = address.partition(":")[0]
        if scheme == SPARK_CONNECT:
            from calque.plugins.clusters.adapters.spark_connect import SparkConnectEngine

            return SparkConnectEngine(address)
        (point,) = entry_points(group=ENGINES, name=scheme)
        engine: Engine = point.load()(address)
        return engine

    def _opened(self, **options: Any) -> Client:
        keys = self.plug.keys
        return Client(",".join(keys.metastore), keys.access(), **options)


def cluster_wirings(wiring: Wiring) -> Mapping[str, ClusterWiring]:
    """Return the live objects of each cluster, by name, in the order of the configuration. They are made once for each
    `wiring`."""
    return wiring.kept(wired_clusters)


def wired_clusters(wiring: Wiring) -> Mapping[str, ClusterWiring]:
    return {name: ClusterWiring(plug) for name, plug in clusters_of(wiring.config).items()}


def deployments(wiring: Wiring) -> tuple[Wiring, ...]:
    """Return the wirings that have the sources and targets of the clusters: those of the files that `deployments`
    names, and first this wiring itself where it has sources."""
    return wiring.kept(wired_deployments)


def wired_deployments(wiring: Wiring) -> tuple[Wiring, ...]:
    others = tuple(Wiring(other, wiring.runtime) for other in wiring.config.others)
    return (wiring, *others) if wiring.config.sources else others
