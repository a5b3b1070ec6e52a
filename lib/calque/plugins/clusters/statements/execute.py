"""Statements on clusters: which there are, who has a table, where a statement would run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from calque.errors import Refused
from calque.model.names import TableName
from calque.plugins.clusters.api.matching import reachable
from calque.plugins.clusters.api.open_clusters import OpenClusters
from calque.plugins.clusters.api.secondaries import Secondaries
from calque.plugins.clusters.config.sections import cluster_of, clusters_of, require_clusters
from calque.plugins.clusters.ports import Engine
from calque.plugins.clusters.statements.kinds import (
    CLUSTER_COLUMNS,
    EXPLAIN_COLUMNS,
    PLACEMENT_COLUMNS,
    AddSecondaryCluster,
    DropSecondaryCluster,
    ExplainCluster,
    ShowClusters,
    ShowClustersOfTable,
    UseCluster,
)
from calque.plugins.clusters.wiring.cluster import cluster_wirings
from calque.plugins.clusters.wiring.secondary_tables import as_statements_have_it
from calque.statements.result import NO_RESULT, Result, StreamedResult, result_of
from calque.statements.session import Session, named
from calque.statements.statement import EngineStatement
from calque.wiring.wiring import Wiring


@dataclass(slots=True)
class ClusterSession:
    """What a session keeps: the cluster of `USE CLUSTER`, None where each statement's is resolved; the open clusters,
    None until they are asked for; and a session at the engine of each cluster on which a statement ran."""

    used: str | None = None
    clusters: OpenClusters | None = None
    engines: dict[str, Engine] = field(default_factory=dict)

    def engine(self, cluster: str, wiring: Wiring) -> Engine:
        """The session there, the same for all statements. Raises `Refused` where the cluster has no engine."""
        if cluster not in self.engines:
            self.engines[cluster] = cluster_wirings(wiring)[cluster].engine()
        return self.engines[cluster]

    def close(self) -> None:
        while self.engines:
            self.engines.popitem()[1].close()


def use_cluster(statement: UseCluster, session: Session) -> Result:
    """Raises `Refused` for an unknown cluster, and where clusters are disabled."""
    config = session.wiring.config
    clusters = require_clusters(config)
    kept = session.kept(ClusterSession)
    if statement.cluster is None:
        kept.used = None
        return NO_RESULT
    if not clusters.enabled:
        why = f"All statements run on the default, {clusters.default}"
        raise Refused("Clusters are disabled", why, "Write enabled = true below [clusters]")
    kept.used = cluster_of(config, statement.cluster).name
    return NO_RESULT


def show_clusters(_: ShowClusters, session: Session) -> Result:
    clusters = require_clusters(session.wiring.config)
    answers = reachable(session.wiring)
    return result_of(
        CLUSTER_COLUMNS,
        (
            {
                "cluster": name,
                "metastore": ",".join(cluster.plug.keys.metastore),
                "engine": cluster.plug.engine or None,
                "default": name == clusters.default,
                "reachable": answers[name],
            }
            for name, cluster in cluster_wirings(session.wiring).items()
        ),
    )


def show_clusters_of_table(statement: ShowClustersOfTable, session: Session) -> Result:
    """Raises `Refused` for a table that no cluster has, and `Unavailable` where one that is away may have it."""
    placements = opened(session).look(named(statement.table, session)).placements
    return Result(
        PLACEMENT_COLUMNS,
        tuple(tuple(getattr(placement, column) for column in PLACEMENT_COLUMNS) for placement in placements),
    )


def explain_cluster(statement: ExplainCluster, session: Session) -> Result:
    """A row for each cluster that was looked at; where none had to be, one that says why the statement is refused.
    Raises `Unavailable`."""
    try:
        text = statement.statement.rstrip().rstrip(";")
        resolution = opened(session).resolve(
            text, used=session.kept(ClusterSession).used, database=session.database or "default"
        )
    except Refused as refused:
        return Result(EXPLAIN_COLUMNS, ((None, False, " ".join(f"{refused.what}: {refused.why}".split())),))
    if not resolution.considered:
        return Result(EXPLAIN_COLUMNS, ((None, False, resolution.refusal),))
    return Result(EXPLAIN_COLUMNS, tuple((one.cluster, one.chosen, one.reason) for one in resolution.considered))


def add_secondary(statement: AddSecondaryCluster, session: Session) -> Result:
    """Returns when it is recorded, and taken over by a `run` that there is. Raises `Refused` and `Unavailable`."""
    return alter(Secondaries.add, statement, session)


def drop_secondary(statement: DropSecondaryCluster, session: Session) -> Result:
    """As `add_secondary`."""
    return alter(Secondaries.drop, statement, session)


def alter(
    change: Callable[[Secondaries, TableName, str, str | None], None],
    statement: AddSecondaryCluster | DropSecondaryCluster,
    session: Session,
) -> Result:
    cluster = cluster_of(session.wiring.config, statement.cluster).name
    secondaries = Secondaries(session.wiring, opened(session).matching)
    change(secondaries, named(statement.table, session), cluster, statement.predicate)
    session.wiring = Wiring(as_statements_have_it(session.wiring.config), session.wiring.runtime)
    session.kept(ClusterSession).clusters = None
    return NO_RESULT


def run_on_cluster(statement: EngineStatement, session: Session) -> StreamedResult | None:
    """None where the configuration has no clusters. Raises `Refused` where no cluster can process the statement, where
    the one that can has no engine, and with the engine's words; `Unavailable` where something does not answer."""
    if not clusters_of(session.wiring.config):
        return None
    kept = session.kept(ClusterSession)
    route = opened(session).route(statement.text, kept.used, session.database)
    resolution = route.resolution
    if resolution.cluster is None:
        todo = "Say EXPLAIN CLUSTER and the statement, or change what is where"
        raise Refused("No cluster can process the statement", resolution.refusal, todo)
    session.report(f"{resolution.cluster}: {statement.text}")
    given = kept.engine(resolution.cluster, session.wiring).run(route.text, route.database, statement.parameters)
    return StreamedResult(given.columns, given.rows)


def opened(session: Session) -> OpenClusters:
    """The session's, made when it is first asked for. Raises `Refused` where the configuration has no clusters."""
    require_clusters(session.wiring.config)
    kept = session.kept(ClusterSession)
    if kept.clusters is None:
        kept.clusters = OpenClusters(session.wiring)
    return kept.clusters
