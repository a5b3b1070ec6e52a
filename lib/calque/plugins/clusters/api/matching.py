"""The matching of clusters with the sources and targets of the deployments, by what the metastores themselves say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from calque.config.places import one_metastore
from calque.engine.check.findings import Findings, Severity
from calque.errors import AccessRefused, CalqueError, Refused, Unavailable
from calque.plugins.clusters.config.sections import clusters_of
from calque.plugins.clusters.wiring.cluster import cluster_wirings, deployments
from calque.wiring.source import SourceWiring
from calque.wiring.target import TargetWiring
from calque.wiring.wiring import Wiring

PATIENCE_SECONDS = 3.0


def reachable(wiring: Wiring) -> Mapping[str, bool]:
    """Tell of each cluster, by name, whether its metastore answers. All are asked at once, and a silent one is waited
    for no longer than `PATIENCE_SECONDS`."""

    def answers(name: str) -> bool:
        try:
            cluster_wirings(wiring)[name].impatient_server(PATIENCE_SECONDS).ping()
        except CalqueError:
            return False
        return True

    with ThreadPoolExecutor(max(len(cluster_wirings(wiring)), 1)) as pool:
        return dict(zip(cluster_wirings(wiring), pool.map(answers, cluster_wirings(wiring)), strict=True))


@dataclass(frozen=True, slots=True)
class Stream:
    """A target of a deployment with the source that it follows, and the clusters of their metastores. A metastore that
    belongs to no cluster has None."""

    deployment: Wiring
    source: SourceWiring
    target: TargetWiring
    source_cluster: str | None
    target_cluster: str | None


@dataclass(slots=True)
class Matching:
    """A memory of which cluster each metastore belongs to. Equal addresses mean one metastore; for others the ids that
    the metastores keep decide. Answers are remembered; a metastore that did not answer is asked again."""

    wiring: Wiring
    _ids: dict[str, str] = field(default_factory=dict)
    _streams: tuple[Stream, ...] | None = None

    def streams(self) -> Sequence[Stream]:
        """Return the streams of all deployments. A metastore that does not answer belongs to no cluster for now, unless
        its address says otherwise."""
        if self._streams is not None:
            return self._streams
        streams, is_final = [], True
        for deployment in deployments(self.wiring):
            for target in deployment.targets.values():
                source = target.source
                at_source, knows_source = self._cluster_of(source.plug.keys.metastore, source.side().catalog.identity)
                catalog = target.catalog_for_statements()
                at_target, knows_target = self._cluster_of(target.plug.keys.metastore, catalog.identity)
                is_final = is_final and knows_source and knows_target
                streams.append(Stream(deployment, source, target, at_source, at_target))
        if is_final:
            self._streams = tuple(streams)
        return streams

    def identity(self, cluster: str) -> str:
        """Return the id of the cluster's metastore; empty where it keeps none. Raises `Unavailable` and
        `AccessRefused`."""
        if cluster not in self._ids:
            self._ids[cluster] = cluster_wirings(self.wiring)[cluster].catalog().identity()
        return self._ids[cluster]

    def _cluster_of(self, addresses: tuple[str, ...], identity: Callable[[], str]) -> tuple[str | None, bool]:
        """Return the cluster of the metastore, None for none, and whether that answer is certain."""
        for name, cluster in cluster_wirings(self.wiring).items():
            if one_metastore(addresses, cluster.plug.keys.metastore):
                return name, True
        try:
            own_id = identity()
        except (Unavailable, AccessRefused):
            return None, False
        is_certain = True
        for name in cluster_wirings(self.wiring):
            try:
                if own_id and self.identity(name) == own_id:
                    return name, True
            except (Unavailable, AccessRefused):
                is_certain = False
        return None, is_certain


def check_clusters(wiring: Wiring, findings: Findings) -> None:
    """Check that each cluster's metastore answers, is another than those of the other clusters, and is the source or a
    target of a deployment. A configuration without clusters has no findings."""
    if not clusters_of(wiring.config):
        return
    matching = Matching(wiring)
    clusters_by_id: dict[str, str] = {}
    reached = set()
    for name, cluster in cluster_wirings(wiring).items():
        where = f"cluster {name}"
        try:
            cluster.impatient_server(PATIENCE_SECONDS).ping()
            own_id = matching.identity(name)
        except CalqueError as error:
            findings.refused(where, error)
            continue
        reached.add(name)
        if own_id and (first := clusters_by_id.setdefault(own_id, name)) != name:
            what, why = f"{name} and {first} have one metastore", f"Both addresses lead to the one of id {own_id}"
            findings.refused(where, Refused(what, why, "Correct one of the addresses"))
        if not cluster.plug.engine:
            what, todo = f"{name} has no engine", f"Write engine below [clusters.{name}]"
            findings.add(where, Severity.INFO, what, "No statement can run there", todo)
    streams = matching.streams()
    matched = {stream.source_cluster for stream in streams} | {stream.target_cluster for stream in streams}
    strangers = dict(strange_metastores(streams))
    for name in reached - matched if deployments(wiring) else ():
        what = f"The metastore of {name} is no deployment's source or target"
        if strangers:
            place, addresses = next(iter(strangers.items()))
            todo = f"Correct metastore below [clusters.{name}]: {place} is at {addresses}, which is no cluster's"
            findings.refused(f"cluster {name}", Refused(what, "The address is wrong, or nothing is replicated", todo))
        else:
            why = "Its tables are at no other cluster, and no other's are there"
            findings.add(
                f"cluster {name}", Severity.INFO, what, why, "Name its deployment in deployments, if it has one"
            )
    if reached == set(cluster_wirings(wiring)) <= matched:
        for place, addresses in strangers.items():
            what = f"{place} is at {addresses}, which is no cluster's metastore"
            findings.add("clusters", Severity.INFO, what, "Its tables count for no cluster")


def strange_metastores(streams: Sequence[Stream]) -> Mapping[str, str]:
    """Return the sources and targets that are at no cluster, each with its addresses."""
    strange = {}
    for stream in streams:
        file = stream.deployment.config.path.name
        if stream.source_cluster is None:
            keys = stream.source.plug.keys
            strange[f"the source {stream.source.plug.name} of {file}"] = ",".join(keys.metastore)
        if stream.target_cluster is None:
            strange[f"the target {stream.target.plug.name} of {file}"] = ",".join(stream.target.plug.keys.metastore)
    return strange
